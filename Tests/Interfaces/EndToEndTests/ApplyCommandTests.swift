import Foundation
import Glibc
import System
import Testing
import TestKit

/// `alight apply`, as the built program.
struct ApplyCommandTests {
    private static let rules = """
        rules:
          - name: notes
            path: in/**/*.txt
            events: [deleted]
            settle: 100ms
            retry: { attempts: 1 }
            action:
              shell: |
                case "$ALIGHT_PATH" in */bad*) echo no good >&2; exit 65;; */slow*) sleep 60;; esac
                printf '%s\\n' "$ALIGHT_PATH" >>out/list
          - name: others
            path: in/*
            enabled: false
            action: log
        """

    private static func make(_ tree: borrowing TemporaryTree, _ names: [String]) {
        // A program runs in its own directory.
        TestFile.write(
            tree.path("rules.yaml"), rules.replacing("out/list", with: "\(tree.path("out/list"))"))
        TestFile.makeDirectory(tree.path("out"))
        TestFile.makeDirectory(tree.path("in"))
        for name in names { TestFile.write(tree.path("in/\(name)"), "x") }
    }

    private static func apply(_ tree: borrowing TemporaryTree, _ arguments: [String]) -> (
        status: Int32?, output: String, error: String
    ) {
        JournalCommand.run(tree, ["apply", "--rules", "rules.yaml"] + arguments)
    }

    /// Returns the files that the rule was run for, relative to the directory of the rule.
    private static func handled(_ tree: borrowing TemporaryTree) -> [String] {
        let text = TestFile.text(tree.path("out/list")) ?? ""
        return text.split(separator: "\n").map { String($0.dropFirst("\(tree.path("in/"))".utf8.count)) }.sorted()
    }

    private static func start(_ tree: borrowing TemporaryTree) -> RunningProgram {
        let program = RunningProgram.alight(
            ["run", "rules.yaml", "--journal", "journal.db"], in: tree.root, output: "alight")
        #expect(program.waitUntilReady(), "\(program.error)")
        return program
    }

    private static func states(_ tree: borrowing TemporaryTree) -> [String] {
        let (_, output, _) = JournalCommand.run(tree, ["jobs", "--limit", "0"])
        return output.split(separator: "\n").map { String($0.split(separator: "\t")[1]) }.sorted()
    }

    @Test func `root refuses a path through another user's link`() {
        guard geteuid() == 0 else {
            print("skipped: needs root")
            return
        }
        withTempTree { tree in
            Self.make(tree, ["x/a.txt"])
            _ = tree.path("in/link").withCString { link in symlink("x", link) }
            _ = tree.path("in/link").withCString { lchown($0, 65534, 65534) }
            for arguments in [["notes", "in/link/a.txt"], ["--force", "notes", "in/link/a.txt"]] {
                let (status, _, error) = Self.apply(tree, arguments)
                #expect(status == 1)
                #expect(error.contains("root does not follow the symbolic link '\(tree.path("in/link"))'"), "\(error)")
                #expect(Self.handled(tree).isEmpty)
            }
        }
    }

    @Test func `a rule is run for the matching files below a directory, whatever its events`() {
        withTempTree { tree in
            Self.make(tree, ["a.txt", "b.jpg", "x/c.txt", "x/y/d.txt", "x/y/e.jpg", "odd\n\u{1B}.txt"])
            let (status, _, error) = Self.apply(tree, ["notes", "in", "in/a.txt"])
            #expect(status == 0, "\(error)")
            #expect(error.hasSuffix("4 files: 4 done, 0 failed\n"), "\(error)")
            #expect(Self.handled(tree).count == 5, "the name with a newline has two lines")
            #expect(Self.states(tree) == Array(repeating: "succeeded", count: 4))
            let (_, jobs, _) = JournalCommand.run(tree, ["jobs", "--path", "in/a.txt", "--json"])
            #expect(jobs.contains("\"attempt\":1"))
            let id = jobs.split(separator: "\"id\":\"").dropFirst().first?.prefix(26) ?? ""
            #expect(JournalCommand.run(tree, ["show", String(id)]).output.contains("requested by hand"))
        }
    }

    @Test func `the default rules are those of the running instance`() {
        withTempTree { tree in
            Self.make(tree, ["a.txt"])
            TestFile.makeDirectory(tree.path("elsewhere"))
            let program = Self.start(tree)
            for command in [["apply", "notes", "../in/a.txt"], ["explain", "../in/a.txt", "--rule", "notes"]] {
                let asked = RunningProgram.alight(
                    command + ["--journal", "../journal.db"], in: tree.path("elsewhere"),
                    environment: JournalCommand.environment)
                #expect(asked.wait() == 0, "\(asked.error)")
            }
            #expect(Self.handled(tree) == ["a.txt"])
            #expect(program.stop() == 0)
        }
    }

    @Test func `a running instance does the work, and is followed until it is done`() {
        withTempTree { tree in
            Self.make(tree, ["a.txt", "x/b.txt", "bad.txt"])
            let program = Self.start(tree)
            let (status, output, error) = Self.apply(tree, ["notes", "in"])
            #expect(status == 5, "\(error)")
            #expect(error.hasSuffix("3 files: 2 done, 1 failed\n"), "\(error)")
            #expect(output.hasSuffix(" notes: \(tree.path("in/bad.txt")): failed: no good\n"), "\(output)")
            #expect(Self.handled(tree) == ["a.txt", "x/b.txt"])
            #expect(program.stop() == 0)
            #expect(Self.states(tree) == ["failed", "succeeded", "succeeded"])
        }
    }

