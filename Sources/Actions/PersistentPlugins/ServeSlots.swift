import Programs

/// The serving processes of a plugin, and the requests that wait for one.
///
/// A process serves the requests of one environment. The current time is passed in; ``takeStarts()`` and
/// ``turn(of:at:)`` return what only threads can do.
struct ServeSlots: Sendable {
    struct Process: Sendable {
        let environment: [UInt8]
        var session: ServeSession
        /// Whether it is retired for a process of another environment.
        var isDisplaced = false

        /// Whether it is one of the maximum number: a process that has failed is until it has exited, because only
        /// then is the pause known.
        var occupiesSlot: Bool { session.isLive || session.failure != nil || isDisplaced }
    }

    /// The maximum number of processes at once.
    var parallel: Int
    /// The processes by their numbers, which are never reused.
    var processes: [Int: Process] = [:]
    /// The time at which ``assign(at:)`` must be called again; nil when time alone does not help the requests that
    /// wait.
    private(set) var nextCheck: ContinuousClock.Instant?
    private let limits: ServeLimits
    /// The requests that no process has received, in order.
    private var waiting: [(request: ServeRequest, environment: [UInt8])] = []
    private var backOff = CrashBackOff()
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
        guard !isClosed else { return request.deliver(.ended(.stop)) }
        if let trouble = backOff.trouble, backOff.isPausing(at: now), !hasLive {
            return request.deliver(.refused(.failing(trouble)))
        }
        let wanted = request.program.environment
        // The same array for equal environments, so that they are not compared byte by byte from here on.
        let environment = processes.values.first { $0.environment == wanted }?.environment ?? wanted
        waiting.insert((request, environment), at: isRetry ? 0 : waiting.endIndex)
        assign(at: now)
    }

    /// Cancels a request, whether it waits or has been sent.
    mutating func cancel(_ request: ServeRequest, at now: ContinuousClock.Instant) {
        if let index = waiting.firstIndex(where: { $0.request == request }) {
            waiting.remove(at: index)
            request.deliver(.ended(.stop))
        }
        for number in processes.keys where processes[number]?.session.open[request.id]?.request == request {
            processes[number]?.session.cancel(request.id, .stop, at: now)
        }
    }

    /// Sends waiting requests to processes with capacity, and starts processes for the others.
    mutating func assign(at now: ContinuousClock.Instant) {
        nextCheck = nil
        var left: [(request: ServeRequest, environment: [UInt8])] = []
        for one in waiting {
            if let number = process(for: one.request, in: one.environment) {
                processes[number]?.session.send(one.request, at: now)
            } else {
                left.append(one)
            }
        }
        waiting = left
        guard let first = waiting.first else { return }
        if backOff.isPausing(at: now) {
            nextCheck = backOff.startAt
            return
        }
        // One at a time, until one shows that the program can start at all.
        guard !processes.values.contains(where: \.session.hasFailedToStart) else { return }
        startProcesses(at: now)
        let hasSlot = processes.values.contains { $0.occupiesSlot && $0.environment == first.environment }
        if !hasSlot { displaceProcess(at: now) }
    }

    /// Returns the process with the fewest open requests; of two the older one, so that the younger can go idle.
    private func process(for request: ServeRequest, in environment: [UInt8]) -> Int? {
        let able = processes.lazy.filter { $0.value.session.canTake(request.id) && $0.value.environment == environment }
        return able.min { ($0.value.session.open.count, $0.key) < ($1.value.session.open.count, $1.key) }?.key
    }

    /// Starts processes for the waiting requests that no starting process will take.
    private mutating func startProcesses(at now: ContinuousClock.Instant) {
        var starting = processes.values.filter(\.session.isStarting).map { ($0.environment, $0.session.window) }
        for (request, environment) in waiting {
            if let index = starting.firstIndex(where: { $0.0 == environment && $0.1 > 0 }) {
                starting[index].1 -= 1
                continue
            }
            guard processes.values.count(where: \.occupiesSlot) < parallel else { return }
            started += 1
            let session = ServeSession(window: request.program.concurrent, limits: limits, at: now)
            processes[started] = Process(environment: environment, session: session)
            starts.append((started, request))
            starting.append((environment, session.window - 1))
        }
    }

    /// Retires the process with the fewest requests, which it still answers, for one of another environment.
    private mutating func displaceProcess(at now: ContinuousClock.Instant) {
        guard !processes.values.contains(where: \.isDisplaced) else { return }
        let able = processes.filter { $0.value.session.isLive && !$0.value.session.isStarting }
        let next = able.min { ($0.value.session.open.count, $0.key) < ($1.value.session.open.count, $1.key) }
        guard let next else { return }
        processes[next.key]?.isDisplaced = true
        processes[next.key]?.session.retire(at: now)
    }

    private var hasLive: Bool { processes.values.contains(where: \.session.isLive) }

    // MARK: - Processes

    /// Updates a process; returns the commands for it, and the time at which this must be called again at the latest.
    mutating func turn(
        of number: Int, at now: ContinuousClock.Instant
    ) -> (commands: [ServeCommand], deadline: ContinuousClock.Instant?) {
        // Called before, because a process that has just become ready must not be considered idle, and after, in case
        // that retires it.
        assign(at: now)
        processes[number]?.session.advance(to: now)
        assign(at: now)
        return (processes[number]?.session.takeCommands() ?? [], processes[number]?.session.nextDeadline)
    }

    /// Handles a line of a process; a ``turn(of:at:)`` has to follow.
    mutating func receive(
        _ message: ServeMessage, from number: Int, at now: ContinuousClock.Instant
    ) -> ServeSession.News? {
        let news = processes[number]?.session.receive(message, at: now)
        if case .answered = news { backOff = CrashBackOff() }
        return news
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
        guard let process = processes.removeValue(forKey: number) else { return nil }
        let session = process.session
        let reason = session.reason(for: termination, lastLine: lastLine)
        for open in session.open.values {
            let reply: ServeRequest.Reply =
                if let cause = open.cause {
                    .ended(cause)
                } else if open.isTooLarge {
                    .tooLarge
                } else {
                    isClosed ? .ended(.stop) : .lost(reason, termination)
                }
            open.request.deliver(reply)
        }
        defer { assign(at: now) }
        // A slow program needs no additional pause: the process was killed because of one request.
        guard !session.mayEnd, session.failure != .ignoredCancel else { return nil }
        backOff.addDeath(reason, at: now)
        if !hasLive {
            if !session.hasBeenReady {
                refuse(process.environment, session.refusal(for: termination, reason))
            } else if let trouble = backOff.trouble {
                refuse(process.environment, .failing(trouble))
            }
        }
        return reason
    }

    /// Replaces all processes, because their program has changed.
    mutating func replace(at now: ContinuousClock.Instant) {
        for number in processes.keys { processes[number]?.session.retire(at: now) }
        // No process of the new program has died yet.
        backOff = CrashBackOff()
        assign(at: now)
    }

    /// Stops all processes, and accepts no further requests.
    ///
    /// - Parameters:
    ///   - isAtOnce: Whether they are sent SIGTERM, and not first end-of-file on their input.
    ///   - now: The current time.
    mutating func close(isAtOnce: Bool, at now: ContinuousClock.Instant) {
        isClosed = true
        for one in waiting { one.request.deliver(.ended(.stop)) }
        waiting = []
        for number in processes.keys { processes[number]?.session.close(isAtOnce: isAtOnce, at: now) }
    }

    private mutating func refuse(_ environment: [UInt8], _ refusal: ServeRequest.Refusal) {
        for one in waiting where one.environment == environment { one.request.deliver(.refused(refusal)) }
        waiting.removeAll { $0.environment == environment }
    }
}
