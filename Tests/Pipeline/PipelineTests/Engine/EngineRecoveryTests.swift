import FileEvents
import Pipeline
import PluginProtocol
import Reconciling
import Rules
import Storage
import System
import TestKit
import Testing

/// An engine that continues where another one was killed.
@Suite(.timeLimit(.minutes(2)))
struct EngineRecoveryTests {
    /// The store of an engine that was killed while an action ran for a new file.
    private static func killed(
        _ rule: Rule, creating file: PathBytes, while body: (EngineRun) -> Void = { _ in }
    ) throws -> DiskStore {
        let gate = Gate()
        let store = DiskStore.inMemory()
        TestFile.makeDirectory(file.parent)
        let run = EngineRun([rule], on: store) { _, _ in
            gate.pass()
            return Outcome(.succeeded)
        }
        TestFile.write(file, "1")
        #expect(Deadline.wait { run.calls.count == 1 })
        body(run)
        run.askToStopAtOnce()
        #expect(run.end() != nil)
        gate.open()
        return try DiskStore(afterKillOf: store, now: DiskProbe.now(), clock: { .now })
    }

    @Test(arguments: [("move", true), ("delete", true), ("copy", false), ("log", false)])
    func `an action that may have removed its file is run again if nothing is at the path`(
        name: String, isRun: Bool
    ) throws {
        try withTempTree { tree in
            let file = tree.path("in/a")
            let rule = Rule.sample("r", [tree.path("in/*")], actions: [name])
            let store = try Self.killed(rule, creating: file)
            TestFile.removeTree(file)
            let run = EngineRun([rule], on: store)
            #expect(Deadline.wait { run.attempts.count + run.notices.count == 1 })
            #expect(run.isIdle)
            run.stop()
            #expect(run.calls.map(\.attempt) == (isRun ? [2] : []))
            // The rule does not ask for deletions.
            #expect(run.notices.isEmpty)
            #expect(run.attempts.map(\.outcome.code) == (isRun ? [nil] : ["gone"]))
        }
    }

    @Test func `an action that was never started does not run for a missing file`() {
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
            #expect(Deadline.wait { run.counts.pending == 1 })
            TestFile.removeTree(tree.path("in/second"))
            gate.open()
            #expect(run.isIdle)
            #expect(run.received == ["r created first"])
            run.stop()
        }
    }

    /// A store with a job whose attempts, including the last one, were all interrupted.
    private static func interrupted(_ rule: Rule, _ file: PathBytes, attempt: Int) throws -> DiskStore {
        let store = DiskStore.inMemory()
        guard case .present(let snapshot) = KernelFileSystem().stat(file) else { throw DiskError() }
        let now = DiskProbe.now()
        let clocks = ClockPair(now, .now)
        let record = RuleRecord(name: rule.name, selection: rule.selection)
        _ = store.register([record], isWatching: true, at: now)
        let event = FileEvent(kind: .created, path: file, root: file.parent, snapshot: snapshot, time: now)
        var job = Job(id: JobID(now: event.time), rule: rule.name, event: event)
        (job.attempt, job.isInterrupted) = (attempt, true)
        let stored = StoredJob(job, .running, Offer(number: 1, event: event), number: 1)
        var changes = TurnChanges()
        changes.hasStarted = true
        changes.jobs[job.id] = JobChange(.unfinished(stored), isNew: true)
        if let error = store.commit(changes, at: clocks) { throw error }
        return try DiskStore(afterKillOf: store, now: now, clock: { .now })
    }

    private struct DiskError: Error {}

    @Test(arguments: [1, 3])
    func `a job that is interrupted repeatedly fails`(attempts: Int) throws {
        try withTempTree { tree in
            let file = tree.path("in/a")
            TestFile.write(file, "x")
            let rule = Rule.sample("r", [tree.path("in/*")], retry: RetryPolicy(attempts: attempts))
            // Five interruptions beyond the allowed attempts are still accepted.
            let last = EngineRun([rule], on: try Self.interrupted(rule, file, attempt: attempts + 4))
            #expect(last.ended(1))
            #expect(last.attempts.first?.state == .succeeded && last.calls.map(\.attempt) == [attempts + 5])
            last.stop()
            let run = EngineRun([rule], on: try Self.interrupted(rule, file, attempt: attempts + 5))
            #expect(run.ended(1))
            let summary = run.stop()
            #expect(run.calls.isEmpty)
            let report = try #require(run.attempts.first)
            #expect(report.state == .failed && report.outcome.code == "cut-off")
            #expect(
                report.outcome.message
                    == "\(attempts + 5) attempts were interrupted because Alight exited, which this job may have "
                    + "caused")
            #expect(summary?.failed == 1 && summary?.unfinished == 0)
        }
    }

    @Test func `a change while an interrupted action ran starts another run`() throws {
        try withTempTree { tree in
            let file = tree.path("in/a")
            let rule = Rule.sample("r", [tree.path("in/*")])
            let store = try Self.killed(rule, creating: file) { run in
                let before = DiskProbe.now()
                TestFile.write(file, "123")
                #expect(run.isDue(file, since: before))
            }
            let run = EngineRun([rule], on: store)
            #expect(run.ended(1))
            #expect(run.isIdle)
            run.stop()
            #expect(run.calls.map(\.size) == [3])
        }
    }

    @Test func `jobs of rules that are not loaded are reported`() throws {
        try withTempTree { tree in
            let old = Rule.sample("old", [tree.path("in/*")])
            let store = try Self.killed(old, creating: tree.path("in/a"))
            let run = EngineRun([Rule.sample("new", [tree.path("other/*")])], on: store)
            #expect(run.waiting == ["old": 1])
            run.stop()
            #expect(run.calls.isEmpty)
        }
    }

    @Test func `paths that a rule no longer matches are forgotten, and temporarily missing ones are not`() throws {
        try withTempTree { tree in
            let store = DiskStore.inMemory()
            let old = Rule.sample("r", [tree.path("in/*"), tree.path("away/*")])
            let known = [tree.path("in/a"), tree.path("in/b.txt"), tree.path("away/c")]
            for file in known { TestFile.makeDirectory(file.parent) }
            let first = EngineRun([old], on: store)
            for file in known { TestFile.write(file, "x") }
            #expect(first.ended(3))
            first.stop()
            TestFile.removeTree(tree.path("away"))
            let id = try #require(store.id(of: "r"))
            for (rule, rest) in [
                (old, known),
                (Rule.sample("r", [tree.path("in/*.txt"), tree.path("away/*")]), Array(known.dropFirst())),
            ] {
                let run = EngineRun([rule], on: store)
                #expect(Deadline.wait { (store.row(of: id, at: known[0]) != nil) == rest.contains(known[0]) })
                run.stop()
                #expect(known.filter { store.row(of: id, at: $0) != nil } == rest)
                #expect(run.calls.isEmpty)
            }
        }
    }
}
