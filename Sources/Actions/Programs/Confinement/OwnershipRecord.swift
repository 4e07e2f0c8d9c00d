import ActionAPI
package import Rules
import Synchronization
package import System

/// The files that only root can change, checked again whenever a file differs from the previous check.
///
/// The directories above a file can become writable without a change of the file. A user who then replaces or changes
/// the file leaves another stamp, and everything is checked again; so nothing is run unchecked.
package final class OwnershipRecord: Sendable {
    private let safe = Mutex<[PathBytes: FileStamp]>([:])

    package init() {}

    /// Returns a problem if a user other than root could change what a command does; nil if none could.
    package func problem(
        running executable: PathBytes, _ arguments: [[UInt8]] = [],
        searchPath: [UInt8] = Array(Action.searchPath.utf8)
    ) -> Problem? {
        ProgramFiles.of(executable, arguments, searchPath: searchPath).lazy.compactMap { self.problem(with: $0) }.first
    }

    /// Returns a problem if a user other than root could change or replace the file; nil if none could.
    package func problem(with path: PathBytes) -> Problem? {
        // Taken first, so that a file that changes meanwhile is checked again.
        let stamp = FileStamp(path)
        if let stamp, safe.withLock({ $0[path] }) == stamp { return nil }
        let problem = OwnershipCheck.problem(with: path)
        safe.withLock { $0[path] = problem == nil ? stamp : nil }
        return problem
    }
}
