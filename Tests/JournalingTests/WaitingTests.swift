import FileEvents
import Glibc
import Journaling
import PluginProtocol
import Rules
import TestKit
import Testing

@Suite(.onEachJournal)
struct WaitingTests {
    static func job(_ id: String, _ path: PathBytes, rule: String = "r") -> Job {
        Job(id: JobID(id), rule: rule, event: .sample(.created, path))
    }

    static let waiting = Waiting(.doneFile, "it waits for 'x'")

    @Test func `a job that waits costs no attempt, and is due when it is woken`() throws {
        let journal = TestJournal().journal
        let now = ContinuousClock.now
        journal.accept([Self.job("1", "/a"), Self.job("2", "/b")], [], now: now)
        for job in journal.lease(rule: "r", limit: 9, busy: [], now: now) {
            _ = journal.record(job, nil, .early(due: now + .seconds(100), Self.waiting), [])
        }
        #expect(journal.held == 2)
        #expect(journal.lease(rule: "r", limit: 9, busy: [], now: now).isEmpty)
        journal.wake(rule: "r", path: "/b", now: now)
        journal.wake(rule: "r", path: "/none", now: now)
        journal.wake(rule: "s", path: "/a", now: now)
        let job = try #require(journal.lease(rule: "r", limit: 9, busy: [], now: now).first)
        #expect(job.id == JobID("2") && job.attempt == 1 && job.waiting == nil)
        #expect(journal.held == 1)
        journal.wake(rule: "r", path: nil, now: now)
        #expect(journal.lease(rule: "r", limit: 9, busy: [], now: now).map(\.id) == [JobID("1")])
        #expect(journal.counts.pending == 0 && journal.counts.running == 2)
    }

    @Test func `a job that waits for itself alone is woken with its rule`() throws {
        let journal = TestJournal().journal
        let now = ContinuousClock.now
        var alone = [Self.job("1", "/a"), Self.job("2", "/a"), Self.job("3", "/b")]
        for index in alone.indices { alone[index].isAlone = true }
        journal.accept(alone, [], now: now)
        for job in journal.lease(rule: "r", limit: 9, busy: [], now: now) {
            _ = journal.record(job, nil, .early(due: now + .seconds(100), Self.waiting), [])
        }
        #expect(journal.lease(rule: "r", limit: 9, busy: [], now: now).isEmpty)
        journal.wake(rule: "r", path: nil, now: now)
        #expect(journal.lease(rule: "r", limit: 9, busy: [], now: now).map(\.id) == [JobID("1"), JobID("3")])
    }

    @Test func `waking a rule costs nothing for the jobs of others`() {
        /// What it takes to wake a thousand rules without jobs, beside so many jobs that wait.
        func cost(besides count: Int) -> Duration {
            let journal = TestJournal().journal
            let now = ContinuousClock.now
            journal.accept((0..<count).map { Self.job("\($0)", PathBytes("/\($0)")) }, [], now: now)
            for job in journal.lease(rule: "r", limit: .max, busy: [], now: now) {
                _ = journal.record(job, nil, .early(due: now + .seconds(100), Self.waiting), [])
            }
            let start = Self.computed
            for number in 0..<1_000 { journal.wake(rule: "other\(number)", path: nil, now: now) }
            return Self.computed - start
        }
        // Each of them took as long as all jobs, which is some hundred times as much.
        #expect(cost(besides: 2_000) < (cost(besides: 0) + .milliseconds(1)) * 20)
    }

    /// How long this thread has computed, whatever else the machine does.
    private static var computed: Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    @Test func `what rests for another reason is not woken`() throws {
        let journal = TestJournal().journal
        let now = ContinuousClock.now
        journal.accept([Self.job("1", "/a")], [], now: now)
        let job = try #require(journal.lease(rule: "r", limit: 1, busy: [], now: now).first)
        _ = journal.record(job, nil, .again(at: now + .seconds(9), Outcome(.retry), counts: true), [])
        journal.wake(rule: "r", path: nil, now: now)
        #expect(journal.lease(rule: "r", limit: 1, busy: [], now: now).isEmpty)
        #expect(journal.held == 0)
    }

    @Test func `the jobs of certain paths are leased together, those that wait as well`() throws {
        let journal = TestJournal().journal
        let now = ContinuousClock.now
        journal.accept(["/a", "/b", "/c", "/d"].map { Self.job("\($0)", $0) }, [], now: now)
        let waiter = try #require(journal.lease(rule: "r", limit: 1, busy: [], now: now).first)
        _ = journal.record(waiter, nil, .early(due: now + .seconds(100), Self.waiting), [])
        let jobs = journal.lease(rule: "r", paths: ["/c", "/a", "/d", "/none"], busy: ["/d"], now: now)
        #expect(jobs.map(\.event.path) == ["/c", "/a"])
        #expect(jobs.allSatisfy { $0.attempt == 1 })
        #expect(journal.lease(rule: "r", limit: 9, busy: [], now: now).map(\.event.path) == ["/b", "/d"])
    }

    @Test func `what 'ready' has refused is known for the content that it had`() throws {
        let owner = TestJournal()
        defer { withExtendedLifetime(owner) {} }
        let journal = owner.journal
        let now = ContinuousClock.now
        let codes = ["/a": "ready", "/b": "other", "/c": "ready"]
        journal.accept(["/a", "/b", "/c"].map { Self.job("\($0)", $0) }, [], now: now)
        for job in journal.lease(rule: "r", limit: 9, busy: [], now: now) {
            let state: JobState = job.event.path == "/c" ? .skipped : .dead
            let outcome = Outcome(.failed, "no", code: codes[job.event.path.description])
            _ = journal.record(job, nil, .ended(state, outcome), [])
        }
        for _ in 0..<2 {
            let same = Snapshot.sample()
            let refusal = journal.refusal(rule: "r", path: "/a", snapshot: same)
            #expect(refusal?.message == "no" && refusal?.id == JobID("/a"))
            #expect(journal.refusal(rule: "r", path: "/c", snapshot: same) != nil)
            #expect(journal.refusal(rule: "r", path: "/b", snapshot: same) == nil)
            #expect(journal.refusal(rule: "s", path: "/a", snapshot: same) == nil)
            #expect(journal.refusal(rule: "r", path: "/a", snapshot: .sample(size: 99)) == nil)
            #expect(journal.commit(at: .early) == nil)
        }
    }

    @Test func `a newer event of the path is merged into the job that waits`() throws {
        let journal = TestJournal().journal
        let now = ContinuousClock.now
        journal.accept([Self.job("1", "/a")], [], now: now)
        let job = try #require(journal.lease(rule: "r", limit: 1, busy: [], now: now).first)
        _ = journal.record(job, nil, .early(due: now + .seconds(100), Self.waiting), [])
        journal.accept([Self.job("2", "/a")], [], now: now)
        journal.wake(rule: "r", path: "/a", now: now)
        #expect(journal.lease(rule: "r", limit: 9, busy: [], now: now).count == 1)
        #expect(journal.held == 0)
    }
}
