package import Rules
import Synchronization

/// The directories that a handler has created for one invocation, which also count if it fails afterwards.
package final class MadeDirectories: Sendable {
    private let made = Mutex<[FileChange]>([])

    package init() {}

    package var changes: [FileChange] { made.withLock { $0 } }

    package func append(_ change: FileChange) { made.withLock { $0.append(change) } }
}
