import Programs

/// The serving processes of a plugin, and the requests that wait for one.
///
/// A process serves the requests of one environment, and all environments share a limited number of slots for
/// processes. The current time is passed in; ``takeStarts()`` and ``turn(of:at:)`` return what only threads can do.
struct ServeSlots: Sendable {
    struct Process: Sendable {
        let environment: [UInt8]
        var session: ServeSession
        /// Whether it is retired for a process of another environment.
        var isDisplaced = false

        /// Whether it occupies a slot: a process that has failed does until it has exited, because only then is the
        /// pause known.
        var occupiesSlot: Bool { session.isLive || session.failure != nil || isDisplaced }
    }

    /// The requests of one environment that no process has received.
    private struct Queue: Sendable {
        let environment: [UInt8]
        var requests: [ServeRequest] = []
    }

    /// The maximum number of processes at once.
    var parallel: Int
    /// The processes by their numbers, which are never reused.
    var processes: [Int: Process] = [:]
    /// The time at which ``assign(at:)`` must be called again; nil when time alone does not help the requests that
    /// wait.
    private(set) var nextCheck: ContinuousClock.Instant?
    private let limits: ServeLimits
    private var queues: [Queue] = []
    private var backOffs: [[UInt8]: CrashBackOff] = [:]
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
        let wanted = request.program.environment
        // The same array for equal environments, so that they are not compared byte by byte from here on.
        let environment = processes.values.first { $0.environment == wanted }?.environment ?? wanted
        if let backOff = backOffs[environment], let trouble = backOff.trouble, backOff.isPausing(at: now),
            !hasLive(environment)
        {
            return request.deliver(.refused(.failing(trouble)))
        }
        let index = queues.firstIndex { $0.environment == environment } ?? queues.endIndex
        if index == queues.endIndex { queues.append(Queue(environment: environment)) }
        queues[index].requests.insert(request, at: isRetry ? 0 : queues[index].requests.endIndex)
        assign(at: now)
    }

    /// Cancels a request, whether it waits or has been sent.
    mutating func cancel(_ request: ServeRequest, at now: ContinuousClock.Instant) {
        for index in queues.indices where queues[index].requests.contains(request) {
            queues[index].requests.removeAll { $0 == request }
            request.deliver(.ended(.stop))
        }
        for number in processes.keys where processes[number]?.session.open[request.id]?.request == request {
            processes[number]?.session.cancel(request.id, .stop, at: now)
        }
    }

    /// Sends waiting requests to processes with capacity, and starts processes for the others.
    mutating func assign(at now: ContinuousClock.Instant) {
        nextCheck = nil
        for index in queues.indices {
            let environment = queues[index].environment
            while let request = queues[index].requests.first, let number = process(for: request, in: environment) {
                queues[index].requests.removeFirst()
                processes[number]?.session.send(request, at: now)
            }
        }
        queues.removeAll { $0.requests.isEmpty }
        guard !queues.isEmpty else { return }
        let served = queues.filter { hasSlot($0.environment) }
        for queue in queues where !hasSlot(queue.environment) { startProcesses(for: queue, at: now) }
        for queue in served { startProcesses(for: queue, at: now) }
        if queues.contains(where: { !hasSlot($0.environment) && !isPausing($0, at: now) }) { displaceProcess(at: now) }
    }

    /// Returns the process with the fewest open requests; of two the older one, so that the younger can go idle.
    private func process(for request: ServeRequest, in environment: [UInt8]) -> Int? {
        let able = processes.lazy.filter { $0.value.environment == environment && $0.value.session.canTake(request.id) }
        return able.min { ($0.value.session.open.count, $0.key) < ($1.value.session.open.count, $1.key) }?.key
    }

    private mutating func startProcesses(for queue: Queue, at now: ContinuousClock.Instant) {
        if isPausing(queue, at: now), let startAt = backOffs[queue.environment]?.startAt { inspect(at: startAt) }
        while processes.values.count(where: \.occupiesSlot) < parallel, mayStart(for: queue, at: now) {
            backOffs[queue.environment]?.recordStart()
            started += 1
            let session = ServeSession(window: queue.requests[0].program.concurrent, limits: limits, at: now)
            processes[started] = Process(environment: queue.environment, session: session)
            starts.append((started, queue.requests[0]))
        }
    }

    /// Returns whether the queue needs a process that may be started now.
    private func mayStart(for queue: Queue, at now: ContinuousClock.Instant) -> Bool {
        if isPausing(queue, at: now) { return false }
        let sessions = processes.values.filter { $0.environment == queue.environment }.map(\.session)
        // One at a time, until one shows that the program can start at all.
        if sessions.contains(where: \.hasFailedToStart) { return false }
        let starting = sessions.filter(\.isStarting)
        if backOffs[queue.environment]?.isDoubtful == true, !starting.isEmpty { return false }
        return queue.requests.count > starting.reduce(0) { $0 + $1.window }
    }

    /// Retires a process of another environment: at once if it is idle, otherwise after its time slice.
    private mutating func displaceProcess(at now: ContinuousClock.Instant) {
        guard !processes.values.contains(where: \.isDisplaced) else { return }
        let able = processes.compactMap { number, process in
            process.session.yieldsAt.map { (time: max($0, now), open: process.session.open.count, number: number) }
        }
        guard let next = able.min(by: { $0 < $1 }) else { return }
        guard next.time <= now else { return inspect(at: next.time) }
        processes[next.number]?.isDisplaced = true
        processes[next.number]?.session.retire(at: now)
        // The requests that wait for such processes are now behind the others.
        let index = queues.firstIndex { $0.environment == processes[next.number]?.environment }
        if let index { queues.append(queues.remove(at: index)) }
    }

    private mutating func inspect(at time: ContinuousClock.Instant) { nextCheck = min(nextCheck ?? time, time) }

    private func isPausing(_ queue: Queue, at now: ContinuousClock.Instant) -> Bool {
        backOffs[queue.environment]?.isPausing(at: now) ?? false
    }

    private func hasLive(_ environment: [UInt8]) -> Bool {
        processes.values.contains { $0.session.isLive && $0.environment == environment }
    }

    private func hasSlot(_ environment: [UInt8]) -> Bool {
        processes.values.contains { $0.occupiesSlot && $0.environment == environment }
    }

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
        let wasReady = processes[number]?.session.hasBeenReady ?? false
        let news = processes[number]?.session.receive(message, at: now)
        if !backOffs.isEmpty, let process = processes[number] {
            if !wasReady, process.session.hasBeenReady { backOffs[process.environment]?.isDoubtful = false }
            if case .answered = news { backOffs[process.environment]?.recordAnswer() }
        }
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
        backOffs = backOffs.filter { $0.key == process.environment || !$0.value.isOver(at: now) }
        var backOff = backOffs[process.environment] ?? CrashBackOff()
        backOff.addDeath(reason, at: now)
        backOffs[process.environment] = backOff
        if !hasLive(process.environment) {
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
        backOffs = [:]
        assign(at: now)
    }

    /// Stops all processes, and accepts no further requests.
    ///
    /// - Parameters:
    ///   - isAtOnce: Whether they are sent SIGTERM, and not first end-of-file on their input.
    ///   - now: The current time.
    mutating func close(isAtOnce: Bool, at now: ContinuousClock.Instant) {
        isClosed = true
        for request in queues.flatMap(\.requests) { request.deliver(.ended(.stop)) }
        queues = []
        for number in processes.keys { processes[number]?.session.close(isAtOnce: isAtOnce, at: now) }
    }

    private mutating func refuse(_ environment: [UInt8], _ refusal: ServeRequest.Refusal) {
        for queue in queues where queue.environment == environment {
            for request in queue.requests { request.deliver(.refused(refusal)) }
        }
        queues.removeAll { $0.environment == environment }
    }
}
