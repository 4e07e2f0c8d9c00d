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

/// The wait of a job that a gate does not let run: until the gate is woken, at most until the time.
struct GateWait: Sendable {
    let gate: Reconciler.Gate
    var until: ContinuousClock.Instant?
    var waiting: Waiting?
    /// The time at which the wait ends, if known; the gate may be asked earlier.
    var end: Timestamp?
}

/// The clocks and the files by which gates decide.
struct GateTime {
    var now: ContinuousClock.Instant
    var time: Timestamp
    var clock: LocalClock
    var files: WatchedPaths
}

/// The gates of one rule, in the order of their evaluation.
///
/// Pauses, the circuit breaker and `batch` delay the whole rule, see ``RuleState``. Sets of files are collected by
/// the dispatcher, see `group`.
struct Gates {
    var window: WindowGate?
    var age: AgeGate?
    var loop = LoopGuard()
    var cooldown: Cooldown?
    var ready: ReadyGate?

    /// Creates the gates of a rule; unchanged gates keep their state.
    mutating func change(to rule: Rule) {
        if rule.window != window?.window { window = rule.window.map(WindowGate.init) }
        age = rule.condition?.ages.isEmpty ?? true ? nil : AgeGate(rule)
        let pause = rule.cooldown > .zero ? rule.cooldown : nil
        if pause != cooldown?.pause { cooldown = pause.map(Cooldown.init) }
        ready = rule.ready.map { ReadyGate(rule, $0) }
        loop.limit = rule.tail == nil ? LoopGuard.limit : LoopGuard.followingLimit
    }

    /// Returns the wait of the first gate that does not let a due job run; nil if all let it run.
    mutating func wait(for job: DueJob, at time: GateTime) -> GateWait? {
        if let wait = window?.wait(for: job, at: time) ?? age?.wait(for: job, at: time) { return wait }
        let path = job.event.path
        if let end = loop.end(of: path, at: time.now) { return GateWait(gate: LoopGuard.gate, until: end) }
        if !job.hasStartedBefore, let end = cooldown?.end(of: path, at: time.now) {
            let waiting = Waiting(.cooldown, "it ran a short time ago ('cooldown')")
            return GateWait(
                gate: Cooldown.gate, until: end, waiting: waiting, end: time.time.advanced(by: end - time.now))
        }
        return ready?.wait(for: job, at: time)
    }
}

extension Waiting {
    var reason: Reconciler.Reason { Reconciler.Reason(message, passesSoon: cause.passesSoon) }
}

/// `window`: the hours in which actions start.
struct WindowGate {
    let window: RunWindow
    /// The time at which the window opens, while a job waits for it.
    private(set) var opens: Timestamp?

    init(_ window: RunWindow) { self.window = window }

    static let gate = Reconciler.Gate("window")
    /// The maximum time after which the clock is checked again, since it may be set.
    static let period = Duration.seconds(60)

    mutating func wait(for job: DueJob, at time: GateTime) -> GateWait? {
        guard !job.isManual, !window.isOpen(at: time.time, time.clock) else {
            if !job.isManual { opens = nil }
            return nil
        }
        let opening = opens.flatMap { $0 > time.time ? $0 : nil } ?? window.opening(after: time.time, time.clock)
        opens = opening
        let message = "its window opens at \(opening.local(time.clock))"
        let until = time.now + min(opening.since(time.time), Self.period)
        return GateWait(gate: Self.gate, until: until, waiting: Waiting(.window, message), end: opening)
    }
}

/// `where` with an `age` that the file has not reached yet.
struct AgeGate {
    private let rule: Rule

    init(_ rule: Rule) { self.rule = rule }

    static let gate = Reconciler.Gate("age")
    /// The maximum time after which the clock is checked again, since it may be set.
    static let period = Duration.seconds(3600)

    func wait(for job: DueJob, at time: GateTime) -> GateWait? {
        guard !job.isManual, !job.isInterrupted, let opening = rule.opening(of: job.event), opening > time.time else {
            return nil
        }
        let message = "'where' matches at \(opening.local(time.clock)), when the file is old enough"
        let until = time.now + min(opening.since(time.time), Self.period)
        return GateWait(gate: Self.gate, until: until, waiting: Waiting(.condition, message), end: opening)
    }

    /// Returns an event with the time at which the condition was met.
    func opened(_ event: FileEvent) -> FileEvent {
        var event = event
        event.time = rule.opening(of: event) ?? event.time
        return event
    }
}

/// `ready` without its command, which the attempt runs.
struct ReadyGate {
    private let ready: Readiness
    private let retry: RetryPolicy
    private let quiet: Duration

    init(_ rule: Rule, _ ready: Readiness) {
        self.ready = ready
        retry = rule.retry
        quiet = rule.settle.quiet(isPolled: false)
    }

    /// Returns the gate of a path, which is woken when that path is hinted.
    static func gate(_ path: PathBytes) -> Reconciler.Gate { Reconciler.Gate("ready", path) }

    /// Returns the gate of a path that waits: the marker's, if it waits for that.
    func gate(of path: PathBytes, _ waiting: Waiting) -> Reconciler.Gate {
        Self.gate(waiting.cause == .doneFile ? ready.marker(of: path) ?? path : path)
    }

    func wait(for job: DueJob, at time: GateTime) -> GateWait? {
        let event = job.event
        guard !job.isInterrupted, !job.isManual, event.kind != .deleted, event.kind != .moved,
            !event.kind.isLifecycle, !event.kind.isRaw, case .present(let snapshot) = time.files.inspect(at: event.path)
        else { return nil }
        let waiting = ready.waiting(event.path, snapshot, now: time.time) { time.files.inspect(at: $0) }
        guard let (waiting, pause) = waiting else { return nil }
        let age = time.time.since(event.time)
        let until = time.now + (pause ?? retry.pause(whileNotReady: quiet, age: age))
        let end = pause.map { time.time.advanced(by: $0) }
        return GateWait(gate: gate(of: event.path, waiting), until: until, waiting: waiting, end: end)
    }
}

extension Timestamp {
    /// `2026-11-21 22:00`, in local time.
    func local(_ clock: LocalClock) -> String {
        let wall = Timestamp(seconds: seconds + clock.offset(seconds), nanoseconds: 0).description
        return String(wall.prefix(16)).replacing("T", with: " ")
    }
}
