import Foundation
import Glibc
import System
import Testing
import TestKit

/// Commands that change a running instance or its jobs.
struct ControlCommandTests {
    private static func queue(_ root: PathBytes) throws -> [String: Int] {
        try #require(try Instance.get(root, "/v1/status")["queue"] as? [String: Int])
    }

    /// Waits until one job is pending.
    private static func awaitPending(_ root: PathBytes) throws -> Bool {
        try Deadline.wait { try queue(root)["pending"] == 1 }
    }

    private static func out(_ root: PathBytes) -> String {
        TestFile.text(root.appending("out")) ?? ""
    }

    @Test func `a job of a paused rule waits, also across a kill, until the rule is resumed`() throws {
        try Instance.withProgram { (root, program) throws in
            #expect(Instance.command(root, ["pause", "--rule", "letters"]).output == "paused: 'letters'\n")
            TestFile.write(root.appending("in/a.txt"), "a")
            TestFile.write(root.appending("in/b.png"), "b")
            #expect(Deadline.wait { program.output.contains("b.png") }, "other rules go on")
            #expect(try Self.awaitPending(root))
            #expect(Self.out(root) == "")
            let (_, explained, _) = Instance.command(root, ["explain", "in/a.txt", "--rules", "rules.yaml"])
            #expect(explained.contains("the rule is paused; resume it with 'alight resume'"), "\(explained)")

            program.signal(SIGKILL)
            _ = program.wait()
            #expect(TestFile.exists(Instance.socket(root)), "it was killed")
            let again = Instance.begin(root, name: "again")
            #expect(again.error.contains("paused: 'letters'"), "\(again.error)")
            #expect(!again.error.contains("another instance"), "\(again.error)")
            #expect(try Self.awaitPending(root))
            #expect(Instance.command(root, ["resume"]).output == "no rule is paused\n")
            #expect(Deadline.wait { Self.out(root) == "a" })
            #expect(again.stop() == 0)
            #expect(!TestFile.exists(Instance.socket(root)))
        }
    }

    @Test func `all rules are paused at once, and an unknown rule is refused`() throws {
        try Instance.withProgram { (root, program) throws in
            #expect(Instance.command(root, ["pause"]).output == "all rules are paused\n")
            TestFile.write(root.appending("in/b.png"), "b")
            #expect(try Self.awaitPending(root))
            let (status, _, error) = Instance.command(root, ["pause", "--rule", "nothing"])
            #expect(status == 1)
            #expect(error.contains("error: there is no rule 'nothing'"))
            #expect(!program.output.contains("b.png"))
            // A stop does not wait for paused jobs.
            #expect(program.stop() == 0)
            #expect(program.error.contains("\"stopping\""), "\(program.error)")
        }
    }

    @Test func `while all rules are paused, resuming one is an error and changes nothing`() throws {
        try Instance.withProgram { (root, _) throws in
            Instance.command(root, ["pause", "--rule", "letters"])
            Instance.command(root, ["pause"])
            for name in ["letters", "pictures"] {
                let (status, output, error) = Instance.command(root, ["resume", "--rule", name])
                #expect(status == 1)
                #expect(output.isEmpty)
                #expect(error.contains("error: all rules are paused; '\(name)' cannot be resumed alone"), "\(error)")
            }
            let paused = try Instance.get(root, "/v1/status")["paused_rules"] as? [String]
            #expect(paused == ["letters"])
            TestFile.write(root.appending("in/a.txt"), "a")
            #expect(try Self.awaitPending(root))
            #expect(Instance.command(root, ["resume"]).output == "no rule is paused\n")
            #expect(Deadline.wait { Self.out(root) == "a" })
            Instance.command(root, ["pause", "--rule", "letters"])
            #expect(Instance.command(root, ["resume", "--rule", "letters"]).output == "no rule is paused\n")
        }
    }

