import FileEvents
import PluginProtocol
import Reconciling
import Records
import Rules
import Storage
import System
import Testing
import TestKit

/// The history of finished jobs, and how much of it is stored.
struct HistoryTests {
    private static func job(_ number: Int) -> OpenJob {
        .leased(UInt64(number), .sample(.created, PathBytes("/in/\(number)")))
    }

    @Test func `the state, the attempts and the log of a finished job are stored`() throws {
        let bench = StoreBench()
        func jobs() throws -> [String] {
            try bench.rows("SELECT id, state, attempt, coalesce(code, ''), coalesce(message, '') FROM jobs")
        }
        var job = OpenJob.leased(1)
        try bench.commit {
            $0.jobs[JobID("1")] = JobChange(.unfinished(job.retrying(at: bench.now + .seconds(3))), isNew: true)
            $0.attempts = [(JobID("1"), bench.attempt(job, Outcome(.retry, "not now")))]
        }
        #expect(try jobs() == ["1|pending|1||"])
        bench.wait(.seconds(3))
        job = job.changed { job, _ in job.attempt = 2 }
        try bench.commit(isNew: false, job)
        #expect(try jobs() == ["1|running|2||"])
        var outcome = Outcome(.failed, "no such bucket", code: "s3.404")
        outcome.log = "line 1\nline 2\n"
        outcome.process = ProcessDetails(status: 1, request: "{\"protocol\":1}")
        try bench.end(job, .failed, outcome)
        #expect(try jobs() == ["1|failed|2|s3.404|no such bucket"])
        #expect(try bench.rows("SELECT due, ended FROM jobs") == ["|1000000003000000000"])
        #expect(
            try bench.rows("SELECT * FROM attempts ORDER BY number") == [
                "1|1000000000000000000|1|5000000|retry|not now|||||||",
                "1|1000000003000000000|2|5000000|failed|no such bucket|s3.404|1||{\"protocol\":1}|||1",
            ])
        #expect(try bench.rows("SELECT * FROM logs") == ["1|1000000003000000000|line 1\nline 2\n"])
    }

    @Test func `the newest jobs are stored, and all failed ones`() throws {
        let bench = StoreBench(keeping: JournalRetention(jobs: 20))
        func run(_ numbers: Range<Int>) throws {
            for number in numbers {
                try bench.end(
                    Self.job(1_000 + number), number % 10 == 0 ? .failed : .succeeded, Outcome(.succeeded), isNew: true)
                bench.wait(.seconds(1))
            }
        }
        func ended() throws -> [String] {
            try bench.rows("SELECT count(*) FROM jobs GROUP BY state = 'failed' ORDER BY 1")
        }
        try run(0..<50)
        #expect(try ended() == ["5", "20"])
        bench.kill()
        try run(50..<100)
        #expect(try ended() == ["10", "20"])
        #expect(try bench.rows("SELECT min(id), max(id) FROM jobs WHERE state = 'succeeded'") == ["1078|1099"])
        #expect(try bench.rows("SELECT count(*) FROM attempts") == ["30"])
    }

    @Test func `expired jobs are deleted, a few in each commit`() throws {
        let bench = StoreBench(keeping: JournalRetention(period: .seconds(3600)))
        try bench.commit { changes in
            for number in 1_000..<1_200 {
                let job = Self.job(number)
                let state: JobState = number == 1_100 ? .failed : .succeeded
                changes.jobs[job.job.id] = JobChange(.ended(job, state, Outcome(.succeeded)), isNew: true)
            }
        }
        func commit(_ size: UInt64) throws -> [String] {
            try bench.commit { $0.rows[StoreBench.rule] = ["/x": LedgerRow(.sample(size: size))] }
            return try bench.rows("SELECT count(*) FROM jobs")
        }
        bench.wait(.seconds(3_599))
        #expect(try commit(0) == ["200"])
        bench.wait(.seconds(2))
        // Other processes wait for the file, so each commit deletes only a few.
        #expect(try (1...5).flatMap(commit) == ["136", "72", "8", "1", "1"])
    }

    @Test func `the oldest jobs are deleted when their text takes too much space`() throws {
        let bench = StoreBench(keeping: JournalRetention(jobs: 16, bytes: 100_000))
        func run(_ numbers: Range<Int>) throws {
            for number in numbers {
                let job = Self.job(1_000 + number)
                var outcome = Outcome(.succeeded)
                // Bytes count, not characters.
                outcome.log = String(repeating: "é", count: 5_000)
                outcome.process = ProcessDetails(status: 0, request: "{}")
                // An attempt before the last one counts too.
                if number % 2 == 0 {
                    try bench.commit {
                        $0.jobs[job.job.id] = JobChange(.unfinished(job.retrying(at: bench.now)), isNew: true)
                        $0.attempts = [(job.job.id, bench.attempt(job, outcome))]
                    }
                    bench.wait(.seconds(1))
                }
                try bench.end(job, number % 10 == 9 ? .failed : .succeeded, outcome, isNew: true)
                bench.wait(.seconds(1))
            }
        }
        let bytes = """
            SELECT coalesce(sum(length(CAST(event_json AS BLOB))
                + (SELECT sum(length(message) + length(CAST(request AS BLOB))) FROM attempts WHERE job = jobs.id)
                + (SELECT sum(length(CAST(text AS BLOB))) FROM logs WHERE job = jobs.id)), 0)
            FROM jobs WHERE state = 'succeeded'
            """
        func stored() throws -> Int { Int(try bench.rows(bytes)[0]) ?? 0 }
        try run(0..<40)
        // There is so much that one more job would exceed the limit.
        #expect(try stored() <= 100_000 && stored() > 75_000)
        #expect(try bench.rows("SELECT max(id), count(*) > 3 FROM jobs WHERE state = 'succeeded'") == ["1038|1"])
        // Failed jobs stay, and do not count.
        #expect(try bench.rows("SELECT count(*) FROM jobs WHERE state = 'failed'") == ["4"])
        // The next run counts again.
        bench.kill()
        try run(40..<49)
        #expect(try stored() <= 100_000 && stored() > 75_000)
    }

    @Test func `the last attempts of a job that is never ready are stored`() throws {
        let bench = StoreBench()
        let job = OpenJob.leased(1)
        try bench.commit(job)
        for number in 1...50 {
            try bench.commit {
                $0.jobs[JobID("1")] = JobChange(.unfinished(job.retrying(at: bench.now)), isNew: false)
                $0.attempts = [(JobID("1"), bench.attempt(job, Outcome(.notReady, "wait \(number)")))]
            }
            bench.wait(.seconds(1))
        }
        #expect(try bench.rows("SELECT message FROM attempts ORDER BY started") == (31...50).map { "wait \($0)" })
    }

    @Test func `free space is returned to the disk gradually`() throws {
        let bench = StoreBench()
        var snapshot = Snapshot.sample()
        snapshot.extended = [ExtendedAttribute(name: "user.x", value: [UInt8](repeating: 7, count: 3_000))]
        func set(_ row: LedgerRow) throws {
            let rows = (0..<2_000).map { (PathBytes("/in/\($0)"), row) }
            try bench.commit { $0.rows[StoreBench.rule] = Dictionary(uniqueKeysWithValues: rows) }
        }
        try set(LedgerRow(snapshot))
        let most = try #require(Int(try bench.rows("PRAGMA page_count")[0]))
        try set(LedgerRow())
        for number in 0..<500 { try bench.end(Self.job(1_000 + number), .succeeded, Outcome(.succeeded), isNew: true) }
        let free = try #require(Int(try bench.rows("PRAGMA freelist_count")[0]))
        #expect(most > 2_000 && free <= 1_024)
    }
}
