import Glibc
import System
import Testing
import TestKit

/// `alight undo`, as the built program.
struct UndoCommandTests {
    private static func make(_ tree: borrowing TemporaryTree, _ rules: String, _ files: [String]) {
        TestFile.write(tree.path("rules/rules.yaml"), rules)
        TestFile.makeDirectory(tree.path("in"))
        for name in files { TestFile.write(tree.path(name), "text of \(name)") }
    }

    /// Returns a rule for the existing files with the suffix.
    private static func rule(_ name: String, _ suffix: String, _ keys: String...) -> String {
        """
          - name: \(name)
            path: ../in/*.\(suffix)
            settle: 100ms
            existing: process
            \(keys.joined(separator: "\n    "))

        """
    }

    private static let sort =
        "rules:\n" + rule("sort", "txt", #"action: { use: move, with: { to: "../out/${name}" } }"#)

    /// Handles the existing files and returns the lines of the output.
    private static func once(_ tree: borrowing TemporaryTree) -> [Substring] {
        let (status, output, error) = JournalCommand.run(tree, ["run", "--once"])
        #expect(status == 0 || status == 4, "\(error)")
        return output.split(separator: "\n")
    }

    private static func undo(_ tree: borrowing TemporaryTree, _ arguments: [String]) -> (
        status: Int32?, output: String, error: String
    ) { JournalCommand.run(tree, ["undo"] + arguments) }

    private static func ids(_ tree: borrowing TemporaryTree) -> [String] {
        JournalCommand.run(tree, ["jobs", "--limit", "0"]).output.split(separator: "\n").map { String($0.prefix(26)) }
    }

    @Test func `files are moved back, no rule receives an event for it, and a second undo is refused`() {
        withTempTree { tree in
            Self.make(tree, Self.sort, ["in/a.txt", "in/b.txt"])
            #expect(Self.once(tree).count == 2)
            let dry = Self.undo(tree, ["--since", "10m", "--dry-run"])
            #expect(dry.status == 0 && dry.output.contains("would move '\(tree.path("out/a.txt"))' back"), "\(dry)")
            #expect(TestFile.text(tree.path("out/a.txt")) != nil)
            let (status, output, error) = Self.undo(tree, ["--since", "10m"])
            #expect(status == 0, "\(error)")
            #expect(output.split(separator: "\n").count == 3, "two files, and the created directory: \(output)")
            #expect(TestFile.text(tree.path("in/a.txt")) == "text of in/a.txt")
            #expect(!TestFile.exists(tree.path("out")))
            let id = Self.ids(tree)[0]
            let again = Self.undo(tree, [id])
            #expect(again.status == 1 && again.error.contains("was undone at "), "\(again)")
            #expect(Self.undo(tree, ["--since", "10m"]).status == 4)
            #expect(JournalCommand.run(tree, ["show", id]).output.contains("    undone: "))
            #expect(JournalCommand.run(tree, ["show", id, "--json"]).output.contains("\"undone\":true"))
            #expect(JournalCommand.run(tree, ["show", id]).output.contains("job \(id): succeeded, undone\n"))
            let listed = JournalCommand.run(tree, ["jobs"]).output
            #expect(listed.split(separator: "\n").allSatisfy { $0.contains("\tundone\tsort\t") }, "\(listed)")
            #expect(JournalCommand.run(tree, ["jobs", "--json"]).output.contains("\"undone\":\"all\""))
            #expect(Self.once(tree) == [], "what came back is no news")
            TestFile.write(tree.path("in/a.txt"), "newer and longer text")
            #expect(Self.once(tree).count == 1)
        }
    }

    @Test func `the directory that a failed attempt made is removed`() {
        withTempTree { tree in
            let rule = Self.rule(
                "never", "bin", "retry: { attempts: 1 }", "action: { use: extract, with: { to: ../never/made/ } }")
            Self.make(tree, "rules:\n" + rule, ["in/a.bin"])
            #expect(JournalCommand.run(tree, ["run", "--once"]).status != 0)
            #expect(TestFile.exists(tree.path("never/made")))
            let (status, output, error) = Self.undo(tree, ["--since", "10m"])
            #expect(status == 0, "\(output)\(error)")
            #expect(!TestFile.exists(tree.path("never")), "\(output)")
        }
    }

    @Test func `a running instance does the undo, and no rule receives an event for it`() {
        withTempTree { tree in
            Self.make(
                tree,
                Self.sort
                    + "  - { name: see, path: ../in/*, settle: 100ms, existing: process, priority: 1, action: log }\n"
                    + "  - { name: end, path: ../end/*, settle: 100ms, events: [deleted, created], action: log }\n",
                ["in/a.txt", "end/x"])
            let program = RunningProgram.alight(["run", "--journal", "journal.db"], in: tree.root, output: "alight")
            let moved = tree.path("out/a.txt")
            #expect(Deadline.wait { TestFile.exists(moved) }, "\(program.error)")
            #expect(JournalCommand.awaitSucceeded(2, in: tree.path("journal.db")))
            let (status, output, error) = Self.undo(tree, ["--rule", "sort"])
            #expect(status == 0 && output.contains("undone: moved "), "\(error)")
            #expect(TestFile.text(tree.path("in/a.txt")) == "text of in/a.txt")
            // Later changes are reported, and those of the undo are not.
            TestFile.write(tree.path("end/y"), "y")
            #expect(Deadline.wait { program.output.contains("end: created") }, "\(program.output)")
            #expect(program.output.lines(of: "in/a.txt") == 2, "\(program.output)")
            #expect(program.stop() == 0)
            #expect(Self.once(tree).filter { !$0.contains("end:") } == [])
        }
    }

    @Test func `a file that was changed since stays with the reason, and can be undone later`() {
        withTempTree { tree in
            Self.make(tree, Self.sort, ["in/a.txt", "in/b.txt", "in/c.txt"])
            #expect(Self.once(tree).count == 3)
            TestFile.write(tree.path("in/a.txt"), "another")
            TestFile.write(tree.path("out/b.txt"), "changed by somebody")
            let (status, output, error) = Self.undo(tree, ["--since", "10m"])
            #expect(status == 5)
            #expect(output.contains("in/c.txt") && TestFile.text(tree.path("in/c.txt")) != nil, "\(output)")
            #expect(error.contains("'\(tree.path("in/a.txt"))' exists again"), "\(error)")
            #expect(error.contains("'\(tree.path("out/b.txt"))' has changed since"), "\(error)")
            #expect(TestFile.text(tree.path("in/a.txt")) == "another" && TestFile.text(tree.path("in/b.txt")) == nil)
            _ = tree.path("in/a.txt").withCString { unlink($0) }
            let again = Self.undo(tree, ["--since", "10m"])
            #expect(again.status == 5 && again.output.contains("in/a.txt"), "\(again)")
            #expect(TestFile.text(tree.path("in/a.txt")) == "text of in/a.txt")
        }
    }

    @Test func `steps, conflicts, links and the trash are undone, the last one first`() {
        withTempTree { tree in
            Self.make(
                tree,
                """
                rules:
                  - name: steps
                    path: ../in/*.txt
                    settle: 100ms
                    existing: process
                    action:
                      - { use: copy, with: { to: "../out/copy-${name}" } }
                      - { use: link, with: { to: "../out/link-${name}", kind: symbolic } }
                      - { use: move, with: { to: "../out/${name}", on_conflict: rename_existing } }
                  - name: old
                    path: ../in/*.old
                    settle: 100ms
                    existing: process
                    action: trash

                """, ["in/a.txt", "in/b.old", "out/a.txt"])
            #expect(Self.once(tree).count == 2)
            #expect(
                TestFile.text(tree.path("out/a.txt")) == "text of in/a.txt"
                    && TestFile.text(tree.path("in/b.old")) == nil)
            let (status, output, error) = Self.undo(tree, ["--since", "10m"])
            #expect(status == 0, "\(error)")
            #expect(TestFile.text(tree.path("in/a.txt")) == "text of in/a.txt", "\(output)")
            #expect(TestFile.text(tree.path("out/a.txt")) == "text of out/a.txt")
            #expect(TestFile.text(tree.path("in/b.old")) == "text of in/b.old")
            #expect(TestFile.names(in: tree.path("out")) == [Array("a.txt".utf8)])
            #expect(Self.once(tree) == [])
        }
    }

