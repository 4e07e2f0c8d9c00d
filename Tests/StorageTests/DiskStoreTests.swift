import FileEvents
import GRDB
import PluginProtocol
import Reconciling
import Records
import Rules
import Storage
import System
import Testing
import TestKit

/// The state that a run finds from an earlier one.
struct DiskStoreTests {
    let bench = StoreBench()
    private let rule = StoreBench.rule

    // MARK: Ledger and due paths

    @Test(arguments: 0..<10 as Range<UInt64>, [true, false])
    func `ledger rows are stored exactly, except the mount ID, which is valid only within a run`(
        seed: UInt64, isClean: Bool
    ) throws {
        var generator = SeededGenerator(seed: seed)
        var rows: [PathBytes: LedgerRow] = ["/none": LedgerRow(nil, .uncertain)]
        for trust in [LedgerRow.Trust.certain, .uncertain, .failed] {
            for isSuppressed in [true, false] {
                let event = FileEvent.full(&generator)
                rows[event.path] = LedgerRow(event.snapshot, trust, isSuppressed: isSuppressed)
            }
        }
        try bench.commit { $0.rows[rule] = rows }
        for (path, row) in rows { #expect(try bench.store.row(of: rule, at: path) == row) }
        try bench.end(isClean: isClean)
        for (path, var row) in rows {
            row.handled?.mount = 0
            #expect(try bench.store.row(of: rule, at: path) == row)
            #expect(try bench.store.row(of: RuleID(2), at: path) == nil)
            guard let identity = row.handled?.identity else { continue }
            #expect(try bench.store.paths(of: rule, handling: identity, limit: .max) == [path])
            #expect(try bench.store.paths(of: rule, handling: identity.withoutBirth, limit: .max) == [path])
        }
        let sorted = rows.keys.sorted()
        #expect(try bench.store.rows(of: rule, below: "/", after: nil).map(\.0) == sorted)
        #expect(try bench.store.rows(of: rule, below: "/", after: sorted[2]).map(\.0) == Array(sorted[3...]))
    }

    @Test func `uncommitted changes are lost after a kill, and empty rows are deleted`() throws {
        let writer = Writer.process(WritingProcess(pid: 7, name: "cp", executable: "/usr/bin/cp", uid: 1000))
        try bench.commit {
            $0.rows[rule] = ["/in/a": LedgerRow(.sample()), "/in/b": LedgerRow(.sample(file: 2))]
            $0.due[rule] = ["/in/b": .stored(writer), "/in/a": .stored(nil), "/in/c": .stored(nil)]
        }
        try bench.commit {
            $0.rows[rule] = ["/in/b": LedgerRow()]
            $0.due[rule] = ["/in/c": .deleted]
        }
        bench.kill()
        #expect(try bench.store.row(of: rule, at: "/in/a") == LedgerRow(.sample()))
        #expect(try bench.store.row(of: rule, at: "/in/b") == nil)
        #expect(
            try bench.store.duePaths(of: rule) == [
                StoredDuePath(path: "/in/a"), StoredDuePath(path: "/in/b", writer: writer),
            ])
        #expect(try bench.store.duePaths(of: RuleID(2)).isEmpty)
    }

    @Test func `read positions replace earlier ones, and survive a kill`() throws {
        let position = ReadPosition(changed: .early.advanced(by: .nanoseconds(7)), delivered: 5)
        let (one, other) = (Snapshot.sample().identity, Snapshot.sample(file: 2).identity)
        try bench.commit { $0.positions = [rule: [one: position, other: position], RuleID(2): [one: position]] }
        let later = ReadPosition(changed: position.changed, delivered: 1 << 63)
        try bench.commit { $0.positions[rule] = [one: nil, other: later] }
        bench.kill()
        #expect(try bench.store.positions(of: rule) == [other: later])
        #expect(try bench.store.positions(of: RuleID(2)) == [one: position])
    }

