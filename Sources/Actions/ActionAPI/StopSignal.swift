package import Rules
import Synchronization
import System

/// A signal that makes running actions stop.
///
/// It can be checked at any time, observed, or waited for together with other descriptors by poll(2).
package final class StopSignal: Sendable {
    private struct Child: Sendable {
        weak var signal: StopSignal?
    }

    private let raised = Atomic<Bool>(false)
    /// The signals that are raised with this one, as long as they are alive.
    private let children = Mutex<[Child]>([])
    private let observers = Mutex<[Int: @Sendable () -> Void]>([:])
    private let observations = Atomic(0)
    /// Opened when it is first waited for.
    private let waker = Mutex<Waker?>(nil)
    /// Becomes readable when the signal is raised, and stays readable; -1 if no descriptor is available.
    package var descriptor: Int32 {
        waker.withLock { waker in
            waker = waker ?? (try? Waker())
            if isRaised { waker?.wake() }
            return waker?.descriptor ?? -1
        }
    }

    package init() {}

    /// Creates a signal that is raised with its parent, and can also be raised on its own.
    package convenience init(under parent: StopSignal) {
        self.init()
        parent.children.withLock { children in
            children.removeAll { $0.signal == nil }
            children.append(Child(signal: self))
        }
        // The parent may have been raised before it had this child.
        if parent.isRaised { raise() }
    }

    /// Calls the closure when the signal is raised, or immediately if it has been.
    ///
    /// The closure is called on the thread that raises the signal, and must not block. It may be called twice.
    ///
    /// - Returns: The token for ``forget(_:)``.
    package func observe(_ body: @escaping @Sendable () -> Void) -> Int {
        let observation = observations.add(1, ordering: .relaxed).newValue
        observers.withLock { $0[observation] = body }
        if isRaised { body() }
        return observation
    }

    /// Removes an observer; a call that is in progress may still arrive.
    package func forget(_ observation: Int) { observers.withLock { _ = $0.removeValue(forKey: observation) } }

    package var isRaised: Bool { raised.load(ordering: .acquiring) }

    /// Raises the signal; a further call does not change its state.
    package func raise() {
        raised.store(true, ordering: .releasing)
        waker.withLock { $0?.wake() }
        for child in children.withLock({ $0 }) { child.signal?.raise() }
        for observer in observers.withLock({ Array($0.values) }) { observer() }
    }
}

/// The limit at which unfinished work on a file stops: the rule's timeout, or a stop.
package struct WorkLimit: Sendable {
    package let stop: StopSignal
    private let deadline: ContinuousClock.Instant

    package init(_ stop: StopSignal, timeout: Duration) {
        self.stop = stop
        deadline = .now + timeout
    }

    package var isOver: Bool { stop.isRaised || ContinuousClock.now > deadline }

    /// Returns the outcome if the work must stop now; nil if it may continue.
    ///
    /// - Parameter work: The name of the work, such as `copying`.
    /// - Returns: The outcome.
    package func outcome(_ work: String) -> Outcome? {
        guard isOver else { return nil }
        return stop.isRaised ? .interrupted("stopped during the \(work)") : .timedOut("timed out during the \(work)")
    }
}

extension Invocation {
    /// The limit of work that starts now.
    package var limit: WorkLimit { WorkLimit(stop, timeout: timeout) }
}
