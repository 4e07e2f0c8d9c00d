import FileEvents
import System

/// The directories of several files on which one action works together, each of which is opened once.
///
/// A directory stays the one that was checked, even if another one takes its place meanwhile.
final class OpenDirectories {
    /// The use of a directory, which decides how it is opened.
    enum Use: Hashable {
        case source, target
    }

    /// All other rules for opening a directory are those of the action.
    private struct Key: Hashable {
        var path: PathBytes
        var root: PathBytes
        var use: Use
    }

    private var opened: [Key: DirectoryHandle] = [:]
    /// The identity of each directory without its birth time, by descriptor; nil if it cannot be determined.
    private var identities: [Int32: FileIdentity?] = [:]

    /// Returns a directory, and opens it if that has not been done.
    func directory(
        _ path: PathBytes, for event: FileEvent, as use: Use, opening: () throws(FileError) -> DirectoryHandle
    ) throws(FileError) -> DirectoryHandle {
        let key = Key(path: path, root: event.root, use: use)
        if let known = opened[key] { return known }
        let directory = try opening()
        opened[key] = directory
        return directory
    }

    /// Whether both are the same directory.
    func areSame(_ one: DirectoryHandle, _ other: DirectoryHandle) -> Bool {
        guard let one = identity(of: one) else { return false }
        return one == identity(of: other)
    }

    /// Whether a file can possibly be renamed from one directory to the other.
    func mayShareDevice(_ one: DirectoryHandle, _ other: DirectoryHandle) -> Bool {
        guard let one = identity(of: one), let other = identity(of: other) else { return true }
        return one.device == other.device
    }

    private func identity(of directory: DirectoryHandle) -> FileIdentity? {
        if let known = identities[directory.descriptor] { return known }
        let identity = (try? directory.file.snapshot())?.identity.withoutBirth
        identities[directory.descriptor] = .some(identity)
        return identity
    }
}

extension FileIdentity {
    /// The number of the device.
    var device: UInt64 { UInt64(deviceMajor) << 32 | UInt64(deviceMinor) }
}
