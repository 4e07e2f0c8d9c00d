@preconcurrency import Dispatch
import FileEvents
import GRDB
import Glibc
import Journaling
import PluginProtocol
import Rules
import Synchronization
import TestKit
import Testing

/// A copy in memory of what a journal's file holds, read without a trace.
struct JournalCopyTests {
    /// All files of the folder, with their content and the time of the last change.
    private static func files(_ root: PathBytes) -> [[UInt8]: String] {
        var files: [[UInt8]: String] = [:]
        // What processes share of a journal that is open is not its content.
        for name in TestFile.names(in: root) where !name.suffix(4).elementsEqual("-shm".utf8) {
            var status = stat()
            _ = root.appending(name).withCString { lstat($0, &status) }
            let content = TestFile.read(root.appending(name)) ?? []
            files[name] = "\(status.st_ino) \(status.st_mtim) \(content.hashValue)"
        }
        return files
    }

    private static func copy(_ bench: DiskBench) throws -> DiskJournal {
        let journal = try DiskJournal(inMemory: bench.path, now: bench.wall, clock: { [now = bench.now] in now })
        _ = journal.begin(DiskBench.rules, at: bench.wall)
        return journal
    }

    private static func check(_ copy: DiskJournal) throws -> String? {
        try copy.look { try String.fetchOne($0, sql: "PRAGMA integrity_check") }
    }

    @Test func `without a file it is a new journal, and none is made`() throws {
        let bench = DiskBench()
        let copy = try Self.copy(bench)
        #expect(copy.counts == JobCounts())
        copy.accept([Job(id: JobID("A"), rule: "r", event: .sample())], [], now: bench.now)
        #expect(copy.commit(at: bench.wall) == nil)
        #expect(copy.openJobs().map(\.id.description) == ["A"])
        copy.close(at: bench.wall)
        #expect(TestFile.names(in: bench.root).isEmpty)
    }

