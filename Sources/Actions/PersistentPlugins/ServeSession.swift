/// The conversation with one serving process, from its start to its end.
///
/// Pure: what the process writes and the present are passed in, and what is to be
/// done is taken from ``takeCommands()``.
struct ServeSession: Sendable {
    /// Why Alight ends a request before it is answered.
    enum Cause: Sendable, Hashable { case timeOut, stop }

    /// What a process did that is the end of it.
    enum Fault: Sendable, Hashable {
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
        let request: ServeRequest
        /// When it is cancelled, or, when it has been, when the process is killed.
        var deadline: ContinuousClock.Instant
        var cause: Cause?
        /// Whether it is this one whose answer was too long.
        var isTooLarge = false
    }

    /// What a line of the process means to a request, or to those who read the log.
    enum News: Sendable, Hashable {
        case answered(ServeRequest, line: [UInt8], after: Cause?)
        case progress(ServeRequest, Double, String?)
        case remark(String)
    }

    let limits: ServeLimits
    private let born: ContinuousClock.Instant
    private var phase = Phase.starting
    private var commands: [ServeCommand] = [.hello]
    private(set) var open: [String: Open] = [:]
    /// How many requests it takes at once; before it has said so what its description says.
    private(set) var window: Int
    /// Whether it gets no further requests.
    private(set) var isRetired = false
    private(set) var hasBeenReady = false
    private(set) var fault: Fault?
    /// Whether it did not end by itself.
    private(set) var isTerminated = false
    private var readyAt: ContinuousClock.Instant?
    private var requests = 0
    private var unreadable = 0
    /// Results that nobody waited for.
    private var strays = 0
    /// Lines since the last answer that mean nothing here.
    private var unknown = 0
    private var pings = 0
    /// When the state of the phase is over: for the answer to `hello`, for the end.
    private var deadline: ContinuousClock.Instant
    private var idleSince: ContinuousClock.Instant
    private var pingAt: ContinuousClock.Instant
    private var pongBy: ContinuousClock.Instant?

    init(window: Int, limits: ServeLimits, at now: ContinuousClock.Instant) {
        self.window = window
        self.limits = limits
        born = now
        deadline = now + limits.ready
        idleSince = now
        pingAt = now
    }

    var isStarting: Bool { phase == .starting && !isRetired }
    /// Whether it counts as one of the plugin's processes.
    var isLive: Bool { (phase == .starting || phase == .serving) && !isRetired }
    /// Whether it is about to end without ever having been ready.
    var hasFailedToStart: Bool { fault != nil && !hasBeenReady }
    /// Whether its end has been asked for, and is no fault.
    var mayEnd: Bool { fault == nil && (phase == .closing || phase == .ending) }
    /// How many requests it can take now.
    var room: Int { phase == .serving && !isRetired ? max(0, window - open.count) : 0 }

    /// What is to be done, in order; each only once.
    mutating func takeCommands() -> [ServeCommand] {
        defer { commands = [] }
        return commands
    }

    var hasCommands: Bool { !commands.isEmpty }

    // MARK: - Requests

    func canTake(_ id: String) -> Bool { room > 0 && open[id] == nil }

    /// Sends a request; only if ``canTake(_:)`` says so.
    mutating func send(_ request: ServeRequest, at now: ContinuousClock.Instant) {
        precondition(canTake(request.id), "a request for a process that can't take it")
        // A time-out beyond a century is none, and would overflow the clock.
        open[request.id] = Open(request: request, deadline: now + min(request.timeout, .seconds(3_155_760_000)))
        requests += 1
        commands.append(.run(request))
        if requests >= limits.requests { isRetired = true }
    }

    /// Asks for the end of a request.
    mutating func cancel(_ id: String, _ cause: Cause, at now: ContinuousClock.Instant) {
        guard var cancelled = open[id], cancelled.cause == nil else { return }
        cancelled.cause = cause
        cancelled.deadline = now + limits.grace
        open[id] = cancelled
        commands.append(.cancel(cancelled.request, cause))
    }

    // MARK: - What the process does