    @Test func `failures are reported, also by the exit status`() {
        withTempTree { tree in
            Self.make(tree, ["a.txt", "bad.txt"])
            let (status, output, error) = Self.apply(tree, ["notes", "in"])
            #expect(status == 5)
            #expect(output.contains(" notes: created \(tree.path("in/bad.txt")): failed in "), "\(output)")
            #expect(output.contains(": no good (gave up; retry with 'alight retry "), "\(output)")
            #expect(error.hasSuffix("2 files: 1 done, 1 failed\n"), "\(error)")
        }
    }

    @Test func `a file that the rule does not match is refused, unless it is forced`() {
        withTempTree { tree in
            Self.make(tree, ["a.jpg", "b.txt"])
            var result = Self.apply(tree, ["notes", "in/a.jpg", "in/none.txt", "in/b.txt"])
            #expect(result.status == 1)
            #expect(
                result.error.hasPrefix(
                    """
                    error: the rule 'notes' does not match '\(tree.path("in/a.jpg"))'
                        help: 'alight explain' shows why; --force runs it anyway
                    error: '\(tree.path("in/none.txt"))' does not exist

                    """), "\(result.error)")
            #expect(Self.handled(tree) == ["b.txt"])
            result = Self.apply(tree, ["notes", "--force", "in/a.jpg"])
            #expect(result.status == 0, "\(result.error)")
            #expect(Self.handled(tree) == ["a.jpg", "b.txt"])
        }
    }

    private static let mistakes: [([String], Int32, String)] = [
        (["note", "in"], 2, "error: there is no rule 'note'\n    help: write 'notes'; the rules are notes, others\n"),
        (["others", "in"], 3, "error: the rule 'others' is disabled"), (["notes"], 2, "Missing expected argument"),
        (["notes", "in/empty"], 4, "the rule 'notes' matches none of these files\n"),
        (["notes", "--jobs", "0", "in"], 2, "is not between 1 and 4096"), (["notes", ""], 2, "a path is empty"),
    ]

    @Test(arguments: mistakes)
    func `a usage error is reported`(_ arguments: [String], _ expected: Int32, _ message: String) {
        withTempTree { tree in
            Self.make(tree, ["empty/a.jpg"])
            let (status, _, error) = Self.apply(tree, arguments)
            #expect(status == expected)
            #expect(error.contains(message), "\(error)")
            #expect(Self.handled(tree).isEmpty)
        }
    }

    @Test func `an interrupt leaves the rest to the next run`() {
        withTempTree { tree in
            Self.make(tree, ["slow1.txt", "slow2.txt", "a.txt"])
            let program = RunningProgram.alight(
                ["apply", "--rules", "rules.yaml", "--journal", "journal.db", "notes", "in"], in: tree.root)
            // The rule runs one job at a time, and 'a' comes first.
            #expect(Deadline.wait { program.error.contains("1 of 3, ") }, "\(program.error)")
            program.signal(SIGINT)
            #expect(Deadline.wait { program.error.contains("repeat the signal to stop at once") })
            program.signal(SIGINT)
            #expect(program.wait() == 1)
            #expect(program.error.hasSuffix("1 of 3 files are done; 2 files left to the next 'alight run'\n"))
            #expect(Self.states(tree) == ["pending", "pending", "succeeded"])
        }
    }

    @Test func `an interrupt stops following, but not the jobs`() {
        withTempTree { tree in
            Self.make(tree, ["slow1.txt", "a.txt"])
            let alight = Self.start(tree)
            let program = RunningProgram.alight(
                ["apply", "--rules", "rules.yaml", "--journal", "journal.db", "notes", "in"], in: tree.root)
            #expect(Deadline.wait { program.error.contains("1 of 2") }, "\(program.error)")
            program.signal(SIGINT)
            #expect(program.wait() == 0)
            #expect(program.error.hasSuffix("1 of 2 files are done; no longer following; the jobs continue\n"))
            #expect(Self.states(tree) == ["running", "succeeded"])
            alight.signal(SIGTERM)
            #expect(Deadline.wait { alight.error.contains("repeat the signal to stop at once") })
            alight.signal(SIGTERM)
            #expect(alight.wait() == 1)
        }
    }

    @Test func `progress is a line for each tenth, or a bar on a terminal`() {
        withTempTree { tree in
            Self.make(tree, (0..<20).map { "\($0).txt" })
            let (_, _, error) = Self.apply(tree, ["notes", "in"])
            let lines = error.split(separator: "\n")
            #expect(lines.count == 11)
            #expect(
                lines.prefix(10).map { $0.prefix { $0 != "," } } == (1...10).map { Substring("\($0 * 2) of 20") },
                "\(error)")
            let text = JournalCommand.onTerminal(tree, width: 80, ["apply", "--rules", "rules.yaml", "notes", "in"])
            #expect(text.contains("\r\u{1B}[K[########################################] 20 of 20, "), "\(text)")
            #expect(text.hasSuffix("\r\u{1B}[K20 files: 20 done, 0 failed\n"), "\(text)")
        }
    }

    @Test func `a rule that was only applied treats existing files as known when it is first watched`() {
        withTempTree { tree in
            Self.make(tree, ["a.txt"])
            TestFile.write(
                tree.path("rules.yaml"),
                """
                rules:
                  - name: notes
                    path: in/*.txt
                    settle: 100ms
                    action: { use: log, with: { message: "${name}" } }
                """)
            #expect(Self.apply(tree, ["notes", "in"]).status == 0)
            TestFile.write(tree.path("in/between.txt"), "x")
            let program = Self.start(tree)
            TestFile.write(tree.path("in/later.txt"), "x")
            #expect(Deadline.wait { program.output.contains("later.txt") }, "\(program.error)")
            #expect(program.lines.count == 1, "\(program.output)")
            #expect(program.stop() == 0)
        }
    }
}
