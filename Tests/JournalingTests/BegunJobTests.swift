import FileEvents
import Journaling
import PluginProtocol
import Reconciling
import Rules
import TestKit
import Testing

/// What is told after an action has begun with an event, and nobody knows how far it came.
struct BegunJobTests {
    private let bench = DiskBench()

    private func move(
        _ id: String, _ from: PathBytes, _ to: PathBytes, _ file: Snapshot, mask: EventMask = .differences
    ) throws {
        let event = FileEvent.sample(.moved, to, from: from, file, before: file)
        let entries = [
            LedgerEntry(view: "r", path: from, snapshot: nil), LedgerEntry(view: "r", path: to, snapshot: file),
        ]
        try bench.journal.accept([Job(id: JobID(id), rule: "r", event: event, mask: mask)], entries, now: bench.now)
    }

    /// Leases a job, and opens the journal again as after a kill; the result is the job as it is leased then.
    private func cutOff() throws -> Job {
        _ = try #require(try bench.lease().first)
        #expect(try bench.commit() == nil)
        bench.kill()
        return try #require(try bench.lease().first)
    }

    private func told() throws -> [String] {
        try bench.lease(9).map { job in
            "\(job.event.kind.rawValue) \(job.event.path)" + (job.event.from.map { " from \($0)" } ?? "")
        }.sorted()
    }

    @Test func `its path is told as gone when the file has another name before it is run again`() throws {
        try bench.accept("1", .created, "/in/a", .sample(file: 1))
        let job = try cutOff()
        try move("2", "/in/a", "/in/b", .sample(file: 1))
        _ = try bench.journal.record(job, nil, .returned(at: bench.now), [])
        #expect(try told() == ["created /in/b", "deleted /in/a"])
    }

    @Test func `a move that was accepted later is not told before it, however long it rests`() throws {
        try bench.set("/in/a", .sample(file: 1))
        try bench.accept("1", .modified, "/in/a", .sample(file: 1, size: 9))
        let job = try cutOff()
        _ = try bench.journal.record(job, nil, .early(due: bench.now + .seconds(2)), [])
        try move("2", "/in/a", "/in/b", .sample(file: 1, size: 9))
        try bench.accept("3", .created, "/in/c", .sample(file: 3))
        #expect(try bench.lease(9).map(\.id.description) == ["3"])
        bench.wait(.seconds(3))
        let again = try #require(try bench.lease().first)
        #expect(again.id == JobID("1"))
        try bench.end(again)
        #expect(try bench.lease(9).map(\.id.description) == ["2"])
    }

    @Test func `what comes to its path after a move from there is told after that move`() throws {
        try bench.set("/in/a", .sample(file: 1))
        try bench.set("/in/b", .sample(file: 2))
        try bench.accept("1", .modified, "/in/a", .sample(file: 1, size: 9))
        try bench.accept("2", .modified, "/in/b", .sample(file: 2, size: 9))
        _ = try bench.lease(9)
        #expect(try bench.commit() == nil)
        bench.kill()
        let jobs = try bench.lease(9)
        #expect(jobs.map(\.id.description) == ["1", "2"])
        try bench.accept("3", .modified, "/in/a", .sample(file: 1, size: 10))
        for job in jobs { _ = try bench.journal.record(job, nil, .early(due: bench.now), []) }
        try move("4", "/in/a", "/in/b", .sample(file: 1, size: 10))
        try bench.accept("5", .created, "/in/a", .sample(file: 5))
        let besides = try bench.journal.lease(rule: "r", limit: 9, busy: ["/in/b"], now: bench.now)
        #expect(besides.isEmpty, "it does not overtake the move while the new name is busy")
        var told: [String] = []
        while let job = try bench.lease().first {
            told.append("\(job.event.kind.rawValue) \(job.event.path)\(job.isInterrupted ? ", interrupted" : "")")
            try bench.end(job)
        }
        #expect(told == ["moved /in/b, interrupted", "modified /in/a, interrupted"])
    }

