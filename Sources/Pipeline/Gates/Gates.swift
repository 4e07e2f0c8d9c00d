package import FileEvents
package import Reconciling
package import Rules
import Settling
package import System

/// A job that could be leased.
package struct DueJob: Sendable {
    package var event: FileEvent
    /// Whether one of its actions has started before, so that its pause before the next attempt is over.
    package var hasStartedBefore = false
    /// Whether one of its attempts was interrupted, and may have done a part of the work.
    package var isInterrupted = false

    package init(event: FileEvent, hasStartedBefore: Bool = false, isInterrupted: Bool = false) {
        (self.event, self.hasStartedBefore, self.isInterrupted) = (event, hasStartedBefore, isInterrupted)
    }

    /// Whether a user has requested it, so that it does not wait.
    package var isManual: Bool { event.origin == .manual }
}

/// The wait of a job that a gate does not let run: until the gate is woken, at most until the time.
package struct GateWait: Sendable {
    package let gate: Reconciler.Gate
    package var until: ContinuousClock.Instant?
    package var waiting: Waiting
    /// The time at which the wait ends, if known; the gate may be asked earlier.
    package var end: Timestamp?

    package init(
        gate: Reconciler.Gate, until: ContinuousClock.Instant? = nil, waiting: Waiting, end: Timestamp? = nil
    ) {
        (self.gate, self.until, self.waiting, self.end) = (gate, until, waiting, end)
    }
}

/// The clocks and the files by which gates decide.
package struct GateTime {
    package var now: ContinuousClock.Instant
    package var time: Timestamp
    package var clock: LocalClock
    package var files: WatchedPaths

    package init(now: ContinuousClock.Instant, time: Timestamp, clock: LocalClock, files: WatchedPaths) {
        (self.now, self.time, self.clock, self.files) = (now, time, clock, files)
    }

    /// Returns the wall-clock time of an instant.
    package func time(of instant: ContinuousClock.Instant) -> Timestamp { time.advanced(by: instant - now) }
}

/// A condition that can keep a job from running.
///
/// Asking it changes nothing, so anyone can ask it at any time. The gates are asked in this order:
///
/// | gate | also holds | passes soon | asked again |
/// | --- | --- | --- | --- |
/// | *of the rule, once per turn* | | | |
/// | a pause | all jobs | no | after `alight resume` |
/// | the circuit breaker | all jobs | – | at the next probe |
/// | `window` | all jobs except those a user has requested | no | when it opens, and each minute, since the clock may be set |
/// | `batch` | all jobs | – | after a quiet time, or when the batch is full |
/// | *of the path, when it becomes due and when its wait ends* | | | |
/// | an action uses the file | all jobs | yes | when that action ends |
/// | a rule of higher priority | jobs of rules that remove the file | yes | each second |
/// | `age` in `where` | jobs of existing files | no | when the file is old enough |
/// | the loop guard | all jobs | yes | when the suspension ends |
/// | `cooldown` | the first attempts | yes | when it ends |
/// | `ready` | jobs of new or modified files, unless requested or interrupted | only its minimum age | after its pause, or a hint of the file or marker |
/// | *last* | | | |
/// | a slot, see ``Lanes`` | all jobs | – | when an action ends |
///
/// A job that passes soon keeps a run with `--once` from exiting. `ready.command`, conditions on the content and
/// `same_content` need a program or the content: the attempt asks them, with the same ``Waiting``. `group` selects the
/// files of an attempt.
package protocol Gate {
    /// Returns the wait of a due job; nil if the gate lets it run.
    func wait(for job: DueJob, at time: GateTime) -> GateWait?
}

