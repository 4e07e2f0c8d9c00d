import FileEvents
import Journaling
import PluginProtocol
import Reconciling
import Rules
import TestKit
import Testing

/// What was done to files, and what has been taken back, as the journal keeps it.
struct KeptChangesTests {
    private let bench = DiskBench()

    private func change(_ name: String) -> FileChange {
        FileChange(.moved(from: PathBytes("/in/\(name)"), to: PathBytes("/out/\(name)")), left: FileMark(.sample()))
    }

    @Test func `changes are kept with their attempt, and what became of them`() throws {
        _ = try bench.open()
        _ = try bench.journal.begin([RuleRecord(name: "r", selection: "in")], at: bench.wall)
        let job = Job(id: JobID("01HF7YAT00AAAAAAAAAAAAAAAA"), rule: "r", event: .sample(.created, "/in/a", .sample()))
        try bench.journal.accept([job], [], now: bench.now)
        let leased = try #require(try bench.journal.lease(rule: "r", limit: 1, busy: [], now: bench.now).first)
        var outcome = Outcome(.succeeded, "moved")
        outcome.changes = [change("a"), change("b")]
        let attempt = AttemptRecord(number: 1, started: bench.wall, duration: .seconds(1), outcome: outcome)
        _ = try bench.journal.record(leased, attempt, .ended(.succeeded, outcome), [])
        #expect(try bench.commit() == nil)

        let reader = try JournalReader(bench.path)
        #expect(try reader.jobsWithChanges(since: nil, rule: nil) == [job.id])
        #expect(try reader.jobsWithChanges(since: bench.wall, rule: "r") == [job.id])
        #expect(try reader.jobsWithChanges(since: bench.wall.advanced(by: .seconds(2)), rule: nil) == [])
        #expect(try reader.jobsWithChanges(since: nil, rule: "other") == [])
        let kept = try bench.journal.changes(of: job.id)
        #expect(kept.map(\.changes) == [outcome.changes] && kept.first?.undo == nil && kept.first?.rule == "r")

        let record = UndoRecord(time: bench.wall, reasons: [nil, "it was changed since"])
        let entry = LedgerEntry(view: "r", path: "/in/a", snapshot: .sample(file: 77))
        let stranger = LedgerEntry(view: "never", path: "/in/a", snapshot: .sample())
        try bench.journal.note(record, of: try #require(kept.first), [entry, stranger])
        #expect(try bench.journal.changes(of: job.id).isEmpty, "it is noted already")
        #expect(try bench.commit() == nil)
        let after = try #require(try reader.changes(of: job.id).first)
        #expect(after.undo == record && !after.isUndone)
        #expect(try reader.details(of: job.id)?.attempts.first?.undo == record)
        #expect(try bench.known("/in/a", rule: "r")?.identity.inode == 77)
        let whole = UndoRecord(time: bench.wall, reasons: [nil, nil])
        try bench.journal.note(whole, of: after, [])
        #expect(try bench.commit() == nil)
        #expect(try reader.changes(of: job.id).first?.isUndone == true)
    }
}