    @Test func `what comes to the old name waits for a move that was cut off, however long that rests`() throws {
        try bench.set("/in/a", .sample(file: 1))
        try move("1", "/in/a", "/in/b", .sample(file: 1))
        let job = try cutOff()
        _ = try bench.journal.record(job, nil, .early(due: bench.now + .seconds(2)), [])
        try bench.accept("2", .created, "/in/a", .sample(file: 2))
        try bench.accept("3", .created, "/in/c", .sample(file: 3))
        #expect(try bench.lease(9).map(\.id.description) == ["3"])
        #expect(try bench.journal.lease(rule: "r", paths: ["/in/a"], busy: [], now: bench.now).isEmpty)
        bench.wait(.seconds(3))
        let again = try #require(try bench.lease().first)
        #expect(again.id == JobID("1"))
        try bench.end(again)
        #expect(try bench.lease(9).map(\.id.description) == ["2"])
    }

    @Test func `what it was moved from is told again when the file is back there`() throws {
        try bench.set("/in/a", .sample(file: 1))
        try move("1", "/in/a", "/in/b", .sample(file: 1))
        let job = try cutOff()
        try move("2", "/in/b", "/in/a", .sample(file: 1))
        _ = try bench.journal.record(job, nil, .returned(at: bench.now), [])
        #expect(try told() == ["created /in/a", "deleted /in/b"])
    }

    @Test func `that its old name is gone is not told of another file there, whatever another rule is told`() throws {
        try bench.set("/in/a", .sample(file: 1))
        try move("1", "/in/a", "/in/b", .sample(file: 1))
        let job = try cutOff()
        try bench.again(job, after: .seconds(9))
        try bench.accept("2", .created, "/in/a", .sample(file: 2))
        let second = try #require(try bench.lease().first)
        try bench.end(second)
        let gone = FileEvent.sample(.deleted, "/in/b", .sample(file: 1), before: .sample(file: 1))
        let other = FileEvent.sample(.modified, "/in/a", .sample(file: 2), before: .sample(file: 2))
        try bench.journal.accept(
            [Job(id: JobID("3"), rule: "r", event: gone), Job(id: JobID("4"), rule: "s", event: other)],
            [LedgerEntry(view: "r", path: "/in/b", snapshot: nil)], now: bench.now)
        #expect(try told() == ["deleted /in/b"])
    }

    // MARK: Attempts that failed

    /// How an attempt ends in which no action could begin.
    private var unbegun: Outcome {
        var outcome = Outcome(.retry, "it can't be looked at", code: "unreadable")
        outcome.isUnbegun = true
        return outcome
    }

