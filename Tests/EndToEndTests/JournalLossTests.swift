import FileEvents
import Glibc
import TestKit
import Testing

/// A journal's file that somebody takes away while the program runs.
struct JournalLossTests {
    @Test(arguments: [false, true])
    func `a journal that was removed or exchanged ends the run with a reason`(isExchanged: Bool) throws {
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
                "error: the journal '\(journal)' was removed or exchanged while Alight had it open\n    help: "
            #expect(program.error.contains(message), "\(program.error)")
            // Its action was not begun, as that could not be kept.
            #expect(program.lines.count == 1)
            if isExchanged { #expect(TestFile.read(journal) == copy) }
        }
    }
}
