/// The conversation with one serving process, from its start to its end.
///
/// Pure: what the process writes and the present are passed in, and what is to be
/// done is taken from ``takeCommands()``.
package struct ServeSession: Sendable {
    /// Why Alight ends a request before it is answered.
    package enum Cause: Sendable, Hashable { case timeOut, stop }

    /// What a process did that is the end of it.
    package enum Fault: Sendable, Hashable {
        case neverReady
        /// It speaks another version of the protocol; nil when it does not say which.
        case wrongProtocol(Int?)
        /// It printed lines that are not JSON, as this one.
        case notJSON(String)
        /// It printed a line that is longer than any response.
        case lineTooLong
        /// It printed too many lines that mean nothing to Alight; what the last was.
        case unknownFlood(String)
        case noPong
        case closedOutput
        case closedInput
        /// A request was not answered though it was cancelled.
        case ignoredCancel
    }

    private enum Phase {
        case starting, serving
        /// It has closed a stream, and is likely at its end.
        case dying
        /// It was told that nothing more comes.
        case closing
        /// It was asked to end, or killed.
        case ending
    }

    struct Open: Sendable {
        var number: Int
        var attempt: Int
        /// When it is cancelled, or, when it has been, when the process is killed.
        var deadline: ContinuousClock.Instant
        var cause: Cause?
        /// Whether it is this one whose answer was too long.
        var isTooLarge = false
    }

    /// What a line of the process means to a request, or to those who read the log.
    package enum News: Sendable, Hashable {
        case answered(number: Int, line: [UInt8], after: Cause?)
        case progress(number: Int, Double, String?)
        case remark(String)
    }

    let limits: ServeLimits
    private let born: ContinuousClock.Instant
    private var phase = Phase.starting
    private var commands: [ServeCommand] = [.hello]
    private(set) var open: [String: Open] = [:]
    /// How many requests it takes at once; before it has said so what its description says.
    package private(set) var window: Int
    /// Whether it gets no further requests.
    package private(set) var isRetired = false
    package private(set) var hasBeenReady = false
    package private(set) var fault: Fault?
    /// Whether it did not end by itself.
    package private(set) var isTerminated = false
    /// Whether it is retired to make room for a process of other surroundings.
    private(set) var isGivingWay = false
    /// When it gives way, at the earliest.
    private var givesWayAt: ContinuousClock.Instant?
    private var readyAt: ContinuousClock.Instant?
    private var requests = 0
    private var unreadable = 0
    /// Results that nobody waited for.
    private var strays = 0
    /// Lines since the last answer that mean nothing here.
    private var unknown = 0
    /// The requests whose time-out has been reached since somebody looked.
    private var overdue: [Int] = []
    private var pings = 0
    /// When the state of the phase is over: for the answer to `hello`, for the end.
    private var deadline: ContinuousClock.Instant
    private var idleSince: ContinuousClock.Instant
    private var pingAt: ContinuousClock.Instant
    private var pongBy: ContinuousClock.Instant?

    package init(window: Int, limits: ServeLimits, at now: ContinuousClock.Instant) {
        self.window = window
        self.limits = limits
        born = now
        deadline = now + limits.ready
        idleSince = now
        pingAt = now
    }

    package var isStarting: Bool { phase == .starting && !isRetired }
    /// Whether it counts as one of the plugin's processes.
    package var isLive: Bool { (phase == .starting || phase == .serving) && !isRetired }
    /// Whether it is about to end without ever having been ready.
    package var hasFailedToStart: Bool { fault != nil && !hasBeenReady }
    /// Whether its end has been asked for, and is no fault.
    package var mayEnd: Bool { fault == nil && (phase == .closing || phase == .ending) }
    /// How many requests it can take now.
    package var room: Int { phase == .serving && !isRetired ? max(0, window - open.count) : 0 }

    /// What is to be done, in order; each only once.
    package mutating func takeCommands() -> [ServeCommand] {
        defer { commands = [] }
        return commands
    }

    /// The requests whose time-out has been reached; each only once.
    mutating func takeOverdue() -> [Int] {
        defer { overdue = [] }
        return overdue
    }

    /// The requests whose answers were too long.
    package var tooLargeRequests: [String] { open.filter(\.value.isTooLarge).map(\.key) }

    package var hasCommands: Bool { !commands.isEmpty }

    // MARK: - Requests

    package func canTake(_ id: String) -> Bool { room > 0 && open[id] == nil }

    /// Sends a request; only if ``canTake(_:)`` says so.
    package mutating func send(
        _ number: Int, id: String, attempt: Int, timeout: Duration, at now: ContinuousClock.Instant
    ) {
        precondition(canTake(id), "a request for a process that can't take it")
        // A time-out beyond a century is none, and would overflow the clock.
        open[id] = Open(number: number, attempt: attempt, deadline: now + min(timeout, .seconds(3_155_760_000)))
        requests += 1
        commands.append(.run(number))
        if requests >= limits.requests { isRetired = true }
    }

    /// Asks for the end of a request.
    package mutating func cancel(_ id: String, _ cause: Cause, at now: ContinuousClock.Instant) {
        guard var request = open[id], request.cause == nil else { return }
        request.cause = cause
        request.deadline = now + limits.grace
        open[id] = request
        if cause == .timeOut { overdue.append(request.number) }
        commands.append(.cancel(id: id))
    }

    // MARK: - What the process does

    package mutating func receive(_ message: ServeMessage, at now: ContinuousClock.Instant) -> News? {
        switch message {
        case .ready(let version, let concurrent):
            guard phase == .starting else { return nil }
            guard version == 1 else {
                fail(.wrongProtocol(version))
                return nil
            }
            if let concurrent { window = concurrent }
            window = min(max(window, 1), limits.window)
            hasBeenReady = true
            phase = .serving
            readyAt = now
            if givesWayAt != nil { givesWayAt = now + limits.slice }
            rest(at: now)
            return nil
        case .progress(let id, let fraction, let message):
            if let request = open[id] { return .progress(number: request.number, fraction, message) }
            return takeUnknown("progress of a request that isn't open")
        case .result(let id, let attempt, let line):
            guard let request = open[id], attempt == nil || attempt == request.attempt else {
                strays += 1
                guard strays <= limits.unreadable else { return nil }
                let which = ProgramReport.cleaned(Array(id.utf8.prefix(64))[...])
                let what = attempt.map { "attempt \($0) of '\(which)'" } ?? "'\(which)'"
                return .remark("answered \(what), which isn't open; that is ignored")
            }
            open[id] = nil
            unknown = 0
            if open.isEmpty {
                rest(at: now)
                if isRetired && phase == .serving { close(at: now) }
            }
            return .answered(number: request.number, line: line, after: request.cause)
        case .pong(let number):
            if number == pings { pongBy = nil }
            return nil
        case .other(let type):
            return takeUnknown(type.map { "the type \"\($0)\"" } ?? "no 'type', or without what belongs to it")
        case .unreadable(let start):
            unreadable += 1
            guard unreadable < limits.unreadable else {
                fail(.notJSON(start))
                return nil
            }
            return .remark("printed a line that is no JSON object: \"\(start)\"; a plugin logs to stderr")
        }
    }

    /// Counts a line that means nothing; a later version of the protocol may have some, but nobody floods with them.
    private mutating func takeUnknown(_ what: String) -> News? {
        unknown += 1
        if unknown > limits.unknown { fail(.unknownFlood(what)) }
        return nil
    }

    /// Notes that a line is longer than any response; its first bytes may tell whose it is.
    package mutating func receiveTooLong(_ start: [UInt8]) {
        let text = String(decoding: start, as: UTF8.self)
        let named = open.keys.filter { text.contains("\"\($0)\"") }
        let culprits = open.count == 1 ? Array(open.keys) : named
        if culprits.count == 1, let id = culprits.first { open[id]?.isTooLarge = true }
        fail(.lineTooLong)
    }

    /// Notes that it closed a stream; if it does not end by itself soon it is ended.
    package mutating func lose(_ fault: Fault, at now: ContinuousClock.Instant) {
        // At its end it may close them in any order.
        guard phase == .starting || phase == .serving else { return }
        self.fault = fault
        isRetired = true
        phase = .dying
        deadline = now + .seconds(1)
    }

    // MARK: - Time

    /// When ``advance(to:)`` is due.
    package var nextDeadline: ContinuousClock.Instant? {
        switch phase {
        case .starting, .dying, .closing: return deadline
        case .ending: return nil
        case .serving:
            var moments = open.values.map(\.deadline)
            if let pongBy { moments.append(pongBy) }
            if !isRetired, let givesWayAt { moments.append(givesWayAt) }
            if !isRetired { moments.append(born + limits.age) }
            if open.isEmpty {
                moments.append(idleSince + limits.idle)
                if pongBy == nil { moments.append(pingAt) }
            }
            return moments.min()
        }
    }

    /// Does what is due.
    package mutating func advance(to now: ContinuousClock.Instant) {
        switch phase {
        case .starting: if now >= deadline { fail(.neverReady) }
        case .dying, .closing: if now >= deadline { end(by: .terminate) }
        case .ending: break
        case .serving:
            for (id, request) in open.sorted(by: { $0.value.number < $1.value.number })
            where now >= request.deadline {
                guard request.cause != nil else {
                    cancel(id, .timeOut, at: now)
                    continue
                }
                fault = .ignoredCancel
                end(by: .kill)
                return
            }
            if let pongBy, now >= pongBy {
                fail(.noPong)
                return
            }
            if now >= born + limits.age { isRetired = true }
            if let givesWayAt, now >= givesWayAt {
                isRetired = true
                isGivingWay = true
            }
            guard open.isEmpty else { return }
            if isRetired || now >= idleSince + limits.idle {
                isRetired = true
                close(at: now)
            } else if pongBy == nil, now >= pingAt {
                pings += 1
                commands.append(.ping(pings))
                pongBy = now + limits.pong
                pingAt = now + limits.ping
            }
        }
    }

    /// Gives it no further requests, and ends it when it has answered those that are open.
    package mutating func retire(at now: ContinuousClock.Instant) {
        isRetired = true
        guard open.isEmpty else { return }
        if phase == .starting || phase == .serving { close(at: now) }
    }

    /// Retires it for one of other surroundings: at once if it has nothing to do, else when it has had its time.
    package mutating func giveWay(at now: ContinuousClock.Instant) {
        guard isLive, givesWayAt == nil else { return }
        let isIdle = phase == .serving && open.isEmpty && requests > 0
        givesWayAt = isIdle ? now : max(now, (readyAt ?? now) + limits.slice)
        advance(to: now)
    }

    /// Whether it gives way, or will when it has had its time.
    package var isToGiveWay: Bool { isGivingWay || givesWayAt != nil }

    /// Lets it stay, since nobody waits any more.
    package mutating func stay() { if !isRetired { givesWayAt = nil } }

    /// Asks it to end now, whatever it does.
    package mutating func terminate() {
        isRetired = true
        end(by: .terminate)
    }

    private mutating func rest(at now: ContinuousClock.Instant) {
        idleSince = now
        pingAt = now + limits.ping
    }

    private mutating func close(at now: ContinuousClock.Instant) {
        phase = .closing
        deadline = now + limits.grace
        pongBy = nil
        commands.append(.endOfFile)
    }

    private mutating func fail(_ fault: Fault) {
        guard phase != .ending else { return }
        self.fault = fault
        end(by: .terminate)
    }

    private mutating func end(by command: ServeCommand) {
        guard phase != .ending else { return }
        phase = .ending
        isTerminated = true
        commands.append(command)
    }
}
