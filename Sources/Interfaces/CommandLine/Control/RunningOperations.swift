import ControlAPI
import Engine
import Glibc
import JSON
import Monitoring
import Records
import Rules
import Running
import Storage
import Synchronization
import System
import Watching

/// The API operations of a running instance, called on a thread that may block.
final class RunningOperations: Operations {
    let engine: Engine
    /// The journal's file; nil for one in memory.
    let journal: PathBytes?
    private let reloading: RuleReloading?
    private let started: (wall: Timestamp, instant: ContinuousClock.Instant)
    private let cache = Mutex(Cache())

    /// State that is reused between requests.
    private struct Cache {
        var reader: JournalReader?
        var watching: WatchStatus?
        /// The failed jobs, the number of jobs that had failed since the start, and the time until which this may be
        /// reused.
        var failed: (jobs: FailedJobs, made: Int, until: ContinuousClock.Instant)?
    }

    /// The timeout for an answer of the watcher's thread.
    private static let surveyTimeout = Duration.milliseconds(500)
    /// The time to wait until the engine has applied a change, before the answer reports the status at that time.
    private static let timeout = Duration.seconds(2)
    /// The timeout for the engine's thread to list due paths.
    static let dueTimeout = Duration.milliseconds(500)
    private static let failedAge = Duration.seconds(1)
    private static let failures = 5

    init(_ engine: Engine, journal: PathBytes?, _ reloading: RuleReloading?) {
        self.engine = engine
        self.journal = journal
        self.reloading = reloading
        started = (DiskProbe.now(), .now)
    }

    // MARK: Status

    func status() throws(APIError) -> JSONValue { currentStatus().object }

    func currentStatus() -> RunningStatus {
        let now = ContinuousClock.now
        var status = engine.status(at: now)
        if !status.slowed.isEmpty { forgetSettled(&status) }
        let watching = survey()
        return RunningStatus(
            engine: status, watching: watching ?? lastWatching,
            reasons: status.reasons(watching, hasRejectedRules: reloading?.hasRejected ?? false),
            failed: failed(status, at: now), journal: (journal, journalSize), started: started.wall,
            uptime: now - started.instant)
    }

    func rules() throws(APIError) -> JSONValue {
        let now = ContinuousClock.now
        let status = engine.status(at: now)
        let pending = status.pending
        let failed = failed(status, at: now).counts
        let last = status.rules.values.compactMap(\.last?.job)
        let known = (try? reader().states(of: last)) ?? [:]
        let rules = status.ruleset.listed.map { rule in
            status.object(rule, pending: pending[rule.name] ?? 0, failed: failed[rule.name] ?? 0) { known[$0] != nil }
        }
        return .members(["rules": rules])
    }

    func roots() throws(APIError) -> JSONValue {
        let status = engine.status(at: .now)
        let known = survey() ?? lastWatching
        return .members(["roots": known.roots.map { status.object($0) }])
    }

    func history() throws(APIError) -> JSONValue {
        let points = engine.history(at: .now, wall: DiskProbe.now())
        return .members(["interval": ActivityHistory.interval.components.seconds, "points": points.map(\.object)])
    }

    /// Returns the status of the watching; nil if the watcher does not answer in time.
    private func survey() -> WatchStatus? {
        guard let watching = engine.survey(within: Self.surveyTimeout) else { return nil }
        cache.withLock { $0.watching = watching }
        return watching
    }

    private var lastWatching: WatchStatus { cache.withLock { $0.watching } ?? .unknown }

    /// The size of the journal's files in bytes.
    private var journalSize: Int64 {
        guard let journal else { return 0 }
        return ["", "-wal"].reduce(0) { size, suffix in
            let file = KernelFileSystem().stat(following: PathBytes(journal.bytes + suffix.utf8)).snapshot
            return size + Int64(file?.size ?? 0)
        }
    }

    /// Removes slowed rules without any jobs left: none pending, running or failed.
    ///
    /// They stay slowed down until a job succeeds; if the next job fails, they are reported again.
    private func forgetSettled(_ status: inout EngineStatus) {
        guard journal != nil, let reader = try? reader() else { return }
        let pending = status.pending
        for rule in status.slowed.keys where pending[rule, default: 0] == 0 {
            guard !status.running.contains(where: { $0.rule == rule }),
                let failed = try? reader.jobs(JournalQuery(states: [.failed], rule: rule, limit: 1)),
                failed.jobs.isEmpty
            else { continue }
            status.slowed[rule] = nil
        }
    }

    /// Returns the failed jobs of the journal; those since the start if it cannot be read or is in memory.
    private func failed(_ status: EngineStatus, at now: ContinuousClock.Instant) -> FailedJobs {
        if let failed = cache.withLock({ $0.failed }), failed.until > now, failed.made == status.counts.failed {
            return failed.jobs
        }
        guard let reader = try? reader(), let counts = try? reader.failedCounts(),
            let last = try? reader.lastFailed(Self.failures)
        else {
            let last: [JSONValue] = status.failures.map { .failure($0.job, $0.rule, $0.time, $0.path, $0.message) }
            return FailedJobs(counts: status.rules.mapValues(\.failed), last: last)
        }
        let failures: [JSONValue] = last.map { .failure($0.id, $0.rule, $0.time, $0.path, $0.message ?? "") }
        let jobs = FailedJobs(counts: counts, last: failures)
        cache.withLock { $0.failed = (jobs, status.counts.failed, now + Self.failedAge) }
        return jobs
    }

