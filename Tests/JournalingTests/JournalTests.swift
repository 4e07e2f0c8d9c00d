import FileEvents
import Journaling
import PluginProtocol
import Reconciling
import Rules
import TestKit
import Testing

@Suite(.onEachJournal)
struct JournalTests {
    let place = TestJournal()
    var journal: any Journal { place.journal }
    let start = ContinuousClock.now

    static func job(
        _ id: String, _ kind: EventKind = .created, _ path: PathBytes = "/in/a", rule: String = "r",
        from: PathBytes? = nil, _ snapshot: Snapshot = .sample(), before: Snapshot? = nil
    ) -> Job {
        Job(id: JobID(id), rule: rule, event: .sample(kind, path, from: from, snapshot, before: before))
    }

    static func job(_ id: String, _ kind: EventKind, _ snapshot: Snapshot, before: Snapshot? = nil) -> Job {
        job(id, kind, "/in/a", snapshot, before: before)
    }

    func accept(_ job: Job, at now: ContinuousClock.Instant? = nil) {
        let entry = LedgerEntry(
            view: job.rule, path: job.event.path, snapshot: job.event.kind == .deleted ? nil : job.event.snapshot)
        journal.accept([job], [entry], now: now ?? start)
    }

    func lease(_ rule: String = "r", limit: Int = 1, busy: Set<PathBytes> = [], after: Duration = .zero) -> [Job] {
        let hasDue = journal.hasDue(rule: rule, busy: busy, now: start + after)
        let jobs = journal.lease(rule: rule, limit: limit, busy: busy, now: start + after)
        #expect(hasDue == !jobs.isEmpty || limit == 0)
        return jobs
    }

    @discardableResult
    func end(_ job: Job, _ state: JobState = .succeeded, _ ownWrites: [LedgerEntry] = []) -> [PathBytes] {
        journal.record(job, nil, .ended(state, Outcome(.succeeded)), ownWrites)
    }

    func again(
        _ job: Job, after: Duration = .zero, counts: Bool = true, interrupted: Bool = false,
        _ ownWrites: [LedgerEntry] = []
    ) -> [PathBytes] {
        let outcome = interrupted ? Outcome.interrupted("x") : Outcome(.retry, "not now")
        return journal.record(job, nil, .again(at: start + after, outcome, counts: counts), ownWrites)
    }

    // MARK: Accepting

    struct Merge: Sendable, CustomTestStringConvertible {
        var waiting: EventKind
        var newer: EventKind
        var kind: EventKind
        var keepsFrom = false
        var testDescription: String { "\(waiting) and \(newer) make \(kind)" }
    }

    static let merges = [
        Merge(waiting: .created, newer: .modified, kind: .created),
        Merge(waiting: .created, newer: .attributes, kind: .created),
        Merge(waiting: .modified, newer: .modified, kind: .modified),
        Merge(waiting: .modified, newer: .attributes, kind: .modified),
        Merge(waiting: .modified, newer: .deleted, kind: .deleted),
        Merge(waiting: .attributes, newer: .attributes, kind: .attributes),
        Merge(waiting: .attributes, newer: .modified, kind: .modified),
        Merge(waiting: .deleted, newer: .created, kind: .modified),
        Merge(waiting: .moved, newer: .modified, kind: .moved, keepsFrom: true),
        Merge(waiting: .moved, newer: .attributes, kind: .moved, keepsFrom: true),
    ]

    @Test(arguments: merges)
    func `a newer event joins the pending job of its path`(_ example: Merge) throws {
        let old = Snapshot.sample(size: 1)
        let new = Snapshot.sample(size: 2)
        let before: Snapshot? = example.waiting == .created ? nil : .sample(size: 0)
        let from: PathBytes? = example.waiting == .moved ? "/in/z" : nil
        accept(Self.job("1", example.waiting, "/in/a", from: from, old, before: before))
        accept(Self.job("2", example.newer, new, before: old))
        #expect(journal.counts.pending == 1)
        let leased = lease(limit: 9)
        let job = try #require(leased.first)
        #expect(leased.count == 1)
        #expect(job.event.kind == example.kind)
        #expect(job.event.snapshot == new)
        #expect(job.event.before == before)
        #expect(job.event.from == (example.keepsFrom ? "/in/z" : nil))
        #expect(journal.counts.pending == 0 && journal.counts.running == 1)
    }

