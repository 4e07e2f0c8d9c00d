import Synchronization

/// The permission for actions to start, granted once their leases are committed.
///
/// An action prepares everything that has no effect in the meantime, and waits for the permission before its first
/// effect.
package final class StartPermission: Sendable {
    private struct State {
        var isGranted: Bool?
        var waiting: [@Sendable (Bool) -> Void] = []
    }

    private let state = Mutex(State())

    package init() {}

    deinit { decide(false) }

    package func grant() { decide(true) }

    /// Makes the actions finish without having started.
    package func refuse() { decide(false) }

    private func decide(_ isGranted: Bool) {
        let waiting = state.withLock { state in
            guard state.isGranted == nil else { return [@Sendable (Bool) -> Void]() }
            state.isGranted = isGranted
            defer { state.waiting = [] }
            return state.waiting
        }
        for body in waiting { body(isGranted) }
    }

    /// Calls the closure with the decision, at once or later on the thread that decides; it must not block.
    package func whenDecided(_ body: @escaping @Sendable (Bool) -> Void) {
        let isGranted = state.withLock { state in
            if state.isGranted == nil { state.waiting.append(body) }
            return state.isGranted
        }
        if let isGranted { body(isGranted) }
    }

    /// Waits until the permission is granted or refused.
    ///
    /// - Returns: Whether the action may start.
    package func wait() async -> Bool {
        if let isGranted = state.withLock({ $0.isGranted }) { return isGranted }
        return await withUnsafeContinuation { action in whenDecided { action.resume(returning: $0) } }
    }
}
