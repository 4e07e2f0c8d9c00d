import Foundation
import Glibc
import JournalFixtures
import Rules
import System
import Testing
import TestKit

/// `alight jobs`, as the built program.
struct JobsCommandTests {
    /// Jobs in all states, with names that contain control sequences and other special characters.
    private static let jobs: [SampleJob] = {
        var jobs = [
            SampleJob(0, .succeeded, "/srv/drop/a.pdf"),
            SampleJob(
                60, .failed, "/srv/drop/a/folder/with/a/long/name/and/one/in/it/letter-2026-11.pdf", rule: "letters"),
            SampleJob(120, .skipped, "/srv/写真/カメラの中の写真.jpg"),
            SampleJob(
                180, .failed, PathBytes(Array("/srv/\u{1B}[31m\n\u{202E}\t".utf8) + [0xE9]),
                rule: "a rule whose name is long\u{1B}[0m"),
            SampleJob(240, .pending, "/srv/e\u{301}.txt"), SampleJob(300, .running, "/srv/f"),
        ]
        jobs[0].attempts = [SampleAttempt("succeeded")]
        jobs[1].attempts = [SampleAttempt("retry"), SampleAttempt("failed")]
        jobs[1].message = "plugin 'upload' was killed by signal 9, after it had sent 3 of 40 parts"
        jobs[1].code = "signal-9"
        jobs[2].message = "it was gone before the action started"
        jobs[3].message = "two\nlines\u{1B}]0;title\u{07}"
        return jobs
    }()

    private func with<Answer>(
        _ jobs: [SampleJob] = Self.jobs, _ body: (borrowing TemporaryTree, JournalFile) throws -> Answer
    ) throws -> Answer {
        try withTempTree { tree in
            let file = try JournalFile(tree.path("journal.db"))
            try file.add(jobs)
            return try body(tree, file)
        }
    }

    @Test(arguments: [40, 80, 200])
    func `the table fits the terminal`(_ width: Int) throws {
        try with { tree, _ in
            let text = JournalCommand.onTerminal(tree, width: width, ["jobs"])
            #expect(text == Self.golden[width])
            // A terminal would wrap a longer line. Combining and wide characters do not take one column each.
            for line in text.split(separator: "\n") where !line.unicodeScalars.contains(where: { $0.value > 0x2FF }) {
                #expect(line.count <= width, "\(line)")
            }
        }
    }