    @Test func `changes of a rule that is deleted in the same commit are ignored`() throws {
        try bench.commit { $0.rows[RuleID(2)] = ["/in/a": LedgerRow(.sample())] }
        let rules = [RuleRecord(name: "r", formerly: ["s"], selection: "*")]
        _ = try bench.store.register(rules, isWatching: true, at: bench.wall)
        try bench.commit {
            $0.rows[RuleID(2)] = ["/in/b": LedgerRow(.sample())]
            $0.due[RuleID(2)] = ["/in/b": .stored(nil)]
            $0.positions[RuleID(2)] = [Snapshot.sample().identity: ReadPosition(changed: .early, delivered: 1)]
        }
        #expect(try bench.rows("SELECT count(*) FROM ledger") == ["0"])
        #expect(try bench.rows("SELECT name FROM rules ORDER BY id") == ["r", "t"])
    }

    // MARK: Jobs

    /// Creates an unfinished or failed job with a value in each member.
    private func full(_ state: JobState, _ generator: inout SeededGenerator) -> OpenJob {
        let leased = OpenJob.leased(7, FileEvent.full(&generator))
        let stored = state == .pending ? leased.retrying(at: bench.now + .seconds(20)) : leased
        var step = Outcome(.succeeded, "done", outputs: ["/out/a"], values: ["a": .integer(1)])
        step.process = ProcessDetails(status: 3, signal: 9, request: "{}")
        var finished = FinishedStep(step, action: "a1")
        finished.hasRemovedInput = true
        let attempt = AttemptRecord(
            number: 3, started: Timestamp(seconds: 5, nanoseconds: 6), duration: .seconds(7), outcome: step)
        return stored.changed { job, offer in
            job.attempt = 3
            job.isInterrupted = true
            job.previous = PreviousAttempt(attempt: 2, outcome: "retry", message: "busy")
            job.steps = [finished]
            job.failure = FinalFailure(attempt)
            job.failure?.steps = [finished]
            offer?.hasRun = true
            offer?.hasSteps = true
            offer?.hasRemovedInput = true
            offer?.isInterrupted = true
            offer?.isUncertain = true
            offer?.mayRemoveInput = true
            offer?.left = job.event.snapshot
            offer?.isRepeat = true
            offer?.wasNamed = true
            offer?.missedHints = true
            offer?.changed = job.event.snapshot.changed
        }
    }