    @Test func `what nobody was told of and is gone comes to nothing`() {
        accept(Self.job("1", .created, "/in/a"))
        accept(Self.job("2", .deleted, "/in/a"))
        #expect(journal.counts.pending == 0)
        #expect(lease(limit: 9).isEmpty)
    }

    @Test func `of what an action has begun with the end is told`() throws {
        accept(Self.job("1", .created, "/in/a"))
        let running = try #require(lease().first)
        _ = again(running, after: .seconds(5))
        accept(Self.job("2", .deleted, "/in/a"))
        #expect(lease(limit: 9).map(\.event.kind) == [.deleted])
    }

    @Test func `a moved file that is gone is deleted under the name that was told`() {
        accept(Self.job("1", .moved, "/in/b", from: "/in/a", .sample()))
        accept(Self.job("2", .deleted, "/in/b", .sample()))
        let left = lease(limit: 9)
        #expect(left.map(\.event.kind) == [.deleted])
        #expect(left.map(\.event.path) == ["/in/a"])
    }

    @Test func `an old name that has another file by now is not deleted`() throws {
        accept(Self.job("1", .moved, "/in/b", from: "/in/a", .sample()))
        let running = try #require(lease().first)
        _ = again(running, after: .seconds(5))
        accept(Self.job("2", .created, "/in/a", .sample(file: 2)))
        let told = try #require(lease().first)
        end(told)
        accept(Self.job("3", .deleted, "/in/b", .sample()))
        #expect(!lease(limit: 9, after: .seconds(9)).contains { $0.event.path == "/in/a" })
    }

    @Test func `a new file that takes the place of a known one is no new name`() throws {
        accept(Self.job("1", .created, "/in/t", .sample(file: 2)))
        var move = Self.job("2", .moved, "/in/a", from: "/in/t", .sample(file: 2), before: .sample(file: 2))
        move.event.isReplaced = true
        accept(move)
        let job = try #require(lease(limit: 9).first)
        #expect(job.event.kind == .modified)
        #expect(job.event.isReplaced)
        #expect(journal.counts.pending == 0)
    }

    @Test func `a move whose action found nothing is told with the next one`() throws {
        accept(Self.job("1", .moved, "/in/b", from: "/in/a", .sample()))
        let running = try #require(lease().first)
        accept(Self.job("2", .moved, "/in/c", from: "/in/b", .sample()))
        _ = journal.record(running, nil, .returned(at: start), [])
        let job = try #require(lease(limit: 9).first)
        #expect(job.event.kind == .moved)
        #expect(job.event.from == "/in/a")
        #expect(job.event.path == "/in/c")
    }

    @Test func `of a move whose action found nothing, and a deletion, the old name's deletion is left`() throws {
        accept(Self.job("1", .moved, "/in/b", from: "/in/a", .sample()))
        let running = try #require(lease().first)
        accept(Self.job("2", .deleted, "/in/b", .sample()))
        _ = journal.record(running, nil, .returned(at: start), [])
        let left = lease(limit: 9)
        #expect(left.map(\.event.kind) == [.deleted])
        #expect(left.map(\.event.path) == ["/in/a"])
    }

    @Test func `what a new file has replaced stays known when its job is returned`() throws {
        accept(Self.job("1", .created, "/in/t", .sample(file: 2)))
        var move = Self.job("2", .moved, "/in/a", from: "/in/t", .sample(file: 2), before: .sample(file: 2))
        move.event.isReplaced = true
        accept(move)
        let running = try #require(lease(limit: 9).first)
        _ = journal.record(running, nil, .returned(at: start), [])
        let known = try #require(journal.snapshot(view: "r", path: "/in/a"))
        #expect(!known.hasSameContent(as: .sample(file: 2)))
    }

