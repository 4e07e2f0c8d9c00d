import Foundation
import Glibc
import Testing
import TestKit

/// Output about failures, and about how rules handle them, as the built program prints it.
struct FailureTextTests {
    private static func start(_ tree: borrowing TemporaryTree, _ arguments: [String], _ rules: String) -> RunningProgram
    {
        TestFile.write(tree.path("rules.yaml"), rules)
        TestFile.makeDirectory(tree.path("in"))
        return RunningProgram.alight(arguments, in: tree.root)
    }

    private static let settings = """
        rules:
          - name: all
            formerly: [old, older]
            path: in/*
            retry: { attempts: 3, delay: 1500ms, max_delay: 1m, on: temporary }
            while_busy: restart
            cooldown: 30s
            catch_up: false
            action: log
            on_failure: [log, { use: move, with: { to: aside/ } }]
          - { name: usual, path: in/*, action: log }
          - { name: once, path: in/*, retry: false, action: log }
          - { name: even, path: in/*, retry: { delay: 5s, max_delay: 5s }, while_busy: coalesce, action: log }
        """

    @Test func `an explanation lists what differs from the defaults`() {
        withTempTree { tree in
            let program = Self.start(tree, ["explain", "--rules", "rules.yaml", "in/a"], Self.settings)
            #expect(program.wait() == 0)
            let rules = program.output.components(separatedBy: "  rule ").dropFirst().map { text in
                text.split(separator: "\n").dropFirst(5).map { $0.drop { $0 == " " } }
                    .filter { line in
                        !["ignores existing files", "event: ", "would run"].contains { line.hasPrefix($0) }
                    }
            }
            #expect(
                rules == [
                    [
                        "attempts: at most 3, 1.5 s to 60 s apart, after temporary failures only",
                        "changed while its action runs: the action is stopped and started again",
                        "between two runs: at least 30 s", "when a job fails permanently: log + move",
                        "ignores changes made while Alight was not running ('catch_up: false')", "formerly: old, older",
                    ], [], ["attempts: 1"], ["attempts: at most 5, 5 s apart"],
                ])
        }
    }

    @Test func `the JSON output has all of it`() throws {
        try withTempTree { tree in
            let program = Self.start(tree, ["explain", "--rules", "rules.yaml", "--json", "in/a"], Self.settings)
            #expect(program.wait() == 0)
            let objects = try program.lines.map { line in
                try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            }
            let first = try #require(objects.first)
            let retry = try #require(first["retry"] as? [String: Any])
            #expect(retry["attempts"] as? Int == 3 && retry["delay_ms"] as? Double == 1_500)
            #expect(retry["max_delay_ms"] as? Double == 60_000 && retry["on"] as? String == "temporary")
            #expect(first["while_busy"] as? String == "restart" && first["cooldown_ms"] as? Double == 30_000)
            #expect(first["on_failure"] as? [String] == ["log", "move"] && first["catch_up"] as? Bool == false)
            #expect(first["formerly"] as? [String] == ["old", "older"])
            let second = try #require(objects.dropFirst().first)
            #expect(second["while_busy"] as? String == "coalesce" && second["on_failure"] as? [String] == [])
        }
    }

    @Test func `check names the actions on failure, and former names`() {
        withTempTree { tree in
            let program = Self.start(tree, ["check", "rules.yaml"], Self.settings)
            #expect(program.wait() == 0)
            #expect(program.lines.first?.hasSuffix(": created, modified → log; on failure log + move") == true)
            #expect(
                program.lines[1] == "    formerly 'old', 'older': jobs and known files of that name belong to this rule"
            )
            #expect(program.lines.contains { $0.hasPrefix("rule 'usual'") && $0.hasSuffix("→ log") })
        }
    }

    @Test func `the line of a failed job shows how to retry it`() {
        withTempTree { tree in
            let rules = """
                rules:
                  - name: send
                    path: in/*
                    settle: 50ms
                    retry: { attempts: 2, delay: 10ms }
                    action: { shell: 'echo "no route" >&2; case $ALIGHT_RELATIVE in a) exit 75;; *) exit 65;; esac' }
                """
            let program = Self.start(tree, ["run", "rules.yaml"], rules)
            #expect(program.waitUntilReady())
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { program.lines.count == 2 })
            TestFile.write(tree.path("in/b"), "x")
            #expect(Deadline.wait { program.lines.count == 3 })
            let lines = program.lines
            #expect(lines[0].contains("no route (attempt 1 of 2; next in "), "\(lines[0])")
            let retry = /: no route \(gave up( after 2 attempts)?; retry with 'alight retry [0-9A-Z]{26}'\)$/
            #expect(lines[1].firstMatch(of: retry)?.1 == " after 2 attempts", "\(lines[1])")
            #expect(lines[2].firstMatch(of: retry).map { $0.1 == nil } == true, "\(lines[2])")
            #expect(program.stop() == 0)
        }
    }
}
