import FileEvents
import Foundation
import Glibc
import JournalFixtures
import System
import TestKit
import Testing

/// A running instance, controlled through its socket by commands and by raw requests.
struct ControlTests {
    private static func rules(_ root: PathBytes) -> String {
        """
        rules:
          - name: letters
            path: in/*.txt
            settle: 50ms
            retry: false
            action:
              shell: |
                if [ -e '\(root)/refuse' ]; then echo 'no paper' >&2; exit 1; fi
                cat "$ALIGHT_PATH" >>'\(root)/out'
          - name: pictures
            path: in/*.png
            settle: 50ms
            action: { use: log }

        """
    }

    private static func begin(_ root: PathBytes, _ arguments: [String] = [], name: String = "run") -> RunningProgram {
        let program = RunningProgram(
            Places.alight, ["run", "rules.yaml", "--log-format", "json"] + arguments, in: root,
            output: root.appending(name))
        JournalFileTests.awaitReady(program)
        return program
    }

    private static func withProgram(
        _ arguments: [String] = [], _ body: (PathBytes, RunningProgram) throws -> Void
    ) throws {
        try withTempTree { tree in
            let root = tree.root
            TestFile.makeFolder(tree.path("in"))
            TestFile.write(tree.path("rules.yaml"), rules(root))
            let program = begin(root, arguments)
            try body(root, program)
            if program.exitStatus() == nil {
                program.signal(SIGTERM)
                #expect(program.wait() == 0, "\(program.error)")
            }
        }
    }

    /// Runs a command while the instance runs.
    @discardableResult
    private static func command(
        _ root: PathBytes, _ arguments: [String]
    ) -> (status: Int32?, output: String, error: String) {
        withTempTree { tree in
            let program = RunningProgram(
                Places.alight, arguments, in: root,
                environment: JournalCommand.environment.merging([
                    "ALIGHT_CONTROL": root.appending(".run/control.sock").description
                ]) { $1 }, output: tree.path("command"))
            let status = program.wait()
            return (status, program.output, program.error)
        }
    }

    private static func socket(_ root: PathBytes) -> PathBytes { root.appending(".run/control.sock") }

    private static func get(_ root: PathBytes, _ target: String) throws -> [String: Any] {
        let answer = try #require(RawHTTP.ask(socket(root), "GET", target))
        #expect(answer.status == 200, "\(answer.body)")
        return try #require(try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any])
    }

    private static func queue(_ root: PathBytes) throws -> [String: Int] {
        try #require(try get(root, "/v1/status")["queue"] as? [String: Int])
    }

