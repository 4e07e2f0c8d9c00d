@preconcurrency import Dispatch
import FileEvents
import Glibc
import GRDB
import PluginProtocol
import Reconciling
import Records
import Rules
import Storage
import Synchronization
import System
import Testing
import TestKit

/// A copy of a journal file in memory, read without leaving a trace.
struct JournalCopyTests {
    /// The files of the directory, except the shared memory of an open journal, which is not part of its content.
    private static func files(_ root: PathBytes) -> [[UInt8]: String] {
        TestFile.states(in: root) { !$0.suffix(4).elementsEqual("-shm".utf8) }
    }

    private static func copy(_ bench: StoreBench) throws -> DiskStore {
        let store = try DiskStore(inMemory: bench.path, now: bench.wall, clock: { [now = bench.now] in now })
        _ = store.register(StoreBench.rules, isWatching: true, at: bench.wall)
        return store
    }

    /// Creates the changes for new jobs with the given numbers, and for their ledger rows.
    private static func changes(_ numbers: Range<UInt64>) -> TurnChanges {
        var changes = TurnChanges()
        for number in numbers {
            let path = PathBytes("/in/\(number)")
            let job = OpenJob.leased(number, .sample(.created, path, .sample(file: number)))
            changes.jobs[job.job.id] = JobChange(.unfinished(job), isNew: true)
            changes.rows[StoreBench.rule, default: [:]][path] = LedgerRow(.sample(file: number))
        }
        return changes
    }

    private static func check(_ copy: DiskStore) throws -> String? {
        try copy.query { try String.fetchOne($0, sql: "PRAGMA integrity_check") }
    }

    @Test func `a copy of a missing file is a new journal, and no file is created`() throws {
        let bench = StoreBench()
        let copy = try Self.copy(bench)
        #expect(copy.openJobs().isEmpty)
        #expect(copy.commit(Self.changes(1..<2), at: bench.clocks) == nil)
        #expect(copy.openJobs().map(\.id.description) == ["1"])
        copy.close(at: bench.wall)
        #expect(TestFile.names(in: bench.root).isEmpty)
    }

    @Test(arguments: ["closed", "killed", "open"])
    func `a copy has the content of the journal, and leaves its files unchanged`(_ end: String) throws {
        let bench = StoreBench()
        // Enough for pages of several kinds, in the file and in its log.
        for start in stride(from: 1, to: 401, by: 100) as StrideTo<UInt64> {
            #expect(try bench.store.commit(Self.changes(start..<(start + 100)), at: bench.clocks) == nil)
        }
        if end != "open" { try bench.end(isClean: end == "closed") }
        let before = Self.files(bench.root)
        let copy = try Self.copy(bench)
        #expect(try Self.check(copy) == "ok")
        #expect(copy.interrupted == 400)
        for number in [1, 100, 400] as [UInt64] {
            let row = copy.row(of: StoreBench.rule, at: PathBytes("/in/\(number)"))
            #expect(row?.handled?.identity.inode == number)
        }
        // Changes of the copy do not affect the journal.
        var changes = TurnChanges()
        for job in copy.unfinishedJobs(of: StoreBench.rule, at: bench.clocks) {
            changes.jobs[job.job.id] = JobChange(.ended(job, .succeeded, Outcome(.succeeded)), isNew: false)
        }
        #expect(copy.commit(changes, at: bench.clocks) == nil)
        #expect(copy.openJobs().isEmpty)
        copy.close(at: bench.wall)
        #expect(Self.files(bench.root) == before)
    }

    @Test func `a commit that is incomplete in the log is ignored`() throws {
        let bench = StoreBench()
        try bench.commit(.leased(1))
        let log = PathBytes(bench.path.bytes + Array("-wal".utf8))
        let whole = try #require(TestFile.read(log))
        try bench.commit(.leased(2))
        let longer = try #require(TestFile.read(log))
        #expect(longer.count > whole.count)
        bench.kill()
        func jobs() throws -> [String] { try Self.copy(bench).openJobs().map(\.id.description) }
        for size in [whole.count, whole.count + 10, longer.count - 1] {
            TestFile.write(log, Array(longer.prefix(size)))
            #expect(try jobs() == ["1"])
        }
        var broken = longer
        broken[longer.count - 5] ^= 0xFF
        TestFile.write(log, broken)
        #expect(try jobs() == ["1"])
        TestFile.write(log, longer)
        #expect(try jobs() == ["1", "2"])
    }

    /// The number of commits while a copy is made, if that takes long enough.
    private static let burst = 20

    @Test func `a copy is consistent while another thread writes`() throws {
        let bench = StoreBench()
        let store = try bench.store
        let isOver = Atomic(false)
        let isRead = DispatchSemaphore(value: 0)
        var writer = pthread_t()
        let work = Unmanaged.passRetained(
            Box {
                for round in 0... {
                    if isOver.load(ordering: .relaxed) { break }
                    for step in 0..<Self.burst {
                        let number = UInt64(round * Self.burst + step)
                        _ = store.commit(Self.changes(number..<(number + 1)), at: bench.clocks)
                        // The log is checkpointed and truncated.
                        if step == round * 7 % Self.burst {
                            try? store.query { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
                        }
                    }
                    // The reader must get through in between: the next burst is for the next copy.
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

    @Test func `a file that is not a journal is refused`() throws {
        let bench = StoreBench()
        TestFile.write(bench.path, "no journal at all")
        #expect(throws: JournalError.notJournal(bench.path)) { try Self.copy(bench) }
        TestFile.removeTree(bench.path)
        TestFile.makeDirectory(bench.path)
        #expect(throws: JournalError.isDirectory(bench.path)) { try Self.copy(bench) }
    }

    @Test func `the process that holds a journal is found without locking it`() throws {
        let bench = StoreBench()
        #expect(DiskStore.holder(of: bench.path) == nil)
        let store = try bench.open()
        #expect(DiskStore.holder(of: bench.path) == getpid())
        #expect(DiskStore.control(of: bench.path) == nil)
        store.note(control: "/run/a \n'b/control.sock")
        #expect(DiskStore.control(of: bench.path) == "/run/a \n'b/control.sock")
        store.note(control: nil)
        #expect(DiskStore.control(of: bench.path) == nil && DiskStore.holder(of: bench.path) == getpid())
        store.note(control: "/run/control.sock")
        _ = store.close(at: bench.wall)
        #expect(DiskStore.holder(of: bench.path) == nil && DiskStore.control(of: bench.path) == nil)
    }

    @Test func `a traceless reader creates no files beside an idle journal`() throws {
        let bench = StoreBench()
        #expect(try bench.store.commit(Self.changes(1..<2), at: bench.clocks) == nil)
        try bench.end(isClean: true)
        let before = Self.files(bench.root)
        let reader = try JournalReader(bench.path, isTraceless: true)
        let records = try reader.records(of: "/in/1", rules: ["r", "s"], limit: 5)
        #expect(records["r"]?.recorded != nil)
        #expect(records["r"]?.open.map(\.id.description) == ["1"])
        #expect(records["s"] == nil)
        #expect(Self.files(bench.root) == before)
    }
}
