import Synchronization
import System

/// Tells running actions to stop.
///
/// It can be looked at, and waited for beside other descriptors with poll(2).
package final class StopSignal: Sendable {
    private struct Child: Sendable {
        weak var signal: StopSignal?
    }

    private let raised = Atomic<Bool>(false)
    /// Raised with this one, as long as somebody holds them.
    private let children = Mutex<[Child]>([])
    private let observers = Mutex<[Int: @Sendable () -> Void]>([:])
    private let observations = Atomic(0)
    private let waker = try? Waker()
    /// Becomes readable when the signal is raised, and stays so; -1 when the machine is out of descriptors.
    package var descriptor: Int32 { waker?.descriptor ?? -1 }

    package init() {}

    /// Makes a signal that can be raised for itself, and is raised when the other one is.
    package convenience init(under parent: StopSignal) {
        self.init()
        parent.children.withLock { children in
            children.removeAll { $0.signal == nil }
            children.append(Child(signal: self))
        }
        // The other one may have been raised before it knew of this.
        if parent.isRaised { raise() }
    }

    /// Has the closure called when the signal is raised, or now if it has been.
    ///
    /// The closure is called on the thread that raises it, and must not block; it may be called twice.
    ///
    /// - Returns: What ``forget(_:)`` wants.
    func observe(_ body: @escaping @Sendable () -> Void) -> Int {
        let observation = observations.add(1, ordering: .relaxed).newValue
        observers.withLock { $0[observation] = body }
        if isRaised { body() }
        return observation
    }

    /// Ends an observation; a call that is under way may still come.
    func forget(_ observation: Int) { observers.withLock { _ = $0.removeValue(forKey: observation) } }

    package var isRaised: Bool { raised.load(ordering: .acquiring) }

    /// Raises the signal; a second call changes nothing.
    package func raise() {
        raised.store(true, ordering: .releasing)
        waker?.wake()
        for child in children.withLock({ $0 }) { child.signal?.raise() }
        for observer in observers.withLock({ Array($0.values) }) { observer() }
    }
}