    @Test func `disabled rules are listed as off, and cannot be paused`() throws {
        try withTempTree { tree in
            let root = tree.root
            TestFile.makeDirectory(tree.path("in"))
            let rules = Instance.rules(root).replacing(
                "  - name: pictures", with: "  - name: pictures\n    enabled: false")
            TestFile.write(tree.path("rules.yaml"), rules + "  - { name: rest, path: in/*.md, action: log }\n")
            let program = Instance.begin(root)
            let listed = try #require(try Instance.get(root, "/v1/rules")["rules"] as? [[String: Any]])
            #expect(listed.map { $0["name"] as? String } == ["letters", "pictures", "rest"])
            #expect(listed.map { $0["enabled"] as? Bool } == [true, false, true])
            #expect(try Instance.get(root, "/v1/status")["disabled_rules"] as? [String] == ["pictures"])
            let status = Instance.command(root, ["status"]).output
            #expect(status.contains("\n  disabled: 'pictures', by 'enabled: false'\n"), "\(status)")
            let (code, _, error) = Instance.command(root, ["pause", "--rule", "pictures"])
            #expect(code == 1)
            #expect(error.contains("error: the rule 'pictures' is disabled, and never runs"), "\(error)")
            // A rule that a reload enables is listed as enabled.
            TestFile.write(tree.path("rules.yaml"), Instance.rules(root))
            let isOn = try Deadline.wait {
                try Instance.get(root, "/v1/status")["disabled_rules"] as? [String] == []
            }
            #expect(isOn)
            #expect(program.stop() == 0)
        }
    }

    @Test func `a job that waits for a retry shows what holds its rule, in jobs and in explain`() {
        withTempTree { tree in
            let root = tree.root
            TestFile.makeDirectory(tree.path("in"))
            let action = "retry: { delay: 1h }, action: { exec: [\"false\"] }"
            let rule = "  - { name: r, path: in/*.md, settle: 0, \(action) }\n"
            TestFile.write(tree.path("rules.yaml"), Instance.rules(root) + rule)
            let program = Instance.begin(root)
            TestFile.write(tree.path("in/a.md"), "text")
            func shows(_ command: [String], _ text: String) -> Bool {
                Deadline.wait { Instance.command(root, command).output.contains(text) }
            }
            #expect(shows(["jobs"], "exited with status 1"))
            Instance.command(root, ["pause", "--rule", "r"])
            #expect(shows(["jobs"], "the rule is paused"))
            #expect(shows(["explain", "--rules", "rules.yaml", "--rule", "r", "in/a.md"], ": the rule is paused"))
            Instance.command(root, ["resume", "--rule", "r"])
            #expect(shows(["jobs"], "exited with status 1"))
            #expect(program.stop() == 0)
        }
    }

    @Test func `a job that will wait for more than ten minutes is shown in the status`() throws {
        try withTempTree { tree in
            let root = tree.root
            TestFile.makeDirectory(tree.path("in"))
            let rule = "  - { name: old, path: in/*.md, settle: 100ms, ready: { min_age: 2h }, action: log }\n"
            TestFile.write(tree.path("rules.yaml"), Instance.rules(root) + rule)
            let program = Instance.begin(root)
            TestFile.write(tree.path("in/a.md"), "text")
            let isShown = Deadline.wait {
                let status = Instance.command(root, ["status"]).output
                return status.contains("waiting: old: \(root)/in/a.md, for ")
                    && status.contains(": it reaches its minimum age at ")
            }
            #expect(isShown)
            let waits = try #require(try Instance.get(root, "/v1/status")["waits"] as? [[String: Any]])
            #expect(waits.map { $0["reason"] as? String } == ["min-age"])
            _ = tree.path("in/a.md").withCString { unlink($0) }
            #expect(try Deadline.wait { try (Instance.get(root, "/v1/status")["waits"] as? [Any])?.isEmpty == true })
            #expect(program.stop() == 0)
        }
    }

