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

/// Files that change while their action runs, and paths that cool down between two runs.
@Suite(.timeLimit(.minutes(2)))
struct EngineBusyTests {
    @Test func `an action runs once more for all changes that settle while it runs`() {
        withTempTree { tree in
            let gate = Gate()
            let run = EngineRun([Rule.sample("r", [tree.path("in/*")])]) { _, _ in
                gate.pass()
                return Outcome(.succeeded)
            }
            TestFile.write(tree.path("in/a"), "1")
            #expect(Deadline.wait { run.calls.count == 1 })
            for change in ["12", "123", "1234"] {
                let before = DiskProbe.now()
                TestFile.write(tree.path("in/a"), change)
                #expect(run.isDue(tree.path("in/a"), since: before))
            }
            gate.open()
            TestFile.write(tree.path("in/last"), "x")
            #expect(Deadline.wait { run.received.contains("r created last") })
            #expect(run.isIdle)
            run.stop()
            let received = run.calls.filter { !$0.path.lastComponent.elementsEqual("last".utf8) }
            #expect(received.map(\.size) == [1, 4])
        }
    }

    @Test func `restart stops the action, and the newer content costs no attempt`() {
        withTempTree { tree in
            let rule = Rule.sample("r", [tree.path("in/*")], retry: RetryPolicy(attempts: 1)).with {
                $0.whileBusy = .restart
            }
            let run = EngineRun([rule]) { _, invocation in
                guard invocation.job.event.snapshot.size < 4 else { return Outcome(.succeeded) }
                _ = Deadline.wait { invocation.stop.isRaised }
                return .interrupted("stopped")
            }
            for (count, text) in ["1", "12", "123", "1234"].enumerated() {
                TestFile.write(tree.path("in/a"), text)
                #expect(Deadline.wait { run.calls.count == count + 1 })
            }
            #expect(run.ended(4))
            #expect(run.stop()?.succeeded == 1)
            #expect(run.calls.map(\.size) == [1, 2, 3, 4])
            #expect(run.calls.allSatisfy { $0.attempt == 1 && $0.kind == .created })
            #expect(run.attempts.map(\.outcome.code) == ["restarted", "restarted", "restarted", nil])
        }
    }

    @Test func `restart does not affect the actions of other files`() {
        withTempTree { tree in
            let gate = Gate()
            let first = tree.path("in/a")
            let rule = Rule.sample("r", [tree.path("in/*")], concurrency: 2).with { $0.whileBusy = .restart }
            let run = EngineRun([rule]) { _, invocation in
                if invocation.job.event.path == first {
                    gate.pass()
                    return invocation.stop.isRaised ? .interrupted("stopped") : Outcome(.succeeded)
                }
                guard invocation.job.event.snapshot.size == 1 else { return Outcome(.succeeded) }
                _ = Deadline.wait { invocation.stop.isRaised }
                return .interrupted("stopped")
            }
            TestFile.write(tree.path("in/a"), "x")
            TestFile.write(tree.path("in/b"), "x")
            #expect(Deadline.wait { run.calls.count == 2 })
            TestFile.write(tree.path("in/b"), "xx")
            #expect(run.ended(2))
            gate.open()
            #expect(run.ended(3))
            let summary = run.stop()
            #expect(summary?.succeeded == 2)
            #expect(run.calls.count == 3)
        }
    }

    @Test(arguments: WhileBusy.allCases)
    func `a change made in place by a program is reported at most once`(whileBusy: WhileBusy) {
        withTempTree { tree in
            let path = tree.path("in/a")
            let rule = Rule.sample("r", [tree.path("in/*")], isProgram: true).with { $0.whileBusy = whileBusy }
            let run = EngineRun([rule]) { _, invocation in
                if invocation.job.event.path == path { TestFile.write(path, Array("y".utf8), appending: true) }
                return Outcome(.succeeded)
            }
            TestFile.write(path, "x")
            #expect(run.ended(2))
            TestFile.write(tree.path("in/last"), "x")
            #expect(Deadline.wait { run.received.contains("r created last") })
            #expect(run.isIdle)
            run.stop()
            #expect(run.calls.count { $0.path == path } == 2)
        }
    }

    // MARK: Cool-down

    @Test func `a path cools down after a run, and one more run covers all later events`() {
        withTempTree { tree in
            let rule = Rule.sample("r", [tree.path("in/*")]).with { $0.cooldown = .seconds(2) }
            let run = EngineRun([rule])
            TestFile.write(tree.path("in/a"), "1")
            #expect(run.ended(1))
            for text in ["12", "123"] {
                let before = DiskProbe.now()
                TestFile.write(tree.path("in/a"), text)
                #expect(run.isDue(tree.path("in/a"), since: before))
            }
            TestFile.write(tree.path("in/b"), "x")
            #expect(run.ended(3))
            run.stop()
            #expect(run.received == ["r created a", "r created b", "r modified a"])
            #expect(run.calls[2].size == 3 && run.calls[2].attempt == 1)
            // The cool-down counts from the end of the first run, which is after its start.
            #expect(run.calls[2].start - run.calls[0].start >= .seconds(2))
        }
    }

    @Test func `a retry has its own delay, whatever the cool-down is`() {
        withTempTree { tree in
            let policy = RetryPolicy(delay: .milliseconds(1))
            let rule = Rule.sample("r", [tree.path("in/*")], retry: policy).with { $0.cooldown = .seconds(600) }
            let run = EngineRun([rule]) { _, invocation in
                Outcome(invocation.job.attempt < 4 ? .retry : .succeeded)
            }
            TestFile.write(tree.path("in/a"), "1")
            #expect(run.ended(4))
            #expect(run.stop()?.succeeded == 1)
        }
    }

    @Test func `the members of a batch cool down separately`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let rule = Rule.sample("r", [tree.path("in/*")]).with {
                $0.cooldown = .seconds(600)
                $0.batch = Rule.Batch(wait: .milliseconds(100))
            }
            let run = EngineRun([rule])
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(1))
            TestFile.write(tree.path("in/a"), "xx")
            TestFile.write(tree.path("in/b"), "x")
            #expect(run.ended(2))
            let summary = run.stop()
            #expect(run.received == ["r created a", "r created b"])
            #expect(summary?.unfinished == 1)
        }
    }
}
