import ActionAPI
import Engine
import FileEvents
import Glibc
import Monitoring
import PluginProtocol
import Rules
import Running
import Storage
import System
import Testing
import TestKit

/// Failed jobs: when a later job of the file finishes them, and what a user's retry does.
@Suite(.timeLimit(.minutes(5)))
struct EngineRetryTests {
    private static func rule(
        _ tree: PathBytes, _ events: EventMask = [.created, .modified], onFailure: [String] = []
    ) -> Rule {
        Rule.sample("r", [tree.appending("in/*")], retry: RetryPolicy(attempts: 1)).with {
            $0.events = events
            $0.onFailure = onFailure.map { EngineFailureTests.action($0) }
        }
    }

    /// Fails for files of one byte; `move` renames the file into the directory `aside`, `copy` reports a copy there.
    private static func perform(_ action: Action, _ invocation: Invocation) -> Outcome {
        let path = invocation.job.event.path
        let aside = path.parent.parent.appending("aside")
        switch action.name {
        case "move":
            TestFile.makeDirectory(aside)
            _ = rename(path.description, aside.appending(path.lastComponent).description)
            return Outcome(.succeeded, outputs: [aside.appending(path.lastComponent)])
        case "copy": return Outcome(.succeeded, outputs: [aside.appending(path.lastComponent)])
        case "act": return Outcome(invocation.job.event.snapshot.size == 1 ? .failed : .succeeded)
        default: return Outcome(.succeeded)
        }
    }

    @Test(arguments: [[], ["notify"]])
    func `a failed job is skipped once a later job of its file has succeeded`(onFailure: [String]) {
        withTempTree { tree in
            let run = EngineRun([Self.rule(tree.root, onFailure: onFailure)], perform: Self.perform)
            TestFile.write(tree.path("in/a"), "x")
            TestFile.write(tree.path("in/b"), "x")
            #expect(run.ended(2))
            TestFile.write(tree.path("in/a"), "y")
            #expect(run.ended(3))
            let a = run.attempts.filter { $0.path == tree.path("in/a") }.map(\.job)
            #expect(a.map(run.state) == [.failed, .failed])
            TestFile.write(tree.path("in/a"), "good")
            #expect(run.ended(4))
            #expect(Deadline.wait { a.map(run.state) == [.skipped, .skipped] })
            let b = run.attempts.first { $0.path == tree.path("in/b") }
            #expect(b.map { run.state(of: $0.job) } == .failed)
            #expect(run.carryOut(.retry(a)))
            run.stop()
            #expect(run.calls.filter { $0.action == "act" }.count == 4)
        }
    }

    @Test(arguments: ["move", "copy"])
    func `a failed job whose file was set aside stays failed, and its retry does not run another file`(
        action: String
    ) throws {
        try withTempTree { tree in
            let run = EngineRun([Self.rule(tree.root, onFailure: [action])], perform: Self.perform)
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(1))
            TestFile.write(tree.path("in/a"), "good")
            #expect(run.ended(2))
            let first = try #require(run.attempts.first?.job)
            #expect(run.state(of: first) == .failed)
            #expect(run.carryOut(.retry([first])))
            #expect(run.ended(3))
            run.stop()
            #expect(run.attempts.last?.outcome.code == "superseded")
            #expect(run.calls.map(\.action) == ["act", action, "act"])
        }
    }

    @Test func `a batch is skipped once all its files have been processed`() {
        withTempTree { tree in
            let rule = Self.rule(tree.root).with {
                $0.batch = Rule.Batch(files: 100, wait: .milliseconds(300), maximumWait: .seconds(60))
            }
            let run = EngineRun(
                [rule],
                batched: { action, invocations in
                    let outcomes = invocations.map { Self.perform(action, $0) }
                    return outcomes.contains { $0.result == .failed }
                        ? outcomes.map { _ in Outcome(.failed) } : outcomes
                })
            TestFile.makeDirectory(tree.path("in"))
            for name in ["a", "b", "c"] { TestFile.write(tree.path("in/\(name)"), name == "c" ? "good" : "x") }
            #expect(run.ended(3))
            let jobs = run.attempts.map(\.job)
            guard run.batches.count == 1 else { return }
            var ended = 3
            for (name, state) in [("a", JobState.failed), ("c", .failed), ("b", .skipped)] {
                TestFile.write(tree.path("in/\(name)"), "better")
                ended += 1
                #expect(run.ended(ended))
                #expect(Deadline.wait { jobs.map(run.state) == [state, state, state] })
            }
            run.stop()
        }
    }

    @Test(arguments: [[.created, .modified], [.created, .deleted]] as [EventMask])
    func `the retry of a job whose file is gone is skipped`(events: EventMask) throws {
        try withTempTree { tree in
            let run = EngineRun([Self.rule(tree.root, events)], perform: Self.perform)
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(1))
            TestFile.removeTree(tree.path("in/a"))
            let job = try #require(run.attempts.first?.job)
            if events.contains(.deleted) { #expect(run.ended(2)) }
            #expect(run.carryOut(.retry([job])))
            #expect(Deadline.wait { run.attempts.contains { $0.outcome.code == "gone" } })
            let last = run.attempts.last
            #expect(last?.job == job && last?.state == .skipped)
            #expect(run.state(of: job) == .skipped)
            #expect(run.stop()?.skipped == 1)
        }
    }
}
