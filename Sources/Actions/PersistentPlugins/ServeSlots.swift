import Programs

/// The serving processes of a plugin, and the requests that wait for one.
///
/// The current time is passed in; ``takeStarts()`` and ``turn(of:at:)`` return what only threads can do.
struct ServeSlots: Sendable {
    /// The maximum number of processes at once.
    var parallel: Int
    /// The conversations with the processes by their numbers, which are never reused.
    var sessions: [Int: ServeSession] = [:]
    private let limits: ServeLimits
    /// The requests that no process has received, in order.
    private var waiting: [ServeRequest] = []
    private var starts: [(process: Int, request: ServeRequest)] = []
    private var started = 0
    private var isClosed = false

    init(parallel: Int, limits: ServeLimits) {
        self.parallel = parallel
        self.limits = limits
    }

    /// Removes and returns the processes to start, each with a request.
    mutating func takeStarts() -> [(process: Int, request: ServeRequest)] {
        defer { starts = [] }
        return starts
    }

    // MARK: - Requests

    /// Adds a request; one with which a process has died is the next one.
    mutating func submit(_ request: ServeRequest, isRetry: Bool = false, at now: ContinuousClock.Instant) {
        guard !isClosed else { return request.deliver(.ended(.stopped)) }
        waiting.insert(request, at: isRetry ? 0 : waiting.endIndex)
        assign(at: now)
    }

    /// Cancels a request, whether it waits or has been sent.
    mutating func cancel(_ request: ServeRequest, at now: ContinuousClock.Instant) {
        if let index = waiting.firstIndex(of: request) {
            waiting.remove(at: index)
            request.deliver(.ended(.stopped))
        }
        for number in sessions.keys where sessions[number]?.open[request.id]?.request == request {
            sessions[number]?.cancel(request.id, .stopped, at: now)
        }
    }

    /// Sends waiting requests to processes with capacity, and starts processes for the others.
    mutating func assign(at now: ContinuousClock.Instant) {
        var left: [ServeRequest] = []
        for request in waiting {
            if let number = process(for: request) {
                sessions[number]?.send(request, at: now)
            } else {
                left.append(request)
            }
        }
        waiting = left
        // One at a time, until one shows that the program can start at all.
        guard !sessions.values.contains(where: \.hasFailedToStart) else { return }
        startProcesses(at: now)
    }

    /// Returns the process with the fewest open requests; of two the older one, so that the younger can go idle.
    private func process(for request: ServeRequest) -> Int? {
        let able = sessions.lazy.filter { $0.value.canTake(request.id) }
        return able.min { ($0.value.open.count, $0.key) < ($1.value.open.count, $1.key) }?.key
    }

    /// Starts processes for the waiting requests that no starting process will take.
    private mutating func startProcesses(at now: ContinuousClock.Instant) {
        var room = sessions.values.lazy.filter(\.isStarting).reduce(0) { $0 + $1.window }
        for request in waiting {
            if room <= 0 {
                guard sessions.values.count(where: \.occupiesSlot) < parallel else { return }
                started += 1
                let session = ServeSession(window: request.program.concurrent, limits: limits, at: now)
                sessions[started] = session
                starts.append((started, request))
                room = session.window
            }
            room -= 1
        }
    }

    // MARK: - Processes

    /// Updates a process; returns the commands for it, and the time at which this must be called again at the latest.
    mutating func turn(
        of number: Int, at now: ContinuousClock.Instant
    ) -> (commands: [ServeCommand], deadline: ContinuousClock.Instant?) {
        // Called before, because a process that has just become ready must not be considered idle, and after, in case
        // that retires it.
        assign(at: now)
        sessions[number]?.advance(to: now)
        assign(at: now)
        return (sessions[number]?.takeCommands() ?? [], sessions[number]?.nextDeadline)
    }

    /// Handles the exit of a process, after all its output.
    ///
    /// - Parameters:
    ///   - number: The number of the process.
    ///   - termination: How it terminated.
    ///   - lastLine: The last line that it wrote to its log.
    ///   - now: The current time.
    /// - Returns: The reason why it died; nil if its exit was expected.
    mutating func end(
        _ number: Int, _ termination: ProgramResult.Termination, lastLine: String?, at now: ContinuousClock.Instant
    ) -> String? {
        guard let session = sessions.removeValue(forKey: number) else { return nil }
        let reason = session.reason(for: termination, lastLine: lastLine)
        for open in session.open.values {
            let lost: ServeRequest.Reply = isClosed ? .ended(.stopped) : .lost(reason, termination)
            open.request.deliver(open.cause.map { .ended($0) } ?? (open.isTooLarge ? .tooLarge : lost))
        }
        defer { assign(at: now) }
        // A process that was killed because of one request has not failed.
        guard !session.mayEnd, session.failure != .ignoredCancel else { return nil }
        if !session.hasBeenReady, !sessions.values.contains(where: \.isLive) {
            for request in waiting { request.deliver(session.refusal(for: termination, reason)) }
            waiting = []
        }
        return reason
    }

    /// Replaces all processes, because their program has changed.
    mutating func replace(at now: ContinuousClock.Instant) {
        for number in sessions.keys { sessions[number]?.retire(at: now) }
        assign(at: now)
    }

    /// Stops all processes, and accepts no further requests.
    ///
    /// - Parameters:
    ///   - isAtOnce: Whether they are sent SIGTERM, and not first end-of-file on their input.
    ///   - now: The current time.
    mutating func close(isAtOnce: Bool, at now: ContinuousClock.Instant) {
        isClosed = true
        for request in waiting { request.deliver(.ended(.stopped)) }
        waiting = []
        for number in sessions.keys { sessions[number]?.close(isAtOnce: isAtOnce, at: now) }
    }
}