    @Test func `what differs adds up, and so does a replacement`() throws {
        var first = Self.job("1", .modified, .sample(size: 1), before: .sample(size: 0))
        first.event.changed = ["extended"]
        var second = Self.job("2", .modified, .sample(size: 0), before: .sample(size: 1))
        second.event.changed = ["truncated"]
        accept(first)
        accept(second)
        var third = Self.job("3", .modified, .sample(file: 2, size: 4), before: .sample(size: 0))
        var job = try #require(lease().first)
        #expect(job.event.changed == ["extended", "truncated"])
        third.event.isReplaced = true
        accept(third)
        accept(Self.job("4", .attributes, .sample(file: 2, size: 4), before: .sample(file: 2, size: 4)))
        _ = journal.record(job, nil, .ended(.succeeded, Outcome(.succeeded)), [])
        job = try #require(lease().first)
        #expect(job.event.kind == .modified)
        #expect(job.event.isReplaced)
    }

    @Test func `rules and paths do not join each other`() {
        accept(Self.job("1", .created, "/in/a"))
        accept(Self.job("2", .created, "/in/b"))
        accept(Self.job("3", .created, "/in/a", rule: "s"))
        #expect(journal.counts.pending == 3)
        #expect(journal.pendingRules == ["r", "s"])
        #expect(lease(limit: 9).map(\.event.path) == ["/in/a", "/in/b"])
        #expect(lease("s", limit: 9).map(\.id.description) == ["3"])
        #expect(lease("nobody", limit: 9).isEmpty)
    }

    // MARK: Leasing

    @Test func `jobs are leased oldest first, within the limit`() {
        for number in 0..<10 { accept(Self.job("\(number)", .created, PathBytes("/in/\(9 - number)"))) }
        #expect(lease(limit: 0).isEmpty)
        #expect(lease(limit: 3).map(\.id.description) == ["0", "1", "2"])
        #expect(lease(limit: 99).map(\.id.description) == ["3", "4", "5", "6", "7", "8", "9"])
        #expect(lease(limit: 1).isEmpty)
        #expect(journal.pendingRules.isEmpty)
    }

    @Test func `a busy path is passed over and keeps its place`() {
        accept(Self.job("1", .created, "/in/a"))
        accept(Self.job("2", .created, "/in/b"))
        accept(Self.job("3", .created, "/in/c"))
        #expect(lease(limit: 1, busy: ["/in/a"]).map(\.id.description) == ["2"])
        #expect(lease(limit: 9, busy: ["/in/b"]).map(\.id.description) == ["1", "3"])
    }

    @Test func `a move waits while its old name is worked on`() throws {
        accept(Self.job("1"))
        let running = try #require(lease().first)
        accept(Self.job("2", .moved, "/in/b", from: "/in/a", before: .sample()))
        #expect(lease(limit: 9, busy: ["/in/a"]).isEmpty)
        end(running)
        #expect(lease(limit: 9).map(\.id.description) == ["2"])
    }

    @Test func `a path that runs can wait once more, and is leased when it is free`() throws {
        accept(Self.job("1"))
        let running = try #require(lease().first)
        accept(Self.job("2", .modified, .sample(size: 9), before: .sample()))
        #expect(lease(limit: 9, busy: ["/in/a"]).isEmpty)
        #expect(journal.counts.open == 2)
        end(running)
        #expect(lease(limit: 9).map(\.id.description) == ["2"])
    }

    @Test func `a job is leased when it is due, not before`() throws {
        accept(Self.job("1"))
        let job = try #require(lease().first)
        #expect(job.attempt == 1)
        #expect(again(job, after: .seconds(5)).isEmpty)
        #expect(journal.nextDue(after: start) == start + .seconds(5))
        #expect(lease(limit: 9, after: .milliseconds(4_999)).isEmpty)
        let second = try #require(lease(limit: 9, after: .seconds(5)).first)
        #expect(second.attempt == 2)
        #expect(second.previous == PreviousAttempt(attempt: 1, outcome: "retry", message: "not now"))
        #expect(!second.isInterrupted)
        #expect(journal.nextDue(after: start) == nil)
    }

