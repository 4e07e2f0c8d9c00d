import ActionAPI
import Engine
import FileEvents
import JSON
import Monitoring
import PluginProtocol
import Rules
import Storage
import System
import Testing
import TestKit

/// Jobs with a list of actions: where the list continues after a failure, a reload and new content.
@Suite(.timeLimit(.minutes(15)))
struct EngineStepTests {
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
            let isFixed = Locked(false)
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
}
