import Glibc
import JournalFixtures
import Rules
import System
import Testing
import TestKit

/// A journal file that is removed or damaged by another process while the program runs.
struct JournalLossTests {
    @Test(arguments: [false, true])
    func `a journal that was removed or replaced stops the run with a reason`(isExchanged: Bool) throws {
        try withTempTree { tree in
            let program = JournalFileTests.start(tree)
            JournalFileTests.awaitReady(program)
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { program.lines.count == 1 })
            let journal = tree.path("state/journal.db")
            let copy = TestFile.read(journal) ?? []
            try #require(rename("\(journal)", "\(tree.path("aside.db"))") == 0)
            if isExchanged { TestFile.write(journal, copy) }
            TestFile.write(tree.path("in/b"), "x")
            #expect(program.wait() == 1)
            let message =
                "error: the journal '\(journal)' was removed or replaced while Alight had it open\n    help: "
            // It is reported once, as the reason for the end of the run.
            #expect(program.error.split(separator: "\n").count { $0.contains("removed or replaced") } == 1)
            #expect(program.error.contains(message), "\(program.error)")
            // The action was not started, because this could not be stored.
            #expect(program.lines.count == 1)
            if isExchanged { #expect(TestFile.read(journal) == copy) }
        }
    }

    @Test func `while another program locks the journal, watching continues, and all jobs run afterwards`() throws {
        try withTempTree { tree in
            TestFile.makeDirectory(tree.path("state"))
            let file = try JournalFile(tree.path("state/journal.db"))
            let program = JournalFileTests.start(tree)
            JournalFileTests.awaitReady(program)
            try file.execute("BEGIN IMMEDIATE")
            // No action starts before its lease is committed.
            TestFile.write(tree.path("in/first"), "x")
            let message = "can't be written: it is locked by process \(getpid()) ("
            #expect(Deadline.wait { program.error.contains(message) }, "\(program.error)")
            for number in 0..<20 { TestFile.write(tree.path("in/\(number)"), "x") }
            // The program retries each second. It must report the error only once.
            Deadline.pause(.milliseconds(2500))
            #expect(program.lines.isEmpty)
            try file.execute("COMMIT")
            #expect(Deadline.wait { program.lines.count == 21 }, "\(program.error)")
            #expect(program.error.contains("the journal can be written again"))
            #expect(program.error.split(separator: "\n").count { $0.contains("it is locked by") } == 1)
            JournalFileTests.stop(program)
        }
    }

    @Test func `a job that cannot be read is reported, and not retried`() throws {
        try withTempTree { tree in
            TestFile.makeDirectory(tree.path("state"))
            let file = try JournalFile(tree.path("state/journal.db"))
            var broken = SampleJob(0, .pending, "/in/a")
            broken.eventJSON = "{"
            try file.add([broken, SampleJob(60, .failed, "/in/b")])
            try file.close()
            let program = JournalFileTests.start(tree)
            JournalFileTests.awaitReady(program)
            #expect(
                program.error.contains(
                    "error: 1 job cannot be read; stored as failed: \(broken.id)\n    help: "),
                "\(program.error)")
            JournalFileTests.stop(program)
            let root = tree.root
            func ask(_ words: String...) -> RunningProgram {
                RunningProgram.alight(words + ["--journal", "state/journal.db"], in: root, output: "ask")
            }
            for words in [["retry", broken.id], ["retry", "--all"]] {
                let retry = ask(words[0], words[1])
                #expect(retry.wait() == 1)
                #expect(retry.error.hasPrefix("error: job \(broken.id) cannot be read"), "\(retry.error)")
            }
            let shown = ask("show", broken.id)
            #expect(shown.wait() == 0)
            #expect(shown.output.contains("(unreadable-row)"), "\(shown.output)")
            let discard = ask("discard", broken.id)
            #expect(discard.wait() == 0, "\(discard.error)")
            #expect(ask("show", broken.id).wait() == 1)
        }
    }

    @Test func `every command that would write to a damaged journal reports the damage`() throws {
        try withTempTree { tree in
            let file = try JournalFile(tree.path("journal.db"))
            let jobs = (0..<400).map { SampleJob($0, .failed, PathBytes("/in/\($0)")) }
            try file.add(jobs)
            // A table that no query of the command uses.
            try file.execute("DROP TABLE mounts")
            try file.close()
            let (status, output, error) = JournalCommand.run(tree, ["retry", jobs[0].id])
            #expect(status == 1 && output.isEmpty)
            #expect(
                error.hasPrefix(
                    "error: the journal '\(tree.path("journal.db"))' is damaged: the table 'mounts' is missing\n"),
                "\(error)")
        }
    }
}
