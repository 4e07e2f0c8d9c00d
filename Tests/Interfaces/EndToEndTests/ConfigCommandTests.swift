import Foundation
import Glibc
import System
import Testing
import TestKit

/// The configuration, as the built program reads it.
@Suite(.timeLimit(.minutes(2)))
struct ConfigCommandTests {
    private static func run(
        _ tree: borrowing TemporaryTree, _ arguments: [String], _ environment: [String: String] = [:]
    ) -> (status: Int32?, output: String, error: String) {
        RunningProgram.alight(arguments, in: tree.root, environment: environment).result()
    }

    /// Returns settings such as `jobs` in the form `value from origin`.
    private static func rows(_ output: String) -> [String: String] {
        var rows: [String: String] = [:]
        for line in output.split(separator: "\n").dropFirst(2) {
            let words = line.split(separator: " ", omittingEmptySubsequences: true)
            if words.count == 3 { rows[String(words[0])] = "\(words[1]) from \(words[2])" }
        }
        return rows
    }

    @Test func `options override variables, which override the file, which overrides the defaults`() {
        withTempTree { tree in
            TestFile.write(
                tree.path(".config/alight/config.yaml"),
                "jobs: 2\nlog:\n  level: error\n  format: json\nretention: 90d\n")
            let (status, output, error) = Self.run(
                tree, ["config", "--jobs", "7"], ["ALIGHT_JOBS": "5", "ALIGHT_LOG_LEVEL": "debug"])
            #expect(status == 0, "\(error)")
            let file = tree.path(".config/alight/config.yaml")
            #expect(output.hasPrefix("file: \(file)\n"))
            let rows = Self.rows(output)
            #expect(rows["jobs.limit"] == "7 from --jobs")
            #expect(rows["jobs.extra"] == "7 from default")
            #expect(rows["log.level"] == "debug from ALIGHT_LOG_LEVEL")
            #expect(rows["log.format"] == "json from \(file):4")
            #expect(rows["retention.period"] == "90d from \(file):5")
            #expect(rows["retention.jobs"] == "100000 from default")
            #expect(rows["journal"] == "\(tree.path(".state/alight/journal.db")) from default")
            #expect(rows["rules"] == "- from default")
        }
    }