    @Test func `a pipe gets a line of fields for each job`() throws {
        try with { tree, _ in
            let (status, output, error) = JournalCommand.run(tree, ["jobs"])
            #expect(status == 0)
            #expect(error.isEmpty)
            let lines = output.split(separator: "\n").map {
                $0.split(separator: "\t", omittingEmptySubsequences: false)
            }
            #expect(lines.map(\.count) == Array(repeating: 8, count: 6))
            #expect(lines.map { String($0[0]) } == Self.jobs.reversed().map(\.id))
            #expect(
                lines[2] == [
                    Substring(Self.jobs[3].id), "failed", "a rule whose name is long\\u{1b}[0m",
                    "/srv/\\u{1b}[31m\\n\\u{202e}\\t\u{FFFD}", "created", "0", "2026-11-20T10:27:30Z",
                    "two\\nlines\\u{1b}]0;title\\u{7}",
                ])
        }
    }

    @Test func `JSON output is one object per line`() throws {
        try with { tree, _ in
            let (status, output, _) = JournalCommand.run(tree, ["jobs", "--json"])
            #expect(status == 0)
            let objects = try output.split(separator: "\n").map {
                try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
            }
            #expect(objects.compactMap { $0["id"] as? String } == Self.jobs.reversed().map(\.id))
            let hostile = try #require(objects.first { $0["path_base64"] != nil })
            #expect(Data(base64Encoded: hostile["path_base64"] as? String ?? "") == Data(Self.jobs[3].path.bytes))
            #expect(hostile["message"] as? String == Self.jobs[3].message)
            let pending = try #require(objects.first { $0["state"] as? String == "pending" })
            #expect(pending["due"] as? String == "2026-11-20T10:29:00Z")
            #expect(pending["ended"] == nil)
            #expect(objects.last?["attempt"] as? Int == 1)
        }
    }

    private static let filters: [([String], [Int])] = [
        (["--state", "failed"], [3, 1]), (["--state", "failed", "--state", "running"], [5, 3, 1]),
        (["--rule", "letters"], [1]), (["--path", "/srv/drop"], [1, 0]), (["--path", "/srv/*.txt"], [4]),
        (["--path", "/srv/**/*.PDF"], [1, 0]), (["--since", "2026-11-20 10:28"], [5, 4]),
        (["--since", "2026-11-20T10:26:30Z"], [5, 4, 3, 2]), (["--since", "2026-11-20T10:26:30.5Z"], [5, 4, 3]),
        (["--since", "2026-11-20T10:26:29.999999999Z"], [5, 4, 3, 2]),
        (["--since", "2026-11-20", "--limit", "2"], [5, 4]),
        (["--limit", "0"], [5, 4, 3, 2, 1, 0]), (["--state", "failed", "--rule", "letters", "--path", "/srv"], [1]),
    ]

    @Test(arguments: filters)
    func `jobs are filtered`(_ arguments: [String], _ expected: [Int]) throws {
        try with { tree, _ in
            let (status, output, error) = JournalCommand.run(tree, ["jobs"] + arguments)
            #expect(status == 0, "\(error)")
            let ids = output.split(separator: "\n").map { $0.prefix { $0 != "\t" } }
            #expect(ids == expected.map { Substring(Self.jobs[$0].id) })
            let isCut = arguments.contains("2")
            #expect(error == (isCut ? "only the 2 newest are shown; see --limit\n" : ""))
        }
    }

    @Test func `a relative path is relative to the current directory, and since to the current time`() throws {
        try withTempTree { tree in
            let now = Int(time(nil))
            var job = SampleJob(now - SampleJob.start - 3600, .failed, tree.path("in/a.txt"))
            job.ended = now - 1800
            try JournalFile(tree.path("journal.db")).add([job])
            for arguments in [
                ["--path", "in"], ["--path", "in/*.txt"], ["--path", "./in/a.txt"], ["--since", "31m"],
            ] {
                let (_, output, error) = JournalCommand.run(tree, ["jobs"] + arguments)
                #expect(output.hasPrefix(job.id), "\(arguments) \(error)")
            }
            for arguments in [["--path", "a.txt"], ["--path", "*.txt"], ["--since", "29m"]] {
                let (status, output, error) = JournalCommand.run(tree, ["jobs"] + arguments)
                #expect(status == 0)
                #expect(output.isEmpty)
                #expect(error == "no job matches; the journal has 1 failed\n")
            }
        }
    }

    @Test func `an empty journal is reported`() throws {
        try with([]) { tree, _ in
            let (status, output, error) = JournalCommand.run(tree, ["jobs"])
            #expect(status == 0)
            #expect(output.isEmpty)
            #expect(error == "the journal has no jobs\n")
        }
    }

    private static let mistakes: [([String], Int32, String)] = [
        (["--state", "done"], 2, "'pending', 'running', 'succeeded', 'skipped' or 'failed'"),
        (["--since", "yesterday"], 2, "--since: invalid time 'yesterday'; write a duration such as 30m"),
        (["--since", "2026-11-20T10:26:30.Z"], 2, "--since: invalid time '2026-11-20T10:26:30.Z'"),
        (["--since", "2026-02-30"], 2, "--since: invalid time '2026-02-30'"),
        (["--since", "2026-11-20 24:00"], 2, "--since: invalid time '2026-11-20 24:00'"),
        (["--since", "5 parsecs"], 2, "--since: unknown unit 'parsecs'"), (["--limit=-1"], 2, "is negative"),
        (["--path", "/srv/{1..3}"], 2, "--path: "), (["--path", ""], 2, "'--path' is empty"),
        (["--journal", ":memory:"], 2, "is only for 'alight run'"), (["--journal", "x/"], 2, "is a directory"),
        (["--journal", "none.db"], 1, "error: there is no journal at '"),
    ]

    @Test(arguments: mistakes)
    func `a usage error is reported`(_ arguments: [String], _ status: Int32, _ message: String) {
        withTempTree { tree in
            let program = RunningProgram.alight(
                ["jobs"] + arguments, in: tree.root, environment: JournalCommand.environment)
            #expect(program.wait() == status)
            #expect(program.output.isEmpty)
            #expect(program.error.contains(message), "\(program.error)")
        }
    }

    @Test func `a hundred thousand jobs are listed quickly`() throws {
        let jobs = (0..<100_000).map { SampleJob($0, $0 % 1000 == 0 ? .failed : .succeeded, PathBytes("/srv/\($0)")) }
        try with(jobs) { tree, _ in
            // Each takes some hundredths of a second. The limit is for queries that read far too many rows.
            for arguments in [
                [], ["--state", "failed"], ["--path", "/srv/77777"], ["--rule", "none"], ["--since", "2026-11-21"],
            ] {
                let start = ContinuousClock.now
                let (status, _, error) = JournalCommand.run(tree, ["jobs"] + arguments)
                #expect(status == 0, "\(error)")
                #expect(ContinuousClock.now - start < .seconds(5), "\(arguments)")
            }
            let (_, output, _) = JournalCommand.run(tree, ["jobs", "--limit", "0"])
            #expect(output.utf8.count { $0 == 0x0A } == 100_000)
        }
    }

    @Test func `a journal is listed in a directory without write permission`() throws {
        try withTempTree { (tree) throws in
            let root = tree.root
            let directory = root.appending("kept")
            TestFile.makeDirectory(directory)
            let file = try JournalFile(directory.appending("journal.db"))
            try file.add(Self.jobs)
            try file.close()
            #expect(root.withCString { chmod($0, 0o755) } == 0)
            #expect(directory.withCString { chmod($0, 0o555) } == 0)
            #expect(file.path.withCString { chmod($0, 0o444) } == 0)
            // Root may write anywhere.
            var words = geteuid() == 0 ? ScenarioRunner.asOrdinaryUser : []
            if geteuid() == 0, ScenarioRunner.ordinaryUserProblem != nil { words = [] }
            words.append(Places.alight.description)
            func run(_ arguments: [String]) -> RunningProgram {
                let program = RunningProgram(
                    "/usr/bin/env", words + arguments + ["--journal", "kept/journal.db"], in: root,
                    environment: JournalCommand.environment, output: root.appending("run"))
                _ = program.wait()
                return program
            }
            let listed = run(["jobs"])
            #expect(listed.lines.count == 6, "\(listed.error)")
            if words.count > 1 || geteuid() != 0 {
                let refused = run(["retry", "--all"])
                #expect(refused.exitStatus() == 1)
                #expect(
                    refused.error == """
                        error: the journal '\(file.path)-lock' can't be written: Permission denied
                            help: run this command as the journal's user, or as root

                        """)
            }
        }
    }

    @Test func `the default journal is in the user's state directory`() {
        withTempTree { tree in
            for (environment, location) in [
                (["XDG_STATE_HOME": "\(tree.root)/state"], "state/alight/journal.db"),
                (["XDG_STATE_HOME": "relative"], geteuid() == 0 ? nil : ".local/state/alight/journal.db"),
            ] {
                let program = RunningProgram.alight(["jobs"], in: tree.root, environment: environment)
                _ = program.wait()
                guard let location else { continue }
                #expect(program.error.hasPrefix("error: there is no journal at '\(tree.path(location))'"))
            }
        }
    }
}

