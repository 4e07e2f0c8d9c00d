import FileEvents
import Glibc
import GRDB
import Reconciling
import Records
import Rules
import Storage
import System
import Testing
import TestKit

/// A store that cannot be opened, read or written.
struct DiskStoreErrorTests {
    let bench = StoreBench()
    private let rule = StoreBench.rule

    /// Creates the changes for one new job.
    private func changes(_ number: UInt64) -> TurnChanges {
        var changes = TurnChanges()
        changes.jobs[JobID("\(number)")] = JobChange(.unfinished(.leased(number)), isNew: true)
        return changes
    }

    private func isSound() throws -> Bool { try bench.rows("PRAGMA integrity_check") == ["ok"] }

    @Test func `on a full disk nothing is written, and the next successful commit writes everything`() throws {
        try bench.commit(.leased(1))
        let pages = try bench.store.query { try Int.fetchOne($0, sql: "PRAGMA page_count") ?? 0 }
        try bench.store.query { try $0.execute(sql: "PRAGMA max_page_count = \(pages)") }
        var merged = TurnChanges()
        merged.pauses = Pauses(all: true)
        for number in 2..<200 as Range<UInt64> {
            merged.jobs[JobID("\(number)")] = JobChange(.unfinished(.leased(number)), isNew: true)
            merged.rows[rule, default: [:]][PathBytes("/in/\(number)")] = LedgerRow(.sample(file: number))
            guard number % 50 == 49 else { continue }
            let error = try #require(try bench.store.commit(merged, at: bench.clocks))
            #expect(error.mayPass)
            #expect(error.description == "the journal '\(bench.path)' can't be written: the disk is full")
            #expect(try bench.rows("SELECT id FROM jobs") == ["1"])
            #expect(try bench.store.row(of: rule, at: "/in/2") == nil)
        }
        try bench.store.query { try $0.execute(sql: "PRAGMA max_page_count = 1000000") }
        #expect(try bench.store.commit(merged, at: bench.clocks) == nil)
        bench.kill()
        #expect(try bench.unfinished().count == 199)
        #expect(try bench.store.row(of: rule, at: "/in/199") == LedgerRow(.sample(file: 199)))
        #expect(try bench.store.stored.pauses == Pauses(all: true))
        #expect(try isSound())
    }

    @Test func `a file that another program has locked is retried`() throws {
        _ = try bench.store
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let other = try DatabaseQueue(path: "\(bench.path)", configuration: configuration)
        try other.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
        let start = ContinuousClock.now
        let error = try #require(try bench.store.commit(changes(1), at: bench.clocks))
        #expect(ContinuousClock.now - start < .seconds(3))
        #expect(error.mayPass)
        #expect(error.description.contains("it is locked by process \(getpid())"))
        try other.writeWithoutTransaction { try $0.execute(sql: "COMMIT") }
        #expect(try bench.store.commit(changes(1), at: bench.clocks) == nil)
    }

