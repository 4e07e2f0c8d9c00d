import Gates
import Glibc
import Globbing
import JSON
import Monitoring
import Records
import Rules
import System
import Watching

/// The status of this instance at one point in time.
struct RunningStatus {
    var engine: EngineStatus
    var watching: WatchStatus
    /// The problems, as messages for users.
    var reasons: [String]
    var failed: FailedJobs
    /// The path of the journal's file, nil for one in memory, and its size in bytes including the WAL.
    var journal: (path: PathBytes?, size: Int64)
    var started: Timestamp
    var uptime: Duration

    /// The JSON value that `/v1/status` returns.
    var object: JSONValue {
        .members([
            "version": Version.number, "commit": JSONValue.text(Version.commit), "pid": getpid(),
            "started": started.milliseconds, "uptime": (uptime / .milliseconds(1)).rounded() / 1000,
            "state": engine.phase.rawValue, "ready": engine.isReady, "degraded": !reasons.isEmpty, "reasons": reasons,
            "paused": engine.pauses.all, "paused_rules": engine.pauses.names,
            "disabled_rules": engine.ruleset.disabled.map(\.name),
            "journal": JSONValue.members([
                "path": JSONValue.null, "error": JSONValue.text(engine.journalError?.description),
                "size": journal.size, "path": journal.path,
            ]), "roots": watching.roots.map { engine.object($0) },
            "watches": JSONValue.members(["used": watching.watches, "limit": watching.limit]),
            "overflows": engine.overflows, "last_rescan": engine.rescanObject,
            "queue": JSONValue.members([
                "settling": engine.settling, "pending": engine.queue.pending, "running": engine.queue.running,
                "failed": failed.count,
            ]), "counts": engine.countsObject,
            "last_minute": JSONValue.members(["events": engine.lastMinute.events, "jobs": engine.lastMinute.jobs]),
            "held": engine.heldObjects(at: .now, wall: DiskProbe.now()), "waits": engine.waitObjects,
            "slots": engine.slotsObject(at: .now, wall: DiskProbe.now()), "running": engine.runningObjects,
            "failures": failed.last,
        ])
    }
}

/// The jobs that have failed and were neither retried nor discarded.
struct FailedJobs {
    /// The number of failed jobs by rule.
    var counts: [String: Int]
    /// The most recent failed jobs, in the format of the API.
    var last: [JSONValue]

    var count: Int { counts.values.reduce(0, +) }
}

extension Pauses {
    /// The names of the paused rules.
    var names: [String] { rules.sorted() }
}

// The values of `/v1/status`, `/v1/rules`, `/v1/roots` and `/v1/history`.
extension EngineStatus {
    /// Returns the problems as messages for users; empty if there are none.
    func reasons(_ watching: WatchStatus?, hasRejectedRules: Bool) -> [String] {
        var reasons: [String] = []
        if let journalError { reasons.append(journalError.description) }
        if hasRejectedRules { reasons.append("the rules contain errors; the rules loaded before stay in effect") }
        if let rescan, rescan.cause == .overflow, rescan.ended == nil {
            reasons.append("the kernel queue overflowed; all files are being rescanned")
        }
        for (rule, message) in slowed.sorted(by: { $0.key < $1.key }) {
            reasons.append("the rule '\(rule)' fails repeatedly" + (message.isEmpty ? "" : ": \(message)"))
        }
        guard let watching else {
            if isReady { reasons.append("the watcher does not respond: a file system may be slow") }
            return reasons
        }
        if let limit = watching.instanceLimit {
            reasons.append("the limit \(limit.name) (\(limit.value)) is reached: all directories are polled")
        } else if watching.short > 0 {
            let directories = Reporter.count(watching.short, "directory")
            reasons.append(
                "\(directories) polled, as the limit of watches is reached; raise fs.inotify.max_user_watches")
        }
        if watching.failed > 0 {
            reasons.append("\(Reporter.count(watching.failed, "directory")) cannot be watched or listed")
        }
        for root in watching.roots where root.isDenied { reasons.append("cannot access '\(root.path)'") }
        return reasons
    }

    /// Returns the JSON object of a root.
    func object(_ root: WatchStatus.Root) -> JSONValue {
        let names = ruleset.rules.filter { $0.roots.contains(root.path) }.map(\.name)
        return .members([
            "rules": names, "backend": root.means.rawValue, "reason": JSONValue.text(root.reason),
            "directories": root.directories, "polled": root.polled, "path": root.path,
        ])
    }

