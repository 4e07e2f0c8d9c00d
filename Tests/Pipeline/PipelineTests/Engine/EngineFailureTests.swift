import ActionAPI
import Engine
import FileEvents
import Glibc
import Monitoring
import PluginProtocol
import Rules
import Storage
import System
import Testing
import TestKit

/// Actions on failure, and rules all of whose jobs fail.
@Suite(.timeLimit(.minutes(2)))
struct EngineFailureTests {
    static func action(_ name: String, events: EventMask? = nil, isProgram: Bool = false) -> Action {
        let reference = HandlerReference(name: name, location: isProgram ? "/plugins/x" : nil)
        let location = SourcePosition(file: "rules.yaml", line: 1, column: 1)
        return Action(
            .use(reference, with: .object([:])), location: location, events: events,
            traits: isProgram ? [] : .ofHandler(name)
        )
    }

    static func rule(
        _ tree: PathBytes, onFailure: [Action], attempts: Int = 1, actions: [String] = ["act"]
    ) -> Rule {
        Rule.sample(
            "r", [tree.appending("in/*")], actions: actions,
            retry: RetryPolicy(attempts: attempts, delay: .milliseconds(5))
        ).with { $0.onFailure = onFailure }
    }

    // MARK: On failure

    @Test func `the last attempt is followed by the on_failure list, which receives the reason`() throws {
        try withTempTree { tree in
            let seen = Locked<[Invocation]>([])
            let rule = Self.rule(
                tree.root, onFailure: [Self.action("first"), Self.action("second")], attempts: 3,
                actions: ["one", "two"])
            let run = EngineRun([rule]) { action, invocation in
                switch action.name {
                case "one": return Outcome(.succeeded, outputs: ["/one"])
                case "two": return Outcome(.retry, "no luck", code: "luck")
                default:
                    seen.change { $0.append(invocation) }
                    return Outcome(.succeeded, "did \(action.name)", outputs: [PathBytes("/\(action.name)")])
                }
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(3))
            #expect(run.stop()?.failed == 1)
            #expect(run.calls.map(\.action) == ["one", "two", "two", "two", "first", "second"])
            let first = try #require(seen.value.first)
            #expect(first.job.previous == PreviousAttempt(attempt: 3, outcome: "retry", message: "no luck"))
            #expect(first.job.attempt == 3 && first.placeholders.attempt == 3 && first.steps.isEmpty)
            #expect(seen.value[1].placeholders.stepOutputs == [["/first"]])
            let last = try #require(run.attempts.last)
            #expect(last.state == .failed && last.outcome.result == .retry && last.outcome.code == "luck")
            #expect(
                last.outcome.message
                    == "no luck; on_failure: 'first' succeeded: did first; on_failure: 'second' succeeded: did second")
            #expect(last.outcome.outputs == ["/first", "/second"])
            #expect(run.attempts.dropLast().allSatisfy { $0.outcome.message == "no luck" })
        }
    }

    @Test(arguments: [Outcome.Result.failed, .retry, .notReady, .skipped])
    func `a failure in the list stops it, and the list is tried once`(result: Outcome.Result) {
        withTempTree { tree in
            let run = EngineRun([Self.rule(tree.root, onFailure: [Self.action("first"), Self.action("second")])]) {
                action, _ in
                Outcome(action.name == "act" ? .failed : result, action.name)
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(1))
            #expect(run.stop()?.failed == 1)
            #expect(run.calls.map(\.action) == ["act", "first"])
            let word = result == .skipped ? "skipped" : "failed"
            #expect(run.attempts.first?.outcome.message == "act; on_failure: 'first' \(word): first")
        }
    }

    @Test func `an action is skipped for events that its handler does not support`() {
        withTempTree { tree in
            let rule = Self.rule(tree.root, onFailure: [Self.action("move", events: [.created, .moved])])
                .with { $0.events = [.created, .deleted] }
            let run = EngineRun([rule]) { action, _ in Outcome(action.name == "act" ? .failed : .succeeded, "x") }
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(1))
            TestFile.removeTree(tree.path("in/a"))
            #expect(run.ended(2))
            run.stop()
            #expect(run.calls.map(\.action) == ["act", "move", "act"])
            let message = "x; on_failure: 'move' skipped: it does not accept the event 'deleted'"
            #expect(run.attempts.last?.outcome.message == message)
        }
    }

    @Test func `in a batch, the list runs once for the failed events`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let runs = Locked<[String]>([])
            let rule = Self.rule(tree.root, onFailure: [Self.action("aside")]).with {
                $0.batch = Rule.Batch(wait: .milliseconds(300))
            }
            let run = EngineRun(
                [rule],
                batched: { action, invocations in
                    let names = invocations.map { String(decoding: $0.job.event.path.lastComponent, as: UTF8.self) }
                    runs.change { $0.append("\(action.name) \(names.sorted().joined())") }
                    return zip(names, invocations).map { name, _ in
                        Outcome(action.name == "act" && "bd".contains(name) ? .failed : .succeeded)
                    }
                })
            for name in ["a", "b", "c", "d"] { TestFile.write(tree.path("in/\(name)"), "x") }
            #expect(run.ended(4))
            let summary = run.stop()
            #expect(summary?.failed == 2 && summary?.succeeded == 2)
            #expect(runs.value == ["act abcd", "aside bd"])
        }
    }

    @Test func `changes made by the list are not reported`() {
        withTempTree { tree in
            let rule = Self.rule(tree.root, onFailure: [Self.action("move")]).with {
                $0.events = [.created, .modified, .moved, .deleted]
            }
            let run = EngineRun([rule]) { action, invocation in
                let path = invocation.job.event.path
                guard path.lastComponent.elementsEqual("a".utf8) else { return Outcome(.succeeded) }
                guard action.name == "move" else { return Outcome(.failed) }
                let target = path.parent.appending("aside")
                _ = path.withCString { from in target.withCString { rename(from, $0) } }
                return Outcome(.succeeded, outputs: [target])
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(1))
            TestFile.write(tree.path("in/last"), "x")
            #expect(run.ended(2))
            run.stop()
            #expect(run.received == ["r created a", "r created a", "r created last"])
        }
    }

    @Test(arguments: ["a kill", "a stop"])
    func `an interrupted list resumes after its finished actions, whatever is at the path`(end: String) throws {
        try withTempTree { tree in
            let store = DiskStore.inMemory()
            let rule = Self.rule(tree.root, onFailure: [Self.action("first"), Self.action("second")])
            let isBack = Locked(false)
            let perform: @Sendable (Action, Invocation) -> Outcome = { action, invocation in
                if action.name == "act" { return Outcome(isBack.value ? .succeeded : .failed, "no luck") }
                if action.name == "first" || isBack.value { return Outcome(.succeeded, "did \(action.name)") }
                _ = Deadline.wait { invocation.stop.isRaised }
                // After a kill, the result must not arrive before the store is copied.
                if end == "a kill" { _ = Deadline.wait { isBack.value } }
                return .interrupted("stopped")
            }
            let run = EngineRun([rule], on: store, perform: perform)
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { run.calls.count == 3 })
            #expect(run.attempts.isEmpty)
            run.askToStop()
            run.askToStopAtOnce()
            let summary = run.end()
            #expect(summary?.unfinished == 1 && summary?.failed == 0)
            let later = try DiskStore(afterKillOf: store, now: DiskProbe.now(), clock: { .now })
            isBack.change { $0 = true }
            TestFile.write(tree.path("in/a"), "longer")
            let next = EngineRun([rule], on: later, perform: perform)
            #expect(next.ended(2))
            next.stop()
            #expect(next.calls.map(\.action) == ["second", "act"])
            #expect(next.calls.map(\.size) == [1, 6] && next.calls.map(\.steps) == [1, 0])
            let report = try #require(next.attempts.first)
            #expect(report.state == .failed && report.attempt == 1 && next.attempts.last?.state == .succeeded)
            let done = "on_failure: 'first' succeeded: did first; on_failure: 'second' succeeded: did second"
            #expect(report.outcome.message == "no luck; \(done)")
        }
    }

    @Test func `while the list runs, the rule starts nothing for the path`() {
        withTempTree { tree in
            let gate = Gate()
            let rule = Self.rule(tree.root, onFailure: [Self.action("slow")])
            let other = Rule.sample("other", [tree.path("other/*")])
            let run = EngineRun([rule, other]) { action, invocation in
                if action.name == "slow" { gate.pass() }
                return Outcome(action.name == "slow" || invocation.job.event.snapshot.size > 1 ? .succeeded : .failed)
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { run.calls.count == 2 })
            TestFile.write(tree.path("in/a"), "longer")
            #expect(run.isDue(tree.path("in/a")))
            #expect(run.calls.map(\.action) == ["act", "slow"])
            gate.open()
            #expect(run.ended(2))
            #expect(run.calls.map(\.action) == ["act", "slow", "act"])
            #expect(run.stop()?.failed == 1)
        }
    }

    // MARK: Failing rules

    @Test func `a failing rule is slowed down until one of its jobs succeeds`() {
        withTempTree { tree in
            let isUp = Locked(false)
            let run = EngineRun(
                [
                    .sample(
                        "r", [tree.path("in/*")], concurrency: 2,
                        retry: RetryPolicy(attempts: 1_000, delay: .milliseconds(1))),
                    .sample("other", [tree.path("other/*")]),
                ]
            ) { _, invocation in
                if invocation.job.rule == "other" || isUp.value { return Outcome(.succeeded) }
                return Outcome(.retry, "down")
            }
            for number in 0..<50 { TestFile.write(tree.path("in/\(number)"), "x") }
            #expect(Deadline.wait { run.notices == ["r slowed after 5: down"] })
            // Five different files have to fail, and the first ones may be retried before the others have settled.
            let before = run.calls.count { $0.rule == "r" }
            TestFile.write(tree.path("other/a"), "x")
            #expect(Deadline.wait { run.attempts.contains { $0.rule == "other" } })
            // One may have started beside the last. With delays of at least a second, only a few can have followed.
            let burnt = run.calls.count { $0.rule == "r" } - before
            #expect(burnt < 10, "\(burnt) attempts")
            isUp.change { $0 = true }
            #expect(Deadline.wait { run.counts.succeeded == 51 })
            #expect(run.stop()?.failed == 0)
            #expect(run.notices == ["r slowed after 5: down", "r recovered"])
        }
    }

    @Test func `files that the action refuses do not slow down the rule`() {
        withTempTree { tree in
            let run = EngineRun([.sample("r", [tree.path("in/*")], retry: RetryPolicy(attempts: 1))]) { _, invocation in
                let name = invocation.job.event.path.lastComponent
                return name.elementsEqual("good".utf8) ? Outcome(.succeeded) : Outcome(.failed, "not an image")
            }
            for number in 0..<12 { TestFile.write(tree.path("in/\(number)"), "x") }
            #expect(run.ended(12))
            let start = ContinuousClock.now
            TestFile.write(tree.path("in/good"), "x")
            #expect(run.ended(13))
            #expect(ContinuousClock.now - start < .seconds(20))
            #expect(run.notices.isEmpty)
            run.stop()
        }
    }

    @Test func `damaged files retried between good ones do not slow down the rule`() {
        withTempTree { tree in
            let policy = RetryPolicy(attempts: 3, delay: .milliseconds(200), maximumDelay: .milliseconds(200))
            let run = EngineRun([.sample("r", [tree.path("in/*")], retry: policy)]) { _, invocation in
                let isGood = invocation.job.event.path.lastComponent.first == UInt8(ascii: "g")
                return isGood ? Outcome(.succeeded) : .uncertain(.retry, "exited with status 1", code: "status-1")
            }
            for number in 0..<12 {
                let names = number.isMultiple(of: 3) ? ["good\(number)", "bad\(number)"] : ["bad\(number)"]
                for name in names {
                    TestFile.write(tree.path("in/\(name)"), "x")
                    #expect(Deadline.wait { run.received.contains("r created \(name)") })
                }
            }
            #expect(Deadline.wait { run.counts.failed == 12 })
            #expect(run.notices.isEmpty, "\(run.notices)")
            run.stop()
        }
    }

    @Test func `one file written repeatedly does not slow down the rule`() {
        withTempTree { tree in
            let run = EngineRun([.sample("r", [tree.path("in/*")], retry: RetryPolicy(attempts: 1))]) { _, _ in
                .uncertain(.retry, "exited with status 1", code: "status-1")
            }
            for count in 1...8 {
                TestFile.write(tree.path("in/a"), String(repeating: "x", count: count))
                #expect(run.ended(count))
            }
            #expect(run.notices.isEmpty, "\(run.notices)")
            run.stop()
        }
    }

    @Test func `a run with once gives each job its attempts without delays between them`() {
        withTempTree { tree in
            for number in 0..<40 { TestFile.write(tree.path("in/\(number)"), "x") }
            let start = ContinuousClock.now
            let policy = RetryPolicy(attempts: 2, delay: .milliseconds(1))
            let run = EngineRun([.sample("r", [tree.path("in/*")], retry: policy)], isOnce: true) { _, _ in
                Outcome(.retry)
            }
            #expect(run.end()?.failed == 40)
            #expect(run.notices.isEmpty)
            #expect(ContinuousClock.now - start < .seconds(15))
        }
    }
}
