import FileEvents
import Glibc
import JournalFixtures
import Journaling
import Rules
import TestKit
import Testing

/// What is asked for through a journal, and who is told.
struct JournalRequestTests {
    private static let id = JobID("01JD8Z3T1WQ2V7N0C5M4K9R6XB")

    /// A process that takes the lock as Alight does, and makes the file `nudged` when it gets SIGUSR2.
    private static func holder(_ tree: borrowing TemporaryTree, writes number: String = "$$") -> RunningProgram {
        let script = """
            exec 9>>journal.db-lock; flock 9; echo \(number) >journal.db-lock
            trap 'touch nudged' USR2; touch ready
            while [ ! -e end ]; do sleep 0.02; done
            """
        let program = RunningProgram("/bin/sh", ["-c", script], in: tree.root, output: tree.path("holder"))
        let ready = tree.path("ready")
        #expect(Deadline.wait { TestFile.exists(ready) }, "\(program.error)")
        return program
    }

    @Test func `requests are rows, in their order`() throws {
        try withTempTree { tree in
            let file = try JournalFile(tree.path("journal.db"))
            let reader = try JournalReader(file.path)
            let name = PathBytes("/in/a \n'b")
            let last = try reader.request([
                .retry(Self.id), .discard(Self.id), .apply(JobRequest(id: Self.id, rule: "r", path: name)),
            ])
            let id = Self.id.description
            #expect(
                try file.requests() == [
                    ["retry", id, nil, nil], ["discard", id, nil, nil], ["apply", id, "r", name.description],
                ])
            #expect(try reader.openRequests(upTo: last) == 3)
            try file.execute("DELETE FROM requests WHERE verb = 'retry'")
            #expect(try reader.openRequests(upTo: last) == 2)
            #expect(try reader.openRequests(upTo: last - 1) == 1)
        }
    }

    @Test func `the Alight that has the journal is woken`() throws {
        try withTempTree { tree in
            let file = try JournalFile(tree.path("journal.db"))
            let reader = try JournalReader(file.path)
            #expect(!reader.isInUse)
            #expect(reader.holder == nil)
            let holder = Self.holder(tree)
            #expect(reader.isInUse)
            #expect(reader.holder == holder.pid)
            try reader.request([.retry(Self.id)])
            let nudged = tree.path("nudged")
            #expect(Deadline.wait { TestFile.exists(nudged) })
            TestFile.write(tree.path("end"), "")
            #expect(holder.wait() == 0)
            #expect(Deadline.wait { !reader.isInUse })
            #expect(reader.holder == nil)
        }
    }

    @Test func `nobody is woken whose number only stands in the lock's file`() throws {
        try withTempTree { tree in
            let file = try JournalFile(tree.path("journal.db"))
            // It would be ended by the signal.
            let other = RunningProgram("/bin/sleep", ["60"], in: tree.root, output: tree.path("other"))
            let holder = Self.holder(tree, writes: "\(other.pid)")
            let reader = try JournalReader(file.path)
            #expect(reader.isInUse)
            #expect(reader.holder == nil)
            try reader.request([.retry(Self.id)])
            TestFile.write(tree.path("end"), "")
            #expect(holder.wait() == 0)
            let nudged = tree.path("nudged")
            #expect(!TestFile.exists(nudged))
            #expect(other.exitStatus() == nil)
        }
    }
}