    @Test func `a request while the journal is locked does not hide later jobs`() throws {
        try withTempTree { tree in
            let root = tree.root
            for folder in ["in", ".state", ".state/alight"] { TestFile.makeFolder(tree.path(folder)) }
            TestFile.write(tree.path("rules.yaml"), Self.rules(root))
            let file = try JournalFile(tree.path(".state/alight/journal.db"))
            let program = Self.begin(root)
            try file.execute("BEGIN IMMEDIATE")
            TestFile.write(root.appending("in/a.png"), "x")
            #expect(Deadline.wait { program.error.contains("is locked by") }, "\(program.error)")
            _ = try Self.get(root, "/v1/jobs")
            try file.execute("COMMIT")
            for name in ["b", "c"] {
                TestFile.write(root.appending("in/\(name).png"), "x")
                #expect(
                    try Deadline.wait {
                        let jobs = try #require(try Self.get(root, "/v1/jobs")["jobs"] as? [[String: Any]])
                        return jobs.contains { ($0["path"] as? String)?.hasSuffix("/\(name).png") == true }
                    })
            }
            program.signal(SIGTERM)
            #expect(program.wait() == 0, "\(program.error)")
        }
    }

    /// Waits until one job is pending.
    private static func awaitPending(_ root: PathBytes) throws -> Bool {
        try Deadline.wait { try queue(root)["pending"] == 1 }
    }

    private static func out(_ root: PathBytes) -> String {
        String(decoding: TestFile.read(root.appending("out")) ?? [], as: UTF8.self)
    }

    /// Waits for a job in the given state and returns its ID, or nil if there is none in time.
    private static func job(_ root: PathBytes, _ state: String) throws -> String? {
        try Deadline.poll {
            let jobs = try #require(try get(root, "/v1/jobs?state=\(state)")["jobs"] as? [[String: Any]])
            return jobs.first?["id"] as? String
        }
    }

    // MARK: Status

    @Test func `status names the roots, the waiting jobs and the failed ones`() throws {
        try Self.withProgram { (root, _) throws in
            TestFile.write(root.appending("refuse"), "")
            TestFile.write(root.appending("in/a.txt"), "a")
            _ = try Self.job(root, "failed")
            let (status, output, error) = Self.command(root, ["status"])
            #expect(status == 0, "\(error)")
            #expect(output.hasPrefix("alight 0.1.0: running, process "), "\(output)")
            #expect(output.contains("0 pending, 0 running, 1 failed"))
            #expect(output.contains("root \(root)/in: inotify, 1 directory\n"))
            #expect(output.contains("letters: \(root)/in/a.txt: no paper"))
            let rules = try #require(try Self.get(root, "/v1/rules")["rules"] as? [[String: Any]])
            #expect((rules.first?["last"] as? [String: Any])?["outcome"] as? String == "failed")
            let json = Self.command(root, ["status", "--json"]).output
            let object = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
            let roots = object?["roots"] as? [[String: Any]]
            #expect(roots?.first?["backend"] as? String == "inotify")
            #expect(roots?.first?["rules"] as? [String] == ["letters", "pictures"])
            #expect(object?["degraded"] as? Bool == false)
        }
    }

    @Test func `a rules error makes the instance degraded, and status exits with 6`() throws {
        try Self.withProgram { (root, program) throws in
            TestFile.write(root.appending("rules.yaml"), Self.rules(root) + "    setle: 1s\n")
            #expect(Deadline.wait { program.error.contains("the new rules contain errors") })
            let (status, output, _) = Self.command(root, ["status"])
            #expect(status == 6)
            #expect(
                output.contains("problem: the rules contain errors; the rules loaded before stay in effect"),
                "\(output)")
            TestFile.write(root.appending("rules.yaml"), Self.rules(root))
            #expect(Deadline.wait { Self.command(root, ["status"]).status == 0 })
        }
    }

    @Test func `without a running instance every command says so`() {
        withTempTree { tree in
            for words in [["status"], ["status", "--watch"], ["pause"], ["resume"], ["reload"], ["rescan"], ["log"]] {
                let (status, _, error) = Self.command(tree.root, words)
                #expect(status == 1)
                #expect(error.contains("error: no instance is running: no process listens at '"), "\(words): \(error)")
                #expect(error.contains("\n    help: "))
            }
        }
    }

    @Test func `status --watch redraws in place on a terminal, and appends in a pipe`() throws {
        try Self.withProgram { (root, _) throws in
            let piped = RunningProgram(
                Places.alight, ["status", "--watch"], in: root, output: root.appending("piped"))
            #expect(Deadline.wait { piped.output.components(separatedBy: "alight 0.1.0: running").count > 2 })
            #expect(!piped.output.contains("\u{1B}"))
            let shown = RunningProgram(
                "/usr/bin/script",
                ["-qec", "stty cols 40 rows 6; exec \(Places.alight) status --watch", "/dev/null"], in: root,
                environment: ["TERM": "xterm", "NO_COLOR": "1"], output: root.appending("shown"))
            #expect(Deadline.wait { shown.output.components(separatedBy: "\u{1B}[H").count > 2 }, "\(shown.output)")
            for frame in shown.output.components(separatedBy: "\u{1B}[H").dropFirst().dropLast() {
                let lines = frame.components(separatedBy: "\u{1B}[J")[0].components(separatedBy: "\r\n")
                #expect(lines.count <= 7)
                for line in lines {
                    #expect(line.replacing("\u{1B}[K", with: "").replacing("\u{1B}[0m", with: "").count <= 41)
                }
            }
        }
    }

    @Test(.enabled(if: geteuid() == 0, "only root starts programs of others"))
    func `a socket of another user is not used`() throws {
        try withTempTree { tree in
            let root = tree.root
            try #require(root.withCString { chmod($0, 0o777) } == 0)
            let socket = root.appending("false.sock")
            let listening = """
                import os, socket, sys
                server = socket.socket(socket.AF_UNIX)
                server.bind(sys.argv[1])
                os.chmod(sys.argv[1], 0o777)
                server.listen()
                print("ready", flush=True)
                while True:
                    client, _ = server.accept()
                    print("asked" if client.recv(100) else "left alone", flush=True)
                    client.close()
                """
            func asUser(_ user: Int, _ words: [String]) -> [String] {
                ["--reuid=\(user)", "--regid=\(user)", "--clear-groups"] + words
            }
            let other = RunningProgram(
                "/usr/bin/setpriv", asUser(65533, ["/usr/bin/python3", "-c", listening, socket.description]), in: root,
                output: root.appending("other"))
            #expect(Deadline.wait { other.output.contains("ready") }, "\(other.error)")
            let status = RunningProgram(
                "/usr/bin/setpriv",
                asUser(65534, [Places.alight.description, "status", "--control", socket.description]), in: root,
                output: root.appending("status"))
            #expect(status.wait() == 1)
            #expect(
                status.error.contains("error: cannot connect to the instance at '\(socket)': Operation not permitted"),
                "\(status.error)")
            #expect(status.error.contains("help: run this command as the user of that instance, or as root"))
            #expect(Deadline.wait { other.output.contains("left alone") }, "\(other.output)\(other.error)")
            #expect(!other.output.contains("asked"))
        }
    }

    @Test func `absurd numbers of another program are printed without a crash`() throws {
        withTempTree { tree in
            let socket = tree.path("odd.sock")
            let answering = """
                import socket, sys
                server = socket.socket(socket.AF_UNIX)
                server.bind(sys.argv[1])
                server.listen()
                print("ready", flush=True)
                body = (b'{"state": "running", "ready": true, "uptime": 1e300, "pid": -1e300, "overflows": 1e19,'
                        b' "rates": {"events_per_second": 1e300}, "journal": {"path": "/j", "size": 1e300},'
                        b' "roots": [{"path": "/r", "backend": "inotify", "folders": 1e300, "polled": 1e300}]}')
                while True:
                    client, _ = server.accept()
                    client.recv(1000)
                    client.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\n" + body)
                    client.close()
                """
            let other = RunningProgram(
                "/usr/bin/python3", ["-c", answering, socket.description], in: tree.root, output: tree.path("other"))
            #expect(Deadline.wait { other.output.contains("ready") }, "\(other.error)")
            let (status, output, error) = Self.command(tree.root, ["status", "--control", socket.description])
            #expect(status == 0, "\(error)")
            #expect(output.contains("root /r: inotify, "), "\(output)")
        }
    }

    @Test func `a disabled socket is reported as disabled`() throws {
        withTempTree { tree in
            let program = RunningProgram(
                Places.alight, ["status"], in: tree.root,
                environment: JournalCommand.environment.merging(["ALIGHT_CONTROL": "false"]) { $1 },
                output: tree.path("status"))
            #expect(program.wait() == 1)
            #expect(
                program.error.contains("error: the control socket is turned off by 'ALIGHT_CONTROL'"),
                "\(program.error)")
        }
    }

    // MARK: Control

    @Test func `a job of a paused rule waits, also across a kill, until the rule is resumed`() throws {
        try Self.withProgram { (root, program) throws in
            #expect(Self.command(root, ["pause", "--rule", "letters"]).output == "paused: 'letters'\n")
            TestFile.write(root.appending("in/a.txt"), "a")
            TestFile.write(root.appending("in/b.png"), "b")
            #expect(Deadline.wait { program.output.contains("b.png") }, "other rules go on")
            #expect(try Self.awaitPending(root))
            #expect(Self.out(root) == "")
            let (_, explained, _) = Self.command(root, ["explain", "in/a.txt", "--rules", "rules.yaml"])
            #expect(explained.contains("the rule is paused; resume it with 'alight resume'"), "\(explained)")

            program.signal(SIGKILL)
            _ = program.wait()
            #expect(TestFile.exists(Self.socket(root)), "it was killed")
            let again = Self.begin(root, name: "again")
            #expect(again.error.contains("paused: 'letters'"), "\(again.error)")
            #expect(!again.error.contains("another instance"), "\(again.error)")
            #expect(try Self.awaitPending(root))
            #expect(Self.command(root, ["resume"]).output == "no rule is paused\n")
            #expect(Deadline.wait { Self.out(root) == "a" })
            again.signal(SIGTERM)
            #expect(again.wait() == 0)
            #expect(!TestFile.exists(Self.socket(root)))
        }
    }

    @Test func `all rules are paused at once, and an unknown rule is refused`() throws {
        try Self.withProgram { (root, program) throws in
            #expect(Self.command(root, ["pause"]).output == "all rules are paused\n")
            TestFile.write(root.appending("in/b.png"), "b")
            #expect(try Self.awaitPending(root))
            let (status, _, error) = Self.command(root, ["pause", "--rule", "nothing"])
            #expect(status == 1)
            #expect(error.contains("error: there is no rule 'nothing'"))
            #expect(!program.output.contains("b.png"))
            // A stop does not wait for paused jobs.
            program.signal(SIGTERM)
            #expect(program.wait() == 0)
            #expect(program.error.contains("\"stopping\""), "\(program.error)")
        }
    }

    @Test func `while all rules are paused, resuming one is an error and changes nothing`() throws {
        try Self.withProgram { (root, _) throws in
            Self.command(root, ["pause", "--rule", "letters"])
            Self.command(root, ["pause"])
            for name in ["letters", "pictures"] {
                let (status, output, error) = Self.command(root, ["resume", "--rule", name])
                #expect(status == 1)
                #expect(output.isEmpty)
                #expect(error.contains("error: all rules are paused; '\(name)' cannot be resumed alone"), "\(error)")
            }
            let paused = try Self.get(root, "/v1/status")["paused_rules"] as? [String]
            #expect(paused == ["letters"])
            TestFile.write(root.appending("in/a.txt"), "a")
            #expect(try Self.awaitPending(root))
            #expect(Self.command(root, ["resume"]).output == "no rule is paused\n")
            #expect(Deadline.wait { Self.out(root) == "a" })
            Self.command(root, ["pause", "--rule", "letters"])
            #expect(Self.command(root, ["resume", "--rule", "letters"]).output == "no rule is paused\n")
        }
    }

    @Test func `disabled rules are listed as off, and cannot be paused`() throws {
        try withTempTree { tree in
            let root = tree.root
            TestFile.makeFolder(tree.path("in"))
            let rules = Self.rules(root).replacing("  - name: pictures", with: "  - name: pictures\n    enabled: false")
            TestFile.write(tree.path("rules.yaml"), rules + "  - { name: rest, path: in/*.md, action: log }\n")
            let program = Self.begin(root)
            let listed = try #require(try Self.get(root, "/v1/rules")["rules"] as? [[String: Any]])
            #expect(listed.map { $0["name"] as? String } == ["letters", "pictures", "rest"])
            #expect(listed.map { $0["enabled"] as? Bool } == [true, false, true])
            #expect(try Self.get(root, "/v1/status")["disabled_rules"] as? [String] == ["pictures"])
            let status = Self.command(root, ["status"]).output
            #expect(status.contains("\n  disabled: 'pictures', by 'enabled: false'\n"), "\(status)")
            let (code, _, error) = Self.command(root, ["pause", "--rule", "pictures"])
            #expect(code == 1)
            #expect(error.contains("error: the rule 'pictures' is disabled, and never runs"), "\(error)")
            // A rule that a reload enables is listed as enabled.
            TestFile.write(tree.path("rules.yaml"), Self.rules(root))
            let isOn = try Deadline.wait {
                try Self.get(root, "/v1/status")["disabled_rules"] as? [String] == []
            }
            #expect(isOn)
            program.signal(SIGTERM)
            #expect(program.wait() == 0)
        }
    }

    @Test func `a failed job can be retried or discarded, other jobs cannot`() throws {
        try Self.withProgram { (root, _) throws in
            TestFile.write(root.appending("refuse"), "")
            TestFile.write(root.appending("in/a.txt"), "a")
            let id = try #require(try Self.job(root, "failed"))
            _ = root.appending("refuse").withCString { unlink($0) }
            let answer = RawHTTP.ask(Self.socket(root), "POST", "/v1/jobs/\(id)/retry")
            #expect(answer?.status == 200)
            #expect(Deadline.wait { Self.out(root) == "a" })
            let succeeded = try Self.job(root, "succeeded")
            #expect(succeeded == id)
            #expect(RawHTTP.ask(Self.socket(root), "POST", "/v1/jobs/\(id)/retry")?.status == 409)
            #expect(RawHTTP.ask(Self.socket(root), "POST", "/v1/jobs/\(id)/discard")?.status == 409)

            TestFile.write(root.appending("refuse"), "")
            TestFile.write(root.appending("in/b.txt"), "b")
            let other = try #require(try Self.job(root, "failed"))
            #expect(RawHTTP.ask(Self.socket(root), "POST", "/v1/jobs/\(other)/discard")?.status == 200)
            #expect(RawHTTP.ask(Self.socket(root), "GET", "/v1/jobs/\(other)")?.status == 404)
            #expect(RawHTTP.ask(Self.socket(root), "GET", "/v1/jobs/\(id)")?.status == 200)
            #expect(RawHTTP.ask(Self.socket(root), "GET", "/v1/jobs/none")?.status == 404)
        }
    }

    @Test func `commands use the instance that has the journal, whatever its socket`() throws {
        try Self.withProgram(["--control", "elsewhere/other.sock"]) { (root, program) throws in
            TestFile.write(root.appending("refuse"), "")
            TestFile.write(root.appending("in/a.txt"), "a")
            #expect(Deadline.wait { program.output.contains("no paper") })
            _ = root.appending("refuse").withCString { unlink($0) }
            let (status, output, error) = Self.command(root, ["retry", "--rule", "letters"])
            #expect(status == 0 && output.hasSuffix(" will be retried: letters: \(root)/in/a.txt\n"), "\(error)")
            #expect(Deadline.wait { Self.out(root) == "a" })

            TestFile.write(root.appending("refuse"), "")
            TestFile.write(root.appending("in/b.txt"), "b")
            let isFailed = Deadline.wait { Self.command(root, ["jobs", "--state", "failed"]).output.contains("b.txt") }
            #expect(isFailed)
            #expect(Self.command(root, ["discard", "--all"]).status == 0)
            #expect(Self.command(root, ["jobs", "--state", "failed"]).output.isEmpty)
        }
    }

    private static let mistakes: [(verb: String, body: String, status: Int)] = [
        ("apply", #"{"rule":"none","paths":["/a"]}"#, 404), ("apply", #"{"rule":"letters","paths":["a"]}"#, 400),
        ("apply", #"{"rule":"letters","paths":["/a/../b"]}"#, 400), ("apply", #"{"rule":"letters","paths":7}"#, 400),
        ("apply", #"{"paths":["/a"]}"#, 400), ("undo", "{}", 400), ("undo", #"{"jobs":["1"]}"#, 400),
        ("retry", #"{"jobs":[],"rule":"a"}"#, 400), ("discard", #"{"jobs":7}"#, 400),
    ]

    @Test func `an invalid command for jobs is refused`() throws {
        try Self.withProgram { (root, _) throws in
            let answers = Self.mistakes.map {
                RawHTTP.ask(Self.socket(root), "POST", "/v1/\($0.verb)", $0.body)?.status
            }
            #expect(answers == Self.mistakes.map(\.status))
        }
    }

    @Test func `a rule counts as failing until its failed jobs are discarded`() throws {
        try Self.withProgram { (root, _) throws in
            TestFile.write(root.appending("refuse"), "")
            for number in 1...5 { TestFile.write(root.appending("in/\(number).txt"), "x") }
            let isSaid = try Deadline.wait {
                let reasons = try Self.get(root, "/v1/status")["reasons"] as? [String]
                let hasReason = reasons?.contains { $0.hasPrefix("the rule 'letters' fails repeatedly") }
                return try hasReason == true && Self.queue(root)["failed"] == 5
            }
            #expect(isSaid)
            #expect(Self.command(root, ["status"]).status == 6)
            let jobs = try #require(try Self.get(root, "/v1/jobs?state=failed")["jobs"] as? [[String: Any]])
            for job in jobs {
                let id = try #require(job["id"] as? String)
                #expect(RawHTTP.ask(Self.socket(root), "POST", "/v1/jobs/\(id)/discard")?.status == 200)
            }
            let isForgotten = try Deadline.wait {
                try Self.get(root, "/v1/status")["reasons"] as? [String] == []
            }
            #expect(isForgotten)
        }
    }

    @Test(arguments: ["status", "log", "jobs --json", "schema", "config", "check rules.yaml", "--help"])
    func `a write error on standard output is reported, and the exit status is 1`(command: String) throws {
        try Self.withProgram { (root, _) throws in
            TestFile.write(root.appending("in/a.png"), "a")
            _ = try Self.job(root, "succeeded")
            let place = root.appending(".run/control.sock").description
            let shell = RunningProgram(
                "/bin/sh", ["-c", "\(Places.alight) \(command) >/dev/full"], in: root,
                environment: JournalCommand.environment.merging(["ALIGHT_CONTROL": place]) { $1 },
                output: root.appending("shell"))
            #expect(shell.wait() == 1)
            #expect(
                shell.error.contains("error: cannot write to standard output: No space left on device"),
                "\(shell.error)")
        }
    }

    @Test func `a rescan runs, and its time and reason are reported`() throws {
        try Self.withProgram { (root, _) throws in
            #expect(Self.command(root, ["rescan"]).status == 0)
            let isDone = try Deadline.wait {
                let done = try Self.get(root, "/v1/status")["last_rescan"] as? [String: Any]
                return done?["why"] as? String == "asked" && done?["found"] as? Int == 0
            }
            #expect(isDone)
            #expect(Self.command(root, ["status"]).output.contains("found 0 changes that no event had reported"))
        }
    }

    @Test func `rules are reloaded on request`() throws {
        try Self.withProgram(["--no-auto-reload"]) { (root, program) throws in
            TestFile.write(root.appending("rules.yaml"), Self.rules(root).replacing("pictures", with: "images"))
            #expect(Self.command(root, ["reload"]).status == 0)
            #expect(Deadline.wait { program.error.contains("reloaded: ") })
            let rules = try Self.get(root, "/v1/rules")["rules"] as? [[String: Any]]
            #expect(rules?.map { $0["name"] as? String } == ["letters", "images"])
            TestFile.write(root.appending("rules.yaml"), "rules: 3\n")
            let (status, _, error) = Self.command(root, ["reload"])
            #expect(status == 1)
            #expect(error.contains("the new rules contain errors"), "\(error)")
        }
    }

    // MARK: Events

    @Test func `events are followed, as lines and as JSON`() throws {
        try Self.withProgram { (root, program) throws in
            let text = RunningProgram(Places.alight, ["log"], in: root, output: root.appending("text"))
            let json = RunningProgram(Places.alight, ["log", "--json"], in: root, output: root.appending("json"))
            TestFile.write(root.appending("in/b.png"), "b")
            #expect(Deadline.wait { text.output.contains("pictures: created \(root)/in/b.png: succeeded in ") })
            #expect(Deadline.wait { json.lines.first == program.lines.first && !json.lines.isEmpty })
            let late = RunningProgram(Places.alight, ["log", "-n", "1"], in: root, output: root.appending("late"))
            #expect(Deadline.wait { late.output.contains("b.png") })
            program.signal(SIGTERM)
            #expect(text.wait() == 0)
            #expect(text.error == "the instance has stopped\n")
        }
    }

    @Test func `the followed lines are those of the run`() {
        withTempTree { tree in
            TestFile.makeFolder(tree.path("in"))
            TestFile.write(
                tree.path("rules.yaml"),
                """
                rules:
                  - { name: good, path: in/*.txt, settle: 50ms, action: log }
                  - name: bad
                    path: in/*.bad
                    settle: 50ms
                    retry: { attempts: 2, delay: 100ms }
                    action: { shell: "echo no >&2; exit 1" }

                """)
            let program = RunningProgram(
                Places.alight, ["run", "rules.yaml"], in: tree.root, output: tree.path("run"))
            JournalFileTests.awaitReady(program)
            let log = RunningProgram(Places.alight, ["log"], in: tree.root, output: tree.path("log"))
            TestFile.write(tree.path("in/a.txt"), "a")
            TestFile.write(tree.path("in/b.bad"), "b")
            #expect(Deadline.wait { log.output.contains("retry with 'alight retry ") }, "\(log.error)")
            #expect(Deadline.wait { log.output.contains("a.txt: succeeded in ") })
            #expect(log.output.contains(" (attempt 1 of 2; next in "))
            #expect(log.output.contains(" (gave up after 2 attempts; retry with "))
            #expect(Deadline.wait { Set(log.lines) == Set(program.lines) }, "\(log.output)\(program.output)")
        }
    }

    @Test func `events resume after the last one received`() throws {
        try Self.withProgram { (root, program) throws in
            TestFile.write(root.appending("in/1.png"), "1")
            #expect(Deadline.wait { program.output.contains("1.png") })
            let first = try #require(RawHTTP(Self.socket(root)))
            first.send("GET /v1/events?only=attempt&recent=10 HTTP/1.0\r\n\r\n")
            let seen = first.read(until: "1.png")
            let line = try #require(seen.components(separatedBy: "\n").first { $0.hasPrefix("id: ") })
            TestFile.write(root.appending("in/2.png"), "2")
            #expect(Deadline.wait { program.output.contains("2.png") })
            let second = try #require(RawHTTP(Self.socket(root)))
            second.send("GET /v1/events?only=attempt HTTP/1.0\r\nLast-Event-ID: \(line.dropFirst(4))\r\n\r\n")
            let resumed = second.read(until: "2.png")
            #expect(!resumed.contains("1.png"))
        }
    }

    // MARK: TCP

    /// Returns the token of the link that the program has printed, and the link without it.
    private static func printedLink(_ program: RunningProgram) throws -> (place: String, token: String) {
        let said = try #require(program.error.components(separatedBy: "dashboard: ").dropFirst().first)
        let link = try #require(said.split { $0 == "\"" || $0 == "\n" }.first)
        let parts = link.split(separator: "?token=")
        try #require(parts.count == 2)
        return (String(parts[0]), String(parts[1]))
    }

    private static func statusByTCP(_ port: UInt16, _ header: String, host: String) throws -> String {
        let connection = try #require(RawHTTP(port: port))
        connection.send("GET /v1/rules HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\(header)\r\n\r\n")
        return String(connection.readAll().prefix(12))
    }

    @Test func `the link with the token is printed at any log level, survives a restart, and is reachable`()
        throws
    {
        let port = RawHTTP.freePort()
        let arguments = ["--listen", "0.0.0.0:\(port)", "--log-level", "error"]
        try withTempTree { tree in
            let root = tree.root
            TestFile.makeFolder(tree.path("in"))
            TestFile.write(tree.path("rules.yaml"), Self.rules(root))
            var links: [(place: String, token: String)] = []
            for start in 1...2 {
                let program = RunningProgram(
                    Places.alight, ["run", "rules.yaml"] + arguments, in: root, output: root.appending("run-\(start)"))
                #expect(Deadline.wait { program.error.contains("dashboard: ") && RawHTTP(port: port) != nil })
                links.append(try Self.printedLink(program))
                let (place, token) = links[start - 1]
                let host = String(place.dropFirst(7).dropLast())
                #expect(host.hasSuffix(":\(port)") && !host.hasPrefix("0.0.0.0"), "\(place)")
                #expect(try Self.statusByTCP(port, "Authorization: Bearer \(token)", host: host) == "HTTP/1.1 200")
                #expect(try Self.statusByTCP(port, "Authorization: Bearer no", host: host) == "HTTP/1.1 401")
                #expect(try Self.statusByTCP(port, "Authorization: Bearer \(token)", host: "x.test") == "HTTP/1.1 421")
                program.signal(SIGTERM)
                #expect(program.wait() == 0, "\(program.error)")
            }
            #expect(links[0].token == links[1].token)
            let file = tree.path(".state/alight/journal.db-token")
            #expect(String(decoding: TestFile.read(file) ?? [], as: UTF8.self) == "\(links[0].token)\n")
            // Another user may have read the token.
            try #require(file.withCString { chmod($0, 0o644) } == 0)
            let refused = RunningProgram(
                Places.alight, ["run", "rules.yaml"] + arguments, in: root, output: root.appending("refused"))
            #expect(refused.wait() == 1)
            #expect(refused.error.contains("help: run: chmod 600 '\(file)'"), "\(refused.error)")
            #expect(!TestFile.exists(Self.socket(root)), "what was begun is taken back")
        }
    }

    @Test func `behind a proxy the loopback address requires the token too, and a link leads to the proxy`()
        throws
    {
        let port = RawHTTP.freePort()
        let arguments = ["--listen", "127.0.0.1:\(port)", "--external-url", "https://alight.test/"]
        try Self.withProgram(arguments) { _, program in
            let words = Array(program.error.components(separatedBy: "dashboard: ").dropFirst())
            try #require(words.count == 2, "\(program.error)")
            #expect(words[0].hasPrefix("http://127.0.0.1:\(port)/?token="))
            #expect(words[1].hasPrefix("https://alight.test/?token="))
            let token = try Self.printedLink(program).token
            for host in ["127.0.0.1:\(port)", "alight.test"] {
                #expect(try Self.statusByTCP(port, "X-Nothing: x", host: host) == "HTTP/1.1 401")
                #expect(try Self.statusByTCP(port, "Authorization: Bearer \(token)", host: host) == "HTTP/1.1 200")
            }
        }
    }

    @Test(arguments: [
        (["--external-url", "https://a.test"], "'--external-url' requires an address"),
        (["--listen", "127.0.0.1:1", "--external-url", "a.test"], "write 'https://a.test'"),
        (["--listen", "*:8088"], "write '0.0.0.0:8088'"),
        (["--once", "--external-url", "https://a.test"], "'--external-url' cannot be combined with '--once'"),
    ])
    func `an invalid address, or an invalid one of a proxy, is refused`(arguments: [String], said: String) {
        withTempTree { tree in
            TestFile.makeFolder(tree.path("in"))
            TestFile.write(tree.path("rules.yaml"), Self.rules(tree.root))
            let program = RunningProgram(
                Places.alight, ["run", "rules.yaml"] + arguments, in: tree.root, output: tree.path("run"))
            #expect(program.wait() == 2)
            #expect(program.error.contains(said), "\(program.error)")
        }
    }

    // MARK: Several instances

    @Test func `a second instance creates a socket beside the first, and commands use the first`() throws {
        try Self.withProgram { (root, program) throws in
            let second = Self.begin(root, ["--journal", "other.db"], name: "second")
            #expect(second.error.contains("another instance listens at '\(Self.socket(root))'"), "\(second.error)")
            let other = root.appending(".run/control-\(second.pid).sock")
            #expect(TestFile.exists(other))
            #expect(Self.command(root, ["status"]).output.contains("process \(program.pid),"))
            let named = Self.command(root, ["status", "--control", other.description])
            #expect(named.output.contains("process \(second.pid),"), "\(named.error)")
            program.signal(SIGTERM)
            #expect(program.wait() == 0)
            #expect(Self.command(root, ["status"]).output.contains("process \(second.pid),"))
            second.signal(SIGTERM)
            #expect(second.wait() == 0)
            #expect(!TestFile.exists(other))
        }
    }

    @Test func `a specified socket that is in use is an error`() throws {
        try Self.withProgram { (root, _) throws in
            let second = RunningProgram(
                Places.alight,
                ["run", "rules.yaml", "--journal", "other.db", "--control", Self.socket(root).description], in: root,
                output: root.appending("second"))
            #expect(second.wait() == 1)
            #expect(second.error.contains("error: another instance listens at '"), "\(second.error)")
        }
    }

    @Test func `without a socket no command can connect`() throws {
        try Self.withProgram(["--no-control"]) { (root, _) throws in
            #expect(!TestFile.exists(Self.socket(root)))
            #expect(Self.command(root, ["status"]).status == 1)
        }
    }

    @Test func `the image of a job is served, but no file that replaced it`() throws {
        try Self.withProgram { root, _ in
            let picture: [UInt8] = [0x89] + Array("PNG\r\n\u{1A}\nbytes".utf8)
            let path = root.appending("in/a.png")
            TestFile.write(path, picture)
            let job = try #require(try Self.job(root, "succeeded"))
            let target = "/v1/jobs/\(job)/input"
            #expect(RawHTTP.ask(Self.socket(root), "GET", target)?.status == 200)
            // A file of another user, through a symbolic link and through a hard link.
            let secret = root.appending("secret/a.png")
            TestFile.write(secret, picture)
            try #require(path.withCString { unlink($0) } == 0)
            try #require(secret.withCString { from in path.withCString { symlink(from, $0) } } == 0)
            #expect(RawHTTP.ask(Self.socket(root), "GET", target)?.status == 404)
            try #require(path.withCString { unlink($0) } == 0)
            try #require(secret.withCString { from in path.withCString { link(from, $0) } } == 0)
            #expect(RawHTTP.ask(Self.socket(root), "GET", target)?.status == 404)
        }
    }

    @Test func `root trusts no journal that others can change`() throws {
        guard geteuid() == 0 else { return }
        try Self.withProgram(["--no-control"]) { root, _ in
            let journal = root.appending("shared/j.db")
            TestFile.makeFolder(journal.parent)
            try #require(journal.parent.withCString { chmod($0, 0o777) } == 0)
            let (status, _, error) = Self.command(root, ["jobs", "--journal", journal.description])
            #expect(status == 1)
            #expect(error.contains("the journal cannot be trusted: "), "\(error)")
            #expect(error.contains("help: run: chmod go-w"), "\(error)")
        }
    }

    /// Runs the body with a separate user who lacks the directory that a login creates.
    private static func withoutRuntimeDirectory(
        number: Int32, _ body: (borrowing TemporaryTree, [String], PathBytes) -> Void
    ) {
        withTempTree { tree in
            // The build directory may be inaccessible to others, so the programs are copied.
            for name in ["alight", "alight-launch"] {
                TestFile.copyTree(Places.products.appending(name), tree.path("bin/\(name)"))
            }
            TestFile.write(
                tree.path("rules.yaml"),
                "rules: [{ name: all, path: in/**, settle: 60ms, action: { shell: 'echo done' } }]\n")
            TestFile.makeFolder(tree.path("in"))
            for path in [tree.root, tree.path("bin"), tree.path("in")] { _ = path.withCString { chmod($0, 0o777) } }
            let user = 1_000_000 + getpid() % 1_000_000 * 2 + number
            let words = ["--reuid=\(user)", "--regid=\(user)", "--clear-groups", "\(tree.root)/bin/alight"]
            let folder = PathBytes("/tmp/alight-\(user)")
            body(tree, words, folder)
            TestFile.removeTree(folder)
            TestFile.removeTree(PathBytes("\(folder)-2"))
        }
    }

    private static func start(
        _ tree: borrowing TemporaryTree, _ words: [String], output: String
    ) -> RunningProgram {
        RunningProgram(
            "/usr/bin/setpriv", words, in: tree.root,
            environment: ["ALIGHT_CONTROL": "", "RUNTIME_DIRECTORY": ""], output: tree.path(output))
    }

    @Test(.enabled(if: geteuid() == 0, "only root can become another user"), arguments: [false, true])
    func `without XDG_RUNTIME_DIR the instance is found as well`(isTaken: Bool) {
        Self.withoutRuntimeDirectory(number: isTaken ? 1 : 0) { tree, words, folder in
            // Another user created the directory first.
            if isTaken { TestFile.makeFolder(folder) }
            let program = Self.start(tree, words + ["run", "rules.yaml", "--journal", ":memory:"], output: "run")
            #expect(Deadline.wait { program.error.contains("ready: watching") }, "\(program.error)")
            #expect(program.error.contains("warning: '\(folder)' is not a private directory of this user") == isTaken)
            let socket = PathBytes("\(folder)\(isTaken ? "-2" : "")/control.sock")
            #expect(Deadline.wait { TestFile.exists(socket) }, "\(program.error)")
            let status = Self.start(tree, words + ["status"], output: "status")
            #expect(status.wait() == 0, "\(status.error)")
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { program.output.contains("succeeded") }, "\(program.output) \(program.error)")
            program.signal(SIGTERM)
            #expect(program.wait() == 0)
        }
    }
}