    @Test(arguments: [JobState.pending, .running, .failed], [true, false])
    func `an unfinished or failed job is stored exactly`(state: JobState, isClean: Bool) throws {
        var generator = SeededGenerator(seed: 1)
        let stored = full(state, &generator)
        if state == .failed {
            try bench.end(stored, .failed, Outcome(.failed, "no"), isNew: true)
        } else {
            try bench.commit(stored)
        }
        try bench.end(isClean: isClean)
        let (foundState, found) = try #require(try bench.store.job(JobID("7"), at: bench.clocks))
        #expect(try bench.unfinished().map(\.job.id) == (state == .failed ? [] : [JobID("7")]))
        // Mount IDs are valid only within the earlier run.
        let expected = stored.changed { job, offer in
            job.event.snapshot.mount = 0
            job.event.before?.mount = 0
            offer?.left?.mount = 0
        }
        #expect(found.job == expected.job)
        #expect(foundState == state && found.job.number == 7)
        if state != .failed { #expect(found.due == stored.due) }
        let offer = try #require(found.offer)
        #expect(offer.hasRun && offer.hasSteps)
        #expect(offer.event == expected.job.event && offer.number == 7)
        #expect(offer.record == expected.offer?.record)
    }

    @Test func `a stored job has a schedule in place of an offer, and jobs are sorted by number`() throws {
        let schedule = Job.Schedule(due: bench.now + .seconds(5))
        let frozen = OpenJob(Job(id: JobID("a"), rule: "r", event: .sample(), number: 5, schedule: schedule), nil)
        try bench.commit(.leased(9), frozen, .leased(2), .leased(3, rule: "s"))
        bench.kill()
        let jobs = try bench.unfinished()
        #expect(jobs.map(\.job.number) == [2, 5, 9])
        #expect(jobs.map(\.job.schedule) == [nil, schedule, nil])
        #expect(jobs.map { $0.offer == nil } == [false, true, false])
        #expect(try bench.store.stored.number == 1_009)
    }

    @Test func `a job has its last committed state, and its event is written only if it is new`() throws {
        let job = OpenJob.leased(1)
        try bench.commit(job)
        #expect(try bench.rows("SELECT state, due FROM jobs") == ["running|1000000000000000000"])
        let retrying = job.retrying(at: bench.now + .seconds(3)).changed { job, _ in
            job.event = .sample(.modified, "/in/b")
            job.waiting = Waiting(.window, "its window opens at 22:00")
        }
        let query = "SELECT state, path, event, due, message, code FROM jobs"
        for (isNew, event) in [(false, "/in/a.txt|created"), (true, "/in/b|modified")] {
            try bench.commit(isNew: isNew, retrying)
            #expect(
                try bench.rows(query) == [
                    "pending|\(event)|1000000003000000000|its window opens at 22:00|window"
                ])
        }
        bench.kill()
        // The reason for waiting may have ended.
        #expect(try bench.unfinished().first?.due == bench.now)
        let finished = job.changed { job, _ in job.steps = [FinishedStep(Outcome(.succeeded), action: "a1")] }
        try bench.end(finished, .succeeded, Outcome(.succeeded, "done", outputs: ["/out/a"]))
        #expect(
            try bench.rows("SELECT state, due, ended, outputs, steps, progress FROM jobs") == [
                "succeeded||1000000000000000000|[\"/out/a\"]||"
            ])
        #expect(try bench.store.job(JobID("1"), at: bench.clocks)?.state == .succeeded)
        #expect(try bench.store.job(JobID("1"), at: bench.clocks)?.job.offer == nil)
        try bench.commit { $0.jobs[JobID("1")] = JobChange(.deleted, isNew: false) }
        #expect(try bench.store.job(JobID("1"), at: bench.clocks) == nil)
        #expect(try bench.rows("SELECT count(*) FROM attempts") == ["0"])
        bench.kill()
        #expect(try bench.store.stored.number == 1_001)
    }

    @Test func `jobs that were running are counted at opening, and not changed`() throws {
        try bench.commit(.leased(1), .leased(2), OpenJob.leased(3).retrying(at: bench.now))
        let leased = bench.now
        bench.wait(.seconds(60))
        bench.kill()
        #expect(try bench.store.interrupted == 2)
        #expect(try bench.unfinished().map(\.isRunning) == [true, true, false])
        #expect(try bench.unfinished().first?.leased == leased)
        #expect(try bench.rows("SELECT count(*) FROM attempts") == ["0"])
    }

    // MARK: Attempts and undo

    @Test func `the log of a batch is stored once, until the last of its jobs is deleted`() throws {
        let jobs = (1...5).map { OpenJob.leased(UInt64($0)) }
        try bench.commit(jobs[0], jobs[1], jobs[2], jobs[3], jobs[4])
        try bench.commit { changes in
            for (job, log) in zip(jobs, ["one", "one", "one", "two", ""]) {
                var outcome = Outcome(.succeeded)
                outcome.log = log
                changes.jobs[job.job.id] = JobChange(.ended(job, .succeeded, outcome), isNew: false)
                changes.attempts.append((job.job.id, bench.attempt(job, outcome)))
            }
            // The log belongs to the first attempt that is stored.
            changes.jobs[JobID("1")] = JobChange(.deleted, isNew: false)
        }
        #expect(try bench.rows("SELECT job, text FROM logs ORDER BY job") == ["2|one", "4|two"])
        #expect(try bench.rows("SELECT job, log_of FROM attempts ORDER BY job") == ["2|2", "3|2", "4|4", "5|"])
        _ = try bench.rows("DELETE FROM jobs WHERE id IN ('2', '4')")
        #expect(try JournalReader(bench.path).details(of: JobID("3"))?.attempts.map(\.log) == ["one"])
        #expect(try bench.rows("SELECT job FROM logs") == ["2"])
        _ = try bench.rows("DELETE FROM jobs WHERE id = '3'")
        #expect(try bench.rows("SELECT count(*) FROM logs") == ["0"])
    }

    @Test func `changes to files are found with the results of their undo`() throws {
        var outcome = Outcome(.succeeded)
        outcome.changes = ["/out", "/out/a"].map { FileChange(.madeDirectory($0), left: .empty) }
        try bench.end(.leased(1), .succeeded, outcome, isNew: true)
        let started = bench.wall
        bench.kill()
        let retained = try #require(try bench.store.changes(of: JobID("1")).first)
        #expect(
            retained.changes == outcome.changes && retained.rule == "r" && retained.number == 1 && retained.undo == nil)
        let reader = try JournalReader(bench.path)
        #expect(try reader.jobsWithChanges(since: nil, rule: nil) == [JobID("1")])
        #expect(try reader.jobsWithChanges(since: started, rule: "r") == [JobID("1")])
        #expect(try reader.jobsWithChanges(since: started.advanced(by: .seconds(2)), rule: nil) == [])
        #expect(try reader.jobsWithChanges(since: nil, rule: "s") == [])
        for (reasons, undone) in [([nil, "it was changed since"], .part), ([nil, nil], .all)] as [([String?], Undone)] {
            let record = UndoRecord(time: bench.wall, reasons: reasons)
            try bench.commit { $0.undos = [(retained, record)] }
            bench.kill()
            let after = try #require(try bench.store.changes(of: JobID("1")).first)
            #expect(after.undo == record && after.isUndone == (undone == .all))
            #expect(try reader.details(of: JobID("1"))?.attempts.first?.undo == record)
            #expect(try reader.jobs(JournalQuery()).jobs.map(\.undone) == [undone])
        }
    }

    @Test func `a refusal by 'ready' is found while the file has the same content`() throws {
        func isRefused(_ size: UInt64) throws -> Bool {
            try bench.store.refusal(rule: "r", path: "/in/a.txt", snapshot: .sample(size: size))?.id == JobID("1")
        }
        try bench.end(.leased(1), .failed, Outcome(.failed, "no", code: Outcome.readyCode), isNew: true)
        bench.kill()
        #expect(try isRefused(5) && !isRefused(6))
        try bench.commit(isNew: false, OpenJob.leased(1).retrying(at: bench.now))
        #expect(try !isRefused(5))
    }

    // MARK: Copies

    @Test func `a store in memory survives a kill with its commits, and never writes to the file`() throws {
        try bench.commit(.leased(1))
        try bench.commit { $0.rows[rule] = ["/in/a": LedgerRow(.sample())] }
        let clock: @Sendable () -> ContinuousClock.Instant = { [now = bench.now] in now }
        let copy = try DiskStore(inMemory: bench.path, now: bench.wall, clock: clock)
        _ = copy.register(StoreBench.rules, isWatching: true, at: bench.wall)
        #expect(copy.unfinishedJobs(of: rule, at: bench.clocks).map(\.job.number) == [1])
        var changes = TurnChanges()
        changes.jobs[JobID("2")] = JobChange(.unfinished(.leased(2)), isNew: true)
        #expect(copy.commit(changes, at: bench.clocks) == nil)
        #expect(copy.openJobs().map(\.id.description) == ["1", "2"])
        let next = try DiskStore(afterKillOf: copy, now: bench.wall, clock: clock)
        _ = next.register(StoreBench.rules, isWatching: true, at: bench.wall)
        #expect(next.interrupted == 2)
        #expect(next.unfinishedJobs(of: rule, at: bench.clocks).map(\.job.number) == [1, 2])
        #expect(next.row(of: rule, at: "/in/a") == LedgerRow(.sample()))
        #expect(copy.row(of: rule, at: "/in/a") == nil)
        #expect(try bench.rows("SELECT id FROM jobs") == ["1"])
        let empty = try DiskStore(inMemory: nil, now: bench.wall, clock: clock)
        #expect(empty.openJobs().isEmpty && empty.stored == StoredState())
    }
}