    @Test func `the configuration is available as JSON`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("c.yaml"), "listen: false\nrules: [here]\n")
            let (status, output, _) = Self.run(tree, ["config", "--json", "--config", "c.yaml"])
            #expect(status == 0)
            let object = try #require(
                try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any])
            #expect(object["file"] as? String == "c.yaml")
            let settings = try #require(object["settings"] as? [String: [String: Any]])
            #expect(settings["listen"]?["value"] as? Bool == false)
            #expect((settings["listen"]?["origin"] as? [String: Any])?["kind"] as? String == "file")
            let origin = try #require(settings["rules"]?["origin"] as? [String: Any])
            #expect(origin["kind"] as? String == "file")
            #expect(origin["line"] as? Int == 2)
            #expect(settings["rules"]?["value"] as? [String] == [tree.path("here").description])
            #expect((settings["jobs.limit"]?["origin"] as? [String: Any])?["kind"] as? String == "default")
        }
    }

    @Test(arguments: [["config"], ["check"], ["run", "--once"], ["jobs"], ["explain", "x"], ["plugins", "list"]])
    func `each command reports an error in the configuration and does nothing`(command: [String]) {
        withTempTree { tree in
            TestFile.write(tree.path("c.yaml"), "jobs: none\n")
            let (status, output, error) = Self.run(tree, command + ["--config", "c.yaml"])
            #expect(status == 3)
            #expect(output.isEmpty)
            #expect(error.contains("c.yaml:1:7: error: 'jobs' must be a whole number from 1 to 4096, not 'none'"))
        }
    }

    @Test func `a specified file must exist, and a variable must be valid`() {
        withTempTree { tree in
            let missing = Self.run(tree, ["config", "--config", "none.yaml"])
            #expect(missing.status == 3)
            #expect(missing.error.contains("none.yaml: error: no such file"))
            let named = Self.run(tree, ["config"], ["ALIGHT_CONFIG": tree.path("other.yaml").description])
            #expect(named.status == 3)
            let variable = Self.run(tree, ["config"], ["ALIGHT_JOBS": "0"])
            #expect(variable.status == 2)
            #expect(
                variable.error.contains("error: ALIGHT_JOBS: 'jobs' must be a whole number from 1 to 4096, not '0'"))
        }
    }

    @Test func `run uses the rules and the journal of the configuration, and reloads those rules`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            TestFile.write(
                tree.path("set/rules/a.yaml"), "rules: [{ name: one, path: ../../in/*, action: log, settle: 0 }]\n")
            TestFile.write(tree.path("set/config.yaml"), "rules: [rules]\njournal: ../jobs.db\nlog: { format: json }\n")
            // Rules in the current directory apply only if nothing else specifies rules.
            TestFile.write(tree.path("rules/b.yaml"), "rules: [{ name: two, path: ../in/*, action: log }]\n")
            let program = RunningProgram.alight(["run", "--config", "set/config.yaml"], in: tree.root)
            #expect(Deadline.wait { program.error.contains("ready: watching 1 directory for 1 rule") })
            #expect(program.error.hasPrefix("{"))
            TestFile.write(tree.path("in/x"), "x")
            #expect(Deadline.wait { program.output.contains(#""rule":"one""#) })
            TestFile.write(
                tree.path("set/rules/a.yaml"), "rules: [{ name: three, path: ../../in/*, action: log, settle: 0 }]\n")
            #expect(Deadline.wait { program.error.contains("reloaded: watching 1 directory for 1 rule") })
            TestFile.write(tree.path("in/y"), "x")
            #expect(Deadline.wait { program.output.contains(#""rule":"three""#) })
            #expect(program.stop() == 0)
            let jobs = Self.run(tree, ["jobs", "--json", "--config", "set/config.yaml"])
            #expect(jobs.output.contains(#""rule":"one""#))
            #expect(TestFile.exists(tree.path("jobs.db")))
        }
    }

    @Test func `plugins in directories of the configuration are found`() {
        withTempTree { tree in
            let script = "#!/bin/sh\necho '{\"name\": \"mine\", \"version\": \"1\", \"protocol\": [1]}'\n"
            TestFile.write(tree.path("own/mine"), Array(script.utf8), mode: 0o755)
            TestFile.write(tree.path("c.yaml"), "plugins: [own]\n")
            let (status, output, _) = Self.run(tree, ["plugins", "list", "--config", "c.yaml"])
            #expect(status == 0)
            #expect(output.contains(tree.path("own/mine").description))
        }
    }

    @Test func `a log level hides lower levels`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/x"), "x")
            TestFile.write(
                tree.path("rules.yaml"),
                """
                rules:
                  - { name: good, path: in/*, action: log, settle: 0, existing: process }
                  - { name: bad, path: in/*, action: { exec: ["false"] }, settle: 0, existing: process, retry: false }

                """)
            let (status, output, error) = Self.run(
                tree, ["run", "--once", "rules.yaml", "--log-level", "error", "--journal", ":memory:"])
            #expect(status == 5)
            #expect(output.split(separator: "\n").count == 1)
            #expect(output.contains("bad: created"))
            #expect(!error.contains("ready"))
        }
    }

    @Test(.enabled(if: geteuid() == 0, "only root refuses"), arguments: ["config.yaml", "rules.yaml"])
    func `as root, files that others can write are refused, with a remedy`(name: String) {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            TestFile.write(tree.path("config.yaml"), "rules: [rules.yaml]\n")
            TestFile.write(tree.path("rules.yaml"), "rules: [{ path: in/*, action: log }]\n")
            #expect(Self.run(tree, ["check", "--config", "config.yaml"]).status == 0)
            let file = tree.path(name)
            #expect(file.withCString { chmod($0, 0o666) } == 0)
            let (status, _, error) = Self.run(tree, ["check", "--config", "config.yaml"])
            #expect(status == 3)
            #expect(error.contains("error: '\(file)' can be changed by others than root (mode 0666)"))
            #expect(error.contains("help: run: chmod go-w '\(file)'"))
        }
    }

    @Test func `the schema of the configuration is printed`() throws {
        try withTempTree { tree in
            let (status, output, _) = Self.run(tree, ["schema", "--config"])
            #expect(status == 0)
            let object = try #require(
                try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any])
            #expect(object["title"] as? String == "Alight configuration")
        }
    }
}