extension JobsCommandTests {
    /// The output on terminals of these widths.
    private static let golden = [
        40: #"""
        01M7W816F0000000000000009C  running
          scans: created /srv/f
        01M7W7ZBW0000000000000007G  pending
          scans: created /srv/é.txt
        01M7W7XH90000000000000005M  failed
          a rule whose…: created …m\n\u{202e}\t�
          two\nlines\u{1b}]0;title\u{7}
        01M7W7VPP0000000000000003R  skipped
          scans: created …/カメラの中の写真.jpg
          it was gone before the action started
        01M7W7SW30000000000000001W  failed
          letters: created …t/letter-2026-11.pdf
          attempt 2: plugin 'upload' was killed…
        01M7W7R1G00000000000000000  succeeded
          scans: created /srv/drop/a.pdf

        """#,
        80: #"""
        01M7W816F0000000000000009C  running    2026-11-20 10:29
          scans: created /srv/f
        01M7W7ZBW0000000000000007G  pending    2026-11-20 10:28
          scans: created /srv/é.txt
        01M7W7XH90000000000000005M  failed     2026-11-20 10:27
          a rule whose name i…: created /srv/\u{1b}[31m\n\u{202e}\t�
          two\nlines\u{1b}]0;title\u{7}
        01M7W7VPP0000000000000003R  skipped    2026-11-20 10:26
          scans: created /srv/写真/カメラの中の写真.jpg
          it was gone before the action started
        01M7W7SW30000000000000001W  failed     2026-11-20 10:25
          letters: created …p/a/folder/with/a/long/name/and/one/in/it/letter-2026-11.pdf
          attempt 2: plugin 'upload' was killed by signal 9, after it had sent 3 of 40 …
        01M7W7R1G00000000000000000  succeeded  2026-11-20 10:24
          scans: created /srv/drop/a.pdf

        """#,
        200: #"""
        ID                          STATE      RULE                  PATH                                                           EVENT    ATTEMPT  WHEN              MESSAGE
        01M7W816F0000000000000009C  running    scans                 /srv/f                                                         created  0        2026-11-20 10:29
        01M7W7ZBW0000000000000007G  pending    scans                 /srv/é.txt                                                     created  0        2026-11-20 10:28
        01M7W7XH90000000000000005M  failed     a rule whose name i…  /srv/\u{1b}[31m\n\u{202e}\t�                                   created  0        2026-11-20 10:27  two\nlines\u{1b}]0;title\u{7}
        01M7W7VPP0000000000000003R  skipped    scans                 /srv/写真/カメラの中の写真.jpg                                 created  0        2026-11-20 10:26  it was gone before the action started
        01M7W7SW30000000000000001W  failed     letters               …p/a/folder/with/a/long/name/and/one/in/it/letter-2026-11.pdf  created  2        2026-11-20 10:25  plugin 'upload' was killed by signal 9,…
        01M7W7R1G00000000000000000  succeeded  scans                 /srv/drop/a.pdf                                                created  1        2026-11-20 10:24

        """#,
    ]
}
