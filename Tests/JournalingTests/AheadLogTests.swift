import FileEvents
import GRDB
import Glibc
import Journaling
import PluginProtocol
import Reconciling
import Rules
import Synchronization
import TestKit
import Testing

/// What outlives the program before the database has it.
struct AheadLogTests {
    let bench = DiskBench()

    private var log: PathBytes { PathBytes(bench.path.bytes + Array("-ahead".utf8)) }

    /// A journal whose rules are known, so that only jobs and files are news.
    private func begin() throws { #expect(try bench.commit() == nil) }

    @Test func `what was secured is there after a kill, also an attempt that ended`() throws {
        try begin()
        try bench.accept("1")
        try bench.accept("2", .created, "/in/b")
        let jobs = try bench.lease(2)
        #expect(try bench.secure() == nil)
        #expect(try bench.rows("SELECT id FROM jobs") == [])
        #expect(try bench.journal.commitDue == bench.now + .milliseconds(20))
        try bench.end(jobs[0], .succeeded, Outcome(.succeeded, "well done"))
        #expect(try bench.secure() == nil)
        bench.kill()
        let journal = try bench.open()
        #expect(journal.interrupted == 1)
        #expect(
            try bench.rows("SELECT id, state, attempt, is_interrupted FROM jobs ORDER BY id") == [
                "1|succeeded|1|0", "2|pending|1|1",
            ])
        #expect(
            try bench.rows("SELECT job, number, outcome, message FROM attempts ORDER BY job") == [
                "1|1|succeeded|well done", "2|1|interrupted|Alight ended while the action ran",
            ])
        _ = journal.begin(DiskBench.rules, at: bench.wall)
        #expect(try bench.known("/in/a") == .sample())
        #expect(try bench.known("/in/b") == .sample())
    }

    /// Everything that a journal's tables say, in a copy that has caught up.
    private func dump(_ bench: DiskBench) throws -> [String] {
        let copy = bench.root.appending("copy.db")
        for suffix in ["", "-wal", "-ahead"] {
            TestFile.write(PathBytes("\(copy)\(suffix)"), TestFile.read(PathBytes("\(bench.path)\(suffix)")) ?? [])
        }
        let queue = try DatabaseQueue(path: "\(copy)")
        defer { try? queue.close() }
        return try queue.writeWithoutTransaction { database in
            try AheadLog.apply(to: database, of: copy)
            return try ["jobs ORDER BY id", "attempts ORDER BY job, number", "ledger ORDER BY rule, path"].flatMap {
                try Row.fetchAll(database, sql: "SELECT * FROM \($0)").map(\.description)
            }
        }
    }

    @Test func `every way in which a job changes is told as a commit tells it`() throws {
        func play(_ bench: DiskBench, _ keep: () throws -> JournalFault?) throws {
            #expect(try bench.commit() == nil)
            for (id, path) in [("1", "/in/a"), ("2", "/in/b"), ("3", "/in/c"), ("4", "/in/d"), ("6", "/in/f")] {
                try bench.accept(id, .created, PathBytes(path))
            }
            #expect(try keep() == nil)
            let jobs = try bench.lease(5)
            #expect(try keep() == nil)
            try bench.end(jobs[0], .dead, Outcome(.failed, "no \u{2013} \"never\"", code: "no"))
            try bench.again(jobs[1], after: .seconds(9))
            var extended = Snapshot.sample(size: 3)
            extended.extended = []
            extended.digest = [0, 1, 255]
            _ = try bench.journal.record(
                jobs[2], nil, .ended(.succeeded, Outcome(.succeeded)),
                [
                    LedgerEntry(view: "r", path: "/in/c", snapshot: nil),
                    LedgerEntry(view: "r", path: PathBytes([0x2F, 0xFF, 0x0A]), snapshot: extended),
                ])
            try bench.journal.note([Outcome(.succeeded, "one step")], of: jobs[3].id)
            for _ in 0..<22 {
                bench.wait(.seconds(1))
                try bench.again(jobs[4], after: .zero, Outcome(.notReady, "wait"))
                #expect(try keep() == nil)
                #expect(try bench.journal.lease(rule: "r", paths: ["/in/f"], busy: [], now: bench.now).count == 1)
            }
            // Another event for what rests, and one that others take over.
            try bench.accept("5", .modified, "/in/b", .sample(size: 7), before: .sample())
            try bench.accept("7", .modified, "/in/b", .sample(size: 8), before: .sample(size: 7))
            #expect(try keep() == nil)
        }
        let other = DiskBench()
        try play(bench, bench.secure)
        try play(other, other.commit)
        #expect(try bench.journal.commitDue != nil)
        let expected = try dump(other)
        #expect(expected.count > 25)
        #expect(try dump(bench) == expected)
    }

    @Test func `it begins anew with each commit, and what it told before is not told again`() throws {
        try begin()
        try bench.accept("1")
        #expect(try bench.secure() == nil)
        let length = try #require(TestFile.read(log)).count
        #expect(try bench.commit() == nil)
        #expect(try bench.journal.commitDue == nil)
        #expect(try bench.secure() == nil, "there is nothing to be told")
        #expect(try bench.journal.commitDue == nil)
        let job = try #require(try bench.lease().first)
        try bench.end(job)
        #expect(try bench.secure() == nil)
        #expect(try bench.commit() == nil)
        // Only what is as long as the first record is left of the file, and none of it counts.
        #expect(try #require(TestFile.read(log)).count >= length)
        bench.kill()
        _ = try bench.journal
        #expect(try bench.rows("SELECT id, state FROM jobs") == ["1|succeeded"])
    }

    @Test func `a log that was cut off, or changed, tells what came before that`() throws {
        try begin()
        try bench.accept("1")
        #expect(try bench.secure() == nil)
        let first = try #require(TestFile.read(log)).count
        try bench.accept("2", .created, "/in/b")
        #expect(try bench.secure() == nil)
        let whole = try #require(TestFile.read(log))
        let files = ["", "-wal"].map { PathBytes(bench.path.bytes + Array($0.utf8)) }
        let kept = files.map { TestFile.read($0) ?? [] }
        bench.kill()
        var spoilt = [Array(whole[..<first]), Array(whole[..<(first + 40)]), Array(whole.dropLast(8)), whole + [1, 2]]
        for place in [first, first + 9, first + 17, first + 25, first + 40, whole.count - 9] {
            var bytes = whole
            bytes[place] ^= 4
            spoilt.append(bytes)
        }
        for (number, bytes) in spoilt.enumerated() {
            for (file, content) in zip(files, kept) { TestFile.write(file, content) }
            _ = PathBytes("\(bench.path)-shm").withCString { unlink($0) }
            TestFile.write(log, bytes)
            let journal = try bench.open()
            #expect(journal.counts.pending == (number == 3 ? 2 : 1), "number \(number)")
            bench.kill()
        }
    }

    @Test func `a log of another moment or of another journal says nothing`() throws {
        try begin()
        try bench.accept("1")
        #expect(try bench.secure() == nil)
        let old = try #require(TestFile.read(log))
        #expect(try bench.commit() == nil)
        let job = try #require(try bench.lease().first)
        try bench.end(job)
        #expect(try bench.commit() == nil)
        bench.kill()
        TestFile.write(log, old)
        #expect(try bench.journal.counts.pending == 0)
        #expect(try bench.rows("SELECT id, state FROM jobs") == ["1|succeeded"])
        let other = DiskBench()
        #expect(try other.commit() == nil)
        other.kill()
        TestFile.write(PathBytes("\(other.path)-ahead"), old)
        #expect(try other.journal.counts.pending == 0)
    }

    @Test func `without a log everything is committed at once`() throws {
        try begin()
        // Nobody would find what is written to a file that was removed.
        _ = log.withCString { unlink($0) }
        try bench.accept("1")
        #expect(try bench.secure() == nil)
        #expect(try bench.rows("SELECT id FROM jobs") == ["1"])
        #expect(try bench.journal.commitDue == nil)
        // It has made another one.
        try bench.accept("2", .created, "/in/b")
        #expect(try bench.secure() == nil)
        #expect(try bench.rows("SELECT id FROM jobs") == ["1"])
        bench.kill()
        // Where none can be made, as here, it goes on without.
        _ = log.withCString { unlink($0) }
        #expect(log.withCString { mkdir($0, 0o700) } == 0)
        try begin()
        #expect(try bench.journal.aheadError == .noAccess(log, errno: EISDIR))
        try bench.accept("3", .created, "/in/c")
        #expect(try bench.secure() == nil)
        #expect(try bench.rows("SELECT id FROM jobs") == ["1", "3"])
    }

    @Test func `what is asked for a job outlives a kill, and rules are committed at once`() throws {
        try begin()
        try bench.accept("1")
        let job = try #require(try bench.lease().first)
        try bench.end(job, .dead, Outcome(.failed))
        #expect(try bench.commit() == nil)
        try bench.retry("1")
        #expect(try bench.secure() == nil)
        bench.kill()
        #expect(try bench.journal.counts.pending == 1)
        _ = try bench.journal.begin(DiskBench.rules + [RuleRecord(name: "u", selection: "*")], at: bench.wall)
        try bench.accept("2", .created, "/in/b", rule: "u")
        #expect(try bench.secure() == nil)
        #expect(try bench.rows("SELECT name FROM rules WHERE name = 'u'") == ["u"])
        #expect(try bench.rows("SELECT id FROM jobs WHERE rule = 'u'") == ["2"])
    }

    @Test func `a long log is committed at once`() throws {
        try begin()
        var count = 0
        while count < 100 {
            count += 1
            try bench.accept("\(count)", .created, PathBytes("/in/\(count)/" + String(repeating: "x", count: 60_000)))
            #expect(try bench.secure() == nil)
            if try bench.journal.commitDue == nil { break }
        }
        #expect(count > 20 && count < 90)
        #expect(try bench.rows("SELECT count(*) FROM jobs") == ["\(count)"])
    }

    @Test func `a copy has what was secured, and so has who reads`() throws {
        try begin()
        try bench.accept("1")
        #expect(try bench.secure() == nil)
        // Nobody lets the database catch up: this journal is not in the hands of an engine.
        let reader = try JournalReader(bench.path)
        #expect(try reader.jobs(JournalQuery()).jobs.map(\.id.description) == ["1"])
        let copy = try DiskJournal(inMemory: bench.path, now: bench.wall)
        #expect(copy.counts.pending == 1)
        bench.kill()
        #expect(try JournalReader(bench.path).jobs(JournalQuery()).jobs.map(\.id.description) == ["1"])
        let log = try #require(TestFile.read(log))
        #expect(
            try JournalReader(bench.path, isTraceless: true).jobs(JournalQuery()).jobs.map(\.id.description) == ["1"])
        #expect(TestFile.read(self.log) == log, "it is Alight's business to catch up")
    }

    /// The files of a journal as they are.
    private func files(_ bench: DiskBench) -> [(PathBytes, [UInt8]?)] {
        ["", "-wal"].map { PathBytes("\(bench.path)\($0)") }.map { ($0, TestFile.read($0)) }
    }

    private func restore(_ files: [(PathBytes, [UInt8]?)]) {
        for (file, content) in files { TestFile.write(file, content ?? []) }
        _ = PathBytes("\(bench.path)-shm").withCString { unlink($0) }
    }

    @Test func `after a power failure a log says nothing that the database has lost the ground of`() throws {
        try begin()
        let lost = files(bench)
        // A commit with an empty log, and then something that rests on it.
        _ = try bench.journal.begin(DiskBench.rules + [RuleRecord(name: "u", selection: "*")], at: bench.wall)
        #expect(try bench.commit() == nil)
        try bench.accept("1", .created, "/in/a", rule: "u")
        #expect(try bench.secure() == nil)
        bench.kill()
        restore(lost)
        let journal = try bench.open()
        #expect(journal.counts.pending == 0 && journal.waiting.isEmpty && !journal.hasUnfitLog)
    }

    @Test func `rows that don't fit are left alone, and the journal is used`() throws {
        _ = try bench.journal.begin(DiskBench.rules + [RuleRecord(name: "u", selection: "*")], at: bench.wall)
        try begin()
        try bench.accept("1", .created, "/in/a", rule: "u")
        #expect(try bench.secure() == nil)
        bench.kill()
        _ = try bench.look { try $0.execute(sql: "DELETE FROM rules WHERE name = 'u'") }
        #expect(try bench.open().hasUnfitLog)
        #expect(try bench.journal.counts.pending == 0)
        bench.kill()
        #expect(try !bench.open().hasUnfitLog, "it is told once")
    }

    @Test func `an old log is not taken for what came after a run without one`() throws {
        try begin()
        try bench.accept("1")
        _ = try bench.lease()
        #expect(try bench.secure() == nil)
        bench.kill()
        let old = try #require(TestFile.read(log))
        unlink("\(log)")
        #expect(mkdir("\(log)", 0o700) == 0)
        #expect(try bench.journal.aheadError == .noAccess(log, errno: EISDIR))
        bench.kill()
        #expect(rmdir("\(log)") == 0)
        TestFile.write(log, old)
        let journal = try bench.open()
        #expect(journal.interrupted == 0 && journal.aheadError == nil)
    }

    @Test(arguments: ["nothing", "zeros", "sparse", "text", "link", "fifo"])
    func `whatever lies in the place of the log, the journal is opened`(what: String) throws {
        try begin()
        bench.kill()
        unlink("\(log)")
        switch what {
        case "nothing": TestFile.write(log, [UInt8]())
        case "zeros": TestFile.write(log, [UInt8](repeating: 0, count: 4_096))
        case "sparse":
            TestFile.write(log, [UInt8]())
            #expect(truncate("\(log)", 1 << 42) == 0)
        case "text": TestFile.write(log, "AlgtLog1" + String(repeating: "x", count: 99))
        case "link": #expect(symlink("/etc/passwd", "\(log)") == 0)
        default: #expect(mkfifo("\(log)", 0o600) == 0)
        }
        #expect(try bench.journal.counts.open == 0)
        try bench.accept("1")
        #expect(try bench.secure() == nil)
        bench.kill()
        #expect(try bench.journal.counts.pending == 1)
        #expect(try JournalReader(bench.path).jobs(JournalQuery()).jobs.count == 1)
        if what == "sparse" { unlink("\(log)") }
    }

    @Test func `while the database can't be written to, what ended is noted`() throws {
        try begin()
        try bench.accept("1")
        let job = try #require(try bench.lease().first)
        #expect(try bench.secure() == nil)
        try bench.look { database in
            try database.execute(sql: "BEGIN IMMEDIATE")
            try bench.end(job)
            #expect(try bench.commit()?.mayPass == true)
            try bench.journal.note(at: bench.wall)
            // It is tried no more than the engine asks for.
            try bench.journal.catchUp(at: bench.wall)
            try database.execute(sql: "ROLLBACK")
        }
        bench.kill()
        #expect(try bench.open().interrupted == 0)
        #expect(try bench.rows("SELECT state FROM jobs") == ["succeeded"])
    }

    @Test func `it has the mode of the journal's file`() throws {
        try begin()
        bench.kill()
        #expect(chmod("\(bench.path)", 0o640) == 0)
        _ = try bench.journal
        var status = stat()
        #expect(stat("\(log)", &status) == 0 && status.st_mode & 0o777 == 0o640)
    }

    @Test func `who has the journal sees what is noted, and SQLite keeps its locks`() throws {
        try begin()
        try bench.accept("1")
        #expect(try bench.secure() == nil)
        let reader = try JournalReader(bench.path, isOwn: true)
        try bench.journal.catchUp(at: bench.wall)
        #expect(try reader.jobs(JournalQuery()).jobs.count == 1)
        try bench.accept("2", .created, "/in/b")
        #expect(try bench.secure() == nil)
        try bench.journal.catchUp(at: bench.wall)
        #expect(try reader.jobs(JournalQuery()).jobs.count == 2)
        // Another process that comes and goes would take itself for the last one, and remove SQLite's log.
        let look = "print(sqlite3.connect('journal.db').execute('SELECT count(*) FROM jobs').fetchone())"
        let words = ["-c", "import sqlite3; \(look)"]
        let python = RunningProgram("/usr/bin/python3", words, in: bench.root, output: bench.root.appending("python"))
        #expect(python.wait() == 0, "\(python.error)")
        #expect(python.output == "(2,)\n")
        #expect(TestFile.exists(PathBytes("\(bench.path)-wal")))
    }

    @Test func `a clean stop leaves no log`() throws {
        try begin()
        try bench.accept("1")
        #expect(try bench.secure() == nil)
        #expect(TestFile.exists(log))
        try bench.close()
        #expect(!TestFile.exists(log))
        #expect(try bench.rows("SELECT id FROM jobs") == ["1"])
    }
}
