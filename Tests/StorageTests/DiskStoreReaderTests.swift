import FileEvents
import Foundation
import GRDB
import PluginProtocol
import Reconciling
import Records
import Rules
import Storage
import System
import Testing
import TestKit

/// The file of a store as other connections read it, and as a kill leaves it.
struct DiskStoreReaderTests {
    let bench = StoreBench()

    /// Commits one job in each state, numbered 1 to 5.
    private func commitJobs() throws {
        try bench.commit(.leased(1, rule: "s"), OpenJob.leased(2).retrying(at: bench.now + .seconds(60)))
        for (number, state) in [(3, .succeeded), (4, .skipped), (5, .failed)] as [(UInt64, JobState)] {
            bench.wait(.seconds(1))
            var outcome = Outcome(state == .failed ? .failed : .succeeded, "as told", code: "c", outputs: ["/out/a"])
            outcome.log = "one line"
            try bench.end(.leased(number, .sample(.modified, "/in/a")), state, outcome, isNew: true)
        }
        try bench.commit {
            $0.rows[RuleID(1)] = ["/in/a": LedgerRow(.sample())]
            $0.rows[RuleID(2)] = ["/in/a": LedgerRow(nil, .uncertain)]
            $0.pauses = Pauses(rules: ["s"])
        }
    }

    private func check(_ reader: JournalReader) throws {
        #expect(try reader.counts() == [.running: 1, .pending: 1, .succeeded: 1, .skipped: 1, .failed: 1])
        #expect(try reader.jobs(JournalQuery()).jobs.map(\.id.description) == ["5", "4", "3", "2", "1"])
        #expect(try reader.jobs(JournalQuery(rule: "s")).jobs.map(\.state) == [.running])
        let failed = try #require(try reader.details(of: JobID("5")))
        #expect(failed.job.outputs == ["/out/a"] && failed.job.message == "as told" && failed.job.code == "c")
        #expect(failed.event?.path == "/in/a" && failed.event?.kind == .modified)
        #expect(failed.attempts.map(\.outcome) == ["failed"] && failed.attempts.map(\.log) == ["one line"])
        let pending = try #require(try reader.details(of: JobID("2"))?.job)
        #expect(pending.due == Timestamp.early.advanced(by: .seconds(60)) && pending.attempt == 1)
        #expect(try reader.newest(rule: "r", path: "/in/a") == JobID("5"))
        let records = try reader.records(of: "/in/a", rules: ["r", "s"], limit: 2)
        #expect(records["r"]?.recorded?.isUnchanged(.sample()) == true)
        #expect(records["r"]?.ended.map(\.id.description) == ["5", "4"])
        // A row without metadata means that nothing is known.
        #expect(records["s"] == nil)
        #expect(try reader.pauses() == Pauses(rules: ["s"]))
        #expect(try reader.failedCounts() == ["r": 1])
        #expect(try reader.lastFailed(9).map(\.id.description) == ["5"])
    }

    @Test func `a reader finds jobs, attempts and pauses, while the file is open and afterwards`() throws {
        try commitJobs()
        try check(JournalReader(bench.path))
        try check(JournalReader(bench.path, isOwn: true))
        bench.kill()
        try check(JournalReader(bench.path, isTraceless: true))
        try bench.end(isClean: true)
        try check(JournalReader(bench.path, isTraceless: true))
    }

