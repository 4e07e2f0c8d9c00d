package import CAlightLinux
import Glibc
import Synchronization

/// Something whose descriptors and deadlines an ``EventLoop`` watches.
package protocol EventSource: AnyObject, Sendable {
    /// Handles an event, one at a time for all sources; must not block.
    ///
    /// - Parameter number: The number of the descriptor that is ready; nil when the deadline has passed.
    func handle(_ number: Int?)
}

/// The threads that wait for the descriptors of all programs, for points in time, and for work that may block.
///
/// Idle threads wait for all of these together, so that the thread that notices the end of a program also runs the work
/// that follows, and no other thread has to be woken. One of them always waits: the last one starts another before it
/// runs work. Whichever thread it is, handlers are called one after another.
///
/// It holds no source: one that nothing else refers to gets no more events.
package final class EventLoop: Sendable {
    package static let shared = EventLoop()

    private struct Entry: Sendable {
        weak var source: (any EventSource)?
        var deadline: ContinuousClock.Instant?
    }

    private struct State: Sendable {
        var threads = 0
        /// The threads that run no work.
        var idle = 0
        /// Whether a thread calls handlers.
        var isHandling = false
        /// The events that have arrived, as addresses of sources plus numbers of descriptors.
        var events: [UInt64] = []
        /// The work that waits for a thread.
        var work: [@Sendable () -> Void] = []
        /// The sources by their addresses, of which the last bits are zero.
        var sources: [UInt: Entry] = [:]
        var calls: [(time: ContinuousClock.Instant, body: @Sendable () -> Void)] = []
        /// Nothing is due before; nil if nothing ever is.
        var next: ContinuousClock.Instant?
        /// The time at which the timer expires; nil if it does not.
        var timerTime: ContinuousClock.Instant?

        /// Takes what is due, and finds out when the next will be.
        mutating func takeDue(
            at now: ContinuousClock.Instant
        ) -> (sources: [any EventSource], calls: [@Sendable () -> Void]) {
            guard let next, next <= now else { return ([], []) }
            var due: [any EventSource] = []
            for (key, entry) in sources where entry.deadline.map({ $0 <= now }) ?? false {
                sources[key]?.deadline = nil
                if let source = entry.source { due.append(source) }
            }
            let ready = calls.filter { $0.time <= now }.map(\.body)
            calls.removeAll { $0.time <= now }
            self.next = (sources.values.compactMap(\.deadline) + calls.map(\.time)).min()
            return (due, ready)
        }
    }

    private let epoll: Int32
    private let waker: Waker
    private let timer: Int32
    private let state = Mutex(State())

    private init() {
        let (epoll, timer) = (cal_make_epoll(), cal_make_timer())
        guard epoll >= 0, timer >= 0, let waker = try? Waker(),
            [waker.descriptor, timer].allSatisfy({ cal_watch(epoll, $0, CAL_RECEIVES, 0) == 0 })
        else { preconditionFailure("the loop is made before anything that could use up descriptors") }
        (self.epoll, self.timer, self.waker) = (epoll, timer, waker)
    }

    // MARK: - Sources

    /// Starts a thread, unless there is one; returns false if the system cannot create one.
    package func start() -> Bool { state.withLock { $0.threads > 0 } || startThread() }

    /// Watches a descriptor until it is closed.
    ///
    /// - Parameters:
    ///   - descriptor: The descriptor; nothing happens if it is closed.
    ///   - readiness: The events to report, once for each change.
    ///   - source: Receives them.
    ///   - number: The number of the descriptor for the source, less than 8.
    package func watch(_ descriptor: Int32, _ readiness: cal_readiness, for source: any EventSource, as number: Int) {
        guard descriptor >= 0 else { return }
        let key = Self.key(source)
        state.withLock { state in
            if state.sources[key]?.source == nil { state.sources[key] = Entry(source: source) }
        }
        // A descriptor that the kernel does not accept, or has no memory for, counts as ready.
        guard cal_watch(epoll, descriptor, readiness, UInt64(key) | UInt64(number)) != 0 else { return }
        call { [weak source] in source?.handle(number) }
    }

    /// Reports an event again, after others that have arrived; may be called by a handler that has not read everything.
    package func report(_ number: Int, to source: any EventSource) {
        state.withLock { $0.events.append(UInt64(Self.key(source)) | UInt64(number)) }
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

    /// Schedules the closure as if by a handler, not before the given time; it must not block.
    package func call(at time: ContinuousClock.Instant = .now, _ body: @escaping @Sendable () -> Void) {
        add(at: time) { $0.calls.append((time, body)) }
        _ = start()
    }

    private func add(at time: ContinuousClock.Instant?, _ change: (inout State) -> Void) {
        state.withLock { state in
            change(&state)
            guard let time else { return }
            state.next = min(state.next ?? time, time)
            // The thread that calls handlers sets it afterwards.
            if !state.isHandling { setTimer(&state) }
        }
    }

    private func setTimer(_ state: inout State) {
        guard let next = state.next, state.timerTime.map({ next < $0 }) ?? true else { return }
        let limit = state.next.pollLimit
        guard limit >= 0 else { return }
        state.timerTime = next
        _ = cal_set_timer(timer, limit)
    }

    private static func key(_ source: any EventSource) -> UInt { UInt(bitPattern: ObjectIdentifier(source)) }

    // MARK: - Work

    /// Runs the closure, which may block, on as many threads; on this thread if there are none.
    func run(on count: Int, _ body: @escaping @Sendable () -> Void) {
        guard count > 0 else { return }
        guard start() else { return body() }
        let isNoticed = state.withLock { state in
            for _ in 0..<count { state.work.append(body) }
            // The thread that calls handlers finds it; so does the first thread that has finished its work.
            return state.isHandling || state.idle == 0
        }
        if !isNoticed { waker.wake() }
    }

    private func startThread() -> Bool {
        state.withLock { state in
            state.threads += 1
            state.idle += 1
        }
        if let thread = WorkerThread(name: "alight-action", body: { self.serve() }) {
            thread.detach()
            return true
        }
        state.withLock { state in
            state.threads -= 1
            state.idle -= 1
        }
        return false
    }

    private func serve() {
        var keys = [UInt64](repeating: 0, count: 64)
        while true {
            // A new thread also finds work that came while no thread was idle.
            var isIdle = true
            while let body = takeWork(&isIdle) { body() }
            let count = Int(cal_await(epoll, &keys, Int32(keys.count)))
            handle(keys[..<count])
        }
    }

    /// Takes work for the calling thread; nil if there is none.
    private func takeWork(_ isIdle: inout Bool) -> (@Sendable () -> Void)? {
        let (body, isLast, isMore) = state.withLock { state in
            guard !state.work.isEmpty else {
                if !isIdle { state.idle += 1 }
                isIdle = true
                return ((@Sendable () -> Void)?.none, false, false)
            }
            if isIdle { state.idle -= 1 }
            isIdle = false
            return (state.work.removeFirst(), state.idle == 0, state.work.count > 0)
        }
        if isLast { _ = startThread() }
        // One wakes the next, so that none is woken in vain.
        if isMore { waker.wake() }
        return body
    }

    /// Calls the handlers of the events, unless another thread does.
    private func handle(_ keys: ArraySlice<UInt64>) {
        let isHandler = state.withLock { state in
            state.events += keys.lazy.filter { $0 != 0 }
            defer { state.isHandling = true }
            return !state.isHandling
        }
        guard isHandler else { return }
        repeat {
            let now = ContinuousClock.now
            let (ready, due) = state.withLock { state in
                if let time = state.timerTime, time <= now { state.timerTime = nil }
                defer { state.events.removeAll(keepingCapacity: true) }
                return (
                    state.events.map { (state.sources[UInt($0) & ~7]?.source, Int($0 & 7)) }, state.takeDue(at: now)
                )
            }
            for (source, number) in ready { source?.handle(number) }
            for source in due.sources { source.handle(nil) }
            for body in due.calls { body() }
        } while !endsHandling()
    }

    /// Lets other threads call handlers, unless there is only more of that to do.
    private func endsHandling() -> Bool {
        let (ends, isMore) = state.withLock { state in
            let isMore = !state.events.isEmpty || state.next.map { $0 <= .now } ?? false
            guard !isMore || !state.work.isEmpty else { return (false, true) }
            state.isHandling = false
            setTimer(&state)
            return (true, isMore)
        }
        // This thread runs the work.
        if ends && isMore { waker.wake() }
        return ends
    }
}
