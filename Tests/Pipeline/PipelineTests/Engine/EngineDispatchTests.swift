import ActionAPI
import Engine
import FileEvents
import Monitoring
import PluginProtocol
import Rules
import Storage
import System
import Testing
import TestKit

/// The execution of jobs: in parallel, in retries and after changes.
@Suite(.timeLimit(.minutes(15)))
struct EngineDispatchTests {
    @Test func `limits of the program and of each rule are respected and used`() {
        withTempTree { tree in
            let gate = Gate()
            let run = EngineRun(
                [
                    .sample("two", [tree.path("in/*.a")], concurrency: 2),
                    .sample("all", [tree.path("in/*.b")], concurrency: 9),
                ], jobs: 5
            ) { _, _ in
                gate.pass()
                Deadline.pause(.milliseconds(5))
                return Outcome(.succeeded)
            }
            for number in 0..<60 {
                TestFile.write(tree.path("in/\(number).a"), "x")
                TestFile.write(tree.path("in/\(number).b"), "x")
            }
            #expect(Deadline.wait { run.mostAtOnce == 5 && run.queue.count == 120 })
            gate.open()
            #expect(run.ended(120))
            run.stop()
            #expect(run.mostAtOnce == 5)
            #expect(run.mostAtOnce(of: "two") == 2)
            #expect(run.mostPerPath == 1)
            #expect(run.calls.count == 120)
        }
    }

    @Test func `a path never has two actions at once, whatever the rules are`() {
        withTempTree { tree in
            let rules = ["a", "b", "c"].map { Rule.sample($0, [tree.path("in/**")], settle: .zero, concurrency: 8) }
            let run = EngineRun(rules, jobs: 16) { _, _ in
                Deadline.pause(.milliseconds(1))
                return Outcome(.succeeded)
            }
            for round in 0..<20 {
                for number in 0..<5 { TestFile.write(tree.path("in/\(number)"), "round \(round)") }
            }
            for rule in ["a", "b", "c"] {
                for number in 0..<5 {
                    let path = tree.path("in/\(number)")
                    #expect(Deadline.wait { run.calls.contains { $0.rule == rule && $0.path == path } })
                }
            }
            run.stop()
            #expect(run.mostPerPath == 1)
            #expect(run.mostAtOnce > 1)
        }
    }

    @Test func `a rule that fails or hangs does not delay others`() {
        withTempTree { tree in
            let gate = Gate()
            let run = EngineRun([
                .sample("bad", [tree.path("in/*")], retry: RetryPolicy(delay: .seconds(600))),
                .sample("good", [tree.path("in/*")]),
                .sample("hung", [tree.path("hung/*")]),
            ]) { _, invocation in
                if invocation.job.rule == "hung" { gate.pass() }
                return Outcome(invocation.job.rule == "bad" ? .retry : .succeeded)
            }
            TestFile.write(tree.path("hung/x"), "x")
            #expect(Deadline.wait { run.calls.contains { $0.rule == "hung" } })
            for number in 0..<100 { TestFile.write(tree.path("in/\(number)"), "x") }
            #expect(Deadline.wait { run.attempts.count { $0.rule == "good" } == 100 })
            #expect(run.calls.contains { $0.rule == "bad" })
            gate.open()
            let summary = run.stop()
            #expect(summary?.unfinished == 100)
            #expect(summary?.succeeded == 101)
        }
    }

    // MARK: Retries

    /// A delay that ends before the engine sleeps must not make it miss the deadline.
    @Test func `a job is retried however short the delay is`() {
        withTempTree { tree in
            let run = EngineRun([.sample("r", [tree.path("in/*")], retry: RetryPolicy(attempts: 1_000))]) {
                _, invocation in
                guard invocation.job.attempt < 300 else { return Outcome(.succeeded) }
                return Outcome(.retry, retryAfter: .nanoseconds(invocation.job.attempt * 700))
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(300))
            #expect(run.stop()?.succeeded == 1)
        }
    }

    /// A job that waits for its path must not prevent the engine from waking for another one.
    @Test func `a job behind a busy path delays no other`() {
        withTempTree { tree in
            let gate = Gate()
            let run = EngineRun([
                .sample("slow", [tree.path("in/a")]),
                .sample("quick", [tree.path("in/*")], settle: .milliseconds(31), concurrency: 4),
            ]) { _, invocation in
                if invocation.job.rule == "slow" { gate.pass() }
                guard invocation.job.rule == "quick", invocation.job.attempt < 3 else { return Outcome(.succeeded) }
                return Outcome(.retry, retryAfter: .milliseconds(20))
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { run.calls.contains { $0.rule == "slow" } })
            // The quick rule's job for the same path waits for it, while another of its jobs is tried three times.
            TestFile.write(tree.path("in/b"), "x")
            let isDone = Deadline.wait {
                run.attempts.contains { $0.rule == "quick" && $0.state == .succeeded }
            }
            #expect(isDone)
            gate.open()
            #expect(Deadline.wait { run.counts.succeeded == 3 })
            run.stop()
        }
    }

    // MARK: Changed before the start

    /// Whether the attempt or settling finds the change, the file is reported once, with its current content.
    @Test(arguments: [EventMask.created, [.created, .modified]])
    func `a file that changed before its action started is reported as created with new content`(events: EventMask) {
        withTempTree { tree in
            let gate = Gate()
            let run = EngineRun([.sample("r", [tree.path("in/*")], events: events)]) { _, _ in
                gate.pass()
                return Outcome(.succeeded)
            }
            TestFile.write(tree.path("in/first"), "x")
            #expect(Deadline.wait { run.calls.count == 1 })
            TestFile.write(tree.path("in/a"), "old")
            #expect(Deadline.wait { run.queue.pending == 1 })
            let before = DiskProbe.now()
            TestFile.write(tree.path("in/a"), "newer")
            #expect(run.isDue(tree.path("in/a"), since: before))
            gate.open()
            #expect(run.ended(2))
            TestFile.write(tree.path("in/last"), "x")
            #expect(run.ended(3))
            run.stop()
            #expect(run.received == ["r created first", "r created a", "r created last"])
            #expect(run.calls[1].size == 5)
        }
    }

    @Test func `a file that was removed before its action started is skipped`() {
        withTempTree { tree in
            let gate = Gate()
            let run = EngineRun([.sample("r", [tree.path("in/*")])]) { _, _ in
                gate.pass()
                return Outcome(.succeeded)
            }
            TestFile.write(tree.path("in/first"), "x")
            #expect(Deadline.wait { run.calls.count == 1 })
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { run.queue.pending == 1 })
            TestFile.removeTree(tree.path("in/a"))
            gate.open()
            #expect(run.ended(2))
            let summary = run.stop()
            #expect(summary?.skipped == 1)
            #expect(run.calls.count == 1)
            #expect(run.attempts.last?.outcome.code == "gone")
        }
    }
}
