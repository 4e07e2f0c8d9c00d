import PluginProtocol
import Programs
import System

/// The state of the conversation with one serving process, from its start to its exit.
///
/// Pure: the output of the process and the current time are passed in, and ``takeCommands()`` returns what must be
/// done.
package struct ServeSession: Sendable {
    /// An error of a process that makes it unusable.
    enum Failure: Sendable, Hashable {
        case neverReady
        /// It uses another version of the protocol; nil when it does not specify one.
        case wrongProtocol(Int?)
        /// It printed too many lines that are not JSON; the last of them.
        case notJSON(String)
        /// It printed a line that is longer than a response may be.
        case lineTooLong
        /// It printed too many unknown lines; a description of the last one.
        case unknownFlood(String)
        case noPong
        case closedOutput
        case closedInput
        /// It did not answer a request after that was cancelled.
        case ignoredCancel
    }

    private enum Phase {
        case starting, serving
        /// It has closed a stream, and is probably about to exit.
        case dying
        /// Its input was closed.
        case closing
        /// It was asked to exit, or killed.
        case ending
    }

    struct Open: Sendable {
        let request: ServeRequest
        /// The time at which it is cancelled or, once it has been, the process is killed.
        var deadline: ContinuousClock.Instant
        var cause: ProgramResult.Termination?
        /// Whether the answer to this request was too long.
        var isTooLarge = false
    }

    /// The meaning of a line of the process, for a request or for the log.
    enum News: Sendable, Equatable {
        case answered(ServeRequest, line: [UInt8], after: ProgramResult.Termination?)
        case progress(ServeRequest, Double, String?)
        case notice(String)
    }

    private let limits: ServeLimits
    private let born: ContinuousClock.Instant
    private var phase = Phase.starting
    private var commands: [ServeCommand] = [.hello]
    private(set) var open: [String: Open] = [:]
    /// The number of requests that it accepts at once; until it is ready, the number in its description.
    private(set) var window: Int
    /// Whether it gets no further requests.
    private(set) var isRetired = false
    private(set) var failure: Failure?
    private(set) var hasBeenReady = false
    private var requests = 0
    /// The number of lines that are not JSON.
    private var unreadable = 0
    /// The number of results for requests that are not open.
    private var strays = 0
    /// The number of unknown lines since the last answer.
    private var unknown = 0
    private var pings = 0
    /// The time limit of the current phase: for the answer to `hello`, or for the exit.
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
    /// Whether it gets requests, now or once it is ready.
    var isLive: Bool { (phase == .starting || phase == .serving) && !isRetired }
    /// Whether it is one of the maximum number of processes; one that has failed is until it has exited.
    var occupiesSlot: Bool { isLive || failure != nil }
    /// Whether it is about to exit without ever having been ready.
    var hasFailedToStart: Bool { failure != nil && !hasBeenReady }
    /// Whether its exit was requested, and is not an error.
    var mayEnd: Bool { failure == nil && (phase == .closing || phase == .ending) }
    /// The number of requests that it can accept now.
    var capacity: Int { phase == .serving && !isRetired ? max(0, window - open.count) : 0 }

    /// Removes and returns the pending commands, in order.
    mutating func takeCommands() -> [ServeCommand] {
        defer { commands = [] }
        return commands
    }

    var hasCommands: Bool { !commands.isEmpty }

    // MARK: - Requests

    func canTake(_ id: String) -> Bool { capacity > 0 && open[id] == nil }

    /// Sends a request, for which ``canTake(_:)`` must be true.
    mutating func send(_ request: ServeRequest, at now: ContinuousClock.Instant) {
        precondition(canTake(request.id), "a request for a process that can't take it")
        // A timeout of more than a century has no effect, and would overflow the clock.
        open[request.id] = Open(request: request, deadline: now + min(request.timeout, .seconds(3_155_760_000)))
        requests += 1
        commands.append(.run(request))
        if requests >= limits.requests { isRetired = true }
    }

    /// Cancels a request, unless that has already been done; the cause is that it has timed out or is stopped.
    mutating func cancel(_ id: String, _ cause: ProgramResult.Termination, at now: ContinuousClock.Instant) {
        guard var cancelled = open[id], cancelled.cause == nil else { return }
        cancelled.cause = cause
        cancelled.deadline = now + limits.grace
        open[id] = cancelled
        commands.append(.cancel(cancelled.request, cause))
    }

    // MARK: - Output of the process

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
            phase = .serving
            hasBeenReady = true
            becomeIdle(at: now)
            return nil
        case .progress(let id, let fraction, let message):
            if let request = open[id]?.request { return .progress(request, fraction, message) }
            return takeUnknown("progress of a request that isn't open")
        case .result(let id, let attempt, let line):
            guard let answered = open[id], attempt == nil || attempt == answered.request.attempt else {
                strays += 1
                guard strays <= limits.unreadable else { return nil }
                let which = String(cleaning: id.utf8.prefix(64))
                let what = attempt.map { "attempt \($0) of '\(which)'" } ?? "'\(which)'"
                return .notice("answered \(what), which isn't open; the answer is ignored")
            }
            open[id] = nil
            unknown = 0
            if open.isEmpty {
                becomeIdle(at: now)
                if isRetired && phase == .serving { closeInput(at: now) }
            }
            return .answered(answered.request, line: line, after: answered.cause)
        case .pong(let number):
            if number == pings { pongBy = nil }
            return nil
        case .other(let type):
            return takeUnknown(type.map { "the type \"\($0)\"" } ?? "no 'type', or without its other members")
        case .unreadable(let start):
            unreadable += 1
            guard unreadable < limits.unreadable else {
                fail(.notJSON(start))
                return nil
            }
            return .notice("printed a line that is not a JSON object: \"\(start)\"; a plugin logs to stderr")
        }
    }

    /// Counts an unknown line; a later version of the protocol may have some, but not a flood of them.
    private mutating func takeUnknown(_ what: String) -> News? {
        unknown += 1
        if unknown > limits.unknown { fail(.unknownFlood(what)) }
        return nil
    }

    /// Records that a line is longer than a response may be; its first bytes may identify the request.
    mutating func receiveTooLong(_ start: [UInt8]) {
        let text = String(decoding: start, as: UTF8.self)
        let named = open.keys.filter { text.contains("\"\($0)\"") }
        let culprits = open.count == 1 ? Array(open.keys) : named
        if culprits.count == 1, let id = culprits.first { open[id]?.isTooLarge = true }
        fail(.lineTooLong)
    }

    /// Records that it closed a stream; it is terminated if it does not exit by itself soon.
    mutating func lose(_ failure: Failure, at now: ContinuousClock.Instant) {
        // A process that exits may close them in any order.
        guard phase == .starting || phase == .serving else { return }
        self.failure = failure
        isRetired = true
        phase = .dying
        deadline = now + .seconds(1)
    }

    // MARK: - Time

    /// The time at which ``advance(to:)`` is due; nil for never.
    var nextDeadline: ContinuousClock.Instant? {
        switch phase {
        case .starting, .dying, .closing: return deadline
        case .ending: return nil
        case .serving:
            var deadlines = open.values.map(\.deadline)
            if let pongBy { deadlines.append(pongBy) }
            if !isRetired { deadlines.append(born + limits.age) }
            if open.isEmpty {
                deadlines.append(idleSince + limits.idle)
                if pongBy == nil { deadlines.append(pingAt) }
            }
            return deadlines.min()
        }
    }

    /// Performs what is due.
    mutating func advance(to now: ContinuousClock.Instant) {
        switch phase {
        case .starting: if now >= deadline { fail(.neverReady) }
        case .dying, .closing: if now >= deadline { end(by: .terminate) }
        case .ending: break
        case .serving:
            for (id, one) in open.sorted(by: { ($0.value.deadline, $0.key) < ($1.value.deadline, $1.key) })
            where now >= one.deadline {
                guard one.cause != nil else {
                    cancel(id, .timedOut, at: now)
                    continue
                }
                failure = .ignoredCancel
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

    /// Sends it no further requests, and stops it once it has answered those that are open.
    mutating func retire(at now: ContinuousClock.Instant) {
        isRetired = true
        guard open.isEmpty else { return }
        if phase == .starting || phase == .serving { closeInput(at: now) }
    }

    /// Cancels all requests, and stops the process.
    ///
    /// - Parameters:
    ///   - isAtOnce: Whether it is sent SIGTERM now, whatever it does, and not end-of-file once it has answered.
    ///   - now: The current time.
    mutating func close(isAtOnce: Bool, at now: ContinuousClock.Instant) {
        for id in Array(open.keys) { cancel(id, .stopped, at: now) }
        retire(at: now)
        if isAtOnce { end(by: .terminate) }
    }

    private mutating func becomeIdle(at now: ContinuousClock.Instant) {
        idleSince = now
        pingAt = now + limits.ping
    }

    private mutating func closeInput(at now: ContinuousClock.Instant) {
        phase = .closing
        deadline = now + limits.grace
        pongBy = nil
        commands.append(.endOfFile)
    }

    private mutating func fail(_ failure: Failure) {
        guard phase != .ending else { return }
        self.failure = failure
        end(by: .terminate)
    }

    private mutating func end(by command: ServeCommand) {
        guard phase != .ending else { return }
        phase = .ending
        commands.append(command)
    }

    // MARK: - Messages

    /// Returns the reply to requests that wait for a process which has exited before it was ready.
    func refusal(for termination: ProgramResult.Termination, _ reason: String) -> ServeRequest.Reply {
        switch (termination, failure) {
        case (.couldNotStart, _), (.notLaunched, _): .ended(termination)
        case (_, .wrongProtocol): .refused(reason, mayPass: false)
        default: .refused(reason, mayPass: true)
        }
    }

    /// Returns the reason why it exited, as a clause that follows its name.
    func reason(for termination: ProgramResult.Termination, lastLine: String?) -> String {
        let lastOutput = lastLine.map { ": \(ResponseReader.line($0))" } ?? ""
        switch failure {
        case .neverReady: return "did not send 'ready' within \(Int(limits.ready / .seconds(1))) s\(lastOutput)"
        case .wrongProtocol(let version?):
            return "uses version \(version) of the protocol, and this release supports \(ProtocolVersion.current)"
        case .wrongProtocol(nil): return "sent 'ready' without 'protocol'"
        case .notJSON(let line):
            return "printed too many lines that are not JSON objects, such as \"\(line)\", and was stopped"
        case .unknownFlood(let what):
            return "printed too many unknown messages, with \(what), and was stopped"
        case .lineTooLong: return "printed a line of more than 1 MiB and was stopped"
        case .noPong: return "did not answer a ping and was stopped\(lastOutput)"
        // It has exited by itself.
        case .closedOutput where phase != .ending, .closedInput where phase != .ending, nil: break
        case .closedOutput: return "closed its standard output and was stopped\(lastOutput)"
        case .closedInput: return "closed its standard input and was stopped\(lastOutput)"
        case .ignoredCancel: return "was killed because it ignored a 'cancel'"
        }
        let stage = hasBeenReady ? "" : " before it was ready"
        switch termination {
        case .exited(let status): return "exited with status \(status)\(stage)\(lastOutput)"
        case .signalled(let number): return "was killed by signal \(number)\(stage)\(lastOutput)"
        case .couldNotStart(let reason), .notLaunched(let reason): return "was not started: \(reason)"
        case .timedOut, .stopped, .outputTooLarge: return "was stopped\(lastOutput)"
        }
    }
}
