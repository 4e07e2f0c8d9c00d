import FileEvents
import Glibc
import Handling
import Journaling
import Logging
import Reconciling
import Rules
import Settling

/// The last stage: leases jobs from the journal, runs their actions on the pool, records what came of them.
///
/// It belongs to the engine's thread; only the actions run elsewhere. What happens
/// before a lease is in `Dispatcher+Admission.swift`, after an attempt in
/// `Dispatcher+Endings.swift`.
struct Dispatcher: ~Copyable {
    private(set) var ruleset: Ruleset
    let journal: any Journal
    private let executor: any AttemptExecutor
    private let mailbox: Mailbox<Attempt.Result>
    private let perform: Attempt.Perform
    private let stop: StopSignal
    private let log: Logger
    let report: (EngineReport) -> Void
    var lanes: Lanes
    /// The rules to which it matters that a path changes while its action runs.
    private(set) var whileBusy: [String: Rule.WhileBusy]
    /// What files became while a program ran, by rule and path, until that is told.
    var changes: [String: [PathBytes: Snapshot]] = [:]
    /// What the rules gather that take several events at once.
    private var windows: [String: BatchWindow]
    /// The paths that have to rest between two runs, of the rules that say so.
    var cooldowns: [String: Cooldown]
    /// The rules that wait for their hours, and when those begin.
    var openings: [String: Timestamp] = [:]
    /// When to look at the clock again, which somebody may set, while rules wait for their hours.
    var clockLook: ContinuousClock.Instant?
    let host: Host
    let clock: LocalClock
    /// The jobs that wait for a path to be there, and by their own paths.
    var waiters: [PathBytes: Set<Waiter>] = [:]
    /// Sets of which it was told that they stay incomplete.
    var toldSets: Set<PathBytes> = []
    /// In one turn: the files of sets that can't be handled, and the names in folders that were listed.
    var passedOver: Set<PathBytes> = []
    var listings: [PathBytes: [PathBytes]] = [:]
    /// Of rules whose `ready` is another since they were loaded: jobs older than this were refused by the former one.
    var pardons: [String: JobID] = [:]
    /// How long a set may be incomplete before it is worth a warning.
    let patience: Duration
    /// The rules whose attempts have failed of late.
    var breakers: [String: Breaker] = [:]
    /// How many jobs the next attempt takes of rules whose actions are brief; of others, and after a failure, it takes one.
    private var briefLots: [String: Int] = [:]
    /// Whether somebody watches, so that what becomes of a file is told in its time.
    var isWatching = true
    /// Whether a rule whose attempts all fail is slowed down until one succeeds.
    private let isPatient: Bool
    var brake = Brake()
    /// The sets that run, as the brake has counted them, by the first job of each.
    var countedSets: [JobID: PathBytes] = [:]
    /// What ends the attempts of rules that restart, by the first job of each.
    var restarts: [JobID: StopSignal] = [:]
    /// The rules of which nothing is begun.
    var pauses = Pauses()
    private let monitor: Monitor
    /// Attempts whose leases are not committed yet.
    private var prepared: [Attempt] = []

    /// Makes a dispatcher that runs nothing.
    ///
    /// Patient, it slows a rule down whose attempts all fail, until one succeeds. Serial, it has one thread.
    init(
        ruleset: Ruleset, journal: any Journal, mailbox: Mailbox<Attempt.Result>, limit: Int, extra: Int = 0,
        isSerial: Bool = false,
        isPatient: Bool,
        host: Host, clock: LocalClock = .system, patience: Duration = .seconds(600),
        executor: (any AttemptExecutor)? = nil, perform: @escaping Attempt.Perform, stop: StopSignal, log: Logger,
        monitor: Monitor? = nil,
        report: @escaping (EngineReport) -> Void
    ) {
        self.ruleset = ruleset
        self.journal = journal
        self.mailbox = mailbox
        self.isPatient = isPatient
        self.clock = clock
        self.patience = patience
        self.perform = perform
        self.stop = stop
        self.log = log
        self.monitor = monitor ?? Monitor(on: host)
        self.report = report
        let lanes = Lanes(limit: limit, extra: extra, rules: ruleset.rules)
        self.executor = executor ?? WorkerPool(limit: isSerial ? 1 : lanes.limit)
        self.lanes = lanes
        self.host = host
        windows = ruleset.windows
        cooldowns = ruleset.cooldowns
        whileBusy = ruleset.whileBusy
    }

