import Foundation
import Synchronization

/// A running `alight-launch`, with our ends of its pipes.
struct SpawnedProcess {
    let process: Process
    let end: ProcessEnd
    let input: OwnedDescriptor
    let output: OwnedDescriptor
    let error: OwnedDescriptor
}

/// How a process ended, handed over by the thread that Foundation reaps it on.
final class ProcessEnd: Sendable {
    private let status = Mutex<(status: Int32, isSignal: Bool)?>(nil)
    private let isKnown = DispatchSemaphore(value: 0)

    func set(status: Int32, isSignal: Bool) {
        self.status.withLock { $0 = (status, isSignal) }
        isKnown.signal()
    }

    /// Waits for the end; nil when it is not known in time.
    func wait(_ seconds: Double) -> (status: Int32, isSignal: Bool)? {
        if let known = status.withLock({ $0 }) { return known }
        _ = isKnown.wait(timeout: .now() + seconds)
        return status.withLock { $0 }
    }
}
