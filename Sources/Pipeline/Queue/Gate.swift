import FileEvents
import Reconciling
import Rules
import Settling
import System

/// A job that could be leased.
struct DueJob: Sendable {
    var event: FileEvent
    /// Whether one of its actions has started before, so that its pause before the next attempt is over.
    var hasStartedBefore = false
    /// Whether one of its attempts was interrupted, and may have done a part of the work.
    var isInterrupted = false

    /// Whether a user has requested it, so that it does not wait.
    var isManual: Bool { event.origin == .manual }
}

/// The decision of a gate.
enum Verdict: Sendable {
    case run
    /// It waits until the gate is woken, at most until the time.
    case wait(Reconciler.Gate, until: ContinuousClock.Instant?, Waiting?)
}

/// The clocks and the files by which gates decide.
struct GateTime {
    var now: ContinuousClock.Instant
    var time: Timestamp
    var clock: LocalClock
    var files: WatchedPaths
}

/// A condition that can prevent a due job from running.
protocol Gate {
    mutating func verdict(for job: DueJob, at time: GateTime) -> Verdict
}

/// The gates of one rule, in the order of their evaluation.
///
/// Pauses, the circuit breaker and `batch` delay the whole rule, see ``RuleState``. Sets of files are collected by
/// the dispatcher, see `group`.
struct Gates {
    var window: WindowGate?
    var age: AgeGate?
    var loop = LoopGuard()
    var cooldown: CooldownGate?
    var ready: ReadyGate?

    /// Creates the gates of a rule; unchanged gates keep their state.
    mutating func change(to rule: Rule) {
        window = rule.window.map { window?.window == $0 ? window ?? WindowGate($0) : WindowGate($0) }
        age = rule.condition.map { $0.ages.isEmpty } ?? true ? nil : AgeGate(rule)
        if rule.cooldown <= .zero {
            cooldown = nil
        } else if cooldown?.times.pause != rule.cooldown {
            cooldown = CooldownGate(Cooldown(rule.cooldown))
        }
        ready = rule.ready.map { ReadyGate(rule, $0) }
        loop.limit = rule.tail == nil ? LoopGuard.limit : LoopGuard.followingLimit
    }

    mutating func verdict(for job: DueJob, at time: GateTime) -> Verdict {
        if case let verdict? = window?.verdict(for: job, at: time), !verdict.isRun { return verdict }
        if let verdict = age?.verdict(for: job, at: time), !verdict.isRun { return verdict }
        let verdict = loop.verdict(for: job, at: time)
        guard verdict.isRun else { return verdict }
        if case let verdict? = cooldown?.verdict(for: job, at: time), !verdict.isRun { return verdict }
        return ready?.verdict(for: job, at: time) ?? .run
    }
}

extension Waiting {
    var reason: Reconciler.Reason { Reconciler.Reason(message, passesSoon: cause.passesSoon) }
}

extension Verdict {
    var isRun: Bool { if case .run = self { true } else { false } }
}

/// `window`: the hours in which actions start.
struct WindowGate: Gate {
    let window: RunWindow
    /// The time at which the window opens, while a job waits for it.
    private(set) var opens: Timestamp?

    init(_ window: RunWindow) { self.window = window }

    static let gate = Reconciler.Gate("window")
    /// The maximum time after which the clock is checked again, since it may be set.
    static let period = Duration.seconds(60)

    mutating func verdict(for job: DueJob, at time: GateTime) -> Verdict {
        guard !job.isManual, !window.isOpen(at: time.time, time.clock) else {
            if !job.isManual { opens = nil }
            return .run
        }
        let opening = opens.flatMap { $0 > time.time ? $0 : nil } ?? window.opening(after: time.time, time.clock)
        opens = opening
        let message = "its window opens at \(opening.local(time.clock))"
        let until = time.now + min(opening.since(time.time), Self.period)
        return .wait(Self.gate, until: until, Waiting(.window, message))
    }
}

/// `where` with an `age` that the file has not reached yet.
struct AgeGate: Gate {
    private let rule: Rule

    init(_ rule: Rule) { self.rule = rule }

    static let gate = Reconciler.Gate("age")
    /// The maximum time after which the clock is checked again, since it may be set.
    static let period = Duration.seconds(3600)

    func verdict(for job: DueJob, at time: GateTime) -> Verdict {
        guard !job.isManual, !job.isInterrupted, let opening = rule.opening(of: job.event), opening > time.time else {
            return .run
        }
        let message = "'where' matches at \(opening.local(time.clock)), when the file is old enough"
        let until = time.now + min(opening.since(time.time), Self.period)
        return .wait(Self.gate, until: until, Waiting(.condition, message))
    }

    /// Returns an event with the time at which the condition was met.
    func opened(_ event: FileEvent) -> FileEvent {
        var event = event
        event.time = rule.opening(of: event) ?? event.time
        return event
    }
}

/// `cooldown`: the pause between two runs for a path.
struct CooldownGate: Gate {
    var times: Cooldown

    init(_ times: Cooldown) { self.times = times }

    mutating func verdict(for job: DueJob, at time: GateTime) -> Verdict {
        guard !job.hasStartedBefore, let end = times.end(of: job.event.path, at: time.now) else { return .run }
        return .wait(Reconciler.Gate("cooldown"), until: end, nil)
    }
}

/// `ready` without its command, which the attempt runs.
struct ReadyGate: Gate {
    let ready: Readiness
    private let retry: RetryPolicy
    private let quiet: Duration

    init(_ rule: Rule, _ ready: Readiness) {
        self.ready = ready
        retry = rule.retry
        quiet = rule.settle.quiet(isPolled: false)
    }

    /// Returns the gate of a path, which is woken when that path is hinted.
    static func gate(_ path: PathBytes) -> Reconciler.Gate { Reconciler.Gate("ready", path) }

    func verdict(for job: DueJob, at time: GateTime) -> Verdict {
        let event = job.event
        guard !job.isInterrupted, !job.isManual, event.kind != .deleted, event.kind != .moved,
            !event.kind.isLifecycle, !event.kind.isRaw, case .present(let snapshot) = time.files.look(at: event.path)
        else { return .run }
        let waiting = ready.waiting(event.path, snapshot, now: time.time) { time.files.look(at: $0) != .absent }
        guard let (waiting, pause) = waiting else { return .run }
        let age = time.time.since(event.time)
        let until = time.now + (pause ?? retry.pause(whileNotReady: quiet, age: age))
        let marker = waiting.cause == .doneFile ? ready.marker(of: event.path) : nil
        return .wait(Self.gate(marker ?? event.path), until: until, waiting)
    }
}

extension Timestamp {
    /// `2026-11-21 22:00`, in local time.
    func local(_ clock: LocalClock) -> String {
        let wall = Timestamp(seconds: seconds + clock.offset(seconds), nanoseconds: 0).description
        return String(wall.prefix(16)).replacing("T", with: " ")
    }
}