/// The gates of the paths of one rule.
package struct Gates {
    package var age: AgeGate?
    package var loop = LoopGuard()
    package var cooldown: Cooldown?
    package var ready: ReadyGate?

    package init(_ rule: Rule) { change(to: rule) }

    /// Sets another version of the rule; unchanged gates keep their state.
    package mutating func change(to rule: Rule) {
        age = rule.condition?.ages.isEmpty ?? true ? nil : AgeGate(rule)
        let pause = rule.cooldown > .zero ? rule.cooldown : nil
        if pause != cooldown?.pause { cooldown = pause.map(Cooldown.init) }
        ready = rule.ready.map { ReadyGate(rule, $0) }
        loop.limit = rule.tail == nil ? LoopGuard.limit : LoopGuard.followingLimit
    }

    /// Records the end of an action for a path.
    package mutating func recordEnd(of path: PathBytes, at time: ContinuousClock.Instant) {
        cooldown?.record(path, at: time)
    }

    /// Returns the wait of the first gate that does not let a due job run; nil if all let it run.
    package func wait(for job: DueJob, at time: GateTime) -> GateWait? {
        age?.wait(for: job, at: time) ?? loop.wait(for: job, at: time) ?? cooldown?.wait(for: job, at: time)
            ?? ready?.wait(for: job, at: time)
    }

    /// Returns the waits of all gates that do not let a due job run, in order.
    package func waits(for job: DueJob, at time: GateTime) -> [GateWait] {
        [
            age?.wait(for: job, at: time), loop.wait(for: job, at: time), cooldown?.wait(for: job, at: time),
            ready?.wait(for: job, at: time),
        ].compactMap(\.self)
    }
}

extension GateWait {
    package var reason: Reconciler.Reason {
        Reconciler.Reason(waiting.message, passesSoon: waiting.cause.passesSoon, end: end)
    }
}

extension LoopGuard: Gate {
    package static let gate = Reconciler.Gate("loop")

    package func wait(for job: DueJob, at time: GateTime) -> GateWait? {
        end(of: job.event.path, at: time.now).map { end in
            let date = time.time(of: end)
            return GateWait(gate: Self.gate, until: end, waiting: .loop(until: date, time.clock), end: date)
        }
    }
}

extension Cooldown: Gate {
    package static let gate = Reconciler.Gate("cooldown")

    package func wait(for job: DueJob, at time: GateTime) -> GateWait? {
        guard !job.hasStartedBefore, let end = end(of: job.event.path, at: time.now) else { return nil }
        let date = time.time(of: end)
        return GateWait(gate: Self.gate, until: end, waiting: .cooldown(until: date, time.clock), end: date)
    }
}

/// `where` with an `age` that the file has not reached yet.
package struct AgeGate: Gate {
    private let rule: Rule

    package init(_ rule: Rule) { self.rule = rule }

    package static let gate = Reconciler.Gate("age")
    /// The maximum time after which the clock is checked again, since it may be set.
    package static let period = Duration.seconds(3600)

    package func wait(for job: DueJob, at time: GateTime) -> GateWait? {
        guard !job.isManual, !job.isInterrupted, let opening = rule.opening(of: job.event), opening > time.time else {
            return nil
        }
        let until = time.now + min(opening.since(time.time), Self.period)
        return GateWait(gate: Self.gate, until: until, waiting: .age(until: opening, time.clock), end: opening)
    }

    /// Returns an event with the time at which the condition was met.
    package func opened(_ event: FileEvent) -> FileEvent {
        var event = event
        event.time = rule.opening(of: event) ?? event.time
        return event
    }
}

/// `ready` without its command, which the attempt runs.
package struct ReadyGate: Gate {
    private let ready: Readiness
    private let retry: RetryPolicy
    private let quiet: Duration

    package init(_ rule: Rule, _ ready: Readiness) {
        self.ready = ready
        retry = rule.retry
        quiet = rule.settle.quiet(isPolled: false)
    }

    /// Returns the gate of a path, which is woken when that path is hinted.
    package static func gate(_ path: PathBytes) -> Reconciler.Gate { Reconciler.Gate("ready", path) }

    /// Returns the gate of a path that waits: the marker's, if it waits for that.
    package func gate(of path: PathBytes, _ waiting: Waiting) -> Reconciler.Gate {
        Self.gate(waiting.cause == .doneFile ? ready.marker(of: path) ?? path : path)
    }

    package func wait(for job: DueJob, at time: GateTime) -> GateWait? {
        let event = job.event
        guard !job.isInterrupted, !job.isManual, event.kind != .deleted, event.kind != .moved,
            !event.kind.isLifecycle, !event.kind.isRaw, case .present(let snapshot) = time.files.inspect(at: event.path)
        else { return nil }
        let waiting = ready.waiting(event.path, snapshot, now: time.time, time.clock) { time.files.inspect(at: $0) }
        guard let (waiting, pause) = waiting else { return nil }
        let age = time.time.since(event.time)
        let until = time.now + (pause ?? retry.pause(whileNotReady: quiet, age: age))
        let end = pause.map { time.time.advanced(by: $0) }
        return GateWait(gate: gate(of: event.path, waiting), until: until, waiting: waiting, end: end)
    }
}
