import CAlightLinux
import FileEvents
import Glibc
package import Rules
package import System

/// Gives something a name in an open folder, in the way that `on_conflict` asks for.
///
/// Each step is one system call that fails when somebody else was faster. So
/// nothing is ever lost that was not to be replaced, and at no moment is half a file seen.
package struct Placing {
    package let folder: OpenFolder
    package let name: PathBytes
    package let conflict: Conflict
    package let trash: Trash
    /// How long contents may be compared.
    package let limit: WorkLimit
    /// Called before a name is given.
    package var willWrite: (PathBytes) -> Void = { _ in }

    package init(
        in folder: OpenFolder, as name: PathBytes, _ conflict: Conflict, trash: Trash, within limit: WorkLimit
    ) {
        self.folder = folder
        self.name = name
        self.conflict = conflict
        self.trash = trash
        self.limit = limit
    }

    package enum Ending {
        /// It has this name.
        case placed(PathBytes)
        /// `on_conflict: skip`, and there is something.
        case skipped
        /// `on_conflict: deduplicate`, and the file of this name has the same content.
        case duplicate(PathBytes)
    }

    /// What is to get the name.
    package struct Candidate {
        /// Gives it a name that nothing has: 0, or the errno.
        package var put: (PathBytes) -> Int32
        /// Gives it a name and replaces what has it: 0, or the errno.
        package var replace: (PathBytes) -> Int32
        /// Its content, to be compared; nil when it has none.
        package var content: OpenFile?

        package init(
            put: @escaping (PathBytes) -> Int32, replace: @escaping (PathBytes) -> Int32, content: OpenFile? = nil
        ) {
            self.put = put
            self.replace = replace
            self.content = content
        }
    }

    /// Gives what has a name in another folder of the same file system its new one.
    ///
    /// - Parameters:
    ///   - from: The folder that it is in, which may be the same.
    ///   - former: Its name there.
    ///   - content: Opened for reading, when it may be compared.
    ///   - changes: Takes what was done to make room.
    /// - Returns: How that ended.
    /// - Throws: What failed.
    package func place(
        _ from: OpenFolder, _ former: PathBytes, content: OpenFile? = nil, noting changes: inout [FileChange]
    ) throws(FileFault) -> Ending {
        let folder = folder
        let candidate = Candidate(
            put: { from.rename(former, to: folder, $0, CAL_RENAME_NEW) },
            replace: { from.rename(former, to: folder, $0, CAL_RENAME_REPLACING) }, content: content)
        return try place(candidate, noting: &changes)
    }

    /// The same for anything.
    package func place(_ candidate: Candidate, noting changes: inout [FileChange]) throws(FileFault) -> Ending {
        switch conflict {
        case .overwrite: return try overwrite(candidate, &changes)
        case .renameExisting: return try renameExisting(candidate, &changes)
        case .trash: return try trashExisting(candidate, &changes)
        case .rename, .skip, .fail, .deduplicate: return try number(candidate)
        }
    }

    private func put(_ candidate: Candidate, _ name: PathBytes) -> Int32 {
        willWrite(folder.path(of: name))
        return candidate.put(name)
    }

    private func replace(_ candidate: Candidate, _ name: PathBytes) -> Int32 {
        willWrite(folder.path(of: name))
        return candidate.replace(name)
    }

    private func fault(_ error: Int32, _ name: PathBytes) -> FileFault {
        FileFault(error, "cannot rename to '\(folder.path(of: name))'")
    }

    private var crowded: FileFault {
        FileFault(EEXIST, "there are \(Destination.mostNumbers) files like '\(folder.path(of: name))'")
    }

    private func number(_ candidate: Candidate) throws(FileFault) -> Ending {
        for number in 0..<Destination.mostNumbers {
            let name = Destination.numbered(name, number)
            switch put(candidate, name) {
            case 0: return .placed(name)
            case EEXIST:
                if conflict == .skip { return .skipped }
                if conflict == .fail {
                    throw FileFault(EEXIST, "on_conflict is 'fail' and '\(folder.path(of: name))'")
                }
                if conflict == .deduplicate, let content = candidate.content,
                    try SameContent.holds(content, name, in: folder, within: limit)
                {
                    return .duplicate(name)
                }
            case let error: throw fault(error, name)
            }
        }
        throw crowded
    }

    private func overwrite(_ candidate: Candidate, _ changes: inout [FileChange]) throws(FileFault) -> Ending {
        // Where nothing is, nothing is replaced, which undo wants to know.
        switch put(candidate, name) {
        case 0: return .placed(name)
        case EEXIST: break
        case let error: throw fault(error, name)
        }
        let error = replace(candidate, name)
        guard error == 0 else { throw fault(error, name) }
        if let facts = try folder.look(at: name) {
            changes.append(FileChange(.overwritten(folder.path(of: name)), left: FileMark(facts)))
        }
        return .placed(name)
    }

    /// Puts the new file beside the old one, and exchanges the two: there is one of that name at every moment.
    private func renameExisting(_ candidate: Candidate, _ changes: inout [FileChange]) throws(FileFault) -> Ending {
        for number in 0..<Destination.mostNumbers {
            let place = Destination.numbered(name, number)
            switch put(candidate, place) {
            case 0:
                guard number > 0 else { return .placed(name) }
                return try exchange(place, &changes)
            case EEXIST: continue
            case let error: throw fault(error, place)
            }
        }
        throw crowded
    }

    private func exchange(_ place: PathBytes, _ changes: inout [FileChange]) throws(FileFault) -> Ending {
        var error = folder.rename(place, to: folder, name, CAL_RENAME_EXCHANGING)
        if error == EINVAL || error == ENOSYS {
            // A file system without an exchange: another name for the old one, and then the new one into its place.
            for number in 1..<Destination.mostNumbers {
                let old = Destination.numbered(name, number)
                error = folder.rename(name, to: folder, old, CAL_RENAME_NEW)
                guard error != EEXIST else { continue }
                if error == 0 { try note(old, &changes) }
                break
            }
            if error == 0 || error == ENOENT { error = folder.rename(place, to: folder, name, CAL_RENAME_NEW) }
            // Somebody has put another one there: it stands beside it, as with `rename`.
            return .placed(error == 0 ? name : place)
        }
        if error == 0 {
            try note(place, &changes)
            return .placed(name)
        }
        guard error == ENOENT else { throw fault(error, name) }
        // The old one has gone meanwhile.
        return .placed(folder.rename(place, to: folder, name, CAL_RENAME_NEW) == 0 ? name : place)
    }

    private func note(_ old: PathBytes, _ changes: inout [FileChange]) throws(FileFault) {
        guard let facts = try folder.look(at: old) else { return }
        changes.append(
            FileChange(.moved(from: folder.path(of: name), to: folder.path(of: old)), left: FileMark(facts)))
    }

    private func trashExisting(_ candidate: Candidate, _ changes: inout [FileChange]) throws(FileFault) -> Ending {
        for _ in 0..<Self.mostTries {
            switch put(candidate, name) {
            case 0: return .placed(name)
            case EEXIST:
                if let change = try trash.put(name, in: folder) { changes.append(change) }
            case let error: throw fault(error, name)
            }
        }
        throw FileFault(EBUSY, "somebody makes '\(folder.path(of: name))' again and again")
    }

    private static let mostTries = 100
}

