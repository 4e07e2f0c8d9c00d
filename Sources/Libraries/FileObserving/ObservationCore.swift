import Synchronization
import System
import Watching

/// The state shared by an observer, its readers and its thread.
final class ObservationCore: Sendable {
    /// The requests to the thread for its next turn.
    struct Orders {
        var isStopped = false
        var isRescanWanted = false
        /// Consumers that receive the known state first.
        var newConsumers: [Consumer] = []
        /// Callers that wait until all hints have been processed.
        var barriers: [CheckedContinuation<Void, Never>] = []
        var snapshots: [CheckedContinuation<ObservationSnapshot?, Never>] = []
    }

    private struct State {
        var orders = Orders()
        var consumers: [ObjectIdentifier: Consumer] = [:]
        /// The consumer that collects events since the start, for the first reader.
        var unclaimed: Consumer?
        /// The number of directories, or an error; nil while the initial listing is not done.
        var start: Result<Int, ObservationError>?
        var termination: Termination?
        /// Whether the thread has released all resources.
        var hasEnded = false
        var startWaiters: [CheckedContinuation<Result<Int, ObservationError>, Never>] = []
        var endWaiters: [CheckedContinuation<Void, Never>] = []
    }

    let plan: ObservationPlan
    let wake = Wake()
    let queue: HintQueue
    private let state = Mutex(State())

    init(_ plan: ObservationPlan) {
        self.plan = plan
        queue = HintQueue { [wake] in wake.signal() }
        let first = makeConsumer()
        state.withLock { state in
            state.unclaimed = first
            state.consumers[ObjectIdentifier(first)] = first
        }
    }

    private func makeConsumer() -> Consumer { Consumer(mask: plan.options.events, roots: plan.roots) }

    // MARK: Called from any thread

    func stop() {
        state.withLock { $0.orders.isStopped = true }
        wake.signal()
    }

    func rescan() {
        state.withLock { $0.orders.isRescanWanted = true }
        wake.signal()
    }

    /// Adds a reader.
    ///
    /// - Parameter existing: Whether it receives the known state first; nil for the setting of the options, and then
    ///   the first reader gets the events since the start.
    /// - Returns: Its position.
    func subscribe(existing: Bool?) -> Consumer {
        let made = makeConsumer()
        let (consumer, termination) = state.withLock { state -> (Consumer, Termination?) in
            let unclaimed = state.unclaimed
            state.unclaimed = nil
            if let unclaimed {
                if existing == nil { return (unclaimed, nil) }
                state.consumers[ObjectIdentifier(unclaimed)] = nil
            }
            if state.termination == nil {
                if existing ?? plan.options.existing {
                    state.orders.newConsumers.append(made)
                } else {
                    state.consumers[ObjectIdentifier(made)] = made
                }
            }
            return (made, state.termination)
        }
        if let termination { consumer.end(termination) }
        wake.signal()
        return consumer
    }

    func unsubscribe(_ consumer: Consumer) {
        consumer.end(.success(()))
        state.withLock { state in
            state.consumers[ObjectIdentifier(consumer)] = nil
            state.orders.newConsumers.removeAll { $0 === consumer }
        }
    }

    /// The number of current and pending readers.
    var readers: Int { state.withLock { $0.consumers.count + $0.orders.newConsumers.count } }

    /// Suspends the caller unless the closure returns an answer; the closure stores the continuation if it does not.
    private func wait<Answer: Sendable>(
        _ store: (inout State, CheckedContinuation<Answer, Never>) -> Answer?
    ) async -> Answer {
        await withCheckedContinuation { continuation in
            let answer = state.withLock { store(&$0, continuation) }
            if let answer { continuation.resume(returning: answer) } else { wake.signal() }
        }
    }

    func waitUntilReady() async -> Result<Int, ObservationError> {
        await wait { state, continuation in
            if let start = state.start { return start }
            state.startWaiters.append(continuation)
            return nil
        }
    }

    func waitUntilEnded() async {
        await wait { state, continuation in
            if state.hasEnded { return () }
            state.endWaiters.append(continuation)
            return nil
        }
    }

    func catchUp() async {
        await wait { state, continuation in
            if state.termination != nil { return () }
            state.orders.barriers.append(continuation)
            return nil
        }
    }

    func snapshot() async -> ObservationSnapshot? {
        await wait { state, continuation in
            if state.termination != nil { return .some(nil) }
            state.orders.snapshots.append(continuation)
            return nil
        }
    }

    // MARK: Called from the observer's thread

    func takeOrders() -> Orders {
        state.withLock { state in
            defer { state.orders = Orders(isStopped: state.orders.isStopped) }
            return state.orders
        }
    }

    /// Puts back the waiting callers, since there are more hints to process.
    func putBack(_ barriers: [CheckedContinuation<Void, Never>]) {
        state.withLock { $0.orders.barriers = barriers + $0.orders.barriers }
    }

    func deliver(_ changes: [ObservedChange]) {
        guard !changes.isEmpty else { return }
        for consumer in state.withLock({ Array($0.consumers.values) }) { consumer.deliver(changes) }
    }

    /// Adds a reader that has received the known state, unless it has unsubscribed meanwhile.
    func admit(_ consumer: Consumer) {
        state.withLock { state in if !consumer.hasEnded { state.consumers[ObjectIdentifier(consumer)] = consumer } }
    }

    func setReady(directories: Int) {
        let waiters = state.withLock { state in
            state.start = .success(directories)
            defer { state.startWaiters = [] }
            return state.startWaiters
        }
        for waiter in waiters { waiter.resume(returning: .success(directories)) }
    }

    /// Finishes all sequences; no more events are delivered.
    func end(_ termination: Termination) {
        let (consumers, orders, waiters, start) = state.withLock { state in
            state.termination = termination
            let start = termination.flatMap { state.start ?? .success(0) }
            state.start = start
            defer {
                state.consumers = [:]
                state.orders = Orders(isStopped: true)
                state.startWaiters = []
            }
            let consumers = Array(state.consumers.values) + state.orders.newConsumers
            return (consumers, state.orders, state.startWaiters, start)
        }
        for consumer in consumers { consumer.end(termination) }
        for waiter in orders.barriers { waiter.resume() }
        for waiter in orders.snapshots { waiter.resume(returning: nil) }
        for waiter in waiters { waiter.resume(returning: start) }
    }

    /// Records that every descriptor is closed, and resumes the waiting callers.
    func setEnded() {
        let waiters = state.withLock { state in
            state.hasEnded = true
            defer { state.endWaiters = [] }
            return state.endWaiters
        }
        for waiter in waiters { waiter.resume() }
    }
}
