import FileEvents
import Journaling
import PluginProtocol
import Reconciling
import Rules
import TestKit
import Testing

/// What the journal must not lose: text that was added, what a look at a path does not give, and moments.
@Suite(.onEachJournal)
struct KeptFactsTests {
    let place = TestJournal()
    var journal: any Journal { place.journal }
    let start = ContinuousClock.now

    func job(
        _ id: String, _ kind: EventKind, _ path: PathBytes = "/in/log", from: PathBytes? = nil,
        _ snapshot: Snapshot = .sample(), tail text: String? = nil, at offset: UInt64 = 0
    ) -> Job {
        var event = FileEvent.sample(kind, path, from: from, snapshot, before: kind == .created ? nil : .sample())
        event.tail = text.map { TailText(offset: offset, bytes: Array($0.utf8)) }
        return Job(id: JobID(id), rule: "r", event: event)
    }

    func accept(_ job: Job) {
        let entry = LedgerEntry(view: "r", path: job.event.path, snapshot: job.event.snapshot)
        journal.accept([job], [entry], now: start)
    }

    func lease(_ limit: Int = 1) -> [Job] { journal.lease(rule: "r", limit: limit, busy: [], now: start) }

    func again(_ job: Job) { _ = journal.record(job, nil, .again(at: start, Outcome(.retry), counts: true), []) }

    func succeed(_ job: Job, _ ownWrites: [LedgerEntry] = []) {
        _ = journal.record(job, nil, .ended(.succeeded, Outcome(.succeeded)), ownWrites)
    }

    @Test func `S38 an event that joins another keeps the text of it`() throws {
        accept(job("1", .modified, tail: "one", at: 3))
        accept(job("2", .attributes))
        let leased = try #require(lease().first)
        #expect(leased.event.kind == .modified)
        #expect(leased.event.tail == TailText(offset: 3, bytes: Array("one".utf8)))
    }

    @Test func `S38 text that follows joins what waits`() throws {
        accept(job("1", .modified, tail: "one", at: 3))
        accept(job("2", .modified, tail: "two", at: 6))
        let leased = lease(2)
        #expect(leased.count == 1)
        #expect(leased.first?.event.tail == TailText(offset: 3, bytes: Array("onetwo".utf8)))
    }

    @Test func `S38 a move takes the text along, a deletion comes beside it`() throws {
        accept(job("1", .modified, tail: "one", at: 3))
        accept(job("2", .moved, "/in/log.1", from: "/in/log"))
        accept(job("3", .deleted, "/in/log.1"))
        let moved = try #require(lease().first)
        #expect(moved.event.kind == .moved && moved.event.tail?.bytes == Array("one".utf8))
        succeed(moved)
        #expect(lease().first?.event.kind == .deleted)
    }

    @Test func `S38 after a failure the text comes again, and nothing newer swallows it`() throws {
        accept(job("1", .modified, tail: "one", at: 3))
        let first = try #require(lease().first)
        accept(job("2", .deleted))
        again(first)
        #expect(journal.hasPending(view: "r", path: "/in/log"))
        var told: [Job] = []
        while let job = lease().first {
            told.append(job)
            succeed(job)
        }
        #expect(Set(told.map(\.id.description)) == ["1", "2"])
        #expect(told.first { $0.id.description == "1" }?.event.tail?.bytes == Array("one".utf8))
        #expect(told.first { $0.id.description == "1" }?.attempt == 2)
    }

    @Test func `S38 a path has something pending until its job has ended`() throws {
        accept(job("1", .modified, tail: "one"))
        #expect(journal.hasPending(view: "r", path: "/in/log"))
        let leased = try #require(lease().first)
        #expect(journal.hasPending(view: "r", path: "/in/log"))
        succeed(leased)
        #expect(!journal.hasPending(view: "r", path: "/in/log"))
    }

    @Test func `S27 an own write keeps what a look does not give, and drops no text`() throws {
        var known = Snapshot.sample()
        known.digest = [1]
        known.delivered = 5
        known.extended = []
        accept(job("1", .created, "/in/log", known))
        let leased = try #require(lease().first)
        let later = Snapshot.sample(size: 9, modified: 2_000)
        var grown = later
        grown.delivered = 9
        grown.digest = [1]
        accept(job("2", .modified, "/in/log", grown, tail: "more"))
        succeed(leased, [LedgerEntry(view: "r", path: "/in/log", snapshot: later)])
        let kept = journal.snapshot(view: "r", path: "/in/log")
        #expect(kept?.size == 9 && kept?.digest == [1] && kept?.delivered == 9)
        #expect(lease().first?.event.tail?.bytes == Array("more".utf8))
    }

    @Test func `S02 the checksum of what was handled is noted, unless the file is another by then`() throws {
        for isChanged in [false, true] {
            let path: PathBytes = isChanged ? "/in/a" : "/in/b"
            accept(job("\(path)", .created, path))
            var leased = try #require(lease().first)
            leased.event.snapshot.digest = [7]
            if isChanged {
                let entry = LedgerEntry(view: "r", path: path, snapshot: .sample(size: 99))
                journal.accept([], [entry], now: start)
            }
            succeed(leased)
            #expect(journal.snapshot(view: "r", path: path)?.digest == (isChanged ? nil : [7]))
        }
    }

    @Test func `S32 what tells of a moment comes again for itself`() throws {
        accept(job("1", .arriving))
        let arriving = try #require(lease().first)
        accept(job("2", .created))
        again(arriving)
        var told: [EventKind] = []
        while let job = lease().first {
            told.append(job.event.kind)
            succeed(job)
        }
        #expect(told.sorted { $0.rawValue < $1.rawValue } == [.arriving, .created])
    }

    // MARK: Facts

    /// Ways in which a job may differ from most.
    static let oddities: [@Sendable (inout Job) -> Void] = [
        { _ in },
        { $0.event.snapshot.born = nil },
        { $0.event.snapshot.identity.birth = 0 },
        { $0.event.snapshot.born = Timestamp(seconds: 7, nanoseconds: 999_999_999) },
        { $0.event.snapshot.born = Timestamp(seconds: -7, nanoseconds: 3) },
        { $0.event.snapshot.extended = [] },
        { $0.event.snapshot.digest = [1, 2] },
        { $0.event.snapshot.delivered = 7 },
        { $0.event.snapshot.type = .symlink },
        { $0.event.before = .sample() },
        { $0.event.changed = ["mode"] },
        { $0.event.isReplaced = true },
        { $0.event.isByMove = true },
        { $0.event.sameAs = ["/in/b"] },
        { $0.event.children = 3 },
        { $0.event.origin = .rescan },
        { $0.event.author = .process(WritingProcess(pid: 7)) },
        { $0.mask = .created },
        { $0.isInterrupted = true },
        { $0.previous = PreviousAttempt(attempt: 1, outcome: "retry", message: nil) },
        { $0.steps = [Outcome(.succeeded)] },
        { $0.isAlone = true },
    ]

    @Test(arguments: oddities.indices) func `a job is leased with all that it was accepted with`(_ index: Int) throws {
        var snapshot = Snapshot.sample()
        snapshot.born = Timestamp(seconds: 1_700_000_000, nanoseconds: 123_456_789)
        snapshot.identity.birth = 1_700_000_000_123_456_789
        var made = job("1", .created, "/in/log", snapshot)
        Self.oddities[index](&made)
        accept(made)
        var leased = try #require(lease().first)
        #expect(leased.attempt == 1)
        leased.attempt = 0
        leased.due = nil
        #expect(leased == made)
    }
}