    @Test(arguments: ["closed", "killed", "open"])
    func `it has what the journal has, and leaves its files alone`(_ end: String) throws {
        let bench = DiskBench()
        // Enough for pages of several kinds, in the file and in its log.
        for number in 0..<400 {
            try bench.accept("J\(number)", .created, PathBytes("/in/\(number)"), .sample(file: UInt64(number + 1)))
            if number % 100 == 0 { #expect(try bench.commit() == nil) }
        }
        let leased = try bench.lease(2)
        #expect(try bench.commit() == nil)
        if end == "closed" { try bench.close() }
        if end == "killed" { bench.kill() }
        let before = Self.files(bench.root)
        let copy = try Self.copy(bench)
        #expect(try Self.check(copy) == "ok")
        #expect(copy.counts.pending == 400)
        #expect(copy.interrupted == leased.count)
        for number in [0, 100, 399] {
            let known = copy.snapshot(view: "r", path: PathBytes("/in/\(number)"))
            #expect(known?.identity.inode == UInt64(number + 1))
        }
        // What becomes of the copy is nobody's business.
        for job in copy.lease(rule: "r", limit: 400, busy: [], now: bench.now) {
            _ = copy.record(job, nil, .ended(.succeeded, Outcome(.succeeded)), [])
        }
        #expect(copy.commit(at: bench.wall) == nil)
        #expect(copy.counts.open == 0)
        copy.close(at: bench.wall)
        #expect(Self.files(bench.root) == before)
    }

    @Test func `what the log does not hold as a whole was not committed`() throws {
        let bench = DiskBench()
        try bench.accept("A", .created, "/in/a")
        #expect(try bench.commit() == nil)
        let log = PathBytes(bench.path.bytes + Array("-wal".utf8))
        let whole = try #require(TestFile.read(log))
        try bench.accept("B", .created, "/in/b")
        #expect(try bench.commit() == nil)
        let longer = try #require(TestFile.read(log))
        #expect(longer.count > whole.count)
        bench.kill()
        for size in [whole.count, whole.count + 10, longer.count - 1] {
            TestFile.write(log, Array(longer.prefix(size)))
            #expect(try Self.copy(bench).openJobs().map(\.id.description) == ["A"])
        }
        var broken = longer
        broken[longer.count - 5] ^= 0xFF
        TestFile.write(log, broken)
        #expect(try Self.copy(bench).openJobs().map(\.id.description) == ["A"])
        TestFile.write(log, longer)
        #expect(try Self.copy(bench).openJobs().map(\.id.description) == ["A", "B"])
    }

    /// So many commits come while a copy is made, if it takes that long.
    private static let burst = 20

    @Test func `it is whole while somebody writes`() throws {
        let bench = DiskBench()
        let journal = try bench.journal
        let isOver = Atomic(false)
        let isRead = DispatchSemaphore(value: 0)
        var writer = pthread_t()
        let work = Unmanaged.passRetained(
            Box {
                for round in 0... {
                    if isOver.load(ordering: .relaxed) { break }
                    for step in 0..<Self.burst {
                        let number = round * Self.burst + step
                        let event = FileEvent.sample(.created, PathBytes("/in/\(number)"))
                        journal.accept([Job(id: JobID("J\(number)"), rule: "r", event: event)], [], now: bench.now)
                        _ = journal.commit(at: bench.wall)
                        // The log is emptied into the file, and begun anew.
                        if step == round * 7 % Self.burst {
                            try? journal.look { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
                        }
                    }
                    // Whoever reads must get through in between: the next burst is for the next copy.
                    isRead.wait()
                }
            })
        let code = pthread_create(
            &writer, nil,
            {
                Unmanaged<Box>.fromOpaque($0!).takeRetainedValue().run(); return nil
            }, work.toOpaque())
        #expect(code == 0)
        defer {
            isOver.store(true, ordering: .relaxed)
            isRead.signal()
            pthread_join(writer, nil)
        }
        var last = 0
        for _ in 0..<20 {
            let copy = try Self.copy(bench)
            #expect(try Self.check(copy) == "ok")
            let jobs = copy.openJobs().count
            #expect(jobs >= last)
            last = jobs
            isRead.signal()
        }
    }

    private final class Box: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    @Test func `what is no journal is refused`() throws {
        let bench = DiskBench()
        TestFile.write(bench.path, "no journal at all")
        #expect(throws: JournalError.notJournal(bench.path)) { try Self.copy(bench) }
        TestFile.removeTree(bench.path)
        TestFile.makeFolder(bench.path)
        #expect(throws: JournalError.isFolder(bench.path)) { try Self.copy(bench) }
    }

    @Test func `who has a journal is known without its lock`() throws {
        let bench = DiskBench()
        #expect(DiskJournal.holder(of: bench.path) == nil)
        let journal = try bench.open()
        #expect(DiskJournal.holder(of: bench.path) == getpid())
        #expect(DiskJournal.control(of: bench.path) == nil)
        journal.note(control: "/run/a \n'b/control.sock")
        #expect(DiskJournal.control(of: bench.path) == "/run/a \n'b/control.sock")
        journal.note(control: nil)
        #expect(DiskJournal.control(of: bench.path) == nil && DiskJournal.holder(of: bench.path) == getpid())
        journal.note(control: "/run/control.sock")
        _ = journal.close(at: bench.wall)
        #expect(DiskJournal.holder(of: bench.path) == nil && DiskJournal.control(of: bench.path) == nil)
    }

    @Test func `a reader without a trace makes no files beside a journal at rest`() throws {
        let bench = DiskBench()
        try bench.accept("A", .created, "/in/a")
        try bench.set("/in/known", .sample(file: 7), rule: "s")
        #expect(try bench.commit() == nil)
        try bench.close()
        let before = Self.files(bench.root)
        let reader = try JournalReader(bench.path, isTraceless: true)
        let records = try reader.records(of: "/in/a", rules: ["r", "s"], limit: 5)
        #expect(records["r"]?.isKnown == true)
        #expect(records["r"]?.open.map(\.id.description) == ["A"])
        #expect(records["s"] == nil)
        #expect(try reader.records(of: "/in/known", rules: ["s"], limit: 5)["s"]?.isKnown == true)
        #expect(Self.files(bench.root) == before)
    }
}
