package import Rules
import Synchronization
package import System

/// The record of the files from which the outputs of actions were made, so that no file replaces the output of another.
///
/// Callable on any thread.
package protocol OutputClaims: Sendable {
    /// Claims the path of an output for a job, until the claims of the job are released.
    ///
    /// - Parameters:
    ///   - output: The absolute path of the output.
    ///   - job: The job whose action writes it.
    ///   - replaceable: The existing outputs that may be replaced, in addition to those made by the rule from the same
    ///     path.
    /// - Returns: Nil if it is claimed; otherwise the reason why not.
    func claim(_ output: PathBytes, for job: Job, replacing replaceable: ReplaceableOutputs) -> ClaimRefusal?

    /// Releases the claims of a job, and records the outputs as made by it if its action has succeeded.
    func release(of job: Job, areMade: Bool)
}

/// The reason why an output cannot be claimed.
package struct ClaimRefusal: Sendable, Hashable {
    /// The path of the file from which the output was made, or is being made; nil if it is unknown.
    package var source: PathBytes?

    /// Whether a running action writes the output.
    package var isRunning: Bool

    package init(source: PathBytes?, isRunning: Bool = false) { (self.source, self.isRunning) = (source, isRunning) }
}

/// The kinds of existing outputs that may be replaced.
package struct ReplaceableOutputs: OptionSet, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Those of which it is unknown what made them.
    package static let unknown = ReplaceableOutputs(rawValue: 1 << 0)
    /// Those that were made from another path, or by another rule.
    package static let others = ReplaceableOutputs(rawValue: 1 << 1)
}

/// The directories that a handler has created for one invocation, which also count if it fails afterwards.
package final class MadeDirectories: Sendable {
    private let made = Mutex<[FileChange]>([])

    package init() {}

    package var changes: [FileChange] { made.withLock { $0 } }

    package func append(_ change: FileChange) { made.withLock { $0.append(change) } }
}
