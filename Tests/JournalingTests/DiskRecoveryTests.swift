import FileEvents
import GRDB
import Journaling
import PluginProtocol
import Reconciling
import Rules
import Synchronization
import TestKit
import Testing

/// What the next run finds of what the one before did.
struct DiskRecoveryTests {
    let bench = DiskBench()

    @Test func `what was not committed was never there`() throws {
        try bench.accept("1")
        #expect(try bench.commit() == nil)
        try bench.accept("2", .created, "/in/b")
        bench.kill()
        #expect(try bench.journal.counts.pending == 1)
        #expect(try bench.known("/in/a") == .sample())
        #expect(try bench.known("/in/b") == nil)
        #expect(try bench.lease(9).map(\.id.description) == ["1"])
    }

    @Test func `a job that ran is due at once, counted up, and told that it was cut off`() throws {
        try bench.accept("1")
        let first = try #require(try bench.lease().first)
        #expect(!first.isInterrupted)
        #expect(try bench.commit() == nil)
        bench.wait(.seconds(60))
        for attempt in 2...3 {
            bench.kill()
            #expect(try bench.journal.interrupted == 1)
            #expect(try bench.journal.counts.pending == 1)
            let again = try #require(try bench.lease().first)
            #expect(again.attempt == attempt)
            #expect(again.isInterrupted)
            #expect(again.event == first.event)
            #expect(again.previous?.attempt == attempt - 1)
            #expect(try bench.commit() == nil)
        }
        #expect(
            try bench.rows("SELECT job, number, outcome, started FROM attempts ORDER BY number") == [
                "1|1|interrupted|1000000000000000000", "1|2|interrupted|1000000060000000000",
            ])
        // Once it has ended, nothing is left of that.
        let job = try #require(
            try {
                bench.kill(); return try bench.lease().first
            }())
        try bench.again(job, after: .zero)
        #expect(try bench.lease().first?.isInterrupted == false)
    }

    @Test func `what an action was told of before it was cut off is told to be gone`() throws {
        try bench.accept("1", .created, "/in/a", .sample(size: 1))
        _ = try bench.lease()
        #expect(try bench.commit() == nil)
        bench.kill()
        // Its content is another, and before anybody is told of that it is gone.
        try bench.accept("2", .modified, "/in/a", .sample(size: 2), before: .sample(size: 1))
        #expect(try bench.commit() == nil)
        bench.kill()
        try bench.accept("3", .deleted, "/in/a", .sample(size: 2), before: .sample(size: 2))
        let job = try #require(try bench.lease(9).first)
        #expect(job.event.kind == .deleted)
        #expect(job.isInterrupted)
    }

    @Test func `an id under which an action was told of one thing never tells of another`() throws {
        let file = Snapshot.sample(file: 7)
        let event = FileEvent.sample(.moved, "/in/b", from: "/in/a", file, before: file)
        let entries = [("/in/a", nil), ("/in/b", file)] as [(PathBytes, Snapshot?)]
        try bench.journal.accept(
            [Job(id: JobID("1"), rule: "r", event: event)],
            entries.map { LedgerEntry(view: "r", path: $0, snapshot: $1) }, now: bench.now)
        _ = try bench.lease()
        #expect(try bench.commit() == nil)
        bench.kill()
        let again = try #require(try bench.lease().first)
        #expect(again.id.description == "1" && again.attempt == 2)
        // Another file has come to the path, before the action began again.
        try bench.accept("2", .modified, "/in/b", .sample(file: 8), before: file)
        _ = try bench.journal.record(again, nil, .returned(at: bench.now), [])
        let rest = try bench.lease(9)
        #expect(!rest.isEmpty)
        #expect(rest.allSatisfy { $0.id.description != "1" && $0.attempt == 1 })
        #expect(rest.contains { $0.isInterrupted })
    }

    @Test func `a newer job of its path does the work of one that was cut off`() throws {
        try bench.accept("1", .created, "/in/a", .sample(size: 1))
        _ = try bench.lease()
        try bench.accept("2", .modified, "/in/a", .sample(size: 2), before: .sample(size: 1))
        #expect(try bench.commit() == nil)
        bench.kill()
        let job = try #require(try bench.lease(9).first)
        #expect(job.id.description == "2")
        #expect(job.event.kind == .created && job.event.snapshot.size == 2)
        #expect(job.isInterrupted)
        #expect(try bench.commit() == nil)
        #expect(try bench.rows("SELECT state, code FROM jobs WHERE id = '1'") == ["skipped|superseded"])
    }

    @Test func `jobs come back in their order, and rest until they are due`() throws {
        for number in 0..<9 { try bench.accept("\(number)", .created, PathBytes("/in/\(9 - number)")) }
        let failed = try #require(try bench.lease().first)
        try bench.again(failed, after: .seconds(30))
        #expect(try bench.commit() == nil)
        bench.wait(.seconds(10))
        bench.kill()
        #expect(try bench.journal.nextDue(after: bench.now) == bench.now + .seconds(20))
        #expect(try bench.journal.resting(at: bench.now) == 1)
        #expect(try bench.lease(9).map(\.id.description) == (1..<9).map(String.init))
        bench.wait(.seconds(20))
        let last = try #require(try bench.lease().first)
        #expect(last.id == failed.id && last.attempt == 2 && !last.isInterrupted)
        #expect(last.previous == PreviousAttempt(attempt: 1, outcome: "retry", message: "not now"))
    }

    /// A job that failed and waits 30 seconds for its next attempt, and one that was never tried.
    private func acceptResting() throws {
        for id in ["1", "2"] { try bench.accept(id, .created, PathBytes("/in/\(id)")) }
        try bench.again(try #require(try bench.lease().first), after: .seconds(30))
    }

    /// Whether the second is due now, and the first after so many seconds.
    private func expectResting(_ seconds: Int, sourceLocation: SourceLocation = #_sourceLocation) throws {
        #expect(
            try bench.journal.nextDue(after: bench.now) == bench.now + .seconds(seconds), sourceLocation: sourceLocation
        )
        #expect(try bench.lease(9).map(\.id.description) == ["2"], sourceLocation: sourceLocation)
    }

    static let days = [-30, -1, 1, 30]

    @Test(arguments: days)
    func `a retry waits as long as it should when the clock was set between two runs`(days: Int) throws {
        try acceptResting()
        #expect(try bench.commit() == nil)
        bench.kill()
        bench.setClock(by: .seconds(days * 24 * 3600))
        bench.wait(.seconds(10))
        try expectResting(20)
    }

    @Test(arguments: days, [false, true])
    func `a retry waits as long as it should when the clock was set while the program ran`(
        days: Int, isSecured: Bool
    ) throws {
        try acceptResting()
        #expect(try bench.commit() == nil)
        bench.setClock(by: .seconds(days * 24 * 3600))
        bench.wait(.seconds(10))
        try bench.accept("3", .created, "/in/3")
        #expect(try isSecured ? bench.journal.secure(at: bench.wall) == nil : bench.commit() == nil)
        let ahead = try bench.rows(
            "SELECT (a.due - b.due) / 1000000000 FROM jobs a, jobs b WHERE a.id = '1' AND b.id = '3'")
        #expect(ahead == ["20"], "the time that others are shown")
        bench.kill()
        #expect(try bench.journal.nextDue(after: bench.now) == bench.now + .seconds(20))
    }

    @Test(arguments: days)
    func `after a boot a retry waits no longer than it had to when the clock was set back`(days: Int) throws {
        try acceptResting()
        #expect(try bench.commit() == nil)
        try bench.look { try $0.execute(sql: "UPDATE facts SET value = value + 1 WHERE name = 'boot'") }
        bench.kill()
        bench.setClock(by: .seconds(days * 24 * 3600))
        // How long the machine was off is not known then.
        if days < 0 {
            try expectResting(30)
        } else {
            #expect(try Set(bench.lease(9).map(\.id.description)) == ["1", "2"])
        }
    }

    @Test func `when something was kept last is known to the next run`() throws {
        _ = try bench.journal
        #expect(try bench.commit() == nil)
        bench.wait(.seconds(10))
        try bench.accept("1")
        #expect(try bench.commit() == nil)
        let last = bench.wall
        bench.wait(.seconds(10))
        try bench.accept("2", .created, "/in/b")
        bench.kill()
        #expect(try bench.journal.lastKept == last)
        bench.wait(.seconds(10))
        // What is committed in a run does not change what it found.
        try bench.set("/in/b", .sample())
        #expect(try bench.commit() == nil)
        #expect(try bench.journal.lastKept == last)
        bench.kill()
        #expect(try bench.journal.lastKept == bench.wall)
    }

    @Test func `a newer event joins a job of an earlier run`() throws {
        try bench.accept("1", .created, "/in/a", .sample(size: 1))
        #expect(try bench.commit() == nil)
        bench.kill()
        try bench.accept("2", .modified, "/in/a", .sample(size: 2), before: .sample(size: 1))
        let jobs = try bench.lease(9)
        #expect(jobs.map(\.id.description) == ["1"])
        #expect(jobs.first?.event.kind == .created && jobs.first?.event.snapshot.size == 2)
    }

    @Test func `a deletion of what was created before a kill comes to nothing`() throws {
        try bench.accept("1")
        #expect(try bench.commit() == nil)
        bench.kill()
        try bench.accept("2", .deleted)
        #expect(try bench.commit() == nil)
        #expect(try bench.rows("SELECT id FROM jobs").isEmpty)
        #expect(try bench.rows("SELECT hex(path) FROM ledger").isEmpty)
    }

    @Test func `what a job waits for is known to the next run, in which it is due at once and can be woken`() throws {
        let waiting = Waiting(.window, "its window opens at 22:00")
        try bench.accept("1")
        try bench.accept("2", .created, "/in/b")
        let failed = try #require(try bench.lease().first)
        try bench.again(failed, after: .zero)
        for job in try bench.lease(9) {
            _ = try bench.journal.record(job, nil, .early(due: bench.now + .seconds(7_200), waiting), [])
        }
        #expect(try bench.commit() == nil)
        bench.kill()
        #expect(try bench.journal.held == 2)
        #expect(try bench.rows("SELECT DISTINCT code, message FROM jobs") == ["window|its window opens at 22:00"])
        // Whether it still waits for that is decided anew.
        let jobs = try bench.lease(9)
        #expect(jobs.map(\.attempt).sorted() == [1, 2])
        #expect(jobs.allSatisfy { $0.waiting == nil })
        for job in jobs {
            _ = try bench.journal.record(job, nil, .early(due: bench.now + .seconds(7_200), waiting), [])
        }
        #expect(try bench.lease(9).isEmpty)
        #expect(try bench.commit() == nil)
        try bench.journal.wake(rule: "r", path: nil, now: bench.now)
        #expect(try bench.lease(9).count == 2)
        #expect(try bench.commit() == nil)
        #expect(try bench.rows("SELECT DISTINCT state, code FROM jobs") == ["running|"])
    }

    @Test func `what 'ready' has refused is known to later runs until it is tried again or discarded`() throws {
        func isRefused(_ path: PathBytes) throws -> Bool {
            try bench.journal.refusal(rule: "r", path: path, snapshot: .sample()) != nil
        }
        for (id, path) in [("1", "/in/a"), ("2", "/in/b"), ("3", "/in/c")] as [(String, PathBytes)] {
            try bench.accept(id, .created, path)
        }
        for job in try bench.lease(9) { try bench.end(job, .dead, Outcome(.failed, "no", code: "ready")) }
        #expect(try bench.commit() == nil)
        bench.kill()
        #expect(try isRefused("/in/a") && isRefused("/in/b") && isRefused("/in/c"))
        try bench.retry("1")
        try bench.discard("2")
        // Before that is kept, and after.
        for _ in 0..<2 {
            #expect(try !isRefused("/in/a") && !isRefused("/in/b") && isRefused("/in/c"))
            #expect(try bench.commit() == nil)
        }
        let job = try #require(try bench.lease(9).first)
        #expect(job.id == JobID("1"))
        try bench.end(job)
        #expect(try bench.commit() == nil)
        #expect(try !isRefused("/in/a"))
    }

    @Test func `a clean stop is noted, and a kill is not`() throws {
        try bench.accept("1")
        try bench.close()
        bench.kill()
        #expect(try bench.rows("SELECT value FROM facts WHERE name = 'is_clean'") == ["1"])
        #expect(!TestFile.exists(bench.root.appending("journal.db-wal")))
        #expect(try bench.journal.counts.pending == 1)
        #expect(try bench.rows("SELECT value FROM facts WHERE name = 'is_clean'") == ["0"])
        #expect(try bench.rows("SELECT value FROM facts WHERE name = 'run'") == ["2"])
    }

    // MARK: Every bit

    /// An event with something in every field.
    static func fullEvent(_ generator: inout SeededGenerator) -> FileEvent {
        func bytes(_ most: Int) -> [UInt8] {
            (0..<Int.random(in: 1...most, using: &generator)).map { _ in UInt8.random(in: 1...255, using: &generator) }
        }
        func time() -> Timestamp {
            Timestamp(
                seconds: Int64.random(in: -62_135_596_800...253_402_300_799, using: &generator),
                nanoseconds: UInt32.random(in: 0...999_999_999, using: &generator))
        }
        func snapshot() -> Snapshot {
            let born = time()
            return Snapshot(
                identity: FileIdentity(
                    deviceMajor: .random(in: 0 ... .max, using: &generator),
                    deviceMinor: .random(in: 0 ... .max, using: &generator),
                    inode: .random(in: 1 ... .max, using: &generator),
                    birth: born.seconds &* 1_000_000_000 &+ Int64(born.nanoseconds)),
                type: FileType.allCases.randomElement(using: &generator) ?? .file,
                size: .random(in: 0 ... .max, using: &generator), modified: time(), changed: time(), born: born,
                mode: .random(in: 0...0o7777, using: &generator), uid: .random(in: 0 ... .max, using: &generator),
                gid: .random(in: 0 ... .max, using: &generator), links: .random(in: 0 ... .max, using: &generator),
                mount: .random(in: 1 ... .max, using: &generator),
                extended: [ExtendedAttribute(name: PathBytes(bytes(20)), value: bytes(40) + [0])],
                digest: bytes(32), delivered: .random(in: 0 ... .max, using: &generator))
        }
        let names = ["\"quoted\"\\", "line\nbreak\u{1}\u{7f}", "Ünïcodé 🗼", "xattr:user.é"]
        var event = FileEvent(
            kind: .modified, path: PathBytes([0x2f] + bytes(30)), root: PathBytes([0x2f] + bytes(3)),
            from: PathBytes([0x2f] + bytes(9)), snapshot: snapshot(), before: snapshot(), changed: names,
            isReplaced: true, isByMove: true, sameAs: [PathBytes(bytes(5)), PathBytes("/plain")], children: 7,
            tail: TailText(
                offset: .random(in: 0 ... .max, using: &generator), bytes: bytes(50), isReset: true,
                remaining: .random(in: 0 ... .max, using: &generator)), origin: .poll, time: time())
        event.author = .process(
            WritingProcess(
                pid: .random(in: 1 ... .max, using: &generator), name: PathBytes(bytes(15)),
                executable: PathBytes([0x2f] + bytes(20)), uid: .random(in: 0 ... .max, using: &generator)))
        return event
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `a job comes back to the last bit`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let event = Self.fullEvent(&generator)
        var plain = FileEvent.sample(.deleted, "/plain")
        plain.snapshot.born = nil
        let unknown = UnknownAuthor.allCases[Int(seed) % UnknownAuthor.allCases.count]
        plain.author = seed % 2 == 0 ? .unknown(unknown) : .process(WritingProcess(pid: 7))
        var step = Outcome(
            .succeeded, "it's \"done\"\n", code: "ok", retryAfter: .milliseconds(1_500),
            outputs: [PathBytes([0x2f, 0xff]), "/out/é"],
            values: ["a\"": .array([.integer(.min), .number(1.0), .number(-2.5e-7), .null, .bool(true), "x", [:]])])
        step.process = ProcessFacts(status: 3, signal: 9, request: "{\"a\":1}")
        step.isInterrupted = true
        for (id, event) in [("full", event), ("plain", plain)] {
            let job = Job(id: JobID(id), rule: "r", event: event, mask: [.created, .xattr, .closed])
            try bench.journal.accept([job], [], now: bench.now)
            var leased = try #require(try bench.lease().first)
            leased.steps = [step, Outcome(.skipped)]
            try bench.again(leased, after: .zero, Outcome(.notReady, "wait: \u{85}"))
            #expect(try bench.commit() == nil)
            bench.kill()
            let back = try #require(try bench.lease().first)
            #expect(back.event == event)
            #expect(back.steps == [step, Outcome(.skipped)])
            #expect(back.mask == [.created, .xattr, .closed])
            #expect(back.previous == PreviousAttempt(attempt: 1, outcome: "not_ready", message: "wait: \u{85}"))
            try bench.end(back)
            #expect(try bench.commit() == nil)
        }
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `what is known of a file comes back to the last bit, but for the mount`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var known: [PathBytes: Snapshot] = [:]
        for _ in 0..<20 {
            let event = Self.fullEvent(&generator)
            known[event.path] = event.snapshot
        }
        known["/plain"] = .sample()
        known["/none"] = .unseen
        for (path, snapshot) in known { try bench.set(path, snapshot) }
        for isKept in [false, true] {
            if isKept { #expect(try bench.commit() == nil) }
            for (path, snapshot) in known { #expect(try bench.known(path) == snapshot) }
        }
        bench.kill()
        for (path, var snapshot) in known {
            snapshot.mount = 0
            #expect(try bench.known(path) == snapshot)
            #expect(try bench.journal.paths(view: "r", identity: snapshot.identity) == [path])
        }
        #expect(try bench.known("/plain", rule: "s") == nil)
    }
}
