import FileEvents
import Journaling
import PluginProtocol
import Rules
import TestKit
import Testing

/// What is kept of jobs that have ended, and what people ask of jobs.
struct DiskHistoryTests {
    let bench = DiskBench()

    private func jobs() throws -> [String] {
        #expect(try bench.commit() == nil)
        return try bench.rows(
            "SELECT id, state, attempt, coalesce(code, ''), coalesce(message, '') FROM jobs ORDER BY id")
    }

    @Test func `of a job that has ended its state, its attempts and its log are kept`() throws {
        try bench.accept("1")
        try bench.again(try #require(try bench.lease().first), after: .seconds(3))
        #expect(try jobs() == ["1|pending|1||"])
        bench.wait(.seconds(3))
        let job = try #require(try bench.lease().first)
        #expect(try jobs() == ["1|running|2||"])
        var outcome = Outcome(.failed, "no such bucket", code: "s3.404")
        outcome.log = "line 1\nline 2\n"
        outcome.process = ProcessFacts(status: 1, request: "{\"protocol\":1}")
        try bench.end(job, .dead, outcome)
        #expect(try jobs() == ["1|dead|2|s3.404|no such bucket"])
        #expect(try bench.rows("SELECT due, ended FROM jobs") == ["|1000000003000000000"])
        #expect(
            try bench.rows("SELECT * FROM attempts ORDER BY number") == [
                "1|1000000000000000000|1|5000000|retry|not now|||||||",
                "1|1000000003000000000|2|5000000|failed|no such bucket|s3.404|1||{\"protocol\":1}|||1",
            ])
        #expect(try bench.rows("SELECT * FROM logs") == ["1|1000000003000000000|line 1\nline 2\n"])
    }

    /// Whether the log ahead of the database is what tells of the batch.
    @Test(arguments: [true, false])
    func `the log of a batch is stored once, for as long as one of its jobs is`(isAhead: Bool) throws {
        for id in ["1", "2", "3", "4", "5"] { try bench.accept(id, .created, PathBytes("/in/\(id)")) }
        for (job, log) in zip(try bench.lease(5), ["one", "one", "one", "two", ""]) {
            var outcome = Outcome(.succeeded)
            outcome.log = log
            try bench.end(job, .succeeded, outcome)
        }
        if isAhead {
            #expect(try bench.secure() == nil)
            bench.kill()
            _ = try bench.journal
        }
        #expect(try bench.commit() == nil)
        #expect(try bench.rows("SELECT job, text FROM logs ORDER BY job") == ["1|one", "4|two"])
        #expect(try bench.rows("SELECT log_of FROM attempts ORDER BY job") == ["1", "1", "1", "4", ""])
        _ = try bench.rows("DELETE FROM jobs WHERE id IN ('1', '4')")
        let details = try JournalReader(bench.path).details(of: JobID("3"))
        #expect(details?.attempts.map(\.log) == ["one"])
        #expect(try bench.rows("SELECT job FROM logs") == ["1"])
        _ = try bench.rows("DELETE FROM jobs WHERE id IN ('2', '3')")
        #expect(try bench.rows("SELECT count(*) FROM logs") == ["0"])
    }

    @Test func `a job that came to nothing leaves no row`() throws {
        try bench.accept("1")
        #expect(try jobs().count == 1)
        try bench.accept("2", .deleted)
        #expect(try jobs().isEmpty)
    }

