import FileEvents
package import System

extension PollingReason {
    /// Why a folder is polled without being asked for: the type of its file system.
    ///
    /// - Parameter folder: A folder; links to it are followed.
    /// - Returns: Nil when the kernel tells of all that happens there, or the folder can't be opened.
    package static func untoldFileSystem(of folder: PathBytes) -> PollingReason? {
        FileSystemType.untold(at: folder).map { .fileSystem($0) }
    }
}
