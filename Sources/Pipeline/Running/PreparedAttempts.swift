import ActionAPI
import FileEvents
import Glibc
import Jobs
import Monitoring
import Records
import Rules
import System

/// The attempts whose leases are not committed yet, which prepare their actions and start after the commit; and the
/// running series.
package struct PreparedAttempts {
    private let engine: EngineContext
    private let executor: any AttemptExecutor
    private var prepared: [AttemptSeries] = []
    /// The prepared series of each rule, and the number of attempts that can still be added to them.
    private var growing: [String: (series: [AttemptSeries], room: Int)] = [:]
    /// The running series of several attempts, and the times at which their results are taken.
    private var running: [JobID: (series: AttemptSeries, limit: ContinuousClock.Instant)] = [:]
    /// The permission of the prepared attempts.
    private var permission = StartPermission()
    private var isSubmitted = false

    package init(_ engine: EngineContext, limit: Int) {
        self.engine = engine
        executor = engine.options.executor ?? WorkerPool(limit: engine.options.isDry ? 1 : limit)
    }

    /// The number of slots that the prepared attempts use.
    package var count: Int { prepared.count }

    /// Adds an attempt in a slot of its own; at most `room` more may follow it there.
    mutating func add(_ inputs: [OpenJob], _ rule: Box<Rule>, _ stop: StopSignal, room: Int) {
        let series = AttemptSeries(attempt(inputs, rule, stop))
        prepared.append(series)
        guard room > 0 else { return }
        growing[rule.value.name, default: ([], 0)].series.append(series)
        growing[rule.value.name]?.room += room
    }

    /// Whether an attempt of the rule can follow a prepared one in its slot.
    func canGrow(_ rule: String) -> Bool { growing[rule].map { $0.room > 0 } ?? false }

    /// Whether an attempt of any rule can.
    var canGrow: Bool { growing.values.contains { $0.room > 0 } }

    /// Adds an attempt that follows a prepared one of its rule.
    mutating func append(_ inputs: [OpenJob], _ rule: Box<Rule>, _ stop: StopSignal) {
        guard let (series, room) = growing[rule.value.name] else { preconditionFailure("no attempt to follow") }
        series[room % series.count].add(attempt(inputs, rule, stop))
        growing[rule.value.name]?.room -= 1
    }

    private func attempt(_ inputs: [OpenJob], _ rule: Box<Rule>, _ stop: StopSignal) -> Attempt {
        Attempt(inputs, rule, engine, stop: stop, permission: permission)
    }

    /// Starts the attempts on threads of the pool; their actions wait for ``launch(running:at:)``.
    package mutating func submit(running: Int) {
        guard !prepared.isEmpty, !isSubmitted else { return }
        isSubmitted = true
        growing = [:]
        let isQuick = engine.mailbox.gather(started: prepared.count, running: running)
        executor.submit(prepared.map { series in { await series.run() } }, isQuick: isQuick)
    }

    /// Lets the actions of the submitted attempts start.
    package mutating func launch(running count: Int, at now: ContinuousClock.Instant) {
        guard !prepared.isEmpty else { return }
        permission.grant()
        let time = engine.host.clock.time()
        let all = prepared.map { ($0, $0.attempts) }.filter { !$0.1.isEmpty }
        for (series, attempts) in all where attempts.count > 1 {
            running[series.id] = (series, now + RuleState.seriesTime)
        }
        engine.monitor.recordStarted(all.map { EngineStatus.RunningAttempt($0.1, since: time) })
        let jobs = all.flatMap(\.1).flatMap(\.inputs).map(\.job).filter { $0.attempt == 1 && $0.previous == nil }
        if !jobs.isEmpty { engine.report(.accepted(jobs)) }
        let isFirst = count == prepared.count
        clear()
        // The kernel prefers to wake threads on the waking processor; the rest of this turn can wait.
        if isFirst { sched_yield() }
    }

    /// Prevents the actions of the submitted attempts from starting, because the run is over.
    package mutating func refuse() {
        permission.refuse()
        clear()
    }

    private mutating func clear() {
        prepared = []
        permission = StartPermission()
        isSubmitted = false
    }

    /// Starts the work that waits for a thread of the pool.
    package func wakeRest() { executor.wakeRest() }

    // MARK: Series

    /// The earliest time at which the results of a series are taken.
    var nextLimit: ContinuousClock.Instant? { running.values.lazy.map(\.limit).min() }

    /// Records that a series is over.
    mutating func end(_ id: JobID) { running[id] = nil }

    /// Removes and returns the series whose time is over.
    mutating func takeOverdue(at now: ContinuousClock.Instant) -> [AttemptSeries] {
        let overdue = running.values.filter { $0.limit <= now }.map(\.series)
        for series in overdue { running[series.id] = nil }
        return overdue
    }

    /// Removes the attempts that wait in series for earlier ones.
    ///
    /// - Parameters:
    ///   - isHeld: Whether series of a rule are concerned.
    ///   - isWanted: Whether a series is concerned in which an attempt at such a path waits.
    /// - Returns: The attempts, the last one of each series first.
    func takeWaiting(
        of isHeld: (Rule) -> Bool = { _ in true }, at isWanted: (PathBytes) -> Bool = { _ in true }
    ) -> [Attempt] {
        guard !running.isEmpty || !prepared.isEmpty else { return [] }
        let series = running.values.map(\.series) + prepared
        return series.filter { isHeld($0.rule) }.flatMap { $0.takeWaiting(if: isWanted) }
    }
}

extension EngineStatus.RunningAttempt {
    /// Creates the state of attempts of a series.
    init(_ attempts: [Attempt], since: Timestamp) {
        let rule = attempts[0].rule
        let job = attempts[0].inputs[0].job
        self.init(
            job: job.id, jobs: attempts.reduce(0) { $0 + $1.inputs.count }, rule: rule.name,
            action: rule.actions(of: job).names, path: job.event.path, since: since, takesSlot: rule.takesSlot)
    }
}