    /// Runs other rules from now on; what runs already ends under the rule with which it began.
    ///
    /// Whoever changes rules may have mended what failed, so that no rule is slowed
    /// down any more. And what jobs wait for may be another thing now, so that all of
    /// them are looked at again.
    mutating func change(to ruleset: Ruleset, at now: ContinuousClock.Instant) {
        let old = self.ruleset
        self.ruleset = ruleset
        let names = ruleset.formerNames
        lanes.rename(names)
        brake.rename(names)
        changes = changes.renamed(names)
        pauses = pauses.renamed(for: ruleset)
        pardons = pardons.renamed(names)
        waiters = waiters.mapValues { waiters in
            Set(waiters.map { Waiter(rule: names[$0.rule] ?? $0.rule, path: $0.path) })
        }
        // What has gathered and what rests goes on, unless it is for another time now.
        windows = ruleset.windows.merging(windows.renamed(names)) { $1.batch == $0.batch ? $1 : $0 }
        cooldowns = ruleset.cooldowns.merging(cooldowns.renamed(names)) { $1.pause == $0.pause ? $1 : $0 }
        whileBusy = ruleset.whileBusy
        lanes.change(to: ruleset.rules)
        openings = [:]
        breakers = [:]
        for rule in ruleset.rules where rule.ready != old.rule(named: rule.name)?.ready {
            pardons[rule.name] = JobID(now: host.clock.time())
        }
        for rule in ruleset.rules { journal.wake(rule: rule.name, path: nil, now: now) }
    }

    /// Attempts whose actions have begun.
    var running: Int { lanes.count - prepared.count }

    /// When `fill` has something to do that it could not do at the time of the last turn, at the latest.
    func nextDeadline(after last: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        let rests = breakers.values.lazy.map(\.rests)
        let others = [brake.deadline, clockLook, lanes.deadline]
        return (windows.values.map(\.deadline) + rests + others).compactMap(\.self).filter { $0 > last }.min()
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
        openWindows(at: now)
        passedOver = []
        listings = [:]
        lanes.beginFilling()
        for name in lanes.owed(journal.pendingRules) where begin(name, at: now, isGathering: isGathering) { break }
        repeat {
            for level in lanes.levels(journal.pendingRules) {
                var isProgress = true
                while isProgress {
                    isProgress = false
                    for name in lanes.round(level, at: now) where begin(name, at: now, isGathering: isGathering) {
                        isProgress = true
                    }
                }
            }
        } while lanes.endFilling()
    }

    /// Leases jobs for one attempt of a rule; false when there is nothing more to be done for it in this turn.
    private mutating func begin(_ name: String, at now: ContinuousClock.Instant, isGathering: Bool) -> Bool {
        let running = lanes.count(of: name)
        guard !pauses.hold(name), let rule = ruleset.rule(named: name), running < rule.concurrency else { return false }
        let breaker = breakers[name]
        guard breaker?.mayBegin(running: running, at: now) ?? true else { return false }
        if isGathering, windows[name]?.mayLease(at: now) == false { return false }
        let busy = lanes.busy.union(brake.paths(of: name, at: now))
        guard lanes.room(for: rule, at: now) > 0 else {
            if running == 0, !isClosed(rule, at: now), journal.hasDue(rule: name, busy: busy, now: now) {
                lanes.wait(name, at: now)
            }
            return false
        }
        if isClosed(rule, at: now) {
            windows[name]?.close()
            let asked = putBackClosed(rule, at: now)
            if !asked.isEmpty { prepare(asked, rule, at: now) }
            return !asked.isEmpty
        }
        let lot = lot(for: rule, breaker, at: now)
        if let group = rule.group { return beginSet(rule, group, at: now, busy: busy) }
        let jobs = journal.lease(rule: name, lot: lot, busy: busy, now: now)
        if jobs.count < lot.jobs { windows[name]?.close() }
        guard !jobs.isEmpty else { return false }
        let due = stopFeeding(putBackCooling(endCutOff(jobs, rule), at: now), rule, at: now)
        if !due.isEmpty { prepare(due, rule, at: now) }
        return true
    }

    /// How many jobs the next attempt of a rule takes.
    private func lot(for rule: Rule, _ breaker: Breaker?, at now: ContinuousClock.Instant) -> Lot {
        if breaker?.isOpen == true { return Lot(jobs: 1) }
        if let batch = rule.batch { return Lot(jobs: batch.files) }
        // Where one has failed, few are tried at once, and more only when those have succeeded.
        guard breaker == nil, rule.isBrief, let most = briefLots[rule.name] else { return Lot(jobs: 1) }
        return Lot(jobs: most, bytes: Self.mostBriefBytes, lanes: lanes.room(for: rule, at: now))
    }

    /// Notes how an attempt at brief jobs ended, for the size of the next ones.
    mutating func noteBrief(_ result: Attempt.Result) {
        guard result.rule.isBrief else { return }
        let name = result.rule.name
        let hasSucceeded = result.parts.allSatisfy(\.hasSucceeded)
        briefLots[name] = hasSucceeded ? min(Self.mostBrief, max(2, 2 * result.parts.count, briefLots[name] ?? 0)) : nil
    }

    /// Most small files that one attempt takes of a rule whose actions are brief: a commit of the journal and a flush of
    /// the disk then serve for several.
    private static let mostBrief = 64
    private static let mostBriefBytes: UInt64 = 1 << 20

