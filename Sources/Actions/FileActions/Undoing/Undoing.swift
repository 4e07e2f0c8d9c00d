import CAlightLinux
package import FileEvents
import Glibc
package import Rules
import System

/// The reversal of changes that handlers made, as far as their results are unmodified.
///
/// Each step is one system call that fails if another process was faster. A file that was replaced just before a step
/// gets its name back. An existing file is never overwritten.
package struct Undoing {
    /// Whether the changes are only simulated.
    private let isDry: Bool
    /// In a dry run, the names that would be free by now.
    private var vacated: Set<PathBytes> = []
    /// In a dry run, the files that would be restored by now.
    private var restored: Set<PathBytes> = []

    package init(isDry: Bool = false) { self.isDry = isDry }

    /// Undoes one change at once, see ``undo(_:of:)``.
    package static let undo: @Sendable (FileChange, FileEvent) -> String? = { change, event in
        var undoing = Undoing()
        return undoing.undo(change, of: event)
    }

    /// Reverts one change; changes that were made after it must be reverted first.
    ///
    /// - Parameters:
    ///   - change: The change to revert.
    ///   - event: The event that caused the change; no link is followed beneath its root.
    /// - Returns: Nil if the change was reverted, otherwise the reason why it was not.
    package mutating func undo(_ change: FileChange, of event: FileEvent) -> String? {
        do throws(FileError) {
            switch change.kind {
            case .moved(let from, let to): try moveBack(to, from, change.left, event)
            case .trashed(let from, let to, let info):
                try moveBack(to, from, change.left, event)
                if !isDry, let (directory, name) = try? locate(info, event) { directory.unlink(name) }
            case .made(let path, let source): try remove(path, source, change.left, event)
            case .unpacked(let path, let source, let sealed):
                try removeUnpacked(path, source, sealed, change.left, event)
            case .madeDirectory(let path): try removeDirectory(path, change.left, event)
            case .overwritten(let path):
                throw .failed("the previous file at '\(path)' was replaced and can't be restored")
            case .removed(let path, let twin):
                throw .failed("'\(path)' was removed because '\(twin)' has the same content; copy that back")
            }
            return nil
        } catch {
            return error.outcome.message
        }
    }

    // MARK: - Steps

    private mutating func moveBack(
        _ to: PathBytes, _ from: PathBytes, _ mark: FileMark, _ event: FileEvent
    ) throws(FileError) {
        let (directory, name) = try locate(to, event)
        try check(name, in: directory, mark)
        let (target, former) = try locate(from, event)
        let isFree = try target.metadata(of: former) == nil || vacated.contains(from)
        guard isFree else { throw Self.taken(from) }
        guard !isDry else {
            vacated.insert(to)
            restored.insert(from)
            return
        }
        switch directory.rename(name, to: target, former, CAL_RENAME_NEW) {
        case 0: break
        case EEXIST: throw Self.taken(from)
        case EXDEV:
            throw .failed(
                "'\(from)' is on another file system; move '\(to)' back by hand, and check that it is complete")
        case let error: throw FileError(error, "cannot move '\(to)' back to '\(from)'")
        }
        if let there = try target.metadata(of: former), !mark.fits(there) {
            // Another process replaced the file between the check and the move.
            try Removal.restore(former, name, from: target, to: directory)
            throw .failed("'\(to)' was replaced meanwhile")
        }
        target.flush()
        directory.flush()
    }

    private mutating func remove(
        _ path: PathBytes, _ source: PathBytes, _ mark: FileMark, _ event: FileEvent
    ) throws(FileError) {
        let (directory, name) = try locate(path, event)
        guard let there = try directory.metadata(of: name) else { throw .failed("'\(path)' no longer exists") }
        // Another name of the file preserves all later changes to it.
        let hasOthers = there.type == .file && there.links > 1 && there.identity == mark.identity
        if !hasOthers { try check(name, in: directory, mark) }
        if there.type == .file, !hasOthers, !isSafe(source, event) {
            throw .failed("'\(source)' is no longer what was copied, so '\(path)' may be the only copy")
        }
        guard !isDry else {
            vacated.insert(path)
            return
        }
        switch try Removal.remove(name, in: directory, if: there) {
        case .removed: directory.flush()
        case .gone: throw .failed("'\(path)' no longer exists")
        case .changed, .isTwin: throw .failed("'\(path)' was replaced meanwhile")
        }
    }

    /// Removes the unpacked files that are unmodified, and the directories that are empty afterwards.
    private mutating func removeUnpacked(
        _ path: PathBytes, _ source: PathBytes, _ sealed: Timestamp, _ mark: FileMark, _ event: FileEvent
    ) throws(FileError) {
        let (parent, name) = try locate(path, event)
        try check(name, in: parent, mark)
        guard isSafe(source, event) else {
            throw .failed("'\(source)' is no longer what was unpacked, so '\(path)' may be the only copy")
        }
        let directory = try parent.openUnmounted(name)
        guard try directory.metadata(of: ".")?.identity == mark.identity else {
            throw .failed("'\(path)' was replaced meanwhile")
        }
        let tree = UnpackedTree(sealed: sealed, born: mark.identity.birth, isDry: isDry)
        tree.remove(from: directory)
        guard tree.left.isEmpty else {
            let named = tree.left.prefix(3).map { "'\($0)'" }.joined(separator: ", ")
            let more = tree.left.count > 3 ? " and \(tree.left.count - 3) more" : ""
            throw .failed("changed or added since, and not removed: \(named)\(more)")
        }
        guard !isDry else {
            vacated.insert(path)
            return
        }
        parent.removeDirectory(name)
        parent.flush()
    }

    /// Whether the source of a copy still exists, with the content that was copied.
    private func isSafe(_ source: PathBytes, _ event: FileEvent) -> Bool {
        if restored.contains(source) { return true }
        guard source == event.path, let (directory, name) = try? locate(source, event),
            let there = try? directory.metadata(of: name)
        else { return false }
        return there.hasSameContent(as: event.snapshot)
    }

    /// Removes a directory that was created; if it contains files of others it stays, which is not an error.
    private mutating func removeDirectory(_ path: PathBytes, _ mark: FileMark, _ event: FileEvent) throws(FileError) {
        guard !isDry, let (directory, name) = try? locate(path, event) else { return }
        guard let there = try directory.metadata(of: name), mark.fits(there) else { return }
        directory.removeDirectory(name)
    }

    // MARK: - Checks

    private func check(_ name: PathBytes, in directory: DirectoryHandle, _ mark: FileMark) throws(FileError) {
        let path = directory.path(of: name)
        if restored.contains(path) { return }
        guard let there = try directory.metadata(of: name), !vacated.contains(path) else {
            throw .failed("'\(path)' no longer exists")
        }
        guard there.identity == mark.identity, there.type == mark.type else {
            throw .failed("'\(path)' is now another file")
        }
        guard mark.fits(there) else { throw .failed("'\(path)' has changed since") }
    }

    private static func taken(_ path: PathBytes) -> FileError { .failed("'\(path)' exists again") }

    /// Opens the directory of a path: beneath the event's root without following links, elsewhere only through links
    /// that no other user could exploit.
    ///
    /// - Returns: The directory, and the name in it.
    private func locate(_ path: PathBytes, _ event: FileEvent) throws(FileError) -> (DirectoryHandle, PathBytes) {
        let directory = path.parent
        let name = PathBytes(path.lastComponent)
        let missing = FileError.failed("the directory '\(directory)' no longer exists")
        if directory.isInside(event.root) {
            do throws(FileError) {
                return (try SourceFile.openDirectory(of: path, root: event.root), name)
            } catch {
                if error.isGone { throw missing }
                guard error.isOfAnotherFile else { throw error }
                throw .failed("there is a symbolic link in the path to '\(directory)'")
            }
        }
        return (try DirectoryHandle.opened(directory, orElse: missing), name)
    }
}

