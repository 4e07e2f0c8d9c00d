import Synchronization

/// The permission for actions to start, granted once their leases are committed.
///
/// An action prepares everything that has no effect in the meantime, and waits for the permission before its first
/// effect.
package final class StartPermission: Sendable {
    private struct State {
        var isGranted: Bool?
        var waiting: [UnsafeContinuation<Bool, Never>] = []
    }

    private let state = Mutex(State())

    package init() {}

    deinit { decide(false) }

    package func grant() { decide(true) }

    /// Makes the actions finish without having started.
    package func refuse() { decide(false) }

    private func decide(_ isGranted: Bool) {
        let waiting = state.withLock { state in
            guard state.isGranted == nil else { return [UnsafeContinuation<Bool, Never>]() }
            state.isGranted = isGranted
            defer { state.waiting = [] }
            return state.waiting
        }
        for action in waiting { action.resume(returning: isGranted) }
    }

    /// Waits until the permission is granted or refused.
    ///
    /// - Returns: Whether the action may start.
    package func wait() async -> Bool {
        if let isGranted = state.withLock({ $0.isGranted }) { return isGranted }
        return await withUnsafeContinuation { action in
            let isGranted = state.withLock { state in
                if state.isGranted == nil { state.waiting.append(action) }
                return state.isGranted
            }
            if let isGranted { action.resume(returning: isGranted) }
        }
    }
}
