import ActionAPI
import FileEvents
import JSON
import Pipeline
import PluginProtocol
import Rules
import Settling
import Storage
import System
import TestKit
import Testing

/// The execution of jobs: in parallel, in retries and until a stop.
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
            #expect(Deadline.wait { run.mostAtOnce == 5 && run.counts.open == 120 })
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

    @Test func `a failing job is retried after growing delays and then fails`() throws {
        try withTempTree { tree in
            let policy = RetryPolicy(attempts: 5, delay: .milliseconds(20), maximumDelay: .milliseconds(60))
            let run = EngineRun([.sample("r", [tree.path("in/*")], retry: policy)]) { _, _ in
                Outcome(.retry, "no luck")
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(5))
            #expect(run.calls.map(\.attempt) == [1, 2, 3, 4, 5])
            let longest: [Duration] = [.milliseconds(20), .milliseconds(40), .milliseconds(60), .milliseconds(60)]
            let attempts = run.attempts
            for (number, limit) in longest.enumerated() {
                let pause = try #require(attempts[number].pause)
                #expect(pause >= limit / 2 && pause <= limit)
                #expect(run.calls[number + 1].start - run.calls[number].start >= pause)
                #expect(attempts[number].state == .pending)
            }
            let last = try #require(attempts.last)
            #expect(last.state == .failed && last.pause == nil && last.outcome.message == "no luck")
            #expect(run.stop()?.failed == 1)
            #expect(run.calls.count == 5)
        }
    }

    @Test func `a permanent failure is not retried, and a skip is not a failure`() {
        withTempTree { tree in
            let run = EngineRun([.sample("r", [tree.path("in/*")])]) { _, invocation in
                Outcome(invocation.job.event.path.lastComponent.first == UInt8(ascii: "s") ? .skipped : .failed)
            }
            TestFile.write(tree.path("in/skip"), "x")
            TestFile.write(tree.path("in/fail"), "x")
            #expect(run.ended(2))
            let summary = run.stop()
            #expect(summary?.failed == 1)
            #expect(summary?.skipped == 1)
            #expect(run.calls.count == 2)
        }
    }

    @Test func `an action that is not ready uses no attempt`() {
        withTempTree { tree in
            let policy = RetryPolicy(attempts: 1)
            let count = Shared(0)
            let run = EngineRun([.sample("r", [tree.path("in/*")], retry: policy)]) { _, _ in
                count.change { $0 += 1 }
                return count.value < 10
                    ? Outcome(.notReady, retryAfter: .milliseconds(3)) : Outcome(.succeeded)
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(10))
            #expect(run.calls.map(\.attempt) == Array(repeating: 1, count: 10))
            #expect(run.stop()?.succeeded == 1)
        }
    }

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

    // MARK: Steps

    @Test func `a list continues after the step that succeeded`() {
        withTempTree { tree in
            let policy = RetryPolicy(attempts: 9, delay: .milliseconds(1))
            let run = EngineRun([.sample("r", [tree.path("in/*")], actions: ["one", "two", "three"], retry: policy)]) {
                action, invocation in
                switch action.name {
                case "one": return Outcome(.succeeded, outputs: ["/out/1"], values: ["n": 1])
                case "two":
                    #expect(invocation.steps.map(\.outputs) == [["/out/1"]])
                    #expect(invocation.stepOutputs == [["/out/1"]])
                    return Outcome(invocation.job.attempt < 3 ? .retry : .succeeded)
                default:
                    #expect(invocation.steps.count == 2)
                    return Outcome(invocation.job.attempt < 4 ? .retry : .succeeded)
                }
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(4))
            #expect(run.calls.map(\.action) == ["one", "two", "two", "two", "three", "three"])
            #expect(run.calls.map(\.attempt) == [1, 1, 2, 3, 3, 4])
            #expect(run.stop()?.succeeded == 1)
        }
    }

    @Test(arguments: [false, true])
    func `after a reload, a list resumes after the last unchanged step`(isRestart: Bool) throws {
        try withTempTree { tree in
            let policy = RetryPolicy(attempts: 9, delay: .seconds(2))
            let rule = Rule.sample("r", [tree.path("in/*")], actions: ["one", "extra", "two"], retry: policy)
            let changed = Rule.sample(
                "r", [tree.path("in/*")], actions: ["one", "other", "two", "three"], retry: policy)
            let isFixed = Shared(false)
            let perform: @Sendable (Action, Invocation) -> Outcome = { action, _ in
                Outcome(action.name == "two" && !isFixed.value ? .retry : .succeeded)
            }
            let store = DiskStore.inMemory()
            let run = EngineRun([rule], on: store, perform: perform)
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(1))
            isFixed.change { $0 = true }
            guard isRestart else {
                #expect(run.reloadAndWait([changed]))
                #expect(run.ended(2))
                run.stop()
                return Self.expectResumed(run.calls)
            }
            run.stop()
            let later = try DiskStore(afterKillOf: store, now: DiskProbe.now(), clock: { .now })
            let last = EngineRun([changed], on: later, perform: perform)
            #expect(last.ended(1))
            last.stop()
            Self.expectResumed(run.calls + last.calls)
        }
    }

    private static func expectResumed(_ calls: [Call]) {
        #expect(calls.map(\.action) == ["one", "extra", "two", "other", "two", "three"])
        #expect(calls.map(\.steps) == [0, 1, 2, 1, 2, 3])
    }

    @Test func `a job fails if its rule has lost the step that removed its file`() throws {
        try withTempTree { tree in
            let policy = RetryPolicy(attempts: 9, delay: .seconds(1))
            let run = EngineRun([.sample("r", [tree.path("in/*")], actions: ["move", "two"], retry: policy)]) {
                action, invocation in
                guard action.name == "move" else { return Outcome(.retry) }
                TestFile.removeTree(invocation.job.event.path)
                return Outcome(.succeeded)
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(1))
            #expect(run.reloadAndWait([.sample("r", [tree.path("in/*")], actions: ["two"], retry: policy)]))
            #expect(run.ended(2))
            #expect(run.calls.map(\.action) == ["move", "two"])
            let report = try #require(run.attempts.last)
            #expect(report.state == .failed && report.outcome.code == "rule-changed")
            run.stop()
        }
    }

    @Test func `new content restarts the list`() {
        withTempTree { tree in
            let policy = RetryPolicy(attempts: 1_000, delay: .milliseconds(5), maximumDelay: .milliseconds(5))
            let done = Shared<[UInt64]>([])
            let run = EngineRun([.sample("r", [tree.path("in/*")], actions: ["one", "two"], retry: policy)]) {
                action, invocation in
                let size = invocation.job.event.snapshot.size
                if action.name == "one" { return Outcome(.succeeded) }
                guard size > 1 else { return Outcome(.retry) }
                done.change { $0.append(size) }
                return Outcome(.succeeded)
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { run.calls.contains { $0.action == "two" } })
            TestFile.write(tree.path("in/a"), "xx")
            #expect(Deadline.wait { done.value == [2] })
            run.stop()
            let ones = run.calls.filter { $0.action == "one" }.map(\.size)
            #expect(ones == [1, 2], "the first step saw \(ones)")
        }
    }

    @Test func `a failing step stops the list`() {
        withTempTree { tree in
            let run = EngineRun([.sample("r", [tree.path("in/*")], actions: ["one", "two"])]) { _, _ in
                Outcome(.skipped, "enough")
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(1))
            #expect(run.stop()?.skipped == 1)
            #expect(run.calls.map(\.action) == ["one"])
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
            #expect(Deadline.wait { run.counts.pending == 1 })
            let before = DiskProbe.now()
            TestFile.write(tree.path("in/a"), "newer")
            #expect(run.isDue(tree.path("in/a"), since: before))
            gate.open()
            #expect(run.ended(2))
            TestFile.write(tree.path("in/last"), "x")
            #expect(run.ended(3))
            run.stop()
            #expect(run.told == ["r created first", "r created a", "r created last"])
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
            #expect(Deadline.wait { run.counts.pending == 1 })
            TestFile.removeTree(tree.path("in/a"))
            gate.open()
            #expect(run.ended(2))
            let summary = run.stop()
            #expect(summary?.skipped == 1)
            #expect(run.calls.count == 1)
            #expect(run.attempts.last?.outcome.code == "gone")
        }
    }

    // MARK: Stop

    @Test func `a stop finishes accepted jobs`() {
        withTempTree { tree in
            let gate = Gate()
            let run = EngineRun([.sample("r", [tree.path("in/*")])]) { _, _ in
                gate.pass()
                return Outcome(.succeeded)
            }
            for number in 0..<30 { TestFile.write(tree.path("in/\(number)"), "x") }
            #expect(Deadline.wait { run.counts.open == 30 })
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
            #expect(Deadline.wait { run.counts.open == 4 && run.calls.count == 2 })
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