    /// Begins the attempts that were prepared.
    mutating func launch() {
        guard !prepared.isEmpty else { return }
        monitor.noteBegun(prepared.compactMap { $0.running(since: host.clock.time()) })
        let isFirst = lanes.count == prepared.count
        let isQuick = mailbox.gather(begun: prepared.count, running: lanes.count)
        executor.submit(
            prepared.map { attempt in { [mailbox] in mailbox.post(.ended(attempt.run())) } }, isQuick: isQuick)
        prepared = []
        // The kernel likes to wake threads on the processor of who wakes them. What this turn still has to do can wait.
        if isFirst { sched_yield() }
    }

    func noteEnded(_ result: Attempt.Result, at now: ContinuousClock.Instant) {
        guard let first = result.parts.first?.job.id else { return }
        let outputs = result.parts.flatMap { part in
            if case .outcome(let outcome) = part.ending { outcome.outputs } else { [PathBytes]() }
        }
        let hasBegun = result.parts.contains(where: \.hasBegun)
        let waits = result.parts.filter { $0.hasBegun && $0.job.attempt == 1 && !$0.job.isInterrupted }.map { part in
            let wait = result.started.since(part.job.event.time)
            // A job that was made new since has waited only from then on.
            return part.job.due.map { min(wait, now - result.duration - $0) } ?? wait
        }
        monitor.noteEnded(
            first, outputs: outputs, at: result.ended, ran: hasBegun ? result.duration : nil, waited: waits, now: now)
    }

    /// Sees to it that none of those that were launched waits for another one longer than the mailbox did.
    func wakeRest() { executor.wakeRest() }

    mutating func prepare(_ jobs: [Job], _ rule: Rule, at now: ContinuousClock.Instant) {
        lanes.start(jobs, at: now)
        breakers[rule.name]?.begin(jobs[0].event.path)
        var stop = stop
        if rule.whileBusy == .restart {
            stop = StopSignal(under: stop)
            restarts[jobs[0].id] = stop
        }
        var attempt = Attempt(jobs: jobs, rule: rule, perform: perform, stop: stop, log: log, host: host)
        attempt.progress = { [mailbox] in mailbox.post(.advanced($0, $1)) }
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
        }
        prepared.append(attempt)
    }

    /// Notes what an attempt says of its rule, and tells when that slows the rule down or lets it go on.
    mutating func noteSign(
        _ sign: Breaker.Sign, _ rule: Rule, _ file: PathBytes, _ message: String, at now: ContinuousClock.Instant
    ) {
        guard isPatient, sign != .nothing || breakers[rule.name] != nil else { return }
        var breaker = breakers[rule.name] ?? Breaker()
        let change = breaker.note(sign, of: file, random: host.random(), at: now)
        breakers[rule.name] = sign == .works ? nil : breaker
        switch change {
        case .opened(let failures, let cannotStart):
            report(.slowed(rule: rule.name, failures: failures, cannotStart: cannotStart, message: message))
        case .closed: report(.recovered(rule: rule.name))
        case nil: break
        }
    }
}

extension Rule {
    /// Whether one attempt may take several of its jobs without anyone noticing: each has its own outcome, and none
    /// keeps the others waiting.
    fileprivate var isBrief: Bool {
        !takesSlot && whileBusy == .coalesce && ready == nil && group == nil && sameContent != .ignore
            // What fails for something that all of them share must not cost all of them their only attempt.
            && retry.attempts > 1 && actions.count == 1
    }
}

extension Ruleset {
    /// Of rules that take several events at once.
    fileprivate var windows: [String: BatchWindow] { byName { $0.batch.map(BatchWindow.init) } }

    /// Of rules whose paths rest between two runs.
    fileprivate var cooldowns: [String: Cooldown] { byName { $0.cooldown > .zero ? Cooldown($0.cooldown) : nil } }

    /// Of rules to which it matters that a path changes while its action runs.
    fileprivate var whileBusy: [String: Rule.WhileBusy] {
        byName { $0.whileBusy == .coalesce ? nil : $0.whileBusy }
    }

    /// The present names of rules that had others, by those.
    ///
    /// A name that is in force is no former one.
    fileprivate var formerNames: [String: String] {
        let names = rules.flatMap { rule in rule.formerly.map { ($0, rule.name) } }
        return Dictionary(names.filter { index(of: $0.0) == nil }) { first, _ in first }
    }

    /// What some of the rules have, by their names.
    fileprivate func byName<Value>(_ value: (Rule) -> Value?) -> [String: Value] {
        Dictionary(rules.compactMap { rule in value(rule).map { (rule.name, $0) } }) { first, _ in first }
    }
}

extension Dictionary where Key == String {
    /// The same under the names that rules have now; who had a name before keeps what is his.
    fileprivate func renamed(_ names: [String: String]) -> Self {
        guard !names.isEmpty else { return self }
        return filter { names[$0.key] == nil }
            .merging(compactMap { key, value in names[key].map { ($0, value) } }) { own, _ in own }
    }
}
