import Dispatch
import Synchronization

/// A value that one thread sets, and for which another waits.
package final class PendingValue<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)
    private let isSet = DispatchSemaphore(value: 0)

    package init() {}

    package func set(_ value: Value) {
        self.value.withLock { $0 = value }
        isSet.signal()
    }

    /// Waits for the value; returns nil when it is not set in time.
    package func wait(_ seconds: Double? = nil) -> Value? {
        if let value = value.withLock({ $0 }) { return value }
        _ = isSet.wait(timeout: seconds.map { .now() + $0 } ?? .distantFuture)
        return value.withLock { $0 }
    }
}