    @Test func `a file is unchanged while its row is certain and no text is unread`() throws {
        let start = Snapshot.sample()
        func recorded(_ row: LedgerRow) throws -> RecordedFile {
            try bench.commit { $0.rows[StoreBench.rule] = ["/in/a": row] }
            return try #require(
                try JournalReader(bench.path).records(of: "/in/a", rules: ["r"], limit: 0)["r"]?.recorded)
        }
        for trust in [LedgerRow.Trust.certain, .failed, .refused] {
            #expect(try recorded(LedgerRow(start, trust)).isUnchanged(start))
        }
        #expect(try !recorded(LedgerRow(start, .uncertain)).isUnchanged(start))
        #expect(try !recorded(LedgerRow(start)).isUnchanged(.sample(modified: 1_001)))
        var followed = start
        followed.delivered = start.size
        #expect(try recorded(LedgerRow(followed)).isUnchanged(start))
        followed.delivered = start.size - 1
        #expect(try !recorded(LedgerRow(followed)).isUnchanged(start))
    }

    @Test func `the log is checkpointed in the background, and stays short`() throws {
        var snapshot = Snapshot.sample()
        func commit(_ rows: Int, _ byte: UInt8) throws {
            snapshot.digest = [UInt8](repeating: byte, count: 60_000)
            let rows = (0..<rows).map { (PathBytes("/in/\($0)"), LedgerRow(snapshot)) }
            try bench.commit { $0.rows[StoreBench.rule] = Dictionary(uniqueKeysWithValues: rows) }
        }
        func size(_ suffix: String = "") throws -> Int {
            try FileManager.default.attributesOfItem(atPath: "\(bench.path)\(suffix)")[.size] as? Int ?? 0
        }
        try commit(100, 0)
        #expect(try size("-wal") > 6_000_000)
        // This happens in the background, without another commit.
        #expect(try Deadline.wait { try size() > 6_000_000 })
        for byte in 1...20 as ClosedRange<UInt8> { try commit(50, byte) }
        #expect(try size("-wal") < 20_000_000)
        #expect(try bench.rows("SELECT count(*) FROM ledger") == ["100"])
    }

    /// A power failure while the log is written can leave any part of it.
    @Test func `a log truncated at any point leaves the state of a commit`() throws {
        let rule = StoreBench.rule
        try bench.commit { $0.hasStarted = true }
        try bench.store.query { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
        func state(_ store: DiskStore) -> String {
            let jobs = store.unfinishedJobs(of: rule, at: bench.clocks).map { "\($0.job.number)\($0.isRunning)" }
            let rows = store.rows(of: rule, below: "/", after: nil).map { "\($0.0)\($0.1.trust)" }
            return "\(jobs) \(rows) \(store.duePaths(of: rule)) \(store.stored.number)"
        }
        var states = [state(try bench.store)]
        for number in 0..<4 as Range<UInt64> {
            let job = OpenJob.leased(number + 1)
            let path = PathBytes("/in/\(number)")
            try bench.commit {
                $0.jobs[job.job.id] = JobChange(.unfinished(job), isNew: true)
                $0.due[rule] = [path: .deleted, "/in/next": .stored(nil)]
            }
            states.append(state(try bench.store))
            try bench.commit {
                $0.jobs[job.job.id] = JobChange(.ended(job, .succeeded, Outcome(.succeeded)), isNew: false)
                $0.rows[rule] = [path: LedgerRow(.sample(file: number))]
            }
            states.append(state(try bench.store))
        }
        let file = try #require(TestFile.read(bench.path))
        let log = try #require(TestFile.read(PathBytes("\(bench.path)-wal")))
        let frame = 24 + 4_096
        #expect(log.count > 8 * frame)
        var reached = 0
        let tree = TemporaryTree()
        for start in [0] + stride(from: 32, through: log.count, by: frame) {
            for length in [start, start + 2_000] where length <= log.count {
                let path = tree.path("\(length)/journal.db")
                TestFile.write(path, file)
                TestFile.write(PathBytes("\(path)-wal"), Array(log[..<length]))
                let store = try DiskStore(at: path, now: bench.wall)
                _ = store.register(StoreBench.rules, isWatching: true, at: bench.wall)
                let location = try #require(states.firstIndex(of: state(store)), "cut at \(length)")
                #expect(location >= reached)
                reached = location
                #expect(try store.query { try String.fetchOne($0, sql: "PRAGMA integrity_check") } == "ok")
                #expect(store.close(at: bench.wall) == nil)
                TestFile.removeTree(path.parent)
            }
        }
        #expect(reached == states.count - 1)
    }
}
