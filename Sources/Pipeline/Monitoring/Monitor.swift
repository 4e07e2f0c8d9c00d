package import FileEvents
import Gates
import PluginProtocol
package import Records
package import Rules
import Settling
import Synchronization
package import System
package import Watching

/// The observable state of a running engine.
///
/// The engine's thread records changes once per turn, under a lock that is only held for short times. Callers get a
/// copy.
package final class Monitor: Sendable {
    private struct State {
        var status = EngineStatus(ruleset: Ruleset([]))
        var running: [JobID: EngineStatus.RunningAttempt] = [:]
        var history: ActivityHistory
        var watcher: Watcher?
        /// The paths found by the current or the last rescan.
        var rescanned: Set<PathBytes> = []
        /// The latest files that actions have written, and when these finished.
        ///
        /// They are finished when other rules see them, so their settle times do not describe other programs.
        var outputs = LatestPaths<Timestamp>(capacity: 4_096)
    }

    private let state: Mutex<State>
    private let clock: Clock
    /// The longest time between the last change of a file and its event that counts as settle time.
    private static let longestSettle = Duration.seconds(3600)
    private static let failures = 5

    /// The metrics; nil when no metrics system is in use.
    private let metrics: EngineMetrics?

    package init(_ metrics: EngineMetrics? = nil, on host: Host = .machine) {
        self.metrics = metrics
        clock = host.clock
        state = Mutex(State(history: ActivityHistory(start: clock.now())))
    }

    // MARK: Queries

    /// Returns the status of the engine.
    package func status(at now: ContinuousClock.Instant) -> EngineStatus {
        state.withLock { state in
            var status = state.status
            status.running = state.running.values.sorted {
                ($0.since, $0.job.description) < ($1.since, $1.job.description)
            }
            status.lastMinute = state.history.lastMinute(at: now)
            return status
        }
    }

    /// Returns the activity of the last half hour.
    package func history(at now: ContinuousClock.Instant, wall: Timestamp) -> [ActivityHistory.Point] {
        state.withLock { $0.history }.points(at: now, wall: wall)
    }

    /// Returns the status of the watcher; nil when its thread does not answer in time.
    package func survey(within limit: Duration) -> WatchStatus? { state.withLock { $0.watcher }?.survey(within: limit) }

    // MARK: Recording

    package func attach(_ watcher: Watcher) { state.withLock { $0.watcher = watcher } }

    package func end() { state.withLock { $0.watcher = nil } }

    /// Records the rules that are in effect from now on.
    package func record(_ ruleset: Ruleset) {
        state.withLock { state in
            for (former, name) in ruleset.renames {
                guard let tally = state.status.rules.removeValue(forKey: former) else { continue }
                state.status.rules[name] = state.status.rules[name] ?? tally
            }
            state.status.ruleset = ruleset
            state.status.slowed = [:]
        }
    }

    package func record(_ pauses: Pauses) { state.withLock { $0.status.pauses = pauses } }

    /// Records the state at the end of a turn, which the closure sets.
    package func recordTurn(hints: Int, at now: ContinuousClock.Instant, _ change: (inout EngineStatus) -> Void) {
        metrics?.recordHints(hints)
        state.withLock { state in
            let queue = state.status.queue
            state.status.counts.hints += hints
            change(&state.status)
            if state.status.queue != queue { state.history.record(queue: state.status.queue.count, at: now) }
        }
    }

    /// Records that paths have settled; an event is counted when its job is first reported.
    package func recordSettled(_ events: [FileEvent], at now: ContinuousClock.Instant) {
        state.withLock { state in
            if state.status.rescan != nil {
                for event in events where event.origin == .rescan && !event.kind.isLifecycle {
                    guard state.rescanned.insert(event.path).inserted else { continue }
                    state.status.rescan?.found += 1
                    metrics?.recordFound()
                }
            }
            for event in events {
                guard event.origin == .live, event.kind == .created || event.kind == .modified,
                    state.outputs[event.path].map({ event.snapshot.changed > $0 }) ?? true
                else { continue }
                let duration = event.time.since(event.snapshot.changed)
                guard duration > .zero, duration < Self.longestSettle else { continue }
                state.history.record(duration, of: .settle, at: now)
                metrics?.settle.record(duration)
            }
        }
    }

    package func recordRescan(_ cause: EngineStatus.Rescan.Cause) {
        state.withLock { state in
            if let rescan = state.status.rescan, rescan.ended == nil {
                // An overflow is the more important cause.
                if cause == .overflow { state.status.rescan?.cause = .overflow }
                return
            }
            state.status.lastRescan = state.status.rescan
            state.status.rescan = EngineStatus.Rescan(cause: cause)
            state.rescanned = []
        }
    }

    package func recordStarted(_ attempts: [EngineStatus.RunningAttempt]) {
        state.withLock { state in
            for attempt in attempts { state.running[attempt.job] = attempt }
        }
    }

    /// Records that an attempt did not start after all.
    package func recordPutBack(_ first: JobID) { state.withLock { $0.running[first] = nil } }

    /// Records the end of an attempt.
    ///
    /// - Parameters:
    ///   - first: Its first job.
    ///   - outputs: The paths that it has written.
    ///   - time: The time at which it finished.
    ///   - duration: The run time of its actions; nil if none started.
    ///   - waits: The waiting times of the jobs whose actions ran for the first time.
    ///   - now: The current time.
    package func recordEnded(
        _ first: JobID, outputs: [PathBytes], at time: Timestamp, ran duration: Duration?, waited waits: [Duration],
        now: ContinuousClock.Instant
    ) {
        state.withLock { state in
            state.running[first] = nil
            for output in outputs { state.outputs.store(time, for: output) }
            guard let duration else { return }
            state.history.record(duration, of: .run, at: now)
            for wait in waits {
                state.history.record(max(.zero, wait), of: .wait, at: now)
                metrics?.wait.record(max(.zero, wait))
            }
        }
    }

    /// Updates the status from a report of the engine.
    package func record(_ report: EngineReport) {
        switch report {
        case .attempt(let attempt): record([attempt])
        case .batch(let attempts): record(attempts)
        case .superseded(_, _, _, let ended?): record([ended])
        case .slowed(let rule, _, _, let message): state.withLock { $0.status.slowed[rule] = message }
        case .recovered(let rule): state.withLock { $0.status.slowed[rule] = nil }
        case .journal(let error): state.withLock { $0.status.journalError = error }
        case .watching(.overflow):
            state.withLock { $0.status.overflows += 1 }
            metrics?.recordOverflow()
            recordRescan(.overflow)
        case .watching(.rescanned): state.withLock { $0.status.rescan?.ended = clock.time() }
        default: break
        }
    }

    private func record(_ attempts: [AttemptReport]) {
        let now = clock.now()
        state.withLock { state in
            for attempt in attempts {
                metrics?.record(attempt)
                if attempt.isFirst {
                    state.status.counts.events += 1
                    state.history.recordEvent(at: now)
                }
                if attempt.hasStarted {
                    state.status.counts.attempts += 1
                    if [.failed, .retry].contains(attempt.result) { state.status.counts.failedAttempts += 1 }
                }
                let job = EngineStatus.EndedJob(
                    job: attempt.job, rule: attempt.rule, path: attempt.path, time: attempt.time,
                    outcome: attempt.result.rawValue, message: attempt.outcome.message)
                state.status.counts.count(attempt.state)
                state.history.record(attempt.state, at: now)
                state.status.rules[attempt.rule, default: EngineStatus.RuleTally()].count(attempt.state)
                state.status.rules[attempt.rule]?.last = job
                if attempt.state == .failed {
                    state.status.failures = Array(([job] + state.status.failures).prefix(Self.failures))
                }
            }
        }
    }
}
