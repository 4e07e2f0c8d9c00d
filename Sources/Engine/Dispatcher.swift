import FileEvents
import Handling
import Journaling
import Logging
import PluginProtocol
import Reconciling
import Rules
import Settling

/// The last stage: leases jobs from the journal, runs their actions on the pool, records what came of them.
///
/// It belongs to the engine's thread; only the actions run elsewhere.
struct Dispatcher: ~Copyable {
    private let ruleset: Ruleset
    private let journal: any Journal
    private let pool: WorkerPool
    private let mailbox: Mailbox
    private let perform: Attempt.Perform
    private let stop: StopSignal
    private let log: Logger
    private let report: (EngineReport) -> Void
    private var lanes: Lanes
    /// What files became while a program ran, by rule and path, until that is told.
    private var changes: [String: [PathBytes: Snapshot]] = [:]

    init(
        ruleset: Ruleset, journal: any Journal, mailbox: Mailbox, limit: Int, perform: @escaping Attempt.Perform,
        stop: StopSignal, log: Logger, report: @escaping (EngineReport) -> Void
    ) {
        self.ruleset = ruleset
        self.journal = journal
        self.mailbox = mailbox
        self.perform = perform
        self.stop = stop
        self.log = log
        self.report = report
        pool = WorkerPool(limit: limit)
        lanes = Lanes(limit: limit)
    }

    var running: Int { lanes.count }

    /// Starts as many due jobs as there is room for, the rules taking turns.
    mutating func fill(at now: ContinuousClock.Instant) {
        var isProgress = true
        while isProgress {
            isProgress = false
            for name in lanes.round(journal.pendingRules) {
                guard let rule = ruleset.rule(named: name), lanes.room(for: rule) > 0 else { continue }
                for job in journal.lease(rule: name, limit: 1, busy: lanes.busy, now: now) {
                    start(job, rule)
                    isProgress = true
                }
            }
        }
    }

    private mutating func start(_ job: Job, _ rule: Rule) {
        lanes.start(job)
        var attempt = Attempt(job: job, rule: rule, perform: perform, stop: stop, log: log)
        if let change = changes[rule.name]?.removeValue(forKey: job.event.path) {
            attempt.isRepeated = change.hasSameContent(as: job.event.snapshot)
        }
        pool.submit { [mailbox, attempt] in mailbox.post(.ended(attempt.run())) }
    }

    /// Records an attempt; the result is the job when its path has to settle again.
    mutating func end(_ result: Attempt.Result, at now: ContinuousClock.Instant) -> Job? {
        let job = result.job
        lanes.end(job.id)
        guard let rule = ruleset.rule(named: job.rule) else { preconditionFailure("a job of a rule that is not there") }
        guard case .outcome(let outcome) = result.ending else {
            // Of a move the old name is left to be told, which no job of the new name does.
            let isTakenOver =
                job.event.kind != .moved && journal.hasPending(view: job.rule, path: job.event.path)
            _ = journal.record(job, .returned, [])
            return isTakenOver ? nil : job
        }
        let (disposition, state, pause) = Self.disposition(of: outcome, job, rule, at: now)
        _ = journal.record(job, disposition, result.ownWrites)
        changes[rule.name, default: [:]][job.event.path] = result.change
        report(
            .attempt(
                AttemptReport(
                    time: DiskProbe.now(), rule: rule.name, event: job.event.kind,
                    path: job.event.path, from: job.event.from, job: job.id, attempt: job.attempt,
                    maximumAttempts: rule.retry.attempts,
                    action: rule.actions.map(\.name).joined(separator: "+"), outcome: outcome,
                    duration: result.duration, state: state, pause: pause)))
        return nil
    }

    /// What an outcome means for the job.
    private static func disposition(
        of outcome: Outcome, _ job: Job, _ rule: Rule, at now: ContinuousClock.Instant
    ) -> (Disposition, JobState, Duration?) {
        switch outcome.ending {
        case .succeeded: return (.ended(.succeeded, outcome), .succeeded, nil)
        case .skipped: return (.ended(.skipped, outcome), .skipped, nil)
        case .failed: return (.ended(.dead, outcome), .dead, nil)
        case .notReady:
            let pause = outcome.retryAfter ?? max(rule.settle.quiet(isPolled: false), .seconds(1))
            return (.again(at: now + pause, outcome, counts: false), .pending, pause)
        case .retry where outcome.isInterrupted:
            return (.again(at: now, outcome, counts: false), .pending, .zero)
        case .retry where job.attempt >= rule.retry.attempts:
            return (.ended(.dead, outcome), .dead, nil)
        case .retry:
            let pause = outcome.retryAfter ?? rule.retry.pause(after: job.attempt, random: .random(in: 0...1))
            return (.again(at: now + pause, outcome, counts: true), .pending, pause)
        }
    }
}
