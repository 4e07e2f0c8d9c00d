import FileEvents
import Rules
import Synchronization
import System

/// What nobody but root can change, looked at anew whenever the file is another one than before.
///
/// Folders above a file can become open without a sign at the file. Whoever uses
/// that to put another file there, or to change this one, leaves another stamp, and
/// then all is looked at again: so nothing is run that was not looked at.
final class OwnershipRecord: Sendable {
    private let safe = Mutex<[PathBytes: FileStamp]>([:])

    /// Who but root could change what a command does; nil when nobody can.
    func problem(running executable: PathBytes, _ arguments: [[UInt8]] = []) -> HandlerProblem? {
        ProgramFiles.of(executable, arguments).lazy.compactMap { self.problem(with: $0) }.first
    }

    /// Who but root could change the file, or put another in its place; nil when nobody can.
    func problem(with path: PathBytes) -> HandlerProblem? {
        // Taken first, so that what changes meanwhile is looked at again.
        let stamp = FileStamp(path)
        if let stamp, safe.withLock({ $0[path] }) == stamp { return nil }
        let problem = OwnershipCheck.problem(with: path)
        safe.withLock { $0[path] = problem == nil ? stamp : nil }
        return problem
    }
}