    @Test func `a failed job can be retried or discarded, other jobs cannot`() throws {
        try Instance.withProgram { (root, _) throws in
            TestFile.write(root.appending("refuse"), "")
            TestFile.write(root.appending("in/a.txt"), "a")
            let id = try #require(try Instance.job(root, "failed"))
            _ = root.appending("refuse").withCString { unlink($0) }
            let answer = RawHTTP.ask(Instance.socket(root), "POST", "/v1/jobs/\(id)/retry")
            #expect(answer?.status == 200)
            #expect(Deadline.wait { Self.out(root) == "a" })
            let succeeded = try Instance.job(root, "succeeded")
            #expect(succeeded == id)
            #expect(RawHTTP.ask(Instance.socket(root), "POST", "/v1/jobs/\(id)/retry")?.status == 409)
            #expect(RawHTTP.ask(Instance.socket(root), "POST", "/v1/jobs/\(id)/discard")?.status == 409)

            TestFile.write(root.appending("refuse"), "")
            TestFile.write(root.appending("in/b.txt"), "b")
            let other = try #require(try Instance.job(root, "failed"))
            #expect(RawHTTP.ask(Instance.socket(root), "POST", "/v1/jobs/\(other)/discard")?.status == 200)
            #expect(RawHTTP.ask(Instance.socket(root), "GET", "/v1/jobs/\(other)")?.status == 404)
            #expect(RawHTTP.ask(Instance.socket(root), "GET", "/v1/jobs/\(id)")?.status == 200)
            #expect(RawHTTP.ask(Instance.socket(root), "GET", "/v1/jobs/none")?.status == 404)
        }
    }

    @Test func `commands use the instance that has the journal, whatever its socket`() throws {
        try Instance.withProgram(["--control", "elsewhere/other.sock"]) { (root, program) throws in
            TestFile.write(root.appending("refuse"), "")
            TestFile.write(root.appending("in/a.txt"), "a")
            #expect(Deadline.wait { program.output.contains("no paper") })
            _ = root.appending("refuse").withCString { unlink($0) }
            let (status, output, error) = Instance.command(root, ["retry", "--rule", "letters"])
            #expect(status == 0 && output.hasSuffix(" will be retried: letters: \(root)/in/a.txt\n"), "\(error)")
            #expect(Deadline.wait { Self.out(root) == "a" })

            TestFile.write(root.appending("refuse"), "")
            TestFile.write(root.appending("in/b.txt"), "b")
            let isFailed = Deadline.wait {
                Instance.command(root, ["jobs", "--state", "failed"]).output.contains("b.txt")
            }
            #expect(isFailed)
            #expect(Instance.command(root, ["discard", "--all"]).status == 0)
            #expect(Instance.command(root, ["jobs", "--state", "failed"]).output.isEmpty)
        }
    }