/// Whether two files hold the same bytes.
enum SameContent {
    /// Whether the file of that name holds what the open one does; false when it can't be read or is none.
    static func holds(
        _ file: OpenFile, _ name: PathBytes, in folder: OpenFolder, within limit: WorkLimit
    ) throws(FileFault) -> Bool {
        guard case .success(let other) = folder.open(name, CAL_OPEN_READING), let here = try? file.facts(),
            let there = try? other.facts(), here.type == .file, there.type == .file, here.size == there.size
        else { return false }
        if here.identity == there.identity { return true }
        return try holds(file, other, within: limit)
    }

    /// Whether both hold the same bytes from the beginning to the end.
    static func holds(_ one: OpenFile, _ other: OpenFile, within limit: WorkLimit) throws(FileFault) -> Bool {
        var here = [UInt8](repeating: 0, count: 1 << 18)
        var there = here
        var offset = 0
        while true {
            try limit.check("comparing of contents")
            let left = fill(&here, one.descriptor, offset)
            let right = fill(&there, other.descriptor, offset)
            guard left >= 0, left == right else { return false }
            if left == 0 { return true }
            guard memcmp(here, there, left) == 0 else { return false }
            offset += left
        }
    }

    /// Reads at the offset until the buffer is full or the file is at its end: the bytes read, or -1.
    private static func fill(_ buffer: inout [UInt8], _ descriptor: Int32, _ offset: Int) -> Int {
        var filled = 0
        while filled < buffer.count {
            let start = filled
            let count = buffer.withUnsafeMutableBytes {
                pread(descriptor, $0.baseAddress.map { $0 + start }, $0.count - start, off_t(offset + start))
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return -1 }
            if count == 0 { break }
            filled += count
        }
        return filled
    }
}
