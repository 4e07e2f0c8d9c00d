import FileEvents
import Journaling
import PluginProtocol
import Reconciling
import Rules
import Synchronization
import TestKit
import Testing

/// The journal against a model so plain that it is right by looking at it.
struct JournalModelTests {
    /// All that is open, in two lists.
    private struct Model {
        struct Entry {
            var rule: String
            var path: PathBytes
            var due: ContinuousClock.Instant
            var attempt = 0
            /// Whether an attempt has ended, whether it counts or not.
            var wasTried = false
            /// The newest content that it is to be run for.
            var size: UInt64
            var kind: EventKind
        }

        var pending: [Entry] = []
        var running: [JobID: Entry] = [:]
        var ledger: [String: [PathBytes: UInt64]] = [:]
        var ended = JobCounts()

        func place(_ rule: String, _ path: PathBytes) -> Int? {
            pending.firstIndex { $0.rule == rule && $0.path == path }
        }

        mutating func accept(_ entry: Entry) {
            ledger[entry.rule, default: [:]][entry.path] = entry.size
            if let place = place(entry.rule, entry.path) {
                pending[place].size = entry.size
                guard pending[place].attempt > 0 else { return }
                // It begins anew.
                pending[place].attempt = 0
                pending[place].wasTried = false
                pending[place].due = entry.due
                ended.skipped += 1
            } else {
                pending.append(entry)
            }
        }

        /// What ran is pending again, or done by a newer job of its path.
        mutating func interrupt(at now: ContinuousClock.Instant) {
            ended = JobCounts()
            for entry in running.values {
                if let newer = place(entry.rule, entry.path) {
                    ended.skipped += 1
                    pending[newer].kind = entry.kind
                } else {
                    var entry = entry
                    entry.wasTried = true
                    entry.due = now
                    pending.append(entry)
                }
            }
            running = [:]
        }

        func due(_ rule: String, _ busy: Set<PathBytes>, _ now: ContinuousClock.Instant) -> [Entry] {
            pending.filter { $0.rule == rule && $0.due <= now && !busy.contains($0.path) }
        }
    }

    /// A journal and the model of it, which time and chance drive on.
    private struct Play {
        private static let rules = ["r", "s", "t"]
        private static let paths: [PathBytes] = ["/a", "/b", "/c", "/d", "/e"]

        var journal: any Journal
        var model = Model()
        var now = ContinuousClock.now
        private var generator: SeededGenerator
        private var size: UInt64 = 0
        private var serial = 0
        private var leased: [JobID: Job] = [:]

        init(_ journal: any Journal, seed: UInt64) {
            self.journal = journal
            generator = SeededGenerator(seed: seed)
            begin()
        }

        func begin() {
            _ = journal.begin(Self.rules.map { RuleRecord(name: $0, selection: "") }, at: .early)
        }

        mutating func chance(of number: Int) -> Bool { Int.random(in: 0..<number, using: &generator) == 0 }

        /// What ran is cut off.
        mutating func interrupt() {
            leased = [:]
            model.interrupt(at: now)
        }

        mutating func step() throws {
            let rule = try #require(Self.rules.randomElement(using: &generator))
            let path = try #require(Self.paths.randomElement(using: &generator))
            now += .milliseconds(Int.random(in: 0...3, using: &generator))
            switch Int.random(in: 0..<10, using: &generator) {
            case 0..<4: accept(rule, path)
            case 4..<7: try lease(rule)
            default: record()
            }
        }

        private mutating func accept(_ rule: String, _ path: PathBytes) {
            size += 1
            serial += 1
            let before = model.ledger[rule]?[path].map { Snapshot.sample(size: $0) }
            let kind: EventKind = before == nil ? .created : .modified
            let snapshot = Snapshot.sample(size: size)
            let event = FileEvent.sample(kind, path, snapshot, before: before)
            journal.accept(
                [Job(id: JobID("\(serial)"), rule: rule, event: event)],
                [LedgerEntry(view: rule, path: path, snapshot: snapshot)], now: now)
            model.accept(Model.Entry(rule: rule, path: path, due: now, size: size, kind: kind))
        }

