import Glibc
import Testing
import TestKit

/// A rule that needs a variable, in a shell that has not set it.
struct VariableTests {
    private static let rules = """
        rules:
          - name: hook
            path: in/**
            settle: 60ms
            action: { use: log, with: { message: "hook ${env:HOOK_SECRET}" } }
          - name: plain
            path: in/**
            settle: 60ms
            action: log

        """

    private static func make(_ tree: borrowing TemporaryTree) {
        TestFile.write(tree.path("rules.yaml"), rules)
        TestFile.write(tree.path("in/a"), "x")
    }

    private static func run(_ tree: borrowing TemporaryTree, _ arguments: [String]) -> (
        status: Int32?, output: String, error: String
    ) {
        JournalCommand.run(tree, [arguments[0], "--rules", "rules.yaml"] + arguments.dropFirst())
    }

    @Test func `without an instance only the rule that needs the variable is refused`() {
        withTempTree { tree in
            Self.make(tree)
            let plain = Self.run(tree, ["apply", "plain", "in/a"])
            #expect(plain.status == 0, "\(plain.error)")
            #expect(
                plain.error.contains("warning: the environment variable 'HOOK_SECRET' is not set"), "\(plain.error)")
            let hook = Self.run(tree, ["apply", "hook", "in/a"])
            #expect(hook.status == 3)
            #expect(hook.error.contains("error: the rule 'hook' needs an environment variable"), "\(hook.error)")
            let explained = Self.run(tree, ["explain", "in/a"])
            #expect(explained.status == 0, "\(explained.error)")
            #expect(explained.output.contains("plain") && !explained.output.contains("hook"))
            #expect(Self.run(tree, ["explain", "--rule", "hook", "in/a"]).status == 3)
            let check = RunningProgram.alight(["check", "rules.yaml"], in: tree.root, output: "check")
            #expect(check.wait() == 3)
        }
    }

    @Test func `while an instance runs, its variables are used`() {
        withTempTree { tree in
            Self.make(tree)
            let program = RunningProgram.alight(
                ["run", "rules.yaml", "--journal", "journal.db"],
                in: tree.root, environment: ["HOOK_SECRET": "=word="], output: "alight")
            #expect(program.waitUntilReady(), "\(program.error)")
            let hook = Self.run(tree, ["apply", "hook", "in/a"])
            #expect(hook.status == 0, "\(hook.error)")
            #expect(!hook.error.contains("warning"), "\(hook.error)")
            #expect(Deadline.wait { program.output.contains("hook =word=") }, "\(program.output)")
            let explained = Self.run(tree, ["explain", "in/a"])
            #expect(explained.output.contains("hook =word="), "\(explained.output)")
            #expect(program.stop() == 0)
            #expect(Self.run(tree, ["apply", "hook", "in/a"]).status == 3)
        }
    }
}