    mutating func receive(_ message: ServeMessage, at now: ContinuousClock.Instant) -> News? {
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
            rest(at: now)
            return nil
        case .progress(let id, let fraction, let message):
            if let request = open[id]?.request { return .progress(request, fraction, message) }
            return takeUnknown("progress of a request that isn't open")
        case .result(let id, let attempt, let line):
            guard let answered = open[id], attempt == nil || attempt == answered.request.attempt else {
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
                if isRetired && phase == .serving { closeInput(at: now) }
            }
            return .answered(answered.request, line: line, after: answered.cause)
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
    mutating func receiveTooLong(_ start: [UInt8]) {
        let text = String(decoding: start, as: UTF8.self)
        let named = open.keys.filter { text.contains("\"\($0)\"") }
        let culprits = open.count == 1 ? Array(open.keys) : named
        if culprits.count == 1, let id = culprits.first { open[id]?.isTooLarge = true }
        fail(.lineTooLong)
    }

    /// Notes that it closed a stream; if it does not end by itself soon it is ended.
    mutating func lose(_ fault: Fault, at now: ContinuousClock.Instant) {
        // At its end it may close them in any order.
        guard phase == .starting || phase == .serving else { return }
        self.fault = fault
        isRetired = true
        phase = .dying
        deadline = now + .seconds(1)
    }

    // MARK: - Time

    /// When ``advance(to:)`` is due.
    var nextDeadline: ContinuousClock.Instant? {
        switch phase {
        case .starting, .dying, .closing: return deadline
        case .ending: return nil
        case .serving:
            var moments = open.values.map(\.deadline)
            if let pongBy { moments.append(pongBy) }
            if !isRetired { moments.append(born + limits.age) }
            if open.isEmpty {
                moments.append(idleSince + limits.idle)
                if pongBy == nil { moments.append(pingAt) }
            }
            return moments.min()
        }
    }

    /// Does what is due.
    mutating func advance(to now: ContinuousClock.Instant) {
        switch phase {
        case .starting: if now >= deadline { fail(.neverReady) }
        case .dying, .closing: if now >= deadline { end(by: .terminate) }
        case .ending: break
        case .serving:
            for (id, one) in open.sorted(by: { ($0.value.deadline, $0.key) < ($1.value.deadline, $1.key) })
            where now >= one.deadline {
                guard one.cause != nil else {
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
            guard open.isEmpty else { return }
            if isRetired || now >= idleSince + limits.idle {
                isRetired = true
                closeInput(at: now)
            } else if pongBy == nil, now >= pingAt {
                pings += 1
                commands.append(.ping(pings))
                pongBy = now + limits.pong
                pingAt = now + limits.ping
            }
        }
    }

    /// Gives it no further requests, and ends it when it has answered those that are open.
    mutating func retire(at now: ContinuousClock.Instant) {
        isRetired = true
        guard open.isEmpty else { return }
        if phase == .starting || phase == .serving { closeInput(at: now) }
    }

    /// When it may be retired for one of another environment; nil if it is not ready, or retired anyway.
    var givesWayAt: ContinuousClock.Instant? {
        guard phase == .serving, !isRetired, let readyAt else { return nil }
        return open.isEmpty && requests > 0 ? readyAt : readyAt + limits.slice
    }

    /// Cancels all requests, and ends it.
    ///
    /// - Parameters:
    ///   - isAtOnce: Whether it is sent SIGTERM now, whatever it does, and not the end of its input when it has answered.
    ///   - now: The current time.
    mutating func close(isAtOnce: Bool, at now: ContinuousClock.Instant) {
        for id in Array(open.keys) { cancel(id, .stop, at: now) }
        retire(at: now)
        if isAtOnce { end(by: .terminate) }
    }

    private mutating func rest(at now: ContinuousClock.Instant) {
        idleSince = now
        pingAt = now + limits.ping
    }

    private mutating func closeInput(at now: ContinuousClock.Instant) {
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

// MARK: - Words

extension ServeSession {
    /// Why it takes no requests, when it has ended before it was ready.
    func refusal(for way: Ended.Way, _ reason: String) -> ServeRequest.Refusal {
        switch (way, fault) {
        case (.notLaunched(let reason), _): .notLaunched(reason)
        case (.couldNotStart(let reason), _): .couldNotStart(reason)
        case (_, .wrongProtocol): .unusable(reason)
        default: .failing(reason)
        }
    }

    /// Why it ended, as a clause that goes on from its name.
    func reason(for way: Ended.Way, lastLine: String?) -> String {
        let said = lastLine.map { ": \(ResponseReader.line($0))" } ?? ""
        switch fault {
        case .neverReady: return "did not say 'ready' within \(Int(limits.ready / .seconds(1))) s\(said)"
        case .wrongProtocol(let version?): return "speaks version \(version) of the protocol, and this Alight speaks 1"
        case .wrongProtocol(nil): return "said 'ready' without 'protocol'"
        case .notJSON(let line): return "printed too many lines that are no JSON objects, as \"\(line)\", and was ended"
        case .unknownFlood(let what):
            return "printed too many lines that mean nothing here, with \(what), and was ended"
        case .lineTooLong: return "printed a line of more than 1 MiB and was ended"
        case .noPong: return "did not answer a ping and was ended\(said)"
        case .closedOutput where !isTerminated, .closedInput where !isTerminated, nil: break
        case .closedOutput: return "closed its standard output and was ended\(said)"
        case .closedInput: return "closed its standard input and was ended\(said)"
        case .ignoredCancel: return "was killed, since it ignored a 'cancel'"
        }
        let stage = hasBeenReady ? "" : " before it was ready"
        switch way {
        case .exited(let status): return "ended with status \(status)\(stage)\(said)"
        case .signalled(let number): return "was killed by signal \(number)\(stage)\(said)"
        case .couldNotStart(let reason), .notLaunched(let reason): return "was not started: \(reason)"
        case .timedOut, .stopped, .outputTooLarge: return "was ended\(said)"
        }
    }
}
