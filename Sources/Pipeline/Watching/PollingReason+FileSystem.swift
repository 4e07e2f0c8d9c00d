package import FileEvents
package import System

extension PollingReason {
    /// Returns the reason why a directory is polled although no rule asks for it: the type of its file system.
    ///
    /// - Parameter folder: A directory; symbolic links to it are followed.
    /// - Returns: Nil when the kernel reports every change there, or the directory can't be opened.
    package static func untoldFileSystem(of folder: PathBytes) -> PollingReason? {
        FileSystemType.untold(at: folder).map { .fileSystem($0) }
    }
}