        private mutating func lease(_ rule: String) throws {
            let busy = Set(model.running.values.map(\.path))
            let limit = Int.random(in: 0...3, using: &generator)
            let jobs = journal.lease(rule: rule, limit: limit, busy: busy, now: now)
            let expected = model.due(rule, busy, now)
            #expect(jobs.count == min(limit, expected.count))
            for job in jobs {
                let place = try #require(model.place(rule, job.event.path))
                var entry = model.pending.remove(at: place)
                entry.attempt += 1
                #expect(expected.contains { $0.path == entry.path })
                #expect(job.event.snapshot.size == entry.size)
                #expect(job.event.kind == entry.kind)
                #expect(job.attempt == entry.attempt)
                #expect(leased[job.id] == nil, "leased twice at once")
                leased[job.id] = job
                model.running[job.id] = entry
            }
            // Whoever was left out came later than all that were taken.
            if let last = jobs.last, let place = expected.firstIndex(where: { $0.path == last.event.path }) {
                let taken = Set(jobs.map(\.event.path))
                for left in expected where !taken.contains(left.path) { #expect(left.due >= expected[place].due) }
            }
        }

        private mutating func record() {
            let ids = leased.keys.sorted { $0.description < $1.description }
            guard let id = ids.randomElement(using: &generator), let job = leased[id], var entry = model.running[id]
            else { return }
            leased[id] = nil
            model.running[id] = nil
            let newer = model.place(entry.rule, entry.path)
            switch Int.random(in: 0..<5, using: &generator) {
            case 0:
                _ = journal.record(job, nil, .ended(.succeeded, Outcome(.succeeded)), [])
                model.ended.succeeded += 1
            case 1:
                _ = journal.record(job, nil, .ended(.dead, Outcome(.failed)), [])
                model.ended.dead += 1
            case 2:
                _ = journal.record(job, nil, .returned(at: now), [])
                if entry.wasTried { model.ended.skipped += 1 }
                if let newer {
                    model.pending[newer].kind = entry.kind
                } else {
                    model.ledger[entry.rule]?[entry.path] = job.event.before?.size
                }
            case let pick:
                let counts = pick == 3
                let due = now + .milliseconds(Int.random(in: 0...5, using: &generator))
                _ = journal.record(job, nil, .again(at: due, Outcome(.retry), counts: counts), [])
                if let newer {
                    model.ended.skipped += 1
                    model.pending[newer].kind = entry.kind
                } else {
                    if !counts { entry.attempt -= 1 }
                    entry.wasTried = true
                    entry.due = due
                    model.pending.append(entry)
                }
            }
        }

        func check() throws {
            let counts = journal.counts
            try #require(counts.pending == model.pending.count)
            try #require(counts.running == model.running.count)
            #expect(
                counts.succeeded == model.ended.succeeded && counts.dead == model.ended.dead
                    && counts.skipped == model.ended.skipped)
            #expect(journal.pendingRules.isSuperset(of: model.pending.map(\.rule)))
            try #require(journal.nextDue(after: now) == model.pending.map(\.due).filter { $0 > now }.min())
            let isSame = Self.rules.allSatisfy { rule in
                Self.paths.allSatisfy { journal.snapshot(view: rule, path: $0)?.size == model.ledger[rule]?[$0] }
            }
            try #require(isSame)
        }
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `any sequence of calls leaves what the model says`(seed: UInt64) throws {
        var play = Play(DiskJournal.inMemory(), seed: seed)
        for _ in 0..<400 {
            try play.step()
            try play.check()
        }
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `after a kill everything is as it was secured or committed last, and what ran is pending`(seed: UInt64) throws
    {
        let tree = TemporaryTree()
        let path = tree.path("journal.db")
        // Both clocks are the play's.
        let start = ContinuousClock.now
        let clock = Mutex(start)
        func wall(_ now: ContinuousClock.Instant) -> Timestamp { Timestamp.early.advanced(by: now - start) }
        func open() throws -> DiskJournal {
            try DiskJournal(at: path, now: wall(clock.withLock { $0 })) { clock.withLock { $0 } }
        }

        var play = Play(try open(), seed: seed)
        play.now = start
        try #require(play.journal.commit(at: wall(play.now)) == nil)
        var kept = play
        for _ in 0..<400 {
            try play.step()
            clock.withLock { $0 = play.now }
            if play.chance(of: 3) {
                let moment = wall(play.now)
                let isAhead = !play.chance(of: 3)
                #expect((isAhead ? play.journal.secure(at: moment) : play.journal.commit(at: moment)) == nil)
                kept = play
            }
            if play.chance(of: 8) {
                play.model = kept.model
                play.journal = DiskJournal.inMemory()
                kept.journal = play.journal
                play.journal = try open()
                kept.journal = play.journal
                play.begin()
                play.interrupt()
                // The recovery itself is kept, and so are the new rows of rules.
                #expect(play.journal.commit(at: wall(play.now)) == nil)
                kept = play
            }
            try play.check()
        }
    }
}
