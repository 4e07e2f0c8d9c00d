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
    /// What the rules gather that take several events at once.
    private var windows: [String: BatchWindow]
    private var brake = Brake()
    /// Attempts whose leases are not committed yet.
    private var prepared: [Attempt] = []

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
        windows = Dictionary(
            ruleset.rules.compactMap { rule in rule.batch.map { (rule.name, BatchWindow($0)) } }
        ) { first, _ in first }
    }

    /// Attempts whose actions have begun.
    var running: Int { lanes.count - prepared.count }

    /// When `fill` has something to do that it could not do at the time of the last turn, at the latest.
    func nextDeadline(after last: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        (windows.values.map(\.deadline) + [brake.deadline]).compactMap(\.self).filter { $0 > last }.min()
    }

    /// Notes jobs that were accepted, so that those which belong together wait for each other.
    mutating func note(_ jobs: [Job], at now: ContinuousClock.Instant) {
        guard !windows.isEmpty else { return }
        for job in jobs { windows[job.rule]?.note(job.event.path, at: now) }
    }

    /// Leases as many due jobs as there is room for, the rules taking turns.
    ///
    /// Their actions begin with ``launch()``, when the journal has kept the leases.
    ///
    /// - Parameters:
    ///   - now: The present.
    ///   - isGathering: Whether jobs that are told together wait for more of them.
    mutating func fill(at now: ContinuousClock.Instant, isGathering: Bool) {
        if !windows.isEmpty {
            let pending = journal.pendingRules
            for name in windows.keys where !pending.contains(name) { windows[name]?.close() }
        }
        var isProgress = true
        while isProgress {
            isProgress = false
            for name in lanes.round(journal.pendingRules) {
                guard let rule = ruleset.rule(named: name), lanes.room(for: rule) > 0 else { continue }
                if isGathering, windows[name]?.mayLease(at: now) == false { continue }
                let limit = rule.batch?.files ?? 1
                let busy = lanes.busy.union(brake.paths(of: name, at: now))
                let jobs = journal.lease(rule: name, limit: limit, busy: busy, now: now)
                if jobs.count < limit { windows[name]?.close() }
                guard !jobs.isEmpty else { continue }
                prepare(jobs, rule, at: now)
                isProgress = true
            }
        }
    }

    /// Begins the attempts that were prepared.
    mutating func launch() {
        for attempt in prepared {
            pool.submit { [mailbox, attempt] in mailbox.post(.ended(attempt.run())) }
        }
        prepared = []
    }

    private mutating func prepare(_ jobs: [Job], _ rule: Rule, at now: ContinuousClock.Instant) {
        lanes.start(jobs)
        var attempt = Attempt(jobs: jobs, rule: rule, perform: perform, stop: stop, log: log)
        for job in jobs {
            let path = job.event.path
            if let change = changes[rule.name]?.removeValue(forKey: path),
                change.hasSameContent(as: job.event.snapshot)
            {
                attempt.repeated.insert(job.id)
            }
            if rule.sameContent == .ignore, job.event.kind == .modified {
                // A file that came here by a rename has brought the checksum of its own content along.
                attempt.handled[job.id] =
                    job.event.isByMove
                    ? job.event.before?.digest : journal.snapshot(view: rule.name, path: path)?.digest
            }
            // Another attempt at the same event is no sign of a rule that feeds itself.
            guard job.attempt == 1, job.previous == nil, !job.event.kind.isLifecycle else { continue }
            let limit = rule.tail == nil ? Brake.limit : Brake.followingLimit
            if brake.note(rule: rule.name, path: path, limit: limit, at: now) {
                report(.braked(rule: rule.name, path: path, limit: limit, pause: Brake.period))
            }
        }
        prepared.append(attempt)
    }

    /// Records an attempt; the result are the jobs whose paths have to settle again.
    mutating func end(_ result: Attempt.Result, at now: ContinuousClock.Instant) -> [Job] {
        guard let rule = ruleset.rule(named: result.rule), let first = result.parts.first else {
            preconditionFailure("an attempt of no rule, or at no job")
        }
        lanes.end(first.job.id)
        var returned: [Job] = []
        var reports: [AttemptReport] = []
        // One for all, so that what failed together comes again together.
        let random = Double.random(in: 0...1)
        for part in result.parts {
            let job = part.job
            guard case .outcome(let outcome) = part.ending else {
                _ = journal.record(job, nil, .returned(at: now), [])
                // Of a move the old name is left to be told, which no job of the new name does.
                if job.event.kind == .moved || !journal.hasPending(view: job.rule, path: job.event.path) {
                    returned.append(job)
                }
                continue
            }
            let (disposition, state, pause) = Self.disposition(of: outcome, job, rule, random: random, at: now)
            let attempt = AttemptRecord(
                number: job.attempt, started: result.started, duration: result.duration, outcome: outcome)
            _ = journal.record(job, attempt, disposition, part.ownWrites)
            changes[rule.name, default: [:]][job.event.path] = part.change
            reports.append(
                AttemptReport(
                    time: DiskProbe.now(), rule: rule.name, event: job.event.kind,
                    path: job.event.path, from: job.event.from, job: job.id, attempt: job.attempt,
                    maximumAttempts: rule.retry.attempts,
                    action: rule.actions.map(\.name).joined(separator: "+"), outcome: outcome,
                    duration: result.duration, state: state, pause: pause))
            if pause == nil { acceptFollowingChange(of: job, rule, at: now) }
        }
        if reports.count > 1 {
            report(.batch(reports))
        } else if let attempt = reports.first {
            report(.attempt(attempt))
        }
        return returned
    }

    /// Tells of the content of a moved file that changed before anyone was told of the move.
    ///
    /// It goes to where the file is now. A newer job of that path tells of it already.
    private mutating func acceptFollowingChange(of moved: Job, _ rule: Rule, at now: ContinuousClock.Instant) {
        var event = moved.event
        guard event.kind == .moved, !event.changed.isEmpty || event.tail != nil,
            rule.events.takes(.modified, changed: event.changed)
        else { return }
        let paths = journal.paths(view: rule.name, identity: event.snapshot.identity)
        guard let path = paths.contains(event.path) ? event.path : paths.first,
            let root = rule.root(taking: path),
            event.tail != nil || !journal.hasPending(view: rule.name, path: path)
        else { return }
        event.kind = .modified
        event.path = path
        event.root = root
        event.from = nil
        event.isReplaced = false
        let job = Job(id: JobID(now: event.time), rule: rule.name, event: event)
        journal.accept([job], [], now: now)
        note([job], at: now)
    }

    /// What an outcome means for the job.
    private static func disposition(
        of outcome: Outcome, _ job: Job, _ rule: Rule, random: Double, at now: ContinuousClock.Instant
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
            let pause = outcome.retryAfter ?? rule.retry.pause(after: job.attempt, random: random)
            return (.again(at: now + pause, outcome, counts: true), .pending, pause)
        }
    }
}
