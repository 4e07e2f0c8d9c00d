import Foundation
import JournalFixtures
import Rules
import System
import Testing
import TestKit

/// `alight show`, as the built program.
struct ShowCommandTests {
    private static let job: SampleJob = {
        var job = SampleJob(60, .failed, PathBytes(Array("/srv/\u{1B}[31m\n".utf8) + [0xE9]), rule: "letters")
        job.event = "moved"
        job.eventJSON = """
            {"event":"moved","path":{"base64":"L3Nydi8="},"root":"/srv","from":"/srv/old\\nname",
            "snapshot":\(snapshot(size: 120)),"before":\(snapshot(size: 1)),"changed":["extended","xattr:user.a"],
            "replaced":true,"by_move":true,"origin":"rescan","time":[1795170299,500000000],"later":{"is":"unknown"}}
            """
        job.message = "no room\u{1B}[2J"
        job.code = "status-75"
        let request =
            #"{"events":[{"path":"/srv/\u001b[31m\u202e"}],"protocol":1,"steps":[],"with":{"to":"a/b","token":"***"}}"#
        job.attempts = [
            SampleAttempt("retry", "busy", code: "status-75", status: 75, log: "first log\n", request: "{}"),
            SampleAttempt("retry", "plugin 'up' took longer than 1s and was stopped", code: "timed-out"),
            SampleAttempt(
                "retry", "no room\u{1B}[2J", signal: 9, log: "one\n\ttwo \u{1B}]0;title\u{07}\n\nfour",
                request: request),
        ]
        return job
    }()

    private static func snapshot(size: Int) -> String {
        """
        {"type":"file","size":\(size),"mtime":[0,0],"ctime":[0,0],"device":1,"inode":1,"birth":0,"mode":420,"uid":0,\
        "gid":0,"nlink":1}
        """
    }

    private static let text = """
        job \(job.id): failed
          rule: letters
          path: /srv/\\u{1b}[31m\\n\u{FFFD}
          event: moved (extended, xattr:user.a, replaced, by a move); found by a rescan at 2026-11-20 10:24:59
          from: /srv/old\\nname
          size: 120 bytes, before 1 byte
          created: 2026-11-20 10:25:00
          finished: 2026-11-20 10:25:30
          message: no room\\u{1b}[2J (status-75)
        attempt 1: 2026-11-20 10:25:02, 1.3 s: retry, exit status 75: busy (status-75)
        attempt 2: 2026-11-20 10:25:12, 1.3 s: retry: plugin 'up' took longer than 1s and was stopped (timed-out)
        attempt 3: 2026-11-20 10:25:22, 1.3 s: failed, killed by signal 9 (Killed): no room\\u{1b}[2J
        request of attempt 3:
          {
            "events": [
              {
                "path": "/srv/\\u001b[31m\\u{202e}"
              }
            ],
            "protocol": 1,
            "steps": [],
            "with": {
              "to": "a/b",
              "token": "***"
            }
          }
        log of attempt 3:
          one
              two \\u{1b}]0;title\\u{7}
          
          four

        """

    private func with<Answer>(
        _ jobs: [SampleJob], _ body: (borrowing TemporaryTree) throws -> Answer
    ) throws -> Answer {
        try withTempTree { tree in
            let file = try JournalFile(tree.path("journal.db"))
            try file.add(jobs)
            return try body(tree)
        }
    }

    @Test func `a job is shown with its event, its attempts, and the last request and output`() throws {
        try with([Self.job]) { tree in
            let (status, output, error) = JournalCommand.run(tree, ["show", Self.job.id])
            #expect(status == 0, "\(error)")
            #expect(output == Self.text)
            let terminal = JournalCommand.onTerminal(tree, width: 80, ["show", Self.job.id])
            #expect(terminal == Self.text)
        }
    }

