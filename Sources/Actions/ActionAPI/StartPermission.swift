@preconcurrency import Dispatch
import Synchronization

/// The permission for actions to start, granted once their leases are committed.
///
/// An action prepares everything that has no effect in the meantime, and waits for the permission before its first
/// effect.
package final class StartPermission: Sendable {
    private let isGranted = Mutex<Bool?>(nil)
    private let decided = DispatchGroup()

    package init() { decided.enter() }

    deinit { decide(false) }

    package func grant() { decide(true) }

    /// Makes the actions finish without having started.
    package func refuse() { decide(false) }

    private func decide(_ isGranted: Bool) {
        let isFirst = self.isGranted.withLock { decision in
            guard decision == nil else { return false }
            decision = isGranted
            return true
        }
        if isFirst { decided.leave() }
    }

    /// Blocks until the permission is granted or refused.
    ///
    /// - Returns: Whether the action may start.
    package func wait() -> Bool {
        if let isGranted = isGranted.withLock({ $0 }) { return isGranted }
        decided.wait()
        return isGranted.withLock { $0 } ?? false
    }
}