    @Test func `a move with which no action could begin is told of where its file is by then`() throws {
        try bench.set("/in/a", .sample(file: 1))
        try move("1", "/in/a", "/in/b", .sample(file: 1))
        try bench.again(try #require(try bench.lease().first), after: .seconds(5), unbegun)
        #expect(try bench.commit() == nil)
        bench.kill()
        try bench.accept("2", .created, "/in/a", .sample(file: 2))
        try move("3", "/in/a", "/in/c", .sample(file: 2))
        try move("4", "/in/b", "/in/d", .sample(file: 1))
        #expect(try told() == ["created /in/c", "created /in/d", "deleted /in/a"])
    }

    @Test func `of a new file with which no action could begin nothing is told when it is gone`() throws {
        try bench.accept("1", .created, "/in/a", .sample(file: 1))
        try bench.again(try #require(try bench.lease().first), after: .seconds(5), unbegun)
        try bench.accept("2", .deleted, "/in/a", .sample(file: 1), before: .sample(file: 1))
        #expect(try told() == [])
        #expect(try bench.commit() == nil)
        #expect(try bench.rows("SELECT id, state, code FROM jobs ORDER BY id") == ["1|skipped|superseded"])
    }

    @Test func `a move that has failed is not told again after a new file at its old name`() throws {
        try bench.set("/in/a", .sample(file: 1))
        try move("1", "/in/a", "/in/b", .sample(file: 1))
        try bench.again(try #require(try bench.lease().first), after: .seconds(5))
        try bench.accept("2", .created, "/in/a", .sample(file: 2))
        #expect(try bench.commit() == nil)
        #expect(try bench.rows("SELECT state, code FROM jobs WHERE id = '1'") == ["skipped|superseded"])
        let jobs = try bench.lease(9)
        #expect(jobs.map(\.event.path) == ["/in/a", "/in/b"] && jobs.map(\.event.kind) == [.modified, .created])
        #expect(!jobs.contains { $0.id == JobID("1") }, "an id is that of one event")
    }

    @Test(arguments: [EventMask.moved, [.moved, .modified], [.moved, .deleted, .modified]])
    func `where its rule is not told of new files it keeps its pause and its attempts`(mask: EventMask) throws {
        try bench.set("/in/a", .sample(file: 1))
        try move("1", "/in/a", "/in/b", .sample(file: 1), mask: mask)
        try bench.again(try #require(try bench.lease().first), after: .seconds(5))
        let event = FileEvent.sample(.modified, "/in/a", .sample(file: 2), before: .sample(file: 2))
        try bench.journal.accept([Job(id: JobID("2"), rule: "r", event: event, mask: mask)], [], now: bench.now)
        #expect(try told() == ["modified /in/a"])
        bench.wait(.seconds(6))
        let again = try #require(try bench.lease().first)
        #expect(again.id == JobID("1") && again.attempt == 2)
    }

    @Test func `what ran when its rule was taken away stands where it was, whatever rests before it`() throws {
        try bench.set("/in/a", .sample(file: 1))
        try move("1", "/in/a", "/in/b", .sample(file: 1), mask: [.moved, .modified])
        try bench.again(try #require(try bench.lease().first), after: .seconds(5))
        let event = FileEvent.sample(.modified, "/in/a", .sample(file: 2), before: .sample(file: 2))
        let change = Job(id: JobID("2"), rule: "r", event: event, mask: [.moved, .modified])
        try bench.journal.accept([change], [], now: bench.now)
        let job = try #require(try bench.lease().first)
        #expect(job.id == JobID("2"))
        _ = try bench.journal.begin([RuleRecord(name: "s", selection: "*")], at: bench.wall)
        try bench.again(job, after: .zero)
        _ = try bench.journal.begin(DiskBench.rules, at: bench.wall)
        bench.wait(.seconds(6))
        var kinds: [EventKind] = []
        while let job = try bench.lease().first {
            kinds.append(job.event.kind)
            try bench.end(job)
        }
        #expect(kinds == [.modified, .moved])
    }

    @Test(arguments: [EventMask.moved, [.moved, .deleted], .differences])
    func `a move that has failed and is undone is told in what the rule is told of`(mask: EventMask) throws {
        try bench.set("/in/a", .sample(file: 1))
        try move("1", "/in/a", "/in/b", .sample(file: 1), mask: mask)
        try bench.again(try #require(try bench.lease().first), after: .seconds(5))
        try move("2", "/in/b", "/in/a", .sample(file: 1), mask: mask)
        let halves = ["created /in/a", "deleted /in/b"]
        #expect(try told() == (mask == .differences ? halves : ["moved /in/a from /in/b"]))
    }

    @Test func `a new file with which an action has failed is new under its next name`() throws {
        try bench.accept("1", .created, "/in/a", .sample(file: 1))
        try bench.again(try #require(try bench.lease().first), after: .seconds(5))
        try move("2", "/in/a", "/in/b", .sample(file: 1))
        #expect(try told() == ["created /in/b", "deleted /in/a"])
    }

    @Test func `a change with which an action has failed goes along with the file`() throws {
        try bench.set("/in/a", .sample(file: 1))
        var event = FileEvent.sample(.modified, "/in/a", .sample(file: 1, size: 9), before: .sample(file: 1))
        event.changed = ["extended"]
        try bench.journal.accept([Job(id: JobID("1"), rule: "r", event: event)], [], now: bench.now)
        try bench.again(try #require(try bench.lease().first), after: .seconds(5))
        try move("2", "/in/a", "/in/b", .sample(file: 1, size: 9))
        let move = try #require(try bench.lease().first)
        #expect(move.event.kind == .moved && move.event.from == "/in/a" && move.event.changed == ["extended"])
        #expect(try bench.lease().isEmpty)
    }

    @Test func `content that an action failed with takes the place of what was handled before`() throws {
        var handled = Snapshot.sample(file: 1)
        handled.digest = [1]
        try bench.set("/in/a", handled)
        let event = FileEvent.sample(.modified, "/in/a", .sample(file: 1), before: handled)
        try bench.journal.accept([Job(id: JobID("1"), rule: "r", event: event)], [], now: bench.now)
        try bench.again(try #require(try bench.lease().first), after: .zero, unbegun)
        #expect(try bench.known("/in/a")?.digest == [1], "no action has begun")
        try bench.end(try #require(try bench.lease().first), .dead, Outcome(.failed, "no"))
        #expect(try bench.known("/in/a")?.digest == nil)
    }

    @Test func `what comes back while its rule is away stands before what came meanwhile`() throws {
        try bench.set("/in/a", .sample(file: 1))
        try move("1", "/in/a", "/in/b", .sample(file: 1))
        let job = try #require(try bench.lease().first)
        try bench.accept("2", .created, "/in/a", .sample(file: 2))
        _ = try bench.journal.begin([RuleRecord(name: "s", selection: "*")], at: bench.wall)
        try bench.again(job, after: .seconds(5))
        _ = try bench.journal.begin(DiskBench.rules, at: bench.wall)
        #expect(try told() == ["created /in/b", "modified /in/a"])
    }

    @Test func `a new file with which an action has failed is told as gone, whatever came between`() throws {
        try bench.accept("1", .created, "/in/a", .sample(file: 1))
        try bench.again(try #require(try bench.lease().first), after: .seconds(5))
        try bench.accept("2", .modified, "/in/a", .sample(file: 1, size: 9), before: .sample(file: 1))
        #expect(try bench.commit() == nil)
        #expect(try bench.rows("SELECT id, state, is_heir FROM jobs ORDER BY id") == ["1|skipped|0", "2|pending|1"])
        bench.kill()
        try bench.accept("3", .deleted, "/in/a", .sample(file: 1, size: 9), before: .sample(file: 1, size: 9))
        #expect(try told() == ["deleted /in/a"])
    }

    /// Whose action has begun is told, by the attempts that ended before `alight retry`.
    @Test(arguments: [[false], [true, false], [false, true], [true], [true, true]])
    func `a new file that has failed for good is told as gone once asked for again`(areUnbegun: [Bool]) throws {
        try bench.accept("1", .created, "/in/a", .sample(file: 1))
        for (place, isUnbegun) in areUnbegun.enumerated() {
            let job = try #require(try bench.lease().first)
            // As the engine says it: not after an action has begun before.
            let outcome = isUnbegun && !areUnbegun[..<place].contains(false) ? unbegun : Outcome(.retry, "no")
            if place < areUnbegun.count - 1 {
                try bench.again(job, after: .zero, outcome)
            } else {
                try bench.end(job, .dead, outcome)
            }
        }
        #expect(try bench.commit() == nil)
        try bench.retry("1")
        try bench.accept("2", .deleted, "/in/a", .sample(file: 1), before: .sample(file: 1))
        #expect(try told() == (areUnbegun.contains(false) ? ["deleted /in/a"] : []))
    }
}