    private static let mistakes: [(verb: String, body: String, status: Int)] = [
        ("apply", #"{"rule":"none","paths":["/a"]}"#, 404), ("apply", #"{"rule":"letters","paths":["a"]}"#, 400),
        ("apply", #"{"rule":"letters","paths":["/a/../b"]}"#, 400), ("apply", #"{"rule":"letters","paths":7}"#, 400),
        ("apply", #"{"paths":["/a"]}"#, 400), ("undo", "{}", 400), ("undo", #"{"jobs":["1"]}"#, 400),
        ("retry", #"{"jobs":[],"rule":"a"}"#, 400), ("discard", #"{"jobs":7}"#, 400),
    ]

    @Test func `an invalid command for jobs is refused`() throws {
        try Instance.withProgram { (root, _) throws in
            let answers = Self.mistakes.map {
                RawHTTP.ask(Instance.socket(root), "POST", "/v1/\($0.verb)", $0.body)?.status
            }
            #expect(answers == Self.mistakes.map(\.status))
        }
    }

    @Test func `a rule counts as failing until its failed jobs are discarded`() throws {
        try Instance.withProgram { (root, _) throws in
            TestFile.write(root.appending("refuse"), "")
            for number in 1...5 { TestFile.write(root.appending("in/\(number).txt"), "x") }
            let isReported = try Deadline.wait {
                let reasons = try Instance.get(root, "/v1/status")["reasons"] as? [String]
                let hasReason = reasons?.contains { $0.hasPrefix("the rule 'letters' fails repeatedly") }
                return try hasReason == true && Self.queue(root)["failed"] == 5
            }
            #expect(isReported)
            #expect(Instance.command(root, ["status"]).status == 6)
            let jobs = try #require(try Instance.get(root, "/v1/jobs?state=failed")["jobs"] as? [[String: Any]])
            for job in jobs {
                let id = try #require(job["id"] as? String)
                #expect(RawHTTP.ask(Instance.socket(root), "POST", "/v1/jobs/\(id)/discard")?.status == 200)
            }
            let isForgotten = try Deadline.wait {
                try Instance.get(root, "/v1/status")["reasons"] as? [String] == []
            }
            #expect(isForgotten)
        }
    }

    @Test(arguments: ["status", "log", "jobs --json", "schema", "config", "check rules.yaml", "--help"])
    func `a write error on standard output is reported, and the exit status is 1`(command: String) throws {
        try Instance.withProgram { (root, _) throws in
            TestFile.write(root.appending("in/a.png"), "a")
            _ = try Instance.job(root, "succeeded")
            let location = root.appending(".run/control.sock").description
            let shell = RunningProgram(
                "/bin/sh", ["-c", "\(Places.alight) \(command) >/dev/full"], in: root,
                environment: JournalCommand.environment.merging(["ALIGHT_CONTROL": location]) { $1 },
                output: root.appending("shell"))
            #expect(shell.wait() == 1)
            #expect(
                shell.error.contains("error: cannot write to standard output: No space left on device"),
                "\(shell.error)")
        }
    }

    @Test func `a rescan runs, and its time and reason are reported`() throws {
        try Instance.withProgram { (root, _) throws in
            #expect(Instance.command(root, ["rescan"]).status == 0)
            let isDone = try Deadline.wait {
                let done = try Instance.get(root, "/v1/status")["last_rescan"] as? [String: Any]
                return done?["why"] as? String == "asked" && done?["found"] as? Int == 0
            }
            #expect(isDone)
            #expect(Instance.command(root, ["status"]).output.contains("found 0 changes that no event had reported"))
        }
    }

    @Test func `rules are reloaded on request`() throws {
        try Instance.withProgram(["--no-auto-reload"]) { (root, program) throws in
            TestFile.write(root.appending("rules.yaml"), Instance.rules(root).replacing("pictures", with: "images"))
            #expect(Instance.command(root, ["reload"]).status == 0)
            #expect(Deadline.wait { program.error.contains("reloaded: ") })
            let rules = try Instance.get(root, "/v1/rules")["rules"] as? [[String: Any]]
            #expect(rules?.map { $0["name"] as? String } == ["letters", "images"])
            TestFile.write(root.appending("rules.yaml"), "rules: 3\n")
            let (status, _, error) = Instance.command(root, ["reload"])
            #expect(status == 1)
            #expect(error.contains("the new rules contain errors"), "\(error)")
        }
    }

    @Test func `root trusts no journal that others can change`() throws {
        guard geteuid() == 0 else { return }
        try Instance.withProgram(["--no-control"]) { root, _ in
            let journal = root.appending("shared/j.db")
            TestFile.makeDirectory(journal.parent)
            try #require(journal.parent.withCString { chmod($0, 0o777) } == 0)
            let (status, _, error) = Instance.command(root, ["jobs", "--journal", journal.description])
            #expect(status == 1)
            #expect(error.contains("the journal cannot be trusted: "), "\(error)")
            #expect(error.contains("help: run: chmod go-w"), "\(error)")
        }
    }
}