    /// Packs `src` and runs a rule that unpacks it.
    private static func unpack(_ tree: borrowing TemporaryTree, _ name: String) {
        let made = RunningProgram(
            "/usr/bin/tar", ["-cf", "in/\(name).tar", "-C", "src", "."], in: tree.root, output: tree.path("tar"))
        #expect(made.wait() == 0)
        _ = once(tree)
        #expect(TestFile.text(tree.path("in/\(name)/sub/deep/c")) == "text of src/sub/deep/c")
    }

    @Test func `a failed job and its 'on_failure' are undone`() {
        withTempTree { tree in
            let rule = Self.rule(
                "sort", "txt", "retry: false", "action: [{ use: copy, with: { to: ../out/ } }, { shell: exit 65 }]",
                "on_failure: { use: move, with: { to: ../failed/ } }")
            Self.make(tree, "rules:\n" + rule, ["in/a.txt"])
            #expect(JournalCommand.run(tree, ["run", "--once"]).status == 5)
            #expect(TestFile.exists(tree.path("failed/a.txt")))
            let (status, output, error) = Self.undo(tree, ["--rule", "sort"])
            #expect(status == 0, "\(error)")
            #expect(output.split(separator: "\n").count == 4, "two files and two created directories: \(output)")
            #expect(TestFile.text(tree.path("in/a.txt")) == "text of in/a.txt")
            #expect(!TestFile.exists(tree.path("failed")) && !TestFile.exists(tree.path("out")))
        }
    }

