import ControlAPI
import JSON

@testable import Dashboard

/// Pages of one instance, in which every external text has the same words.
struct SamplePages {
    /// The words in names, messages and logs.
    var words = "plain"
    var isDegraded = false
    var isPaused = false
    var isEmpty = false

    static let now = "2026-11-22T09:41:07.12Z"

    static let names = ["overview", "jobs", "job", "rules", "message"]

    func page(_ name: String) -> HTML {
        switch name {
        case "overview": OverviewPage(status: status, rules: rules, history: history, jobs: jobs, now: Self.now).html
        case "jobs":
            JobsPage(
                status: status, rules: rules, jobs: jobs,
                query: JobsQuery(states: ["failed"], rule: words, path: Array(words.utf8), limit: 1), now: Self.now
            ).html
        case "job": JobPage(status: status, job: job, now: Self.now).html
        case "rules": RulesPage(status: status, rules: rules, now: Self.now).html
        default: Frame(title: words, status: status).message(words, help: words)
        }
    }

    private var text: JSONValue { .string(words) }
    private var path: JSONValue { .string("/in/\(words).png") }

    var status: JSONValue {
        [
            "version": "0.8.0", "pid": 4711, "started": "2026-11-19T07:47:47.12Z",
            "uptime": 266_000, "state": "running", "ready": true,
            "degraded": .bool(isDegraded), "reasons": isDegraded ? [text] : [], "paused": .bool(isPaused),
            "paused_rules": isEmpty ? [] : [text],
            "journal": ["path": path, "size": 18_421_000, "error": isDegraded ? "the disk is full" : .null],
            "roots": isEmpty
                ? []
                : [
                    [
                        "path": path, "rules": [text], "backend": "inotify", "reason": .null, "directories": 412,
                        "polled": 0,
                    ],
                    [
                        "path": "/net", "rules": [text], "backend": "polling", "reason": text, "directories": 3,
                        "polled": 3,
                    ],
                    [
                        "path": "/gone", "rules": [], "backend": "missing", "reason": text, "directories": 0,
                        "polled": 0,
                    ],
                ],
            "watches": ["used": 512, "limit": 65_536], "overflows": 1,
            "last_rescan": isEmpty ? .null : ["at": "2026-11-22T07:41:07Z", "why": text, "found": 3],
            "queue": ["settling": 3, "pending": 1_022, "running": 1, "failed": 2],
            "counts": [
                "hints": 81_244, "events": 24_118, "attempts": 21_904, "succeeded": 21_512, "failed_attempts": 91,
            ],
            "last_minute": ["events": 116, "jobs": 97],
            "running": isEmpty
                ? [] : [["job": "01A", "rule": text, "action": text, "path": path, "since": "2026-11-22T09:41:06Z"]],
            "failures": isEmpty
                ? [] : [["job": "01B", "rule": text, "path": path, "at": "2026-11-21T23:00:00Z", "message": text]],
        ]
    }

    var rules: JSONValue {
        guard !isEmpty else { return ["rules": []] }
        return [
            "rules": [
                [
                    "name": text, "path": text, "tags": [text], "enabled": true, "paused": true, "pending": 14,
                    "running": 1, "succeeded": 18_422, "skipped": 0, "failed": 2, "location": text,
                    "last": ["job": "01A", "at": "2026-11-22T09:41:04Z", "outcome": "succeeded", "message": text],
                ],
                [
                    "name": "other", "path": "in/**", "tags": [], "enabled": false, "paused": false, "pending": 0,
                    "running": 0, "succeeded": 0, "skipped": 0, "failed": 0, "location": "rules.yaml:9", "last": .null,
                ],
            ]
        ]
    }

    var jobs: JSONValue {
        guard !isEmpty else { return ["jobs": [], "next": .null] }
        return [
            "jobs": [
                [
                    "id": "01B", "rule": text, "event": "created", "state": "failed", "attempt": 2,
                    "created": "2026-11-22T09:40:00.5Z", "ended": "2026-11-22T09:41:00.5Z", "path": path,
                    "message": text, "code": text, "undone": "part",
                ],
                [
                    "id": "01A", "rule": text, "event": "moved", "state": "running", "attempt": 1,
                    "created": "2026-11-22T09:41:06Z", "path": path,
                ],
            ], "next": "01A",
        ]
    }

    var job: JSONValue {
        [
            "id": "01B", "rule": text, "event": "created", "state": "failed", "attempt": 2,
            "created": "2026-11-22T09:40:00.5Z", "ended": "2026-11-22T09:41:00.5Z", "path": path, "from": path,
            "message": text, "code": text, "undone": "all", "outputs": [path, ["base64": "L2NhZuk="]], "origin": "live",
            "type": "file", "size": 482_113, "size_before": 311,
            "changed": [text], "by": ["comm": text, "pid": 811, "exe": path],
            "attempts": [
                [
                    "number": 1, "started": "2026-11-22T09:40:01Z", "duration_ms": 3_412.2, "outcome": "retry",
                    "message": text, "code": text, "status": 75, "log": .string("a\n\t\(words)\n"),
                    "changes": [["did": "moved", "from": "/old.png", "to": path, "undone": false, "reason": text]],
                    "request": .object([words: .array([text, 1, true, .null, [:], []])]),
                ],
                ["number": 2, "started": "2026-11-22T09:41:00Z", "duration_ms": 0.4, "outcome": "failed", "signal": 9],
            ],
        ]
    }

    /// Four points at intervals of 5 seconds.
    ///
    /// In the last of them nothing happened.
    var history: JSONValue {
        guard !isEmpty else { return ["interval": 5, "points": []] }
        return [
            "interval": 5,
            "points": [
                [
                    "at": "2026-11-22T09:11:20Z", "events": 4, "succeeded": 1, "skipped": 0, "failed": 0, "queue": 1,
                    "settle_p50": 2.01, "wait_p50": 0.004, "run_p50": 0.25, "run_p99": 12,
                ],
                [
                    "at": "2026-11-22T09:40:41Z", "events": 1_200, "succeeded": 900, "skipped": 2, "failed": 1,
                    "queue": 40, "settle_p50": 2, "wait_p50": 0.2, "run_p50": 0.3, "run_p99": 0.9,
                ],
                [
                    "at": "2026-11-22T09:40:46Z", "events": 100, "succeeded": 50, "skipped": 0, "failed": 0,
                    "queue": 13, "settle_p50": 2, "wait_p50": 0.2, "run_p50": 0.3, "run_p99": 0.9,
                ],
                [
                    "at": "2026-11-22T09:41:06Z", "events": 0, "succeeded": 0, "skipped": 0, "failed": 0, "queue": 0,
                    "settle_p50": .null, "wait_p50": .null, "run_p50": .null, "run_p99": .null,
                ],
            ],
        ]
    }
}