    @Test func `an attempt that does not count is not counted`() throws {
        accept(Self.job("1"))
        for _ in 0..<3 {
            let job = try #require(lease().first)
            #expect(job.attempt == 1)
            _ = again(job, counts: false, interrupted: true)
        }
        let job = try #require(lease().first)
        #expect(job.isInterrupted)
    }

    @Test func `a job that was leased too early is as it was, and due later`() throws {
        accept(Self.job("1"))
        let first = try #require(lease().first)
        _ = again(first, after: .seconds(1))
        let second = try #require(lease(after: .seconds(1)).first)
        _ = journal.record(second, nil, .early(due: start + .seconds(9)), [])
        #expect(journal.counts.pending == 1 && journal.counts.running == 0)
        #expect(journal.nextDue(after: start) == start + .seconds(9))
        #expect(lease(after: .seconds(8)).isEmpty)
        var third = try #require(lease(after: .seconds(9)).first)
        #expect(third.due == start + .seconds(9))
        third.due = second.due
        #expect(third == second)
    }

    @Test func `a job that was leased too early takes in what comes meanwhile`() throws {
        accept(Self.job("1", .created, .sample(size: 1)))
        let early = try #require(lease().first)
        _ = journal.record(early, nil, .early(due: start + .seconds(9)), [])
        accept(Self.job("2", .modified, .sample(size: 2), before: .sample(size: 1)))
        #expect(journal.counts.pending == 1)
        #expect(lease(after: .seconds(8)).isEmpty)
        let job = try #require(lease(limit: 9, after: .seconds(9)).first)
        #expect(job.event.kind == .created && job.event.snapshot.size == 2 && job.attempt == 1)
    }

    // MARK: Jobs that are run for themselves

    func acceptAlone(_ id: String, _ kind: EventKind = .modified, _ path: PathBytes = "/in/a", size: UInt64 = 1) {
        var job = Self.job(id, kind, path, .sample(size: size))
        job.isAlone = true
        accept(job)
    }

    @Test func `jobs that stand alone are not merged, and of a path one is leased at a time, in order`() throws {
        acceptAlone("1", .created, size: 1)
        acceptAlone("2", size: 2)
        acceptAlone("3", .deleted)
        acceptAlone("other", .created, "/in/b")
        #expect(journal.counts.pending == 4)
        #expect(journal.hasPending(view: "r", path: "/in/a"))
        var told: [String] = []
        for _ in 0..<3 {
            let leased = lease(limit: 9)
            told += leased.map { "\($0.id) \($0.event.snapshot.size) \($0.attempt)" }
            for job in leased { end(job) }
        }
        #expect(told == ["1 1 1", "other 1 1", "2 2 1", "3 1 1"])
        #expect(journal.counts.succeeded == 4 && journal.counts.open == 0)
        #expect(!journal.hasPending(view: "r", path: "/in/a"))
        #expect(lease(limit: 9, after: .seconds(99)).isEmpty)
    }

    @Test func `a job that stands alone and rests keeps the newer ones of its path behind it`() throws {
        acceptAlone("1", .created)
        acceptAlone("2")
        let first = try #require(lease(limit: 9).first)
        _ = again(first, after: .seconds(5))
        acceptAlone("3")
        #expect(lease(limit: 9, after: .seconds(4)).isEmpty)
        #expect(journal.nextDue(after: start) == start + .seconds(5))
        let again = try #require(lease(limit: 9, after: .seconds(5)).first)
        #expect(again.id == first.id && again.attempt == 2)
        end(again, .dead)
        #expect(lease(limit: 9, after: .seconds(5)).map(\.id.description) == ["2"])
    }

