import FileEvents
import GRDB
import Glibc
import Journaling
import Reconciling
import Rules
import TestKit
import Testing

/// A journal that can't be written or read while Alight runs.
struct JournalFaultTests {
    let bench = DiskBench()

    private func integrity(of path: PathBytes) throws -> String? {
        let queue = try DatabaseQueue(path: "\(path)")
        defer { try? queue.close() }
        return try queue.writeWithoutTransaction { try String.fetchOne($0, sql: "PRAGMA integrity_check") }
    }

    @Test func `on a full disk nothing is lost, and the next commit that succeeds keeps all`() throws {
        try bench.accept("1")
        try bench.journal.noteStarted(at: bench.wall)
        #expect(try bench.commit() == nil)
        let pages = try bench.journal.look { try Int.fetchOne($0, sql: "PRAGMA page_count") ?? 0 }
        try bench.journal.look { try $0.execute(sql: "PRAGMA max_page_count = \(pages)") }
        var leased: [Job] = []
        for number in 0..<200 {
            try bench.accept("b\(number)", .created, PathBytes("/in/\(number)"))
            if number % 10 == 0 { leased += try bench.lease() }
            guard number % 50 == 49 else { continue }
            let fault = try #require(try bench.commit())
            #expect(fault.mayPass)
            #expect(fault.description == "the journal '\(bench.path)' can't be written: the disk is full")
            #expect(fault.help.contains("make room"))
            #expect(try bench.rows("SELECT count(*), min(state) FROM jobs") == ["1|pending"])
        }
        for job in leased.dropFirst() { try bench.end(job) }
        #expect(try bench.commit() != nil)
        let counts = try bench.journal.counts
        #expect(counts.pending == 181 && counts.running == 1 && counts.succeeded == 19)
        #expect(try bench.known("/in/199") == .sample())

        try bench.journal.look { try $0.execute(sql: "PRAGMA max_page_count = 1000000") }
        #expect(try bench.commit() == nil)
        #expect(try bench.commit() == nil)
        #expect(
            try bench.rows("SELECT state, count(*) FROM jobs GROUP BY state ORDER BY state") == [
                "pending|181", "running|1", "succeeded|19",
            ])
        bench.kill()
        #expect(try bench.journal.counts.pending == 182)
        #expect(try bench.known("/in/199") == .sample())
        bench.kill()
        #expect(try integrity(of: bench.path) == "ok")
    }

    @Test func `a file that another program has locked is tried again`() throws {
        try bench.accept("1")
        try bench.journal.look { try $0.execute(sql: "PRAGMA busy_timeout = 20") }
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let other = try DatabaseQueue(path: "\(bench.path)", configuration: configuration)
        try other.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
        let fault = try #require(try bench.commit())
        #expect(fault.mayPass)
        #expect(fault.description.hasPrefix("the journal '\(bench.path)' can't be written: database is locked"))
        #expect(try bench.known("/in/a") == .sample())
        try other.writeWithoutTransaction { try $0.execute(sql: "COMMIT") }
        #expect(try bench.commit() == nil)
        bench.kill()
        #expect(try bench.journal.counts.pending == 1)
    }

    @Test(arguments: [false, true])
    func `a file that was removed or exchanged is missed, and nothing is written to another`(isExchanged: Bool) throws {
        try bench.accept("1")
        #expect(try bench.commit() == nil)
        let aside = bench.root.appending("aside.db")
        try #require(rename("\(bench.path)", "\(aside)") == 0)
        if isExchanged { TestFile.write(bench.path, try #require(TestFile.read(aside))) }
        let other = TestFile.read(bench.path)
        // Where nothing is to be kept, nothing is missed.
        #expect(try bench.commit() == nil)
        try bench.accept("2", .created, "/in/b")
        let fault = try #require(try bench.commit())
        #expect(!fault.mayPass)
        #expect(
            fault.description == "the journal '\(bench.path)' was removed or exchanged while Alight had it open")
        #expect(fault.help.contains("put it back"))
        // Not even when it is there again: what somebody did to it meanwhile is not known.
        _ = unlink("\(bench.path)")
        try #require(rename("\(aside)", "\(bench.path)") == 0)
        #expect(try bench.commit() == fault)
        #expect(try bench.journal.close(at: bench.wall) == fault)
        #expect(other == nil || isExchanged)
        bench.kill()
        #expect(try bench.journal.counts.pending == 1)
    }

    @Test func `what can't be read ends all, and nothing more is written`() throws {
        // More than is checked at each start, so that the damage is found late.
        var snapshot = Snapshot.sample()
        snapshot.extended = [ExtendedAttribute(name: "user.x", value: [UInt8](repeating: 7, count: 3_000))]
        for number in 0..<3_000 { try bench.set(PathBytes("/in/\(number)"), snapshot) }
        try bench.close()
        bench.kill()
        var bytes = try #require(TestFile.read(bench.path))
        try #require(bytes.count > 9 << 20)
        for place in (bytes.count / 2)..<(bytes.count / 2 + 100_000) { bytes[place] = 0xAA }
        TestFile.write(bench.path, bytes)

        #expect(try bench.commit() == nil)
        var visited = 0
        try bench.journal.visit(view: "r", inside: "/in") { _, _ in visited += 1 }
        #expect(visited < 3_000)
        try bench.accept("1", .created, "/in/new")
        let fault = try #require(try bench.commit())
        #expect(!fault.mayPass)
        #expect(fault.description.hasPrefix("the journal '\(bench.path)' is damaged: "))
        #expect(fault.help.contains("docs/journal.md"))
        #expect(try bench.commit() == fault)
        #expect(try bench.journal.close(at: bench.wall) == fault)
        #expect(try bench.rows("SELECT count(*) FROM jobs") == ["0"])
        #expect(try bench.rows("SELECT value FROM facts WHERE name = 'is_clean'") == ["0"])
    }

    /// Power that fails while the log is written leaves any beginning of it.
    @Test func `a log that is cut anywhere leaves the state of a commit`() throws {
        let tree = TemporaryTree()
        try bench.journal.noteStarted(at: bench.wall)
        #expect(try bench.commit() == nil)
        try bench.journal.look { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
        func state(_ database: Database) throws -> String {
            try String.fetchOne(
                database,
                sql: """
                    SELECT (SELECT coalesce(group_concat(hex(path)), '') FROM ledger) || ' '
                        || (SELECT coalesce(group_concat(id || state || attempt), '') FROM jobs) || ' '
                        || (SELECT count(*) FROM attempts) FROM facts WHERE name = 'run'
                    """) ?? ""
        }
        var states = [try bench.journal.look(state)]
        for number in 0..<4 {
            try bench.accept("\(number)", .created, PathBytes("/in/\(number)"))
            let job = try #require(try bench.lease().first)
            #expect(try bench.commit() == nil)
            states.append(try bench.journal.look(state))
            if number % 3 == 0 { try bench.again(job, after: .zero) } else { try bench.end(job) }
            #expect(try bench.commit() == nil)
            states.append(try bench.journal.look(state))
        }
        let file = try #require(TestFile.read(bench.path))
        let log = try #require(TestFile.read(PathBytes("\(bench.path)-wal")))
        let frame = 24 + 4_096
        #expect(log.count > 10 * frame && (log.count - 32) % frame == 0)
        var lengths = [0, 1, 31]
        for start in stride(from: 32, through: log.count, by: frame) { lengths += [start, start + 24, start + 2_000] }
        var reached = 0
        for length in lengths where length <= log.count {
            let path = tree.path("\(length)/journal.db")
            TestFile.write(path, file)
            TestFile.write(PathBytes("\(path)-wal"), Array(log[..<length]))
            let queue = try DatabaseQueue(path: "\(path)")
            let found = try queue.writeWithoutTransaction { database in
                #expect(try String.fetchOne(database, sql: "PRAGMA integrity_check") == "ok")
                return try state(database)
            }
            let place = try #require(states.firstIndex(of: found), "cut at \(length)")
            #expect(place >= reached)
            reached = place
            try queue.close()
            // Closing has moved the log into the file.
            TestFile.write(path, file)
            TestFile.write(PathBytes("\(path)-wal"), Array(log[..<length]))
            let journal = try DiskJournal(at: path, now: bench.wall)
            #expect(journal.close(at: bench.wall) == nil)
            #expect(try integrity(of: path) == "ok")
            TestFile.removeTree(path.parent)
        }
        #expect(reached == states.count - 1)
    }
}
