import ActionAPI
import CAlightLinux
import FileEvents
import Glibc
import Rules
import System

/// The file of an event, held open beneath its root.
///
/// Its directory is opened without following a link, so it is the one that was watched. The open descriptor prevents
/// another file from getting the same identity, so the file that has the name at the end can be compared with this one.
struct SourceFile {
    let directory: DirectoryHandle
    let name: PathBytes
    let path: PathBytes
    /// Opened for its metadata only, unless it is readable.
    let file: OpenFile
    private let isReadable: Bool
    let metadata: Snapshot

    /// Opens the file.
    ///
    /// - Parameters:
    ///   - invocation: The invocation with the event of the file.
    ///   - isRead: Whether the file will be read in any case, so that it is opened only once.
    ///   - directories: The directories that are open already.
    /// - Throws: An outcome if the file is gone, or is not the one that had settled.
    init(
        _ invocation: Invocation, isRead: Bool = false, among directories: OpenDirectories = OpenDirectories()
    ) throws(FileError) {
        let event = invocation.job.event
        path = event.path
        name = PathBytes(path.lastComponent)
        directory = try directories.directory(path.parent, for: event, as: .source) { () throws(FileError) in
            try Self.openDirectory(of: event.path, root: event.root)
        }
        // An interrupted attempt may have renamed the file away.
        if invocation.job.isInterrupted { Leftovers.clear(directory, now: DiskProbe.now()) }
        // If it cannot be read, `openForReading` reports why.
        if isRead, let readable = try? directory.open(name, CAL_OPEN_READING) {
            (file, isReadable) = (readable, true)
        } else {
            file = try directory.opened(name, CAL_OPEN_ENTRY) { $0 == ENOENT ? .gone : nil }
            isReadable = false
        }
        metadata = try file.metadata()
        guard invocation.expectsSettled else { return }
        let isSettled =
            metadata.type == .file
            ? metadata.hasSameContent(as: event.snapshot) : metadata.identity == event.snapshot.identity
        guard isSettled else { throw .changed }
    }

    /// Opens the directory of a path beneath its root; for a path that is a root, opens its parent directory.
    static func openDirectory(of path: PathBytes, root: PathBytes) throws(FileError) -> DirectoryHandle {
        let relative = path.relative(to: root).map { PathBytes($0) }
        let base = relative.map(\.bytes.isEmpty) == false ? root : path.parent
        let directory = try DirectoryHandle.opened(base, orElse: .gone)
        guard let relative, relative.bytes.contains(.slash) else { return directory }
        let inner = relative.parent.withCString { cal_open_beneath(directory.descriptor, $0, CAL_OPEN_DIRECTORY, 0) }
        switch inner {
        case 0...: return DirectoryHandle(inner, path.parent)
        case -ENOENT, -ENOTDIR: throw .gone
        // A watched directory has been replaced by a link, whose target does not belong to the rule.
        case -ELOOP, -EXDEV: throw .changed
        default: throw FileError(-inner, "cannot open the directory '\(path.parent)'")
        }
    }

    /// Whether nothing about it has changed.
    func isUnchanged() throws(FileError) -> Bool { try metadata.isUnchanged(file.metadata()) }

    /// Opens the file for reading.
    ///
    /// - Throws: An outcome if the name belongs to another file by now.
    func openForReading() throws(FileError) -> OpenFile {
        guard metadata.type == .file else { throw .failed("'\(path)' is not a regular file", code: "not-a-file") }
        if isReadable { return file }
        let opened = try directory.opened(name, CAL_OPEN_READING) { errno in
            errno == ENOENT ? .gone : errno == ELOOP || errno == ENXIO ? .changed : nil
        }
        guard try opened.metadata().hasSameContent(as: metadata) else { throw .changed }
        return opened
    }
}
