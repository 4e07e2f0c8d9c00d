import Glibc
import JournalFixtures
import Rules
import System
import Testing
import TestKit

/// Commands that read a journal leave nothing behind.
struct TracelessTests {
    /// The exit of the instance that left a journal.
    enum End: CaseIterable {
        case closed, killed
        /// Killed, and without the shared memory file, like a copy of the file and its log.
        case killedWithoutMemory
    }

    /// Creates the journal `kept/journal.db` with two jobs, as an instance leaves it.
    private static func leave(_ tree: borrowing TemporaryTree, _ end: End) {
        TestFile.makeDirectory(tree.path("kept"))
        let program = JournalFileTests.start(tree, "kept/journal.db", as: "first")
        JournalFileTests.awaitReady(program)
        for name in ["a", "b"] { TestFile.write(tree.path("in/\(name)"), "x") }
        #expect(Deadline.wait { program.lines.count == 2 }, "\(program.error)")
        if end == .closed {
            JournalFileTests.stop(program)
        } else {
            #expect(JournalCommand.awaitSucceeded(2, in: tree.path("kept/journal.db")))
            program.signal(SIGKILL)
            #expect(program.wait() == 137)
        }
        if end == .killedWithoutMemory { unlink(tree.path("kept/journal.db-shm").description) }
        // An idle journal is a single file. After a kill its log exists too.
        #expect(TestFile.exists(tree.path("kept/journal.db-wal")) == (end != .closed))
    }

    @Test(arguments: End.allCases, [false, true])
    func `reading a journal that no instance uses leaves its directory unchanged`(_ end: End, isReader: Bool) throws {
        // Root may write anywhere, so it must become a user who can only read.
        if isReader, geteuid() == 0, ScenarioRunner.ordinaryUserProblem != nil { return }
        withTempTree { tree in
            Self.leave(tree, end)
            let root = tree.root
            let directory = root.appending("kept")
            if isReader {
                #expect(root.withCString { chmod($0, 0o755) } == 0)
                for name in TestFile.names(in: directory) {
                    #expect(directory.appending(name).withCString { chmod($0, 0o444) } == 0)
                }
                #expect(directory.withCString { chmod($0, 0o555) } == 0)
            }
            let words = (isReader && geteuid() == 0 ? ScenarioRunner.asOrdinaryUser : []) + [Places.alight.description]
            func run(_ arguments: [String], status: Int32 = 0) -> RunningProgram {
                let program = RunningProgram(
                    "/usr/bin/env", words + arguments + ["--journal", "kept/journal.db"], in: root,
                    environment: JournalCommand.environment, output: root.appending("run"))
                #expect(program.wait() == status, "\(arguments) \(program.error)")
                return program
            }
            let before = TestFile.states(in: directory)
            let jobs = run(["jobs", "--state", "succeeded"])
            #expect(jobs.lines.count == 2, "\(jobs.error)")
            let id = jobs.output.prefix { $0 != "\t" }
            #expect(run(["jobs", "--json", "--rule", "notes"]).lines.count == 2)
            #expect(run(["show", String(id)]).output.contains("notes"))
            #expect(run(["explain", "in", "in/a", "in/b", "--rules", "rules.yaml"]).output.contains(id))
            #expect(run(["run", "--dry-run", "--once", "rules.yaml"], status: 4).error.contains("dry run"))
            #expect(TestFile.states(in: directory) == before)
        }
    }

    @Test func `a command for jobs of an idle journal leaves it idle`() throws {
        try withTempTree { (tree) throws in
            let directory = tree.path("kept")
            let job = SampleJob(0, .failed, "/srv/a")
            let file = try JournalFile(directory.appending("journal.db"))
            try file.add([job])
            try file.close()
            let (status, output, error) = JournalCommand.run(tree, ["retry", job.id], journal: "kept/journal.db")
            #expect(status == 0, "\(error)")
            #expect(output.contains("will be retried"))
            #expect(
                TestFile.names(in: directory).map { String(decoding: $0, as: UTF8.self) } == [
                    "journal.db", "journal.db-lock",
                ])
        }
    }
}
