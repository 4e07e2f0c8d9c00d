import ActionAPI
package import Rules
import Synchronization
package import System

/// The files that only root can change, checked again whenever a file differs from the previous check.
///
/// The directories above a file can become writable without a change of the file. A user who then replaces or changes
/// the file leaves another stamp, and everything is checked again; so nothing is run unchecked.
package final class OwnershipRecord: Sendable {
    private struct Known {
        var stamp: Snapshot
        /// Whether only root can change the file.
        var isSafe = false
        /// The first line of the file, if it has been read; nil inside for one that names no interpreter.
        var line: ScriptLine??
    }

    private let known = Mutex<[PathBytes: Known]>([:])

    package init() {}

    /// Returns a problem if a user other than root could change what a command does; nil if none could.
    package func problem(
        running executable: PathBytes, _ arguments: [[UInt8]] = [],
        searchPath: [UInt8] = Array(Action.searchPath.utf8)
    ) -> Problem? {
        var stamps: [PathBytes: Snapshot] = [:]
        let files = ProgramFiles.of([executable.bytes] + arguments, searchPath: searchPath) { path in
            stamps[path] = Self.stamp(path)
            return line(of: path, stamps[path])
        }
        return files.lazy.compactMap { self.problem(with: $0, stamps[$0] ?? Self.stamp($0)) }.first
    }

    /// Returns a problem if a user other than root could change or replace the file; nil if none could.
    package func problem(with path: PathBytes) -> Problem? { problem(with: path, Self.stamp(path)) }

    // The stamps are taken before the files are read, so that one that changes meanwhile is read again.

    private func problem(with path: PathBytes, _ stamp: Snapshot?) -> Problem? {
        if let stamp, find(path, stamp)?.isSafe == true { return nil }
        let problem = OwnershipCheck.problem(with: path)
        if let stamp { change(path, stamp) { $0.isSafe = problem == nil } }
        return problem
    }

    private static func stamp(_ path: PathBytes) -> Snapshot? { KernelFileSystem().stat(following: path).snapshot }

    private func line(of path: PathBytes, _ stamp: Snapshot?) -> ScriptLine? {
        if let stamp, let line = find(path, stamp)?.line { return line }
        let line = ScriptLine(of: path)
        if let stamp { change(path, stamp) { $0.line = .some(line) } }
        return line
    }

    private func find(_ path: PathBytes, _ stamp: Snapshot) -> Known? {
        known.withLock { known in known[path].flatMap { $0.stamp == stamp ? $0 : nil } }
    }

    private func change(_ path: PathBytes, _ stamp: Snapshot, _ body: (inout Known) -> Void) {
        known.withLock { known in
            var new = known[path].flatMap { $0.stamp == stamp ? $0 : nil } ?? Known(stamp: stamp)
            body(&new)
            known[path] = new
        }
    }
}