    @Test func `a job that was tried and gives way to a newer one says so`() throws {
        try bench.accept("1", .created, "/in/a", .sample(size: 1))
        try bench.again(try #require(try bench.lease().first), after: .seconds(60))
        try bench.accept("2", .modified, "/in/a", .sample(size: 2), before: .sample(size: 1))
        #expect(
            try jobs() == [
                "1|skipped|1|superseded|job 2 does its work, with newer facts of the file", "2|pending|0||",
            ])
        #expect(try bench.journal.counts.skipped == 1)
        // While it runs, too.
        _ = try bench.lease()
        #expect(try jobs().last == "2|running|1||")
        let running = try #require(
            try {
                bench.kill(); return try bench.lease().first
            }())
        try bench.accept("3", .modified, "/in/a", .sample(size: 3), before: .sample(size: 2))
        try bench.again(running, after: .seconds(60))
        #expect(try jobs().last == "3|pending|0||")
        #expect(try jobs()[1] == "2|skipped|2|superseded|job 3 does its work, with newer facts of the file")
        #expect(try bench.rows("SELECT job, count(*) FROM attempts GROUP BY job") == ["1|1", "2|2"])
    }

    @Test func `a job whose file had changed before it began is gone, or ends if it was tried before`() throws {
        try bench.accept("1")
        let new = try #require(try bench.lease().first)
        _ = try bench.journal.record(new, nil, .returned(at: bench.now), [])
        #expect(try jobs().isEmpty)
        try bench.accept("2")
        try bench.again(try #require(try bench.lease().first), after: .zero)
        let tried = try #require(try bench.lease().first)
        _ = try bench.journal.record(tried, nil, .returned(at: bench.now), [])
        #expect(
            try jobs() == ["2|skipped|1|changed|the file changed before the action began, and settles again"])
    }

    // MARK: Retention

    @Test func `the newest are kept, a few are forgotten at a time, and the dead stay`() throws {
        let bench = DiskBench(keeping: JournalRetention(jobs: 20))
        func run(_ numbers: Range<Int>) throws {
            for number in numbers {
                try bench.accept("\(1_000 + number)", .created, PathBytes("/in/\(number)"))
                try bench.end(try #require(try bench.lease().first), number % 10 == 0 ? .dead : .succeeded)
                #expect(try bench.commit() == nil)
                bench.wait(.seconds(1))
            }
        }
        func ended() throws -> [String] {
            try bench.rows("SELECT count(*) FROM jobs GROUP BY state = 'dead' ORDER BY 1")
        }
        try run(0..<50)
        #expect(try ended() == ["5", "20"])
        bench.kill()
        try run(50..<100)
        #expect(try ended() == ["10", "20"])
        #expect(
            try bench.rows("SELECT min(id), max(id) FROM jobs WHERE state = 'succeeded'") == ["1078|1099"])
        #expect(try bench.rows("SELECT count(*) FROM attempts") == ["30"])
    }

    @Test func `what ended long ago is forgotten`() throws {
        let bench = DiskBench(keeping: JournalRetention(period: .seconds(3600)))
        for number in 0..<200 { try bench.accept("\(1_000 + number)", .created, PathBytes("/in/\(number)")) }
        for job in try bench.lease(200) { try bench.end(job, job.id.description == "1100" ? .dead : .succeeded) }
        #expect(try bench.commit() == nil)
        bench.wait(.seconds(3_599))
        try bench.set("/x", .sample())
        #expect(try bench.commit() == nil)
        #expect(try bench.rows("SELECT count(*) FROM jobs") == ["200"])
        bench.wait(.seconds(2))
        var counts: [String] = []
        for number in 0..<5 {
            try bench.set("/x", .sample(size: UInt64(number)))
            #expect(try bench.commit() == nil)
            counts += try bench.rows("SELECT count(*) FROM jobs")
        }
        // Not all at once: others wait for the file.
        #expect(counts == ["136", "72", "8", "1", "1"])
    }

    @Test func `the oldest are forgotten when what they wrote takes too much room`() throws {
        let bench = DiskBench(keeping: JournalRetention(bytes: 100_000))
        func run(_ numbers: Range<Int>, log: Int) throws {
            for number in numbers {
                try bench.accept("\(1_000 + number)", .created, PathBytes("/in/\(number)"))
                var outcome = Outcome(.succeeded)
                // The bytes count, not the characters.
                outcome.log = String(repeating: "é", count: log / 2)
                outcome.process = ProcessFacts(status: 0, request: "{}")
                // An attempt before the last one counts as well.
                if number % 2 == 0 {
                    try bench.again(try #require(try bench.lease().first), after: .zero, outcome)
                    #expect(try bench.commit() == nil)
                    bench.wait(.seconds(1))
                }
                let job = try #require(try bench.lease().first)
                try bench.end(job, number % 10 == 9 ? .dead : .succeeded, outcome)
                #expect(try bench.commit() == nil)
                bench.wait(.seconds(1))
            }
        }
        let bytes = """
            SELECT coalesce(sum(length(CAST(facts AS BLOB))
                + (SELECT sum(length(message) + length(CAST(request AS BLOB))) FROM attempts WHERE job = jobs.id)
                + (SELECT sum(length(CAST(text AS BLOB))) FROM logs WHERE job = jobs.id)), 0)
            FROM jobs WHERE state = 'succeeded'
            """
        func kept() throws -> Int { Int(try bench.rows(bytes)[0]) ?? 0 }
        try run(0..<40, log: 10_000)
        // So much that one more would be too much.
        #expect(try kept() <= 100_000 && kept() > 75_000)
        #expect(try bench.rows("SELECT max(id), count(*) > 3 FROM jobs WHERE state = 'succeeded'") == ["1038|1"])
        // Dead letters stay, and don't count.
        #expect(try bench.rows("SELECT count(*) FROM jobs WHERE state = 'dead'") == ["4"])
        // The next run counts anew.
        bench.kill()
        try run(40..<49, log: 10_000)
        #expect(try kept() <= 100_000 && kept() > 75_000)
    }

    @Test func `of a job that is never ready the last attempts are kept`() throws {
        try bench.accept("1")
        for number in 1...50 {
            let job = try #require(try bench.lease().first)
            let outcome = Outcome(.notReady, "wait \(number)")
            _ = try bench.journal.record(
                job, bench.attempt(job, outcome), .again(at: bench.now, outcome, counts: false), [])
            #expect(try bench.commit() == nil)
            bench.wait(.seconds(1))
        }
        #expect(
            try bench.rows("SELECT message FROM attempts ORDER BY started") == (31...50).map { "wait \($0)" })
    }

    @Test func `room that has become free goes back to the disk by and by`() throws {
        let bench = DiskBench()
        var snapshot = Snapshot.sample()
        snapshot.extended = [ExtendedAttribute(name: "user.x", value: [UInt8](repeating: 7, count: 3_000))]
        for number in 0..<2_000 { try bench.set(PathBytes("/in/\(number)"), snapshot) }
        #expect(try bench.commit() == nil)
        let most = try #require(Int(try bench.rows("PRAGMA page_count")[0]))
        for number in 0..<2_000 { try bench.set(PathBytes("/in/\(number)"), nil) }
        for number in 0..<100 {
            try bench.set("/x", .sample(size: UInt64(number)))
            #expect(try bench.commit() == nil)
        }
        let free = try #require(Int(try bench.rows("PRAGMA freelist_count")[0]))
        #expect(most > 2_000 && free <= 1_024)
    }

    // MARK: Requests

    private func dead(_ id: String, _ path: PathBytes = "/in/a") throws -> Job {
        try bench.accept(id, .created, path)
        var job = try #require(try bench.lease().first)
        job.steps = [Outcome(.succeeded, outputs: ["/out/a"])]
        try bench.end(job, .dead, Outcome(.failed, "no"))
        #expect(try bench.commit() == nil)
        return job
    }

    @Test func `a dead job that is retried begins anew with its steps, in this run and the next`() throws {
        let job = try dead("1")
        for round in 1...2 {
            try bench.retry("1")
            #expect(try bench.journal.counts.pending == 1)
            #expect(try jobs() == ["1|pending|0||"])
            #expect(try bench.rows("SELECT ended FROM jobs") == [""])
            if round == 2 { bench.kill() }
            let again = try #require(try bench.lease().first)
            #expect(again.attempt == 1 && again.steps == job.steps && again.event == job.event)
            #expect(again.due == bench.now || round == 2, "it has waited since it was retried")
            bench.wait(.seconds(1))
            try bench.end(again, .dead, Outcome(.failed, "no"))
            #expect(try jobs() == ["1|dead|1||no"])
        }
        #expect(try bench.rows("SELECT count(*) FROM attempts") == ["3"])
    }

    @Test func `a job that rests is due at once when it is retried, and one that runs is left alone`() throws {
        try bench.accept("1")
        try bench.again(try #require(try bench.lease().first), after: .seconds(900))
        try bench.accept("2", .created, "/in/b")
        let running = try #require(try bench.lease().first)
        #expect(try bench.commit() == nil)
        for id in ["1", "2", "3"] { try bench.retry(id) }
        for id in ["2", "3"] { try bench.discard(id) }
        let job = try #require(try bench.lease().first)
        #expect(job.id.description == "1" && job.attempt == 1)
        try bench.end(running)
        #expect(try jobs() == ["1|running|1||", "2|succeeded|1||"])
    }

    @Test func `a job that stands alone and is retried keeps its turn`() throws {
        for id in ["1", "2"] {
            var job = Job(id: JobID(id), rule: "r", event: .sample(.modified, "/in/a"))
            job.isAlone = true
            try bench.journal.accept([job], [], now: bench.now)
        }
        try bench.again(try #require(try bench.lease(9).first), after: .seconds(900))
        #expect(try bench.commit() == nil)
        try bench.retry("1")
        let jobs = try bench.lease(9)
        #expect(jobs.map(\.id.description) == ["1"] && jobs.first?.attempt == 1)
        try bench.end(try #require(jobs.first))
        #expect(try bench.lease(9).map(\.id.description) == ["2"])
    }

    @Test func `a job that is discarded is gone if it was dead, and skipped if it was pending`() throws {
        _ = try dead("1")
        try bench.accept("2", .created, "/in/b")
        #expect(try bench.commit() == nil)
        try bench.discard("1")
        try bench.discard("2")
        #expect(try bench.journal.counts.open == 0)
        #expect(try bench.lease(9).isEmpty)
        #expect(try jobs() == ["2|skipped|0|discarded|discarded"])
        #expect(try bench.rows("SELECT * FROM attempts").isEmpty)
        #expect(try bench.known("/in/b") == .sample())
    }

    @Test func `a dead job whose path has a newer job is served by that`() throws {
        _ = try dead("1")
        try bench.accept("2", .modified, "/in/a", .sample(size: 8), before: .sample())
        #expect(try bench.commit() == nil)
        try bench.retry("1")
        let jobs = try bench.lease(9)
        #expect(jobs.map(\.id.description) == ["2"])
        #expect(jobs.first?.event.kind == .created)
        #expect(try self.jobs().first?.hasPrefix("1|skipped|0|superseded|job 2") == true)
    }

    @Test func `jobs of rules that do not run can be discarded and retried`() throws {
        _ = try bench.journal
        for (id, path) in [("1", "/in/a"), ("2", "/in/b")] as [(String, PathBytes)] {
            try bench.accept(id, .created, path)
            try bench.again(try #require(try bench.lease().first), after: .seconds(60))
        }
        _ = try dead("3", "/in/c")
        #expect(try bench.commit() == nil)
        bench.kill()
        _ = try bench.open().begin([RuleRecord(name: "s", selection: "*")], at: bench.wall)
        try bench.discard("1")
        for id in ["2", "3"] { try bench.retry(id) }
        #expect(try jobs() == ["1|skipped|1|discarded|discarded", "2|pending|0||", "3|pending|0||"])
        // Nobody waits for them.
        #expect(try bench.journal.counts.open == 0 && bench.journal.pendingRules.isEmpty)
        bench.kill()
        #expect(try bench.lease(9).map(\.id.description) == ["2", "3"])
    }
}