    @Test func `unpacked files are removed, except changed or added ones, which are named`() {
        withTempTree { tree in
            Self.make(
                tree,
                "rules:\n" + Self.rule("unpack", "tar", "action: [{ use: extract, with: { to: ../in/ } }, trash]")
                    + "  - { name: see, path: ../in/*/**, settle: 100ms, events: [created, deleted], action: log }\n",
                ["src/a", "src/sub/b", "src/sub/deep/c", "src/other/d"])
            Self.unpack(tree, "one")
            let (status, output, error) = Self.undo(tree, ["--rule", "unpack"])
            #expect(status == 0 && output.contains("undone: unpacked '"), "\(output)\(error)")
            #expect(TestFile.names(in: tree.path("in")) == [Array("one.tar".utf8)])
            #expect(Self.once(tree) == [], "neither the archive nor what is gone is news")

            _ = tree.path("in/one.tar").withCString { unlink($0) }
            Self.unpack(tree, "two")
            TestFile.write(tree.path("in/two/sub/b"), "changed")
            TestFile.write(tree.path("in/two/sub/new"), "added")
            let dry = Self.undo(tree, ["--rule", "unpack", "--dry-run"])
            let again = Self.undo(tree, ["--rule", "unpack"])
            let (changed, added) = (tree.path("in/two/sub/b"), tree.path("in/two/sub/new"))
            let left = "changed or added since, and not removed: '\(changed)', '\(added)'\n"
            for result in [dry, again] { #expect(result.status == 5 && result.error.contains(left), "\(result)") }
            #expect(TestFile.names(in: tree.path("in/two")) == [Array("sub".utf8)])
            #expect(Set(TestFile.names(in: tree.path("in/two/sub"))) == [Array("b".utf8), Array("new".utf8)])
            #expect(TestFile.exists(tree.path("in/two.tar")))
            let listed = JournalCommand.run(tree, ["jobs", "--rule", "unpack"]).output
            #expect(listed.contains("\tpartly undone\tunpack\t"), "\(listed)")
        }
    }

    @Test func `a result that cannot be undone is named`() {
        withTempTree { tree in
            let rule = Self.rule(
                "pack", "txt", #"action: [{ use: archive, with: { to: "../out/${name}.tar" } }, trash]"#)
            Self.make(tree, "rules:\n" + rule, ["in/a.txt", "out/there"])
            #expect(Self.once(tree).count == 1)
            let (status, output, error) = Self.undo(tree, ["--since", "10m"])
            #expect(TestFile.text(tree.path("in/a.txt")) == "text of in/a.txt", "\(output)")
            #expect(status == 5 && error.contains("keeps '\(tree.path("out/a.txt.tar"))'"), "\(error)")
            #expect(TestFile.exists(tree.path("out/a.txt.tar")))
        }
    }

    @Test func `jobs that cannot be undone are refused with a remedy`() {
        withTempTree { tree in
            Self.make(
                tree, "rules:\n  - { path: ../in/*, settle: 100ms, existing: process, action: log }\n", ["in/a"])
            #expect(Self.once(tree).count == 1)
            #expect(Self.undo(tree, []).status == 2)
            #expect(Self.undo(tree, ["abcd", "--since", "1h"]).status == 2)
            #expect(Self.undo(tree, ["--since", "soon"]).status == 2)
            let none = Self.undo(tree, [Self.ids(tree)[0]])
            #expect(none.status == 1 && none.error.contains("has done nothing that can be undone"), "\(none)")
            #expect(Self.undo(tree, ["ZZZZZ"]).status == 1)
        }
    }

    /// Returns the fenced block of a language in docs/undo.md.
    private static func block(_ language: String) -> String {
        let page = TestFile.text(Places.checkout.appending("docs/undo.md")) ?? ""
        let lines = page.split(separator: "\n", omittingEmptySubsequences: false)
        let start = lines.firstIndex(of: "```\(language)").map { $0 + 1 } ?? lines.endIndex
        return lines[start...].prefix { $0 != "```" }.map { "\($0)\n" }.joined()
    }

    @Test func `the example of the page works as described`() {
        withTempTree { tree in
            let rules = Self.block("yaml").replacing("~/", with: "\(tree.root)/")
            #expect(rules.contains("use: move"))
            Self.make(tree, rules.replacing("    settle:", with: "    existing: process\n    settle:"), [])
            for name in ["Inbox/offer.pdf", "Inbox/bill.pdf"] { TestFile.write(tree.path(name), name) }
            #expect(Self.once(tree).count == 2)
            TestFile.write(tree.path("Sorted/2026/bill.pdf"), "paid")
            let (status, output, error) = Self.undo(tree, ["--since", "10m"])
            #expect(status == 5)
            let root = "\(tree.root)"
            func plain(_ text: String) -> [String] {
                text.replacing(root, with: "~").split(separator: "\n").map(String.init)
                    .filter { !$0.hasPrefix("$") }
                    .map { $0.replacing(/01[0-9A-Z]{24}/, with: "ID") }.sorted()
            }
            let year = TestFile.text(tree.path("Sorted/2026/bill.pdf")) == "paid"
            #expect(year && plain(output + error) == plain(Self.block("console")), "\(output)\(error)")
        }
    }
}

extension String {
    /// Returns the number of lines that contain a text.
    fileprivate func lines(of part: String) -> Int { split(separator: "\n").count { $0.contains(part) } }
}
