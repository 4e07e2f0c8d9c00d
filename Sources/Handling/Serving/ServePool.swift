/// The serving processes of one plugin that do not differ, and the requests that wait for them.
///
/// Pure: the present is passed in, and what is to be done is taken from ``takeDecisions()``.
package struct ServePool: Sendable {
    /// Why no request is taken.
    package enum Refusal: Sendable, Hashable {
        /// The machine has no room for a process now.
        case notLaunched(String)
        /// It is no program that can run.
        case couldNotStart(String)
        /// It speaks another version of the protocol.
        case unusable(String)
        /// It ends before it has answered anything.
        case failing(String)
    }

    /// What becomes of a request.
    package enum Reply: Sendable, Hashable {
        /// The line that answers it; `after` says why it had been cancelled.
        case answered([UInt8], after: ServeSession.Cause?)
        /// It had been cancelled, and was not answered.
        case ended(ServeSession.Cause)
        /// Its answer is longer than any may be.
        case tooLarge
        /// Its process died; the reason is a clause that goes on from the plugin's name.
        case lost(String, Ended.Way)
        case refused(Refusal)
    }

    package enum Decision: Sendable, Hashable {
        /// A process of that number is to be started; it has ``commands(of:)``.
        case start(Int)
        /// To the request of that number.
        case reply(Int, Reply)
        case progress(Int, Double, String?)
        /// The time-out of the request of that number is reached, and it is cancelled.
        case overdue(Int)
        case warn(String)
    }

    private struct Waiting: Sendable {
        var number: Int
        var id: String
        var attempt: Int
        var timeout: Duration
    }

    /// The pause before a start, by how many processes have died since the last answer.
    package static func pause(after deaths: Int) -> Duration { .seconds(min(1 << min(deaths - 1, 6), 60)) }
    /// So many deaths in a minute are too many.
    package static let mostDeaths = 5

    private let parallel: Int
    /// How many processes it may have now, of those that all of the plugin have together.
    package var seats: Int
    private var returnedSeats = 0
    private let concurrent: Int
    private let limits: ServeLimits
    private var sessions: [Int: ServeSession] = [:]
    private var waiting: [Waiting] = []
    private var decisions: [Decision] = []
    private var started = 0
    /// Since the last answer.
    private var deaths = 0
    private var recentDeaths: [ContinuousClock.Instant] = []
    /// Why nothing is taken until the next start; nil while all is well.
    private var trouble: String?
    private var startAt: ContinuousClock.Instant?
    /// Whether no process has become ready since one died.
    private var isDoubtful = false
    private var isClosed = false

    /// - Parameters:
    ///   - parallel: Most processes at once.
    ///   - concurrent: How many requests one takes at once, if it does not say so itself.
    ///   - limits: Of each conversation.
    package init(parallel: Int, concurrent: Int, limits: ServeLimits) {
        self.parallel = max(parallel, 1)
        seats = self.parallel
        self.concurrent = max(concurrent, 1)
        self.limits = limits
    }

    package mutating func takeDecisions() -> [Decision] {
        defer { decisions = [] }
        return decisions
    }

    /// The processes for which there is something to do.
    package var busy: [Int] { sessions.filter(\.value.hasCommands).map(\.key) }

    /// When waiting requests are to be looked at again by ``dispatch(at:)``; nil when nothing but news can help them.
    package var nextStart: ContinuousClock.Instant? { waiting.isEmpty ? nil : startAt }

    /// The requests that no process has.
    package var waitingRequests: [Int] { waiting.map(\.number) }

    /// How many of its seats have a process; one that gives way leaves its seat only when it has ended.
    package var taken: Int { sessions.values.count { $0.isLive || $0.fault != nil || $0.isGivingWay } }

    /// Whether it would start a process if it had a seat for it.
    package func wantsSeat(at now: ContinuousClock.Instant) -> Bool {
        taken >= seats && seats < parallel && mayStart(at: now)
    }

    /// Whether requests wait that no process could take.
    private func mayStart(at now: ContinuousClock.Instant) -> Bool {
        if let startAt, now < startAt { return false }
        // One after the other, until one shows that the program can start at all.
        if sessions.values.contains(where: \.hasFailedToStart) { return false }
        if isDoubtful, sessions.values.contains(where: \.isStarting) { return false }
        return !isClosed && !waiting.isEmpty
            && waiting.count > sessions.values.filter(\.isStarting).reduce(0, { $0 + $1.window })
    }

    /// Has one of its processes make room for one of other surroundings, if none does already.
    package mutating func giveWay(at now: ContinuousClock.Instant) {
        guard !sessions.values.contains(where: \.isToGiveWay) else { return }
        let able = sessions.filter(\.value.isLive)
        let first = able.min { ($0.value.open.count, $0.key) < ($1.value.open.count, $1.key) }
        if let process = first?.key { sessions[process]?.giveWay(at: now) }
    }

    /// How many seats it does without since it was asked last, for processes that have given way.
    package mutating func takeReturnedSeats() -> Int {
        defer { returnedSeats = 0 }
        return returnedSeats
    }

    /// Lets its processes stay.
    package mutating func stay() { for process in sessions.keys { sessions[process]?.stay() } }

    /// Whether no process is left.
    package var isEmpty: Bool { sessions.isEmpty }

    /// Whether a new pool would do the same: it has no process and no request, and nothing has died lately.
    package func isForgettable(at now: ContinuousClock.Instant) -> Bool {
        sessions.isEmpty && waiting.isEmpty && recentDeaths.allSatisfy { $0 <= now - .seconds(60) }
            && startAt.map { $0 <= now } ?? true
    }

    // MARK: - Requests

    /// Takes a request in.
    ///
    /// - Parameters:
    ///   - number: Names it in decisions; never used before.
    ///   - id: Its job.
    ///   - attempt: The job's attempt.
    ///   - timeout: How long it may take from when it is sent.
    ///   - isAgain: Whether a process has died with it; then it is the next one.
    ///   - now: The present.
    package mutating func submit(
        _ number: Int, id: String, attempt: Int, timeout: Duration, isAgain: Bool = false,
        at now: ContinuousClock.Instant
    ) {
        guard !isClosed else {
            decisions.append(.reply(number, .ended(.stop)))
            return
        }
        if let trouble, let startAt, now < startAt, !sessions.values.contains(where: \.isLive) {
            decisions.append(.reply(number, .refused(.failing(trouble))))
            return
        }
        let request = Waiting(number: number, id: id, attempt: attempt, timeout: timeout)
        waiting.insert(request, at: isAgain ? 0 : waiting.endIndex)
        dispatch(at: now)
    }

    /// Stops a request, wherever it is.
    package mutating func cancel(_ number: Int, at now: ContinuousClock.Instant) {
        if let index = waiting.firstIndex(where: { $0.number == number }) {
            waiting.remove(at: index)
            decisions.append(.reply(number, .ended(.stop)))
            return
        }
        for process in sessions.keys {
            guard let id = sessions[process]?.open.first(where: { $0.value.number == number })?.key else { continue }
            sessions[process]?.cancel(id, .stop, at: now)
        }
    }

    /// Hands waiting requests to processes with room, and decides to start one where there is none.
    package mutating func dispatch(at now: ContinuousClock.Instant) {
        var index = 0
        while index < waiting.count, sessions.values.contains(where: { $0.room > 0 }) {
            let able = sessions.filter { $0.value.canTake(waiting[index].id) }
            // The one that has least to do; of two the older one, so that the younger can go idle.
            guard
                let process = able.min(by: { ($0.value.open.count, $0.key) < ($1.value.open.count, $1.key) })?.key
            else {
                index += 1
                continue
            }
            let request = waiting.remove(at: index)
            sessions[process]?.send(
                request.number, id: request.id, attempt: request.attempt, timeout: request.timeout, at: now)
        }
        // One that has failed keeps its place until it has ended: only then is the pause known.
        while taken < min(parallel, seats), mayStart(at: now) {
            startAt = nil
            started += 1
            sessions[started] = ServeSession(window: concurrent, limits: limits, at: now)
            decisions.append(.start(started))
        }
    }

    // MARK: - Processes

    /// Brings a process to the present, and gives what is to be done to it.
    package mutating func commands(of process: Int, at now: ContinuousClock.Instant) -> [ServeCommand] {
        sessions[process]?.advance(to: now)
        for request in sessions[process]?.takeOverdue() ?? [] { decisions.append(.overdue(request)) }
        // One that is ended by that leaves requests to others.
        dispatch(at: now)
        return sessions[process]?.takeCommands() ?? []
    }

    /// When ``commands(of:at:)`` is due, if nothing happens before.
    package func deadline(of process: Int) -> ContinuousClock.Instant? { sessions[process]?.nextDeadline }

    /// The requests that a process works on.
    package func openRequests(of process: Int) -> [Int] { sessions[process]?.open.values.map(\.number) ?? [] }

    /// Takes a line of a process.
    package mutating func receive(_ message: ServeMessage, from process: Int, at now: ContinuousClock.Instant) {
        let wasReady = sessions[process]?.hasBeenReady ?? true
        let news = sessions[process]?.receive(message, at: now)
        if !wasReady, sessions[process]?.hasBeenReady == true { isDoubtful = false }
        switch news {
        case .answered(let number, let line, let cause):
            deaths = 0
            recentDeaths = []
            trouble = nil
            decisions.append(.reply(number, .answered(line, after: cause)))
        case .progress(let number, let fraction, let message):
            decisions.append(.progress(number, fraction, message))
        case .remark(let text): decisions.append(.warn(text))
        case nil: break
        }
        dispatch(at: now)
    }

    /// Notes that a process printed a line that is longer than any response.
    package mutating func receiveTooLong(_ start: [UInt8], from process: Int) {
        sessions[process]?.receiveTooLong(start)
    }

    /// Notes that a process closed a stream.
    package mutating func lose(_ fault: ServeSession.Fault, of process: Int, at now: ContinuousClock.Instant) {
        sessions[process]?.lose(fault, at: now)
        dispatch(at: now)
    }

    /// Takes the end of a process, after all that it printed.
    ///
    /// - Parameters:
    ///   - process: Its number.
    ///   - way: How it ended.
    ///   - lastLine: The last that it wrote to its log.
    ///   - now: The present.
    package mutating func end(
        _ process: Int, _ way: Ended.Way, lastLine: String?, at now: ContinuousClock.Instant
    ) {
        guard let session = sessions.removeValue(forKey: process) else { return }
        if session.isGivingWay, seats > 0 {
            seats -= 1
            returnedSeats += 1
        }
        let reason = Self.reason(session, way, lastLine)
        for request in session.open.values.sorted(by: { $0.number < $1.number }) {
            let reply: Reply =
                if let cause = request.cause {
                    .ended(cause)
                } else if request.isTooLarge {
                    .tooLarge
                } else if isClosed {
                    .ended(.stop)
                } else {
                    .lost(reason, way)
                }
            decisions.append(.reply(request.number, reply))
        }
        // What is slow itself needs no pause: the process was killed for one request.
        if !session.mayEnd, session.fault != .ignoredCancel {
            decisions.append(.warn(reason))
            deaths += 1
            isDoubtful = true
            recentDeaths = recentDeaths.filter { $0 > now - .seconds(60) } + [now]
            startAt = now + Self.pause(after: deaths)
            if recentDeaths.count >= Self.mostDeaths {
                trouble = "has died \(recentDeaths.count) times in a minute; the last time it \(reason)"
            }
            if !sessions.values.contains(where: \.isLive) {
                if !session.hasBeenReady {
                    refuse(Self.refusal(session, way, reason))
                } else if let trouble {
                    refuse(.failing(trouble))
                }
            }
        }
        dispatch(at: now)
    }

    /// Replaces all processes, since what they are has changed.
    package mutating func replace(at now: ContinuousClock.Instant) {
        for process in sessions.keys { sessions[process]?.retire(at: now) }
        // What is there now has not died yet.
        deaths = 0
        recentDeaths = []
        trouble = nil
        startAt = nil
        isDoubtful = false
        dispatch(at: now)
    }

    /// Ends all processes, and takes nothing any more.
    ///
    /// - Parameters:
    ///   - isAtOnce: Whether they are sent SIGTERM, and not the end of their input first.
    ///   - now: The present.
    package mutating func close(isAtOnce: Bool, at now: ContinuousClock.Instant) {
        isClosed = true
        startAt = nil
        for request in waiting { decisions.append(.reply(request.number, .ended(.stop))) }
        waiting = []
        for process in sessions.keys {
            for id in sessions[process].map({ Array($0.open.keys) }) ?? [] {
                sessions[process]?.cancel(id, .stop, at: now)
            }
            if isAtOnce { sessions[process]?.terminate() } else { sessions[process]?.retire(at: now) }
        }
    }

    private mutating func refuse(_ refusal: Refusal) {
        for request in waiting { decisions.append(.reply(request.number, .refused(refusal))) }
        waiting = []
    }

    // MARK: - Words

    private static func refusal(_ session: ServeSession, _ way: Ended.Way, _ reason: String) -> Refusal {
        switch (way, session.fault) {
        case (.notLaunched(let reason), _): .notLaunched(reason)
        case (.couldNotStart(let reason), _): .couldNotStart(reason)
        case (_, .wrongProtocol): .unusable(reason)
        default: .failing(reason)
        }
    }

    /// Why a process ended, as a clause that goes on from its name.
    private static func reason(_ session: ServeSession, _ way: Ended.Way, _ lastLine: String?) -> String {
        let said = lastLine.map { ": \(ResponseReader.line($0))" } ?? ""
        switch session.fault {
        case .neverReady: return "did not say 'ready' within \(session.readySeconds) s\(said)"
        case .wrongProtocol(let version?): return "speaks version \(version) of the protocol, and this Alight speaks 1"
        case .wrongProtocol(nil): return "said 'ready' without 'protocol'"
        case .notJSON(let line): return "printed too many lines that are no JSON objects, as \"\(line)\", and was ended"
        case .unknownFlood(let what):
            return "printed too many lines that mean nothing here, with \(what), and was ended"
        case .lineTooLong: return "printed a line of more than 1 MiB and was ended"
        case .noPong: return "did not answer a ping and was ended\(said)"
        case .closedOutput where !session.isTerminated, .closedInput where !session.isTerminated, nil: break
        case .closedOutput: return "closed its standard output and was ended\(said)"
        case .closedInput: return "closed its standard input and was ended\(said)"
        case .ignoredCancel: return "was killed, since it ignored a 'cancel'"
        }
        let stage = session.hasBeenReady ? "" : " before it was ready"
        switch way {
        case .exited(let status): return "ended with status \(status)\(stage)\(said)"
        case .signalled(let number): return "was killed by signal \(number)\(stage)\(said)"
        case .couldNotStart(let reason), .notLaunched(let reason): return "was not started: \(reason)"
        case .timedOut, .stopped, .outputTooLarge: return "was ended\(said)"
        }
    }

}

extension ServeSession {
    fileprivate var readySeconds: Int { Int(limits.ready / .seconds(1)) }
}
