import Glibc
import System
import Testing
import TestKit

/// `alight import` and `alight new`, as the built program: the rules that they write run.
struct ImportCommandTests {
    private static func alight(_ tree: borrowing TemporaryTree, _ arguments: [String]) -> RunningProgram {
        let program = RunningProgram.alight(arguments, in: tree.root, output: "output")
        _ = program.wait()
        return program
    }

    private static func start(_ tree: borrowing TemporaryTree) -> RunningProgram {
        let program = RunningProgram.alight(
            ["run", "rules.yaml", "--journal", ":memory:"], in: tree.root, output: "log")
        #expect(Deadline.wait { program.error.contains("ready: watching") || program.exitStatus() != nil })
        return program
    }

    private static func end(_ program: RunningProgram) {
        #expect(program.stop() == 0)
    }

    @Test func `an imported incron table runs`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in/deep/.hidden"))
            let root = tree.root.description
            TestFile.write(
                tree.path("table"),
                """
                # of a user
                \(root)/in IN_CLOSE_WRITE,IN_MOVED_TO /bin/sh -c "printf '%s|' $# $@ >> \(root)/out"
                \(root)/gone IN_DELETE,IN_MOVED_FROM /bin/cp \(root)/table \(root)/was-$#

                """)
            TestFile.write(tree.path("gone/x"), "x")
            #expect(Self.alight(tree, ["import", "incrontab", "table", "--output", "rules.yaml"]).exitStatus() == 0)
            let program = Self.start(tree)
            TestFile.write(tree.path("in/deep/.hidden/no"), "x")
            TestFile.write(tree.path("in/deep/a $(touch INJECTED) 'b'"), "x")
            let (out, expected) = (tree.path("out"), "a $(touch INJECTED) 'b'|\(root)/in/deep|")
            #expect(Deadline.wait { TestFile.text(out) == expected })
            TestFile.write(tree.path("in/.dot.tmp"), "x")
            #expect(Deadline.wait { TestFile.text(out) == expected + ".dot.tmp|\(root)/in|" })
            _ = tree.path("gone/x").withCString { unlink($0) }
            let copy = tree.path("was-x")
            #expect(Deadline.wait { TestFile.exists(copy) })
            Self.end(program)
            let injected = tree.path("INJECTED")
            #expect(!TestFile.exists(injected))
        }
    }

    @Test func `an existing file is not overwritten, and a missing table is an error`() {
        withTempTree { tree in
            let rules = tree.path("rules.yaml")
            TestFile.write(rules, "mine")
            TestFile.write(tree.path("table"), "/in IN_CREATE /bin/echo\n")
            let program = Self.alight(tree, ["import", "incrontab", "table", "--output", "rules.yaml"])
            #expect(program.exitStatus() == 1)
            #expect(program.error.contains("error: cannot create 'rules.yaml': File exists\n    help: "))
            #expect(TestFile.text(rules) == "mine")
            let missing = Self.alight(tree, ["import", "incrontab", "nothing"])
            #expect(missing.exitStatus() == 2)
            #expect(missing.error.contains("error: cannot read 'nothing': No such file or directory"))
            #expect(Self.alight(tree, ["new", "--output", "rules.yaml"]).exitStatus() == 1)
            #expect(TestFile.text(rules) == "mine")
        }
    }

    @Test func `a first rule runs`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let words = ["--event", "created", "--name", "mine", "--output", "rules.yaml", "--exec"]
            let copy = tree.path("copy")
            let made = Self.alight(tree, ["new", "in"] + words + ["cp", "${path}", copy.description])
            #expect(made.exitStatus() == 0)
            let check = Self.alight(tree, ["check", "rules.yaml"])
            #expect(check.output.contains("rule 'mine' (rules.yaml:3:5): created → exec"))
            let program = Self.start(tree)
            TestFile.write(tree.path("in/a"), "hello")
            #expect(Deadline.wait { TestFile.text(copy) == "hello" })
            Self.end(program)
        }
    }

    @Test(arguments: ["log", "copy", "move"])
    func `a first rule with a built-in handler is valid`(handler: String) {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let made = Self.alight(tree, ["new", "in", "--use", handler, "--output", "rules.yaml"])
            #expect(made.exitStatus() == 0)
            let check = Self.alight(tree, ["check", "rules.yaml"])
            #expect(check.exitStatus() == 0 && check.error.isEmpty, "\(check.error)")
        }
    }

    @Test func `a parameter without an example in the plugin is named, and left empty`() {
        withTempTree { tree in
            TestFile.write(
                tree.path("plugins/send/plugin.yaml"),
                """
                name: send
                protocol: [1]
                types: [directory]
                events: [deleted]
                parameters:
                  required: [host, key, to]
                  properties:
                    host: { type: string, minLength: 1 }
                    key: { type: string, writeOnly: true }
                    to: { type: string, x-alight: destination, examples: [sent/] }
                """)
            TestFile.write(tree.path("plugins/send/send"), Array("#!/bin/sh\n".utf8), mode: 0o755)
            let made = Self.alight(tree, ["new", "in", "--use", "send", "--output", "rules.yaml"])
            #expect(made.exitStatus() == 0)
            let warning = "warning: fill in 'host', 'key': the handler has no example"
            #expect(made.error.contains(warning), "\(made.error)")
            let text = TestFile.text(tree.path("rules.yaml")) ?? ""
            for line in ["events: [deleted]", "types: [directory]", "host:\n", "to: \"~/in/sent/\""] {
                #expect(text.contains(line), "\(text)")
            }
            let check = Self.alight(tree, ["check", "rules.yaml"])
            #expect(check.exitStatus() == 3)
            #expect(check.error.contains("'host' must be a string, not null"), "\(check.error)")
        }
    }

    @Test func `a destination is in the directory, and two rules for it have different names`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            TestFile.makeDirectory(tree.path("rules"))
            for (file, use) in [("a", "move"), ("b", "move"), ("c", "copy")] {
                let made = Self.alight(tree, ["new", "in", "--use", use, "--output", "rules/\(file).yaml"])
                #expect(made.exitStatus() == 0)
            }
            let texts = ["a", "b", "c"].map { TestFile.text(tree.path("rules/\($0).yaml")) ?? "" }
            for (text, name) in zip(texts, ["in-move", "in-move-2", "in-copy"]) {
                #expect(text.contains("name: \(name)\n") && text.contains("to: \"~/in/done/"), "\(text)")
            }
            TestFile.write(tree.path("in/a.txt"), "")
            let rules = ["rules: [{ path: in/*, existing: process, action: { use: move, with: { to: done/ } } }]"]
            TestFile.write(tree.path("rules.yaml"), rules[0])
            let dry = Self.alight(tree, ["run", "rules.yaml", "--once", "--dry-run", "--journal", ":memory:"])
            #expect(dry.exitStatus() == 0 && dry.output.contains("\"to\":\"\(tree.path("done"))/\""), "\(dry.output)")
        }
    }

    @Test func `a usage error of alight new is reported`() {
        withTempTree { tree in
            let event = Self.alight(tree, ["new", "--event", "cretaed"])
            #expect(event.exitStatus() == 2)
            #expect(event.error.contains("unknown event 'cretaed'\n    help: write 'created'"))
            let handler = Self.alight(tree, ["new", "--use", "mvoe"])
            #expect(handler.exitStatus() == 2 && handler.error.contains("help: "))
            let far = Self.alight(tree, ["new", "--use", "nosuch"])
            #expect(far.exitStatus() == 2)
            #expect(far.error.contains("no handler or plugin 'nosuch'\n    help: built-in handlers: "), "\(far.error)")
            let refused = Self.alight(tree, ["new", "--use", "copy", "--event", "deleted"])
            #expect(refused.exitStatus() == 2)
            let refusal = "'copy' does not support the event 'deleted'\n    help: "
            #expect(refused.error.contains(refusal), "\(refused.error)")
            let both = Self.alight(tree, ["new", "--use", "log", "--exec", "cp"])
            #expect(both.exitStatus() == 2 && both.error.contains("'--use' cannot be combined with '--exec'"))
        }
    }
}
