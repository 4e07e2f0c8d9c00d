import CAlightLinux
import Synchronization

/// Something whose descriptors and deadlines an ``EventLoop`` watches.
package protocol EventSource: AnyObject, Sendable {
    /// Handles an event; called on the thread of the loop, and must not block.
    ///
    /// - Parameter number: The number of the descriptor that is ready; nil when the deadline has passed.
    func handle(_ number: Int?)
}

/// One thread that waits for the descriptors of all programs, and for points in time.
///
/// It holds no source: one that nothing else refers to gets no more events.
package final class EventLoop: Sendable {
    package static let shared = EventLoop()

    /// How a descriptor is watched.
    package enum Readiness {
        /// As long as it is readable.
        case readable
        /// Whenever it becomes writable.
        case writable
        /// Whenever something arrives.
        case receives
    }

    private struct Entry: Sendable {
        weak var source: (any EventSource)?
        var deadline: ContinuousClock.Instant?
    }

    private struct State: Sendable {
        var isServing = false
        /// The sources by their addresses, of which the last bits are zero.
        var sources: [UInt: Entry] = [:]
        var work: [(time: ContinuousClock.Instant, body: @Sendable () -> Void)] = []
        /// Nothing is due before; nil if nothing ever is.
        var next: ContinuousClock.Instant?
        /// The end of the current sleep; nil if it has none.
        var wakeTime: ContinuousClock.Instant?

        /// Takes what is due, and finds out when the next will be.
        mutating func takeDue(
            at now: ContinuousClock.Instant
        ) -> (sources: [any EventSource], work: [@Sendable () -> Void]) {
            defer { wakeTime = next }
            guard let next, next <= now else { return ([], []) }
            var due: [any EventSource] = []
            for (key, entry) in sources where entry.deadline.map({ $0 <= now }) ?? false {
                sources[key]?.deadline = nil
                if let source = entry.source { due.append(source) }
            }
            let ready = work.filter { $0.time <= now }.map(\.body)
            work.removeAll { $0.time <= now }
            self.next = (sources.values.compactMap(\.deadline) + work.map(\.time)).min()
            return (due, ready)
        }
    }

    private let epoll: Int32
    private let waker: Waker
    private let state = Mutex(State())

    private init() {
        epoll = cal_make_epoll()
        guard epoll >= 0, let waker = try? Waker(), cal_watch(epoll, waker.descriptor, CAL_READABLE, 0) == 0 else {
            preconditionFailure("the loop is made before anything that could use up descriptors")
        }
        self.waker = waker
    }

    /// Starts the thread, unless it runs; returns false if the system cannot create one.
    package func start() -> Bool {
        state.withLock { state in
            guard !state.isServing else { return true }
            guard let thread = WorkerThread(name: "alight-programs", body: { self.serve() }) else { return false }
            thread.detach()
            state.isServing = true
            return true
        }
    }

    /// Watches a descriptor until it is closed.
    ///
    /// - Parameters:
    ///   - descriptor: The descriptor; nothing happens if it is closed.
    ///   - readiness: The events to report.
    ///   - source: Receives them.
    ///   - number: The number of the descriptor for the source, less than 8.
    package func watch(_ descriptor: Int32, _ readiness: Readiness, for source: any EventSource, as number: Int) {
        guard descriptor >= 0 else { return }
        let key = Self.key(source)
        state.withLock { state in
            if state.sources[key]?.source == nil { state.sources[key] = Entry(source: source) }
        }
        let events =
            switch readiness {
            case .readable: CAL_READABLE
            case .writable: CAL_WRITABLE
            case .receives: CAL_RECEIVES
            }
        // A descriptor that the kernel does not accept, or has no memory for, counts as ready.
        guard cal_watch(epoll, descriptor, events, UInt64(key) | UInt64(number)) != 0 else { return }
        call { [weak source] in source?.handle(number) }
    }

    /// Sets the time at which the source is called; nil for never.
    package func setDeadline(_ deadline: ContinuousClock.Instant?, of source: any EventSource) {
        let key = Self.key(source)
        add(at: deadline) { state in
            if state.sources[key]?.source == nil { state.sources[key] = Entry(source: source) }
            state.sources[key]?.deadline = deadline
        }
    }

    /// Forgets a source, whose descriptors have been closed.
    package func forget(_ source: any EventSource) {
        let key = Self.key(source)
        state.withLock { _ = $0.sources.removeValue(forKey: key) }
    }

    /// Schedules the closure on the thread, not before the given time; it must not block.
    package func call(at time: ContinuousClock.Instant = .now, _ body: @escaping @Sendable () -> Void) {
        add(at: time) { $0.work.append((time, body)) }
        _ = start()
    }

    private func add(at time: ContinuousClock.Instant?, _ change: (inout State) -> Void) {
        let wakes = state.withLock { state in
            change(&state)
            guard let time else { return false }
            state.next = min(state.next ?? time, time)
            guard state.wakeTime.map({ time < $0 }) ?? true else { return false }
            state.wakeTime = time
            return true
        }
        if wakes { waker.wake() }
    }

    private static func key(_ source: any EventSource) -> UInt { UInt(bitPattern: ObjectIdentifier(source)) }

    private func serve() {
        var keys = [UInt64](repeating: 0, count: 64)
        while true {
            let limit = state.withLock { $0.wakeTime.pollLimit }
            let count = Int(cal_await(epoll, &keys, Int32(keys.count), limit))
            let ready = state.withLock { state in
                keys[..<count].map { (state.sources[UInt($0) & ~7]?.source, Int($0 & 7)) }
            }
            if keys[..<count].contains(0) { waker.clear() }
            for (source, number) in ready { source?.handle(number) }
            let due = state.withLock { $0.takeDue(at: .now) }
            for source in due.sources { source.handle(nil) }
            for body in due.work { body() }
        }
    }
}
