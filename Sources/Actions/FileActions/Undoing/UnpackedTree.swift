import Glibc
import System

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