    @Test(arguments: [false, true])
    func `a removed or replaced file is detected, and no other file is written`(isExchanged: Bool) throws {
        try bench.commit(.leased(1))
        let aside = bench.root.appending("aside.db")
        try #require(rename("\(bench.path)", "\(aside)") == 0)
        if isExchanged { TestFile.write(bench.path, try #require(TestFile.read(aside))) }
        // There is nothing to write.
        #expect(try bench.store.commit(TurnChanges(), at: bench.clocks) == nil)
        let error = try #require(try bench.store.commit(changes(2), at: bench.clocks))
        #expect(!error.mayPass && error.description.contains("was removed or replaced"))
        _ = unlink("\(bench.path)")
        try #require(rename("\(aside)", "\(bench.path)") == 0)
        #expect(try bench.store.commit(changes(2), at: bench.clocks) == error)
        #expect(try bench.store.close(at: bench.wall) == error)
        bench.kill()
        #expect(try bench.unfinished().map(\.job.number) == [1])
    }

    @Test func `an unreadable ledger row counts as missing, and nothing more is written`() throws {
        try bench.commit {
            $0.rows[rule] = ["/in/a": LedgerRow(.sample()), "/in/b": LedgerRow(.sample(file: 2))]
        }
        try bench.inspect { try $0.execute(sql: "UPDATE ledger SET trust = 9 WHERE path = CAST('/in/a' AS BLOB)") }
        #expect(try bench.store.rows(of: rule, below: "/in", after: nil).map(\.0) == ["/in/b"])
        let error = try #require(try bench.store.commit(changes(1), at: bench.clocks))
        #expect(!error.mayPass)
        #expect(
            error.description == "the journal '\(bench.path)' is damaged: a row of the table 'ledger' is invalid")
        #expect(try bench.store.commit(changes(1), at: bench.clocks) == error)
        #expect(try bench.store.close(at: bench.wall) == error)
        #expect(try bench.rows("SELECT count(*) FROM jobs") == ["0"])
        #expect(try bench.rows("SELECT value FROM state WHERE name = 'is_clean'") == ["0"])
    }

    @Test func `after damage is detected late, nothing more is written`() throws {
        // More than is checked at a start after a clean stop.
        var snapshot = Snapshot.sample()
        snapshot.extended = [ExtendedAttribute(name: "user.x", value: [UInt8](repeating: 7, count: 3_000))]
        let rows = (0..<3_000).map { (PathBytes("/in/\($0)"), LedgerRow(snapshot)) }
        try bench.commit { $0.rows[rule] = Dictionary(uniqueKeysWithValues: rows) }
        try bench.end(isClean: true)
        var bytes = try #require(TestFile.read(bench.path))
        try #require(bytes.count > 9 << 20)
        for location in (bytes.count / 2)..<(bytes.count / 2 + 100_000) { bytes[location] = 0xAA }
        TestFile.write(bench.path, bytes)

        try bench.commit { _ in }
        var last: PathBytes?
        repeat { last = try bench.store.rows(of: rule, below: "/in", after: last).last?.0 } while last != nil
        let error = try #require(try bench.store.commit(changes(1), at: bench.clocks))
        #expect(!error.mayPass)
        #expect(error.description.hasPrefix("the journal '\(bench.path)' is damaged: "))
        #expect(error.help.contains("docs/journal.md"))
        #expect(try bench.store.commit(changes(1), at: bench.clocks) == error)
        #expect(try bench.store.close(at: bench.wall) == error)
        #expect(try bench.rows("SELECT count(*) FROM jobs") == ["0"])
        #expect(try bench.rows("SELECT value FROM state WHERE name = 'is_clean'") == ["0"])
    }

    @Test func `a read prevents a checkpoint only until the next commit`() throws {
        try bench.commit { $0.rows[rule] = ["/in/a": LedgerRow(.sample())] }
        let other = try DatabaseQueue(path: "\(bench.path)")
        defer { try? other.close() }
        func isEmptied() throws -> Bool {
            try other.writeWithoutTransaction { database in
                try database.execute(sql: "REPLACE INTO state (name, value) VALUES ('other', random())")
                let row = try Row.fetchOne(database, sql: "PRAGMA wal_checkpoint(TRUNCATE)")
                return try #require(row)[0] == 0
            }
        }
        #expect(try isEmptied())
        #expect(try bench.store.row(of: rule, at: "/in/a") == LedgerRow(.sample()))
        #expect(try !isEmptied())
        #expect(try bench.store.commit(TurnChanges(), at: bench.clocks) == nil)
        #expect(try isEmptied())
        #expect(try bench.store.row(of: rule, at: "/in/a") == LedgerRow(.sample()))
        // Nothing may be written within the transaction of a read.
        #expect(try bench.store.close(at: bench.wall) == nil)
    }

    @Test func `jobs with unreadable rows fail at opening, and all others stay`() throws {
        try bench.commit(.leased(1), .leased(2), .leased(3), .leased(4), .leased(5), .leased(6))
        bench.kill()
        try bench.inspect {
            try $0.execute(
                sql: """
                    UPDATE jobs SET event_json = '{}' WHERE id = '1';
                    UPDATE jobs SET steps = '7' WHERE id = '2';
                    UPDATE jobs SET progress = '[]' WHERE id = '3';
                    UPDATE jobs SET event_json = replace(event_json, '/in/a.txt', 'in/a.txt') WHERE id = '4';
                    UPDATE jobs SET event_json = replace(event_json, '/in/a.txt', '/in/../a.txt') WHERE id = '5';
                    """)
        }
        let query = "SELECT rule, path, event_json, steps, attempt FROM jobs WHERE id < '6' ORDER BY id"
        let before = try bench.rows(query)
        #expect(try bench.store.unreadable.map(\.description).sorted() == ["1", "2", "3", "4", "5"])
        #expect(try bench.store.interrupted == 1)
        #expect(try bench.unfinished().map(\.job.number) == [6])
        #expect(try bench.store.job(JobID("1"), at: bench.clocks) == nil)
        let state = "failed|unreadable-row|1"
        #expect(
            try bench.rows("SELECT state, code, ended IS NOT NULL FROM jobs ORDER BY id") == [
                state, state, state, state, state, "running||0",
            ])
        #expect(try bench.rows(query) == before)
        #expect(try bench.store.commit(changes(7), at: bench.clocks) == nil)
        bench.kill()
        #expect(try bench.store.unreadable.isEmpty)
    }

    @Test func `a clean stop is recorded and leaves one file, and a kill is not recorded`() throws {
        try bench.commit(.leased(1))
        try bench.end(isClean: true)
        let state = "SELECT value FROM state WHERE name ="
        #expect(try bench.rows("\(state) 'is_clean'") == ["1"])
        #expect(!TestFile.exists(bench.root.appending("journal.db-wal")))
        _ = try bench.store
        #expect(DiskStore.holder(of: bench.path) == getpid())
        try bench.store.note(control: "/run/alight.sock")
        #expect(DiskStore.control(of: bench.path) == "/run/alight.sock")
        #expect(try bench.rows("\(state) 'is_clean'") == ["0"])
        #expect(try bench.rows("\(state) 'run'") == ["2"])
        let error = #expect(throws: JournalError.self) { _ = try DiskStore(at: bench.path, now: .early) }
        #expect(error == .held(bench.path, pid: getpid()))
        bench.kill()
        #expect(DiskStore.holder(of: bench.path) == nil)
        #expect(try bench.rows("\(state) 'is_clean'") == ["0"])
    }

    @Test func `a clean stop moves the log into the file while another connection is open`() throws {
        try bench.commit(.leased(1))
        let other = try DatabaseQueue(path: "\(bench.path)")
        #expect(try other.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM jobs") } == 1)
        try bench.end(isClean: true)
        #expect(TestFile.read(bench.root.appending("journal.db-wal")) == [])
        try other.close()
        #expect(try bench.unfinished().map(\.job.number) == [1])
    }

    @Test func `a closed store does nothing`() throws {
        try bench.commit(.leased(1))
        let store = try bench.store
        #expect(store.close(at: bench.wall) == nil)
        #expect(store.commit(changes(2), at: bench.clocks) == nil && store.openJobs().isEmpty)
        #expect(store.job(JobID("1"), at: bench.clocks) == nil)
        #expect(throws: CancellationError.self) { try store.query { _ in 0 } }
        bench.kill()
        #expect(try bench.unfinished().map(\.job.number) == [1])
    }
}