    @Test func `the JSON output has all of it`() throws {
        try with([Self.job]) { tree in
            let (status, output, error) = JournalCommand.run(tree, ["show", "--json", Self.job.id])
            #expect(status == 0, "\(error)")
            let object = try #require(try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any])
            #expect(object["origin"] as? String == "rescan")
            #expect(object["from"] as? String == "/srv/old\nname")
            #expect(object["size_before"] as? Int == 1)
            #expect(object["found"] as? String == "2026-11-20T10:24:59.5Z")
            #expect(Data(base64Encoded: object["path_base64"] as? String ?? "") == Data(Self.job.path.bytes))
            let attempts = try #require(object["attempts"] as? [[String: Any]])
            #expect(attempts.map { $0["log"] as? String } == ["first log\n", nil, Self.job.attempts[2].log])
            #expect(attempts.map { $0["status"] as? Int } == [75, nil, nil])
            #expect(attempts.map { $0["signal"] as? Int } == [nil, nil, 9])
            #expect(attempts[0]["duration_ms"] as? Double == 1250)
            let request = try #require(attempts[2]["request"] as? [String: Any])
            #expect((request["with"] as? [String: String])?["token"] == "***")
        }
    }

    @Test func `a job without metadata or attempts is shown too`() throws {
        var job = SampleJob(0, .pending, "/in/a")
        job.eventJSON = "no JSON"
        try with([job]) { tree in
            let (status, output, _) = JournalCommand.run(tree, ["show", job.id])
            #expect(status == 0)
            #expect(
                output == """
                    job \(job.id): pending
                      rule: scans
                      path: /in/a
                      event: created; found
                      created: 2026-11-20 10:24:00
                      due: 2026-11-20 10:25:00

                    """)
        }
    }

    @Test func `a long log is shown from its end`() throws {
        var job = SampleJob(0, .failed, "/in/a")
        let lines = (0..<20_000).map { "line \($0)" }
        job.attempts = [SampleAttempt("failed", log: lines.joined(separator: "\n") + "\n")]
        try with([job]) { tree in
            let (_, output, _) = JournalCommand.run(tree, ["show", job.id])
            let shown = output.split(separator: "\n").drop { $0 != "log of attempt 1:" }.dropFirst()
            #expect(shown.first?.hasSuffix(" bytes left out]") == true)
            #expect(shown.dropFirst().elementsEqual(lines.suffix(shown.count - 1).map { "  \($0)" }))
            #expect(shown.count > 5000)
            #expect(output.utf8.count < 90_000)
        }
    }

    @Test func `an ID may be shortened if it is unambiguous`() throws {
        // All in one minute, so that their IDs differ only in the last characters.
        let jobs = (0..<12).map { SampleJob($0, .failed, PathBytes("/in/\u{1B}\($0)")) }
        try with(jobs) { tree in
            let cut = String(jobs[3].id.prefix(10))
            #expect(JournalCommand.run(tree, ["show", cut]).output.hasPrefix("job \(jobs[3].id): failed"))
            #expect(JournalCommand.run(tree, ["show", cut.lowercased()]).output.hasPrefix("job \(jobs[3].id): failed"))
            let beginning = String(jobs[0].id.prefix(5))
            let (status, output, error) = JournalCommand.run(tree, ["show", beginning])
            #expect(status == 1)
            #expect(output.isEmpty)
            let candidates = jobs.prefix(10).enumerated().map { index, job in
                "    \(job.id)  failed  scans: created /in/\\u{1b}\(index)\n"
            }
            #expect(
                error == "error: '\(beginning)' matches the ids of several jobs:\n" + candidates.joined()
                    + "    …\n    help: give more of the id\n")
        }
    }

    private static let mistakes: [([String], Int32, String)] = [
        ([], 2, "Missing expected argument"), (["01K"], 2, "'01K' is not a job id; give at least 4 characters of one"),
        (["01JD8Z3T1WQ2V7N0C5M4K9R6XB"], 1, "error: there is no job '01JD8Z3T1WQ2V7N0C5M4K9R6XB' in '"),
        (["%%%%"], 1, "error: there is no job '%%%%' in '"),
        (["\u{1B}[31m"], 1, "error: there is no job '\\u{1b}[31m'"),
    ]

    @Test(arguments: mistakes)
    func `a usage error is reported`(_ arguments: [String], _ expected: Int32, _ message: String) throws {
        try with([Self.job]) { tree in
            let (status, output, error) = JournalCommand.run(tree, ["show"] + arguments)
            #expect(status == expected)
            #expect(output.isEmpty)
            #expect(error.contains(message), "\(error)")
        }
    }
}