    // MARK: The journal

    /// Returns a reader of the journal's file with a connection of its own, which sees everything recorded so far.
    func reader() throws(APIError) -> JournalReader {
        guard let journal else {
            throw APIError(
                503, "the journal is in memory, and cannot be queried", help: "run Alight without '--journal :memory:'")
        }
        if let reader = cache.withLock({ $0.reader }) { return reader }
        let reader = try Self.trying { try JournalReader(journal, isOwn: true) }
        cache.withLock { $0.reader = reader }
        return reader
    }

    /// Returns a value, or throws the error with a status.
    static func trying<Value>(
        _ status: Int = 503, _ prefix: String = "", body: () throws -> Value
    ) throws(APIError) -> Value {
        do {
            return try body()
        } catch {
            let problem = Problem(describing: error)
            throw APIError(status, prefix + problem.message, help: problem.help ?? "")
        }
    }

    // MARK: Rules

    func reload() throws(APIError) {
        guard let reloading else { throw APIError(503, "the rules cannot be reloaded", help: "restart Alight") }
        guard reloading.requestAndWait(Self.timeout) != false else {
            throw APIError(
                422, "the new rules contain errors; the rules loaded before stay in effect",
                help: "'alight check' shows them")
        }
    }

    func rescan() throws(APIError) { engine.rescan() }

    func pause(_ rule: String?) throws(APIError) -> JSONValue { try change(rule, isPause: true) }

    func resume(_ rule: String?) throws(APIError) -> JSONValue { try change(rule, isPause: false) }

    private func change(_ rule: String?, isPause: Bool) throws(APIError) -> JSONValue {
        let before = engine.status(at: .now)
        if let rule, isPause || !before.pauses.rules.contains(rule) {
            guard !before.ruleset.isDisabled(rule) else {
                throw APIError(409, "the rule '\(rule)' is disabled, and never runs", help: "set 'enabled: true' in it")
            }
            try Self.check(rule, in: before)
        }
        // Resuming one rule would have no effect while all are paused, so it is an error.
        if let rule, !isPause, before.pauses.all {
            throw APIError(
                409, "all rules are paused; '\(rule)' cannot be resumed alone",
                help: "pause by name the rules that should wait, then resume all rules")
        }
        var wanted = before.pauses
        if isPause {
            wanted.pause(rule)
            engine.pause(rule)
        } else {
            wanted.resume(rule)
            engine.resume(rule)
        }
        waitUntil { engine.status(at: .now).pauses == wanted }
        let after = engine.status(at: .now)
        if let error = after.journalError {
            let done = "it is \(isPause ? "paused" : "resumed")"
            throw APIError(
                503, "\(done), but this cannot be written to the journal, and may be lost when Alight exits: \(error)",
                help: error.help)
        }
        return .members(["paused": after.pauses.all, "paused_rules": after.pauses.names])
    }

    private static func check(_ rule: String, in status: EngineStatus) throws(APIError) {
        guard status.ruleset.rule(named: rule) != nil else {
            throw APIError(404, "there is no rule '\(rule)'", help: "'alight check' and /v1/rules list the rules")
        }
    }

    /// Waits for a change that the engine makes in its next turn.
    private func waitUntil(within limit: Duration = timeout, _ isDone: () -> Bool) {
        let deadline = ContinuousClock.now + limit
        while !isDone(), ContinuousClock.now < deadline { usleep(2_000) }
    }

    // MARK: Commands for jobs

    /// The timeout for a command, shorter than the time that the client waits for its answer.
    private static let commandTimeout = Duration.seconds(8)

    func carryOut(_ verb: String, _ body: [String: JSONValue]) throws(APIError) -> JSONValue {
        let command = try JobCommand(verb, body)
        if let rule = body["rule"]?.string { try Self.check(rule, in: engine.status(at: .now)) }
        guard carryOut(command, within: Self.commandTimeout) else {
            throw APIError(
                503, "the running instance has not done this yet, and may still do it",
                help: "check 'alight jobs', and whether its disk is busy")
        }
        return .members(["jobs": command.jobs.map(\.description)])
    }

    /// Asks the engine to carry out a command; returns false if that is not done in time.
    ///
    /// If it returns true, readers of the journal's file see the result.
    @discardableResult
    func carryOut(_ command: JobCommand, within limit: Duration = timeout) -> Bool {
        let isDone = Mutex(false)
        engine.carryOut(command) { isDone.withLock { $0 = true } }
        waitUntil(within: limit) { isDone.withLock { $0 } }
        cache.withLock { $0.failed = nil }
        return isDone.withLock { $0 }
    }
}
