import Engine
import FileEvents
import Handling
import Journaling
import PluginProtocol
import Reconciling
import Rules
import Settling
import TestKit
import Testing

/// An engine that goes on where another one was killed.
@Suite(.timeLimit(.minutes(2)))
struct EngineRecoveryTests {
    /// The journal of an Alight that was killed so often while an action ran for the file, as it is now.
    private static func journal(
        _ path: PathBytes, of file: PathBytes, _ rule: Rule, cuts: Int = 1
    ) throws -> DiskJournal {
        guard case .present(let snapshot) = DiskProbe.look(at: file) else { throw DiskFault() }
        for cut in 0..<cuts {
            let journal = try DiskJournal(at: path, now: DiskProbe.now())
            let record = RuleRecord(name: rule.name, selection: rule.selection)
            _ = journal.begin([record], at: DiskProbe.now())
            journal.noteStarted(at: DiskProbe.now())
            if cut == 0 {
                let event = FileEvent(
                    kind: .created, path: file, root: file.parent, snapshot: snapshot, time: DiskProbe.now())
                let job = Job(id: JobID(now: event.time), rule: rule.name, event: event, mask: rule.events)
                journal.accept(
                    [job], [LedgerEntry(view: rule.name, path: file, snapshot: snapshot)], now: .now)
            }
            try #require(journal.lease(rule: rule.name, limit: 1, busy: [], now: .now).count == 1)
            try #require(journal.commit(at: DiskProbe.now()) == nil)
        }
        return try DiskJournal(at: path, now: DiskProbe.now())
    }

    private struct DiskFault: Error {}

    @Test func `an action that may have taken its file away is run again where nothing is any more`() throws {
        for (name, isRun) in [("move", true), ("delete", true), ("copy", false), ("index", false), ("log", false)] {
            try withTempTree { tree in
                let file = tree.path("in/a")
                TestFile.write(file, "x")
                let rule = Rule.sample("r", [tree.path("in/*")], actions: [name])
                let journal = try Self.journal(tree.path("journal.db"), of: file, rule)
                TestFile.removeTree(file)
                let run = EngineRun([rule], on: journal)
                #expect(run.ended(1))
                #expect(run.calls.map(\.attempt) == (isRun ? [2] : []), "\(name)")
                #expect(run.attempts.first?.outcome.code == (isRun ? nil : "gone"), "\(name)")
                run.stop()
            }
        }
    }

    @Test func `a job that was never begun is not run for a file that is gone`() {
        withTempTree { tree in
            let rule = Rule.sample("r", [tree.path("in/*")], actions: ["move"])
            let gate = Gate()
            let run = EngineRun([rule]) { _, _ in
                gate.pass()
                return Outcome(.succeeded)
            }
            TestFile.write(tree.path("in/first"), "x")
            #expect(Deadline.wait { run.calls.count == 1 })
            TestFile.write(tree.path("in/second"), "x")
            #expect(Deadline.wait { run.journal.counts.pending == 1 })
            TestFile.removeTree(tree.path("in/second"))
            gate.open()
            #expect(Deadline.wait { run.journal.counts.open == 0 })
            #expect(run.told == ["r created first"])
            run.stop()
        }
    }

    @Test func `a job that is cut off again and again becomes a dead letter`() throws {
        for attempts in [1, 3] {
            try withTempTree { tree in
                let file = tree.path("in/a")
                TestFile.write(file, "x")
                let rule = Rule.sample("r", [tree.path("in/*")], retry: RetryPolicy(attempts: attempts))
                let path = tree.path("journal.db")
                // Five more cuts than it has attempts are no proof yet.
                let last = EngineRun([rule], on: try Self.journal(path, of: file, rule, cuts: attempts + 4))
                #expect(last.ended(1))
                #expect(last.attempts.first?.state == .succeeded && last.calls.map(\.attempt) == [attempts + 5])
                last.stop()
            }
            try withTempTree { tree in
                let file = tree.path("in/a")
                TestFile.write(file, "x")
                let rule = Rule.sample("r", [tree.path("in/*")], retry: RetryPolicy(attempts: attempts))
                let run = EngineRun(
                    [rule], on: try Self.journal(tree.path("journal.db"), of: file, rule, cuts: attempts + 5))
                #expect(run.ended(1))
                #expect(run.calls.isEmpty)
                let report = try #require(run.attempts.first)
                #expect(report.state == .dead && report.outcome.code == "cut-off")
                #expect(
                    report.outcome.message
                        == "\(attempts + 5) attempts were cut off by the end of Alight, which this may be the cause of")
                #expect(run.journal.counts.dead == 1 && run.journal.counts.open == 0)
                run.stop()
            }
        }
    }

    @Test func `the change that was dropped for an action that was cut off is what it is run for again`() throws {
        try withTempTree { tree in
            let file = tree.path("in/a")
            TestFile.write(file, "1")
            let rule = Rule.sample("r", [tree.path("in/*")]).with { $0.whileBusy = .drop }
            let journal = try Self.journal(tree.path("journal.db"), of: file, rule)
            TestFile.write(file, "123")
            guard case .present(let changed) = DiskProbe.look(at: file) else { throw DiskFault() }
            // So it was dropped: the ledger knows it, and no job tells of it.
            _ = journal.begin([RuleRecord(name: "r", selection: rule.selection)], at: DiskProbe.now())
            journal.accept([], [LedgerEntry(view: "r", path: file, snapshot: changed)], now: .now)
            let run = EngineRun([rule], on: journal)
            #expect(run.ended(1))
            #expect(Deadline.wait { run.journal.counts.open == 0 })
            #expect(run.calls.map(\.size) == [3] && run.calls.map(\.attempt) == [2])
            #expect(run.signs.isEmpty)
            run.stop()
        }
    }

    @Test func `jobs of rules that are not there are told of`() throws {
        try withTempTree { tree in
            let file = tree.path("in/a")
            TestFile.write(file, "x")
            let old = Rule.sample("old", [tree.path("in/*")])
            let journal = try Self.journal(tree.path("journal.db"), of: file, old)
            let run = EngineRun([Rule.sample("new", [tree.path("other/*")])], on: journal)
            #expect(run.waiting == ["old": 1])
            run.stop()
            #expect(run.calls.isEmpty)
        }
    }
}
