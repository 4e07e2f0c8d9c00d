package import ActionAPI
import CAlightLinux
import Glibc
package import Rules
package import System

/// The naming of a file in an open directory, according to `on_conflict`.
///
/// Each step is one system call that fails if another process was faster. Therefore a file is lost only if it was to be
/// replaced, and a partial file is never visible.
package struct Placing {
    package let folder: DirectoryHandle
    package let name: PathBytes
    package let conflict: Conflict
    package let trash: Trash
    /// The time limit for comparing contents.
    package let limit: WorkLimit
    /// Called before a file gets a name.
    package var willWrite: (PathBytes) -> Void = { _ in }

    package init(
        in folder: DirectoryHandle, as name: PathBytes, _ conflict: Conflict, trash: Trash, within limit: WorkLimit
    ) {
        self.folder = folder
        self.name = name
        self.conflict = conflict
        self.trash = trash
        self.limit = limit
    }

    package enum Ending {
        /// The file has this name.
        case placed(PathBytes)
        /// `on_conflict: skip`, and the name exists.
        case skipped
        /// `on_conflict: deduplicate`, and the file of this name has the same content.
        case duplicate(PathBytes)
    }

    /// The file that is to get the name.
    package struct Candidate {
        /// Gives the file a name that does not exist; returns 0 or the errno.
        package var put: (PathBytes) -> Int32
        /// Gives the file a name, and replaces a file that has it; returns 0 or the errno.
        package var replace: (PathBytes) -> Int32
        /// The content for comparison; nil if there is none.
        package var content: OpenFile?

        package init(
            put: @escaping (PathBytes) -> Int32, replace: @escaping (PathBytes) -> Int32, content: OpenFile? = nil
        ) {
            self.put = put
            self.replace = replace
            self.content = content
        }
    }

    /// Gives a file in another directory of the same file system its new name.
    ///
    /// - Parameters:
    ///   - from: The directory of the file, which may be the same one.
    ///   - former: The name in that directory.
    ///   - content: The file opened for reading, if it may be compared.
    ///   - changes: Receives the changes that free the name.
    /// - Returns: The result.
    /// - Throws: A ``FileError`` if the file does not get a name.
    package func place(
        _ from: DirectoryHandle, _ former: PathBytes, content: OpenFile? = nil, noting changes: inout [FileChange]
    ) throws(FileError) -> Ending {
        let folder = folder
        let candidate = Candidate(
            put: { from.rename(former, to: folder, $0, CAL_RENAME_NEW) },
            replace: { from.rename(former, to: folder, $0, CAL_RENAME_REPLACING) }, content: content)
        return try place(candidate, noting: &changes)
    }

    /// Gives any candidate its name.
    package func place(_ candidate: Candidate, noting changes: inout [FileChange]) throws(FileError) -> Ending {
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

    private func fault(_ error: Int32, _ name: PathBytes) -> FileError {
        FileError(error, "cannot rename to '\(folder.path(of: name))'")
    }

    private var crowded: FileError {
        FileError(EEXIST, "there are \(Destination.mostNumbers) files like '\(folder.path(of: name))'")
    }

    private func number(_ candidate: Candidate) throws(FileError) -> Ending {
        for number in 0..<Destination.mostNumbers {
            let name = Destination.numbered(name, number)
            switch put(candidate, name) {
            case 0: return .placed(name)
            case EEXIST:
                if conflict == .skip { return .skipped }
                if conflict == .fail {
                    throw FileError(EEXIST, "on_conflict is 'fail' and '\(folder.path(of: name))'")
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

    private func overwrite(_ candidate: Candidate, _ changes: inout [FileChange]) throws(FileError) -> Ending {
        // If the name is free, no file is replaced, which matters to an undo.
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

    /// Creates the new file beside the old one, and exchanges the two, so that the name exists at all times.
    private func renameExisting(_ candidate: Candidate, _ changes: inout [FileChange]) throws(FileError) -> Ending {
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

    private func exchange(_ place: PathBytes, _ changes: inout [FileChange]) throws(FileError) -> Ending {
        var error = folder.rename(place, to: folder, name, CAL_RENAME_EXCHANGING)
        if error == EINVAL || error == ENOSYS {
            // A file system without an exchange: rename the old file, then give the new file its name.
            for number in 1..<Destination.mostNumbers {
                let old = Destination.numbered(name, number)
                error = folder.rename(name, to: folder, old, CAL_RENAME_NEW)
                guard error != EEXIST else { continue }
                if error == 0 { try note(old, &changes) }
                break
            }
            if error == 0 || error == ENOENT { error = folder.rename(place, to: folder, name, CAL_RENAME_NEW) }
            // Another process has put a file there: the new file stays beside it, as with `rename`.
            return .placed(error == 0 ? name : place)
        }
        if error == 0 {
            try note(place, &changes)
            return .placed(name)
        }
        guard error == ENOENT else { throw fault(error, name) }
        // The old file has been removed in the meantime.
        return .placed(folder.rename(place, to: folder, name, CAL_RENAME_NEW) == 0 ? name : place)
    }

    private func note(_ old: PathBytes, _ changes: inout [FileChange]) throws(FileError) {
        guard let facts = try folder.look(at: old) else { return }
        changes.append(
            FileChange(.moved(from: folder.path(of: name), to: folder.path(of: old)), left: FileMark(facts)))
    }

    private func trashExisting(_ candidate: Candidate, _ changes: inout [FileChange]) throws(FileError) -> Ending {
        for _ in 0..<Self.mostTries {
            switch put(candidate, name) {
            case 0: return .placed(name)
            case EEXIST:
                if let change = try trash.put(name, in: folder) { changes.append(change) }
            case let error: throw fault(error, name)
            }
        }
        throw FileError(EBUSY, "another process keeps creating '\(folder.path(of: name))'")
    }

    private static let mostTries = 100
}

/// Comparison of file contents.
enum SameContent {
    /// Whether the file with that name has the content of the open one; false if it is not readable or not a regular
    /// file.
    static func holds(
        _ file: OpenFile, _ name: PathBytes, in folder: DirectoryHandle, within limit: WorkLimit
    ) throws(FileError) -> Bool {
        guard case .success(let other) = folder.open(name, CAL_OPEN_READING), let here = try? file.facts(),
            let there = try? other.facts(), here.type == .file, there.type == .file, here.size == there.size
        else { return false }
        if here.identity == there.identity { return true }
        return try holds(file, other, within: limit)
    }

    /// Whether both files have the same bytes from start to end.
    static func holds(_ one: OpenFile, _ other: OpenFile, within limit: WorkLimit) throws(FileError) -> Bool {
        var here = [UInt8](repeating: 0, count: 1 << 18)
        var there = here
        var offset = 0
        while true {
            try limit.check("comparison of contents")
            let left = fill(&here, one.descriptor, offset)
            let right = fill(&there, other.descriptor, offset)
            guard left >= 0, left == right else { return false }
            if left == 0 { return true }
            guard memcmp(here, there, left) == 0 else { return false }
            offset += left
        }
    }

    /// Reads at the offset until the buffer is full or the file ends; returns the number of bytes, or -1.
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
