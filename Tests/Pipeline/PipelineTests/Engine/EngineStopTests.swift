import ActionAPI
import Engine
import Monitoring
import PluginProtocol
import Rules
import Storage
import Testing
import TestKit

/// The end of an engine: after a stop, an immediate stop, and a run with once.
@Suite(.timeLimit(.minutes(15)))
struct EngineStopTests {
    @Test func `a stop finishes accepted jobs`() {
        withTempTree { tree in
            let gate = Gate()
            let run = EngineRun([.sample("r", [tree.path("in/*")])]) { _, _ in
                gate.pass()
                return Outcome(.succeeded)
            }
            for number in 0..<30 { TestFile.write(tree.path("in/\(number)"), "x") }
            #expect(Deadline.wait { run.queue.count == 30 })
            run.askToStop()
            gate.open()
            let summary = run.end()
            #expect(summary?.succeeded == 30)
            #expect(summary?.unfinished == 0)
            #expect(summary?.unsettled == [])
        }
    }

    @Test func `a stop reports the paths that have not settled`() {
        withTempTree { tree in
            // The calls of the second rule show that the paths were received.
            let run = EngineRun([
                .sample("r", [tree.path("in/*")], settle: .seconds(600)),
                .sample("o", [tree.path("in/*")], settle: .zero),
            ])
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(1))
            run.rescan()
            TestFile.write(tree.path("in/b"), "x")
            #expect(run.ended(2))
            let summary = run.stop()
            #expect(summary?.unsettled == [tree.path("in/a"), tree.path("in/b")])
            #expect(run.calls.allSatisfy { $0.rule == "o" })
        }
    }

    @Test func `a stop does not wait for jobs that back off`() {
        withTempTree { tree in
            let run = EngineRun([.sample("r", [tree.path("in/*")], retry: RetryPolicy(delay: .seconds(600)))]) { _, _ in
                Outcome(.retry)
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(1))
            let summary = run.stop()
            #expect(summary?.unfinished == 1)
        }
    }

    @Test func `an immediate stop interrupts running actions without counting the attempt`() {
        withTempTree { tree in
            let run = EngineRun([.sample("r", [tree.path("in/*")], concurrency: 2)]) { _, invocation in
                _ = Deadline.wait { invocation.stop.isRaised }
                return invocation.stop.isRaised ? .interrupted("stopped") : Outcome(.succeeded)
            }
            for number in 0..<4 { TestFile.write(tree.path("in/\(number)"), "x") }
            #expect(Deadline.wait { run.queue.count == 4 && run.calls.count == 2 })
            run.askToStop()
            run.askToStopAtOnce()
            let summary = run.end(within: .seconds(50))
            #expect(summary?.succeeded == 0)
            #expect(summary?.unfinished == 4)
            #expect(run.calls.count == 2)
            #expect(run.attempts.allSatisfy { $0.state == .pending })
        }
    }

    @Test func `a run with once handles existing files, including retries, and exits`() {
        withTempTree { tree in
            for number in 0..<20 { TestFile.write(tree.path("in/s/\(number)"), "x") }
            let policy = RetryPolicy(attempts: 3, delay: .milliseconds(10))
            let run = EngineRun([.sample("r", [tree.path("in/**")], concurrency: 4, retry: policy)], isOnce: true) {
                _, invocation in
                Outcome(invocation.job.attempt < 3 ? .retry : .succeeded)
            }
            let summary = run.end()
            #expect(summary?.succeeded == 20)
            #expect(run.calls.count == 60)
        }
    }

    @Test func `a run with once and nothing to do exits`() {
        withTempTree { tree in
            let run = EngineRun([.sample("r", [tree.path("in/*")])], isOnce: true)
            #expect(run.end()?.succeeded == 0)
        }
    }
}