/// The removal of unpacked files, as far as they have not been changed since.
final class UnpackedTree {
    /// The end of the unpacking; files that were changed later are left alone.
    private let sealed: Timestamp
    /// The birth time of the top directory; directories that were created earlier are left alone, too.
    private let born: Int64
    /// Whether nothing is removed.
    private let isDry: Bool
    /// The files with several names of which one was removed, which changes the status of the others.
    private var removed: [FileIdentity: Snapshot] = [:]
    /// The paths that are left.
    private(set) var left: [PathBytes] = []

    /// The maximum depth, since each level holds a descriptor.
    private static let mostLevels = 64

    init(sealed: Timestamp, born: Int64, isDry: Bool) {
        (self.sealed, self.born, self.isDry) = (sealed, born, isDry)
    }

    func remove(from directory: DirectoryHandle, depth: Int = 0) {
        guard depth < Self.mostLevels, let names = try? directory.names() else {
            left.append(directory.path)
            return
        }
        for name in names.sorted() {
            guard let there = try? directory.metadata(of: name) else { continue }
            let isGone =
                there.type == .directory
                ? removeDirectory(name, there, in: directory, depth) : remove(name, there, in: directory)
            if !isGone { left.append(directory.path(of: name)) }
        }
    }

    /// Removes a file or a link; returns false if it is left.
    private func remove(_ name: PathBytes, _ there: Snapshot, in directory: DirectoryHandle) -> Bool {
        let isOther = removed[there.identity].map { there.hasSameContent(as: $0) } ?? false
        guard there.changed <= sealed || isOther else { return false }
        if isDry { return true }
        guard let result = try? Removal.remove(name, in: directory, if: there) else { return false }
        if there.links > 1 { removed[there.identity] = there }
        return result == .removed || result == .gone
    }

    /// Removes a directory with its content; returns false if it is a different directory.
    ///
    /// Entries that are left in it are recorded separately.
    private func removeDirectory(
        _ name: PathBytes, _ there: Snapshot, in directory: DirectoryHandle, _ depth: Int
    ) -> Bool {
        if let made = there.born, made > sealed || there.identity.birth < born { return false }
        guard let opened = try? directory.openUnmounted(name) else { return false }
        let count = left.count
        remove(from: opened, depth: depth + 1)
        guard !isDry, left.count == count else { return true }
        return [0, ENOENT].contains(directory.removeDirectory(name))
    }
}