    /// Returns the JSON object of a rule.
    ///
    /// - Parameters:
    ///   - rule: The rule.
    ///   - pending: The number of its pending jobs.
    ///   - failed: The number of its failed jobs.
    ///   - isKnown: Returns whether the journal contains a job.
    /// - Returns: The object.
    func object(_ rule: Rule, pending: Int, failed: Int, isKnown: (JobID) -> Bool) -> JSONValue {
        let tally = rules[rule.name] ?? RuleTally()
        let running = self.running.filter { $0.rule == rule.name }.reduce(0) { $0 + $1.jobs }
        return .members([
            "name": rule.name, "tags": rule.tags, "enabled": !ruleset.isDisabled(rule.name),
            "paused": pauses.hold(rule.name), "pending": pending, "running": running, "succeeded": tally.succeeded,
            "skipped": tally.skipped, "failed": failed,
            "last": tally.last.map { $0.object(isKnown: isKnown($0.job)) } ?? JSONValue.null,
            "location": "\(rule.location.file):\(rule.location.line)",
            "file": rule.baseDirectory.appending(PathBytes(rule.location.file).lastComponent).description,
            "path": rule.globs.map(\.description).joined(separator: ", "),
        ])
    }

    var runningObjects: [JSONValue] {
        running.map { attempt in
            .members([
                "job": attempt.job.description, "rule": attempt.rule, "action": attempt.action,
                "since": attempt.since.milliseconds, "jobs": attempt.jobs, "slot": attempt.takesSlot,
                "path": attempt.path,
            ])
        }
    }

    /// Returns the paths that wait because a process has them open, longest wait first, at most ten.
    func heldObjects(at now: ContinuousClock.Instant, wall: Timestamp) -> [JSONValue] {
        let held = held.sorted { ($0.value, $0.key) < ($1.value, $1.key) }.prefix(10)
        let writers = WriterSearch.writers(of: held.map(\.key))
        return held.map { path, since in
            let processes = writers[path, default: []].map { writer in
                JSONValue.members(["pid": writer.process, "name": writer.name])
            }
            let since = wall.advanced(by: since - now).milliseconds
            return .members(["since": since, "processes": processes, "path": path])
        }
    }

    /// The jobs that wait for long, longest wait first, at most ten.
    var waitObjects: [JSONValue] {
        waits.sorted { ($0.since, $0.path) < ($1.since, $1.path) }.prefix(10).map { wait in
            .members([
                "rule": wait.rule, "since": wait.since.milliseconds, "until": JSONValue.text(wait.until?.milliseconds),
                "reason": wait.waiting.cause.rawValue, "message": wait.waiting.message, "path": wait.path,
            ])
        }
    }

    /// Returns the slots, and the rules that wait for one, longest wait first.
    func slotsObject(at now: ContinuousClock.Instant, wall: Timestamp) -> JSONValue {
        let waiting = slots.waiting.sorted { ($0.value, $0.key) < ($1.value, $1.key) }.map { rule, since in
            JSONValue.members(["rule": rule, "since": wall.advanced(by: since - now).milliseconds])
        }
        return .members([
            "limit": slots.limit, "extra": slots.extra, "used": slots.used, "extra_used": slots.extraUsed,
            "waiting": waiting,
        ])
    }

    var countsObject: JSONValue {
        .members([
            "hints": counts.hints, "events": counts.events, "attempts": counts.attempts, "succeeded": counts.succeeded,
            "skipped": counts.skipped, "failed_attempts": counts.failedAttempts, "failed": counts.failed,
        ])
    }

    /// The last finished rescan; while one is running, the previous one.
    var rescanObject: JSONValue {
        guard let done = rescan?.ended == nil ? lastRescan : rescan, let ended = done.ended else { return .null }
        return .members(["at": ended.milliseconds, "why": done.cause.rawValue, "found": done.found])
    }
}

extension EngineStatus.EndedJob {
    fileprivate func object(isKnown: Bool) -> JSONValue {
        .members([
            "job": JSONValue.text(isKnown ? job.description : nil), "at": time.milliseconds, "outcome": outcome,
            "message": JSONValue.text(message.isEmpty ? nil : message),
        ])
    }
}

extension JSONValue {
    /// Returns the object of a failed job, for the list of recent failures.
    static func failure(
        _ job: JobID, _ rule: String, _ time: Timestamp, _ path: PathBytes, _ message: String
    ) -> JSONValue {
        .members([
            "job": job.description, "rule": rule, "at": time.milliseconds, "message": message, "path": path,
        ])
    }
}

extension WatchStatus.Root {
    /// The reason why the root is not, or not completely, watched with inotify, as a message for users.
    fileprivate var reason: String? {
        if isDenied { return "it cannot be accessed" }
        if means == .missing { return "it does not exist; waiting for it" }
        if let polling { return polling.text }
        if means == .polling { return "inotify is not available" }
        return short > 0 ? "\(Reporter.count(short, "directory")) without a watch, as the limit is reached" : nil
    }
}

extension ActivityHistory.Point {
    var object: JSONValue {
        func seconds(_ duration: Duration?) -> JSONValue {
            duration.map { .number(($0 / .microseconds(100)).rounded() / 10_000) } ?? .null
        }
        return .members([
            "at": time.milliseconds, "events": events, "succeeded": succeeded, "skipped": skipped, "failed": failed,
            "queue": queue, "settle_p50": seconds(settleMedian), "wait_p50": seconds(waitMedian),
            "run_p50": seconds(runMedian), "run_p99": seconds(runSlowest),
        ])
    }
}
