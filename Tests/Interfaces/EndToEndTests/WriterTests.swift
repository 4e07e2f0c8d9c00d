import Glibc
import System
import Testing
import TestKit

/// The writing process of a file (S53), across reloads and restarts.
struct WriterTests {
    private static func rules(_ keys: String, action: String = "cat >>\"$ALIGHT_ROOT/../requests\"") -> String {
        """
        rules:
          - name: who
            path: ../in/*
            settle: 60ms
            retry: { attempts: 100, delay: 100ms }
            stdin: request
        \(keys)
            action: { shell: '\(action)' }

        """
    }

    private static func start(
        _ tree: borrowing TemporaryTree, _ rules: String, prefix: [String] = [], as name: String
    ) -> RunningProgram {
        for directory in ["in", "rules"] { TestFile.makeDirectory(tree.path(directory)) }
        TestFile.write(tree.path("rules/a.yaml"), rules)
        let words = prefix + [Places.alight.description, "run", "rules", "--journal", "journal.db"]
        let program = RunningProgram("/usr/bin/env", words, in: tree.root, output: tree.path(name))
        JournalFileTests.awaitReady(program)
        return program
    }

    private static func requests(_ root: PathBytes) -> [String] {
        (TestFile.text(root.appending("requests")) ?? "").split(separator: "\n").map(String.init)
    }

    /// Waits for `count` requests.
    private static func awaitReported(_ root: PathBytes, _ count: Int) -> Bool {
        Deadline.wait {
            let text = TestFile.read(root.appending("requests")) ?? []
            return text.count { $0 == UInt8(ascii: "\n") } >= count
        }
    }

    /// The part of a request that names this process as the writer.
    private static let ownProcess = "\"pid\":\(getpid())"

    @Test(.enabled(if: writerProblem == nil, "\(writerProblem ?? "")"))
    func `rules that start to ask for the writer receive it from then on`() {
        withTempTree { tree in
            let root = tree.root
            let program = Self.start(tree, Self.rules("    concurrency: 1"), as: "run")
            TestFile.write(tree.path("in/a"), "1")
            #expect(Self.awaitReported(root, 1), "\(program.error)")
            TestFile.write(tree.path("rules/a.yaml"), Self.rules("    by: true"))
            #expect(Deadline.wait { program.error.contains("reloaded: ") }, "\(program.error)")
            TestFile.write(tree.path("in/b"), "1")
            #expect(Self.awaitReported(root, 2), "\(program.error)")
            TestFile.write(tree.path("rules/a.yaml"), Self.rules("    by: false"))
            #expect(
                Deadline.wait { program.error.split(separator: "\n").count { $0.hasPrefix("reloaded: ") } == 2 },
                "\(program.error)")
            TestFile.write(tree.path("in/c"), "1")
            #expect(Self.awaitReported(root, 3), "\(program.error)")
            let requests = Self.requests(root)
            #expect(requests.map { $0.contains(Self.ownProcess) } == [false, true, false])
            #expect(requests.map { $0.contains("\"by\"") } == [false, true, false])
            #expect(!program.error.contains("warning"), "\(program.error)")
            JournalFileTests.stop(program)
        }
    }

    @Test(.enabled(if: writerProblem == nil, "\(writerProblem ?? "")"))
    func `a job that waits across a restart keeps its writer, also in alight show`() throws {
        try withTempTree { tree in
            let root = tree.root
            let action = "cat >>\"$ALIGHT_ROOT/../requests\"; test -e \"$ALIGHT_ROOT/../go\""
            let rules = Self.rules("    by: true\n    where: { by: \"*\" }", action: action)
            let first = Self.start(tree, rules, as: "first")
            TestFile.write(tree.path("in/a"), "1")
            #expect(Self.awaitReported(root, 1), "\(first.error)")
            first.signal(SIGKILL)
            #expect(first.wait() == 128 + SIGKILL)
            TestFile.write(tree.path("go"), "")
            let count = Self.requests(root).count
            let second = Self.start(tree, rules, as: "second")
            #expect(Self.awaitReported(root, count + 1), "\(second.error)")
            #expect(Deadline.wait { second.output.contains("succeeded") }, "\(second.output)")
            JournalFileTests.stop(second)
            let requests = Self.requests(root)
            #expect(requests.count == count + 1)
            #expect(requests.allSatisfy { $0.contains(Self.ownProcess) })
            let list = JournalCommand.run(tree, ["jobs"])
            let id = try #require(list.output.split(separator: "\t").first.map(String.init), "\(list)")
            let shown = JournalCommand.run(tree, ["show", id])
            #expect(shown.output.contains("(process \(getpid()), uid \(geteuid()), "), "\(shown)")
        }
    }

    @Test(.enabled(if: writerProblem == nil, "\(writerProblem ?? "")"))
    func `a path that waits for a slot across a restart keeps its writer`() {
        withTempTree { tree in
            let root = tree.root
            let action = "cat >>\"$ALIGHT_ROOT/../requests\"; until test -e \"$ALIGHT_ROOT/../go\"; do sleep 0.05; done"
            let rules = Self.rules("    concurrency: 1\n    where: { by: \"*\" }", action: action)
            let first = Self.start(tree, rules, as: "first")
            TestFile.write(tree.path("in/busy"), "1")
            #expect(Self.awaitReported(root, 1), "\(first.error)")
            TestFile.write(tree.path("in/a"), "1")
            let journal = tree.path("journal.db").description
            let isDue = withTempTree { other in
                Deadline.wait {
                    JournalCommand.run(other, ["jobs", "--state", "pending"], journal: journal).output.contains("in/a")
                }
            }
            #expect(isDue, "\(first.error)")
            first.signal(SIGKILL)
            #expect(first.wait() == 128 + SIGKILL)
            TestFile.write(tree.path("go"), "")
            let second = Self.start(tree, rules, as: "second")
            #expect(Deadline.wait { Self.requests(root).contains { $0.contains("in/a\"") } }, "\(second.error)")
            JournalFileTests.stop(second)
        }
    }

    @Test func `existing files have no writer`() {
        withTempTree { tree in
            let root = tree.root
            TestFile.write(tree.path("in/a"), "1")
            let program = Self.start(tree, Self.rules("    by: true\n    existing: process"), as: "run")
            #expect(Self.awaitReported(root, 1), "\(program.error)")
            #expect(Self.requests(root).allSatisfy { !$0.contains("\"by\"") })
            JournalFileTests.stop(program)
        }
    }

    @Test(
        .enabled(if: ScenarioRunner.ordinaryUserProblem == nil, "\(ScenarioRunner.ordinaryUserProblem ?? "")"))
    func `an ordinary user is warned once, across reloads too`() {
        withTempTree { tree in
            let root = tree.root
            #expect(root.withCString { chmod($0, 0o777) } == 0)
            let program = Self.start(
                tree, Self.rules("    by: true"), prefix: ScenarioRunner.asOrdinaryUser, as: "run")
            TestFile.write(tree.path("rules/a.yaml"), Self.rules("    by: true\n    priority: 1"))
            program.signal(SIGHUP)
            #expect(Deadline.wait { program.error.contains("reloaded: ") }, "\(program.error)")
            let warnings = program.error.split(separator: "\n").filter { $0.contains("CAP_SYS_ADMIN") }
            #expect(warnings.count == 1, "\(program.error)")
            JournalFileTests.stop(program)
        }
    }
}
