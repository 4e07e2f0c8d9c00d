import Glibc
import JSON
import Pipeline
import Rules
import Storage
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
        [
            "version": .string(Version.number), "commit": .text(Version.commit), "pid": .integer(Int64(getpid())),
            "started": .string(started.milliseconds), "uptime": .number((uptime / .milliseconds(1)).rounded() / 1000),
            "state": .string(engine.phase.rawValue), "ready": .bool(engine.isReady),
            "degraded": .bool(!reasons.isEmpty), "reasons": .array(reasons.map { .string($0) }),
            "paused": .bool(engine.pauses.all), "paused_rules": engine.pauses.names,
            "disabled_rules": .array(engine.ruleset.disabled.map { .string($0.name) }),
            "journal": journalObject, "roots": .array(watching.roots.map { engine.object($0) }),
            "watches": ["used": .integer(Int64(watching.watches)), "limit": .integer(Int64(watching.limit))],
            "overflows": .integer(Int64(engine.overflows)), "last_rescan": engine.rescanObject,
            "queue": [
                "settling": .integer(Int64(engine.settling)), "pending": .integer(Int64(engine.queue.pending)),
                "running": .integer(Int64(engine.queue.running)), "failed": .integer(Int64(failed.count)),
            ],
            "counts": engine.countsObject,
            "rates": [
                "events_per_second": .number(Self.rounded(engine.rates.events)),
                "jobs_per_second": .number(Self.rounded(engine.rates.jobs)),
            ],
            "held": engine.heldObjects(at: .now, wall: DiskProbe.now()),
            "slots": engine.slotsObject(at: .now, wall: DiskProbe.now()),
            "running": engine.runningObjects, "failures": .array(failed.last),
        ]
    }

    private var journalObject: JSONValue {
        var object: [String: JSONValue] = [
            "path": .null, "fault": .text(engine.journalFault?.description), "size": .integer(journal.size),
        ]
        if let path = journal.path { object.add("path", path) }
        return .object(object)
    }

    private static func rounded(_ rate: Double) -> Double { (rate * 100).rounded() / 100 }
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
    var names: JSONValue { .array(rules.sorted().map { .string($0) }) }
}
