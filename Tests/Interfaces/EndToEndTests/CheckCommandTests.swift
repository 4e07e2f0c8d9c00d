import System
import Testing
import TestKit

/// `alight check`, as the built program: errors outside of the rules file.
struct CheckCommandTests {
    private static func alight(
        _ tree: borrowing TemporaryTree, _ arguments: [String], environment: [String: String] = [:]
    ) -> RunningProgram {
        let program = RunningProgram.alight(arguments, in: tree.root, environment: environment, output: "output")
        _ = program.wait()
        return program
    }

    @Test func `an error in a plugin's description is reported there, once`() {
        withTempTree { tree in
            TestFile.write(
                tree.path("plugins/send/plugin.yaml"),
                """
                name: send
                protocol: [1]
                parameters:
                  properties:
                    size:
                      type: integr
                """)
            TestFile.write(tree.path("plugins/send/send"), Array("#!/bin/sh\n".utf8), mode: 0o755)
            TestFile.write(tree.path("plugins/torn/plugin.yaml"), "name: torn\nevents: [created\n")
            TestFile.write(
                tree.path("rules.yaml"),
                """
                rules:
                  - { name: a, path: in/*, action: send }
                  - { name: b, path: in/*, action: send }
                  - { name: c, path: in/*, action: torn }
                """)
            let check = Self.alight(tree, ["check", "rules.yaml"])
            #expect(check.exitStatus() == 3)
            let errors = check.error.split(separator: "\n").filter { $0.contains("error: ") }
            #expect(
                errors == [
                    "\(tree.path("plugins/send/plugin.yaml")):6:7: error: plugin 'send': "
                        + "'parameters.properties.size.type' is 'integr'",
                    "\(tree.path("plugins/torn/plugin.yaml")):2:9: error: plugin 'torn': this '[' is not closed",
                ], "\(check.error)")
            #expect(check.error.contains("help: write 'integer'"), "\(check.error)")
            #expect(!check.error.contains("rules.yaml:") && !check.error.contains("built-in handlers"))
        }
    }

    @Test(arguments: [["run", "rules.yaml", "--once"], ["apply", "a", "in/a.txt", "--rules", "rules.yaml"]])
    func `a journal in a missing directory is refused unless it is the default one`(command: [String]) {
        withTempTree { tree in
            TestFile.write(tree.path("in/a.txt"), "")
            TestFile.write(tree.path("rules.yaml"), "rules: [{ name: a, path: in/*, action: log }]")
            let typo = tree.path("typo/deep/x.db").description
            let refused = Self.alight(tree, command + ["--journal", typo])
            #expect(refused.exitStatus() == 1)
            #expect(
                refused.error.contains(
                    "error: the directory '\(tree.path("typo/deep"))' of the journal does not exist"),
                "\(refused.error)")
            #expect(!TestFile.exists(tree.path("typo")))
            let accepted = Self.alight(
                tree, command, environment: ["XDG_STATE_HOME": tree.path("a/b").description])
            #expect([0, 4].contains(accepted.exitStatus()), "\(accepted.error)")
            #expect(TestFile.exists(tree.path("a/b/alight/journal.db")))
        }
    }
}