    @Test func `an own write drops the newest job that stands alone and tells of it, and lets go on what is behind`()
        throws
    {
        acceptAlone("1", .created, size: 1)
        let running = try #require(lease().first)
        acceptAlone("2", size: 2)
        acceptAlone("3", size: 3)
        let entry = LedgerEntry(view: "r", path: "/in/a", snapshot: .sample(size: 3))
        #expect(end(running, .succeeded, [entry]) == ["/in/a"])
        let second = try #require(lease(limit: 9).first)
        #expect(second.id == JobID("2"))
        end(second)
        #expect(journal.counts.open == 0)
        #expect(lease(limit: 9, after: .seconds(9)).isEmpty)
        acceptAlone("4", size: 4)
        #expect(lease(limit: 9).map(\.id.description) == ["4"])
    }

    /// A job that waits for its path must not hide when another job of its rule becomes due.
    @Test func `the next due job is found behind one that is due but can't run`() throws {
        accept(Self.job("1", .created, "/in/a"))
        accept(Self.job("2", .created, "/in/b"))
        let blocked = try #require(lease().first)
        let resting = try #require(lease().first)
        _ = again(blocked, after: .seconds(1))
        _ = again(resting, after: .seconds(30))
        #expect(journal.nextDue(after: start) == start + .seconds(1))
        // Another rule works on /in/a when its job becomes due.
        #expect(lease(limit: 9, busy: ["/in/a"], after: .seconds(2)).isEmpty)
        #expect(journal.nextDue(after: start + .seconds(2)) == start + .seconds(30))
        // Also when nobody looked at the rule, because it has no room.
        accept(Self.job("3", .created, "/in/c"), at: start + .seconds(3))
        #expect(journal.nextDue(after: start + .seconds(4)) == start + .seconds(30))
        #expect(
            lease(limit: 9, after: .seconds(30)).map(\.event.path) == ["/in/a", "/in/c", "/in/b"])
    }

    // MARK: Recording

    @Test func `the states are counted`() throws {
        for (number, state) in [JobState.succeeded, .skipped, .dead, .dead].enumerated() {
            accept(Self.job("\(number)", .created, PathBytes("/in/\(number)")))
            end(try #require(lease().first), state)
        }
        let counts = journal.counts
        #expect(counts.succeeded == 1 && counts.skipped == 1 && counts.dead == 2 && counts.open == 0)
    }

    @Test func `a returned job takes its snapshot back`() throws {
        accept(Self.job("1"))
        #expect(journal.snapshot(view: "r", path: "/in/a") == .sample())
        let new = try #require(lease().first)
        _ = journal.record(new, nil, .returned(at: start), [])
        #expect(journal.snapshot(view: "r", path: "/in/a") == nil)
        #expect(journal.counts.open == 0)

        accept(Self.job("2", .modified, .sample(size: 6), before: .sample()))
        let changed = try #require(lease().first)
        _ = journal.record(changed, nil, .returned(at: start), [])
        #expect(journal.snapshot(view: "r", path: "/in/a") == .sample())
    }

    /// The newer job rests on the newer snapshot: were that taken back, the same content would be told twice.
    @Test func `a job that waits to be done again ends when its file goes under another name`() throws {
        accept(Self.job("1", .attributes, before: .sample()))
        _ = again(try #require(lease().first))
        let moved = Self.job("2", .moved, "/in/b", from: "/in/a", before: .sample())
        let entries = [
            LedgerEntry(view: "r", path: "/in/a", snapshot: nil),
            LedgerEntry(view: "r", path: "/in/b", snapshot: .sample()),
        ]
        journal.accept([moved], entries, now: start)
        accept(Self.job("3", .deleted, "/in/b", before: .sample()))
        let last = lease(limit: 5)
        #expect(last.map(\.event.kind) == [.deleted] && last.map(\.event.path) == ["/in/a"])
        for job in last { end(job) }
        #expect(journal.counts.open == 0 && journal.counts.skipped == 1)
        #expect(!journal.hasPending(view: "r", path: "/in/a"))
    }

    /// Newer ones are merged with one that waits: what is known since is what the rule isn't told of.
    @Test func `a returned job leaves what was told since, but not what was known before`() throws {
        let newer = Snapshot.sample(size: 9, modified: 3_000)
        let cases = [(newer, true, true), (newer, false, false), (.sample(size: 1), true, false)]
        for (known, isGivenUp, isKept) in cases {
            var job = Self.job("1", .created, .sample(modified: 2_000))
            job.previous = PreviousAttempt(attempt: 1, outcome: "not-ready", message: "")
            job.previous?.isGivenUp = isGivenUp
            journal.accept([job], [LedgerEntry(view: "r", path: "/in/a", snapshot: known)], now: start)
            let leased = try #require(lease().first)
            _ = journal.record(leased, nil, .returned(at: start), [])
            #expect((journal.snapshot(view: "r", path: "/in/a") != nil) == isKept)
        }
    }

    @Test func `a returned job is served by the newer one of its path`() throws {
        accept(Self.job("1", .created, .sample(size: 1)))
        let returned = try #require(lease().first)
        accept(Self.job("2", .modified, .sample(size: 2), before: .sample(size: 1)))
        _ = journal.record(returned, nil, .returned(at: start), [])
        #expect(journal.snapshot(view: "r", path: "/in/a") == .sample(size: 2))
        #expect(journal.counts.pending == 1)
        let job = try #require(lease().first)
        #expect(job.event.kind == .created)
        #expect(job.event.snapshot.size == 2)
        #expect(job.event.before == nil)
        #expect(job.attempt == 1)
    }

    @Test func `a job that has to come again is served by the newer one of its path`() throws {
        accept(Self.job("1", .created, .sample(size: 1)))
        let running = try #require(lease().first)
        accept(Self.job("2", .modified, .sample(size: 2), before: .sample(size: 1)))
        _ = again(running, after: .seconds(60))
        #expect(journal.counts.pending == 1)
        let job = try #require(lease(limit: 9).first)
        #expect(job.id.description == "2")
        #expect(job.event.kind == .created)
        #expect(job.attempt == 1)
    }

    /// What was done for the old content is not done for the new one.
    @Test func `new content starts a pending job over`() throws {
        accept(Self.job("1", .created, .sample(size: 1)))
        var job = try #require(lease().first)
        job.steps = [Outcome(.succeeded, outputs: ["/out/a"])]
        _ = again(job)
        accept(Self.job("2", .modified, .sample(size: 2), before: .sample(size: 1)))
        let newer = try #require(lease().first)
        #expect(newer.steps.isEmpty)
        #expect(newer.attempt == 1)
        #expect(newer.previous == nil)
        #expect(newer.event.kind == .created && newer.event.snapshot.size == 2)
    }

    @Test func `new content starts a job over that has done a step`() throws {
        accept(Self.job("1", .created, .sample(size: 1)))
        var job = try #require(lease().first)
        job.steps = [Outcome(.succeeded)]
        // Not ready: that attempt does not count.
        _ = again(job, counts: false)
        accept(Self.job("2", .modified, .sample(size: 2), before: .sample(size: 1)))
        let newer = try #require(lease().first)
        #expect(newer.steps.isEmpty && newer.attempt == 1)
        #expect(newer.event.kind == .created && newer.event.snapshot.size == 2)
    }

    @Test func `new attributes leave a pending job where it is`() throws {
        accept(Self.job("1", .created, .sample(size: 1)))
        var job = try #require(lease().first)
        job.steps = [Outcome(.succeeded)]
        _ = again(job)
        accept(Self.job("2", .attributes, .sample(size: 1, mode: 0o600), before: .sample(size: 1)))
        let same = try #require(lease().first)
        #expect(same.steps.count == 1)
        #expect(same.attempt == 2)
        #expect(same.event.snapshot.mode == 0o600)
    }

    @Test func `new attributes leave a job that runs where it is`() throws {
        accept(Self.job("1", .created, .sample(size: 1)))
        var job = try #require(lease().first)
        accept(Self.job("2", .attributes, .sample(size: 1, mode: 0o600), before: .sample(size: 1)))
        job.steps = [Outcome(.succeeded)]
        _ = again(job, after: .seconds(9))
        #expect(journal.counts.pending == 1)
        #expect(lease(limit: 9, after: .seconds(8)).isEmpty)
        let same = try #require(lease(limit: 9, after: .seconds(9)).first)
        #expect(same.id.description == "1")
        #expect(same.steps.count == 1)
        #expect(same.attempt == 2)
        #expect(same.event.kind == .created && same.event.snapshot.mode == 0o600)
    }

    @Test func `a deletion starts a pending job over`() throws {
        accept(Self.job("1", .created, .sample(size: 1)))
        var job = try #require(lease().first)
        job.steps = [Outcome(.succeeded)]
        _ = again(job)
        accept(Self.job("2", .deleted, .sample(size: 1)))
        let deleted = try #require(lease().first)
        #expect(deleted.event.kind == .deleted)
        #expect(deleted.steps.isEmpty && deleted.attempt == 1)
    }

    // MARK: Moves

    @Test func `a file that moves on before it was told has one job`() throws {
        accept(Self.job("1", .moved, "/in/b", from: "/in/a", before: .sample()))
        accept(Self.job("2", .moved, "/in/c", from: "/in/b", before: .sample()))
        let jobs = lease(limit: 9)
        #expect(jobs.map(\.event.path) == ["/in/c"])
        #expect(jobs.first?.event.from == "/in/a")
        #expect(jobs.first?.event.kind == .moved)
    }

    @Test func `a new file that moves before it was told is created under its new name`() throws {
        accept(Self.job("1", .created, "/in/a"))
        accept(Self.job("2", .moved, "/in/b", from: "/in/a", before: .sample()))
        let jobs = lease(limit: 9)
        #expect(jobs.map(\.event.path) == ["/in/b"])
        #expect(jobs.first?.event.kind == .created)
        #expect(jobs.first?.event.from == nil)
        #expect(jobs.first?.event.before == nil)
        #expect(journal.counts.pending == 0)
    }

    // MARK: Own writes

    @Test func `own writes are known, and drop exactly the job that rests on them`() throws {
        accept(Self.job("1", .created, "/in/a"))
        let running = try #require(lease().first)
        let output = Snapshot.sample(file: 2, size: 7)
        accept(Self.job("2", .created, "/in/out", output))
        accept(Self.job("3", .created, "/in/other", .sample(file: 3, size: 7)))
        accept(Self.job("4", .created, "/in/out", rule: "s", output))
        let dropped = end(
            running, .succeeded,
            [
                LedgerEntry(view: "r", path: "/in/out", snapshot: output),
                LedgerEntry(view: "r", path: "/in/new", snapshot: .sample(file: 4)),
            ])
        #expect(dropped == ["/in/out"])
        #expect(journal.snapshot(view: "r", path: "/in/new") == .sample(file: 4))
        #expect(journal.counts.pending == 2)
        #expect(lease(limit: 9).map(\.id.description) == ["3"])
        #expect(lease("s", limit: 9).map(\.id.description) == ["4"])
    }

    @Test func `a change after the own write is kept`() throws {
        accept(Self.job("1", .created, "/in/a"))
        let running = try #require(lease().first)
        accept(Self.job("2", .created, "/in/out", .sample(file: 2, size: 8)))
        let dropped = end(
            running, .succeeded, [LedgerEntry(view: "r", path: "/in/out", snapshot: .sample(file: 2, size: 7))])
        #expect(dropped.isEmpty)
        #expect(lease(limit: 9).map(\.id.description) == ["2"])
    }

    @Test func `the own removal of a file drops the job that tells of it`() throws {
        accept(Self.job("1", .created, "/in/a"))
        let running = try #require(lease().first)
        accept(Self.job("2", .deleted, "/in/a"))
        let dropped = end(running, .succeeded, [LedgerEntry(view: "r", path: "/in/a", snapshot: nil)])
        #expect(dropped == ["/in/a"])
        #expect(journal.counts.open == 0)
        #expect(lease(limit: 9).isEmpty)
    }

    @Test func `an own removal leaves the job of a file that came since`() throws {
        accept(Self.job("1", .created, "/in/a"))
        let running = try #require(lease().first)
        accept(Self.job("2", .modified, "/in/a", .sample(file: 9), before: .sample()))
        #expect(end(running, .succeeded, [LedgerEntry(view: "r", path: "/in/a", snapshot: nil)]).isEmpty)
        #expect(lease(limit: 9).map(\.id.description) == ["2"])
    }

    /// A program that wrote in place and wants to be asked again: the job rests on its own write.
    @Test(arguments: [true, false])
    func `own writes never drop the job that made them`(counts: Bool) throws {
        accept(Self.job("1", .created, "/in/a"))
        var running = try #require(lease().first)
        running.event.snapshot = .sample(size: 99)
        let dropped = again(
            running, counts: counts, [LedgerEntry(view: "r", path: "/in/a", snapshot: .sample(size: 99))])
        #expect(dropped.isEmpty)
        #expect(journal.counts.pending == 1)
        #expect(lease(limit: 9).map(\.id.description) == ["1"])
    }

    // MARK: Ledger

    @Test func `the ledger forgets, and knows what is in a folder`() {
        for path in ["/in", "/in/a", "/in/a.b", "/in/a/c", "/in/a/c/d", "/inside"] as [PathBytes] {
            journal.accept([], [LedgerEntry(view: "r", path: path, snapshot: .sample())], now: start)
        }
        #expect(journal.known(inside: "/in/a") == ["/in/a", "/in/a/c", "/in/a/c/d"])
        #expect(journal.known(inside: "/").count == 6)
        #expect(journal.paths(view: "s", identity: Snapshot.sample().identity).isEmpty)
        journal.accept([], [LedgerEntry(view: "r", path: "/in/a", snapshot: nil)], now: start)
        #expect(journal.known(inside: "/in/a") == ["/in/a/c", "/in/a/c/d"])
        #expect(journal.snapshot(view: "r", path: "/in/a") == nil)
        #expect(journal.snapshot(view: "s", path: "/in/a/c") == nil)
    }

    @Test func `a file is found under its present name`() {
        let file = Snapshot.sample(file: 5)
        func set(_ path: PathBytes, _ snapshot: Snapshot?) {
            journal.accept([], [LedgerEntry(view: "r", path: path, snapshot: snapshot)], now: start)
        }
        func path() -> PathBytes? { journal.paths(view: "r", identity: file.identity).first }
        #expect(path() == nil)
        set("/a", file)
        #expect(path() == "/a")
        // A move as the pipeline commits it, in either order.
        journal.accept(
            [],
            [
                LedgerEntry(view: "r", path: "/a", snapshot: nil), LedgerEntry(view: "r", path: "/b", snapshot: file),
            ], now: start)
        #expect(path() == "/b")
        set("/c", file)
        #expect(path() == "/b")
        set("/b", nil)
        #expect(path() == "/c")
        // Another file takes the name.
        set("/c", .sample(file: 6))
        #expect(path() == nil)
        #expect(journal.paths(view: "s", identity: file.identity).isEmpty)
    }

    @Test func `a file with two names is found when one of them goes`() {
        let file = Snapshot.sample(file: 5)
        func set(_ path: PathBytes, _ snapshot: Snapshot?) {
            journal.accept([], [LedgerEntry(view: "r", path: path, snapshot: snapshot)], now: start)
        }
        set("/a", file)
        set("/b", file)
        #expect(journal.paths(view: "r", identity: file.identity) == ["/a", "/b"])
        set("/b", nil)
        #expect(journal.paths(view: "r", identity: file.identity) == ["/a"])
        set("/b", file)
        set("/a", .sample(file: 6))
        #expect(journal.paths(view: "r", identity: file.identity) == ["/b"])
        set("/b", nil)
        #expect(journal.paths(view: "r", identity: file.identity).isEmpty)
    }
}

extension Journal {
    /// The paths that the rule `r` knows in the folder.
    fileprivate func known(inside folder: PathBytes) -> [PathBytes] {
        var paths: [PathBytes] = []
        visit(view: "r", inside: folder) { path, _ in paths.append(path) }
        return paths.sorted()
    }
}
