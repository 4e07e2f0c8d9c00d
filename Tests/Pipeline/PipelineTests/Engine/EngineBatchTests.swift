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

/// Rules that receive several files at once.
@Suite(.timeLimit(.minutes(15)))
struct EngineBatchTests {
    static func rule(
        _ tree: PathBytes, files: Int = 100, wait: Duration = .milliseconds(300), maximumWait: Duration = .seconds(60),
        retry: RetryPolicy = RetryPolicy(), actions: [String] = ["act"]
    ) -> Rule {
        Rule.sample("r", [tree.appending("in/*")], actions: actions, retry: retry).with {
            $0.batch = Rule.Batch(files: files, wait: wait, maximumWait: maximumWait)
        }
    }

    /// The file names of each run, in order.
    static func names(_ runs: [[Job]]) -> [[String]] {
        runs.map { $0.map { String(decoding: $0.event.path.lastComponent, as: UTF8.self) } }
    }

    static func makeDirectory(_ tree: PathBytes) { TestFile.makeDirectory(tree.appending("in")) }

    @Test func `S42 files that settle together are one run, in order`() async throws {
        try await Blocking.run { Self.runTogether() }
    }

    private static func runTogether() {
        withTempTree { tree in
            Self.makeDirectory(tree.root)
            let runs = Locked<[[Job]]>([])
            let run = EngineRun(
                [Self.rule(tree.root, wait: .seconds(3))],
                batched: { _, invocations in
                    runs.change { $0.append(invocations.map(\.job)) }
                    return invocations.map { Outcome(.succeeded, "\($0.job.event.snapshot.size)") }
                })
            for name in ["c", "a", "b"] { TestFile.write(tree.path("in/\(name)"), name) }
            #expect(run.ended(3))
            #expect(run.stop()?.succeeded == 3)
            #expect(Self.names(runs.value).map { $0.sorted() } == [["a", "b", "c"]])
            let times = runs.value[0].map(\.event.time)
            #expect(times == times.sorted())
            #expect(run.batches.count == 1)
            #expect(run.attempts.allSatisfy { $0.state == .succeeded && $0.outcome.message == "1" })
        }
    }

    @Test func `S42 a batch has at most its number of files, and a full one does not wait`() {
        withTempTree { tree in
            Self.makeDirectory(tree.root)
            let runs = Locked<[[Job]]>([])
            let run = EngineRun(
                [Self.rule(tree.root, files: 2, wait: .seconds(600))],
                batched: { _, invocations in
                    runs.change { $0.append(invocations.map(\.job)) }
                    return invocations.map { _ in Outcome(.succeeded) }
                })
            for round in 1...3 {
                for number in 0..<2 { TestFile.write(tree.path("in/\(round)-\(number)"), "x") }
                #expect(run.ended(2 * round))
            }
            for number in 0..<5 { TestFile.write(tree.path("in/\(number)"), "x") }
            #expect(Deadline.wait { run.counts.succeeded >= 10 })
            run.stop()
            #expect(runs.value.flatMap(\.self).count == 11)
            #expect(runs.value.allSatisfy { $0.count <= 2 })
            #expect(runs.value.prefix(3).allSatisfy { $0.count == 2 })
        }
    }

    @Test func `S42 events that keep coming are reported after the maximum wait`() {
        withTempTree { tree in
            Self.makeDirectory(tree.root)
            let run = EngineRun([
                Self.rule(tree.root, files: 100_000, wait: .seconds(600), maximumWait: .milliseconds(400))
            ])
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(1))
            run.stop()
        }
    }

    @Test func `S42 each event of a batch has its own outcome, and failed ones are retried together`() async throws {
        try await Blocking.run { Self.runWithOutcomes() }
    }

    private static func runWithOutcomes() {
        withTempTree { tree in
            Self.makeDirectory(tree.root)
            let runs = Locked<[[Job]]>([])
            let policy = RetryPolicy(attempts: 3, delay: .milliseconds(50), maximumDelay: .milliseconds(50))
            let run = EngineRun(
                [Self.rule(tree.root, wait: .seconds(3), retry: policy)],
                batched: { _, invocations in
                    runs.change { $0.append(invocations.map(\.job)) }
                    return invocations.map { invocation in
                        switch invocation.job.event.path.lastComponent.first {
                        case UInt8(ascii: "f"): Outcome(.failed, "bad")
                        case UInt8(ascii: "r") where invocation.job.attempt < 3: Outcome(.retry)
                        case UInt8(ascii: "s"): Outcome(.skipped)
                        default: Outcome(.succeeded)
                        }
                    }
                })
            for name in ["r1", "f", "ok", "r2", "s"] { TestFile.write(tree.path("in/\(name)"), "x") }
            #expect(run.ended(9))
            let summary = run.stop()
            #expect(
                Self.names(runs.value).map { $0.sorted() } == [
                    ["f", "ok", "r1", "r2", "s"], ["r1", "r2"], ["r1", "r2"],
                ])
            #expect(summary?.succeeded == 3 && summary?.failed == 1 && summary?.skipped == 1)
        }
    }

    @Test func `S42 a step runs for the events whose previous step has succeeded`() {
        withTempTree { tree in
            Self.makeDirectory(tree.root)
            let seen = Locked<[String]>([])
            let run = EngineRun(
                [Self.rule(tree.root, wait: .seconds(1), actions: ["one", "two"])],
                batched: { action, invocations in
                    invocations.map { invocation in
                        let name = String(decoding: invocation.job.event.path.lastComponent, as: UTF8.self)
                        seen.change { $0.append("\(action.name) \(name) \(invocation.steps.count)") }
                        return Outcome(action.name == "one" && name == "b" ? .skipped : .succeeded)
                    }
                })
            for name in ["a", "b"] { TestFile.write(tree.path("in/\(name)"), "x") }
            #expect(run.ended(2))
            run.stop()
            #expect(seen.value.sorted() == ["one a 0", "one b 0", "two a 1"])
        }
    }

    @Test func `S42 a run with once does not wait for more, and all files are one batch`() {
        withTempTree { tree in
            for number in 0..<20 { TestFile.write(tree.path("in/\(number)"), "x") }
            let run = EngineRun([Self.rule(tree.root, wait: .seconds(600), maximumWait: .seconds(600))], isOnce: true)
            let summary = run.end()
            #expect(summary?.succeeded == 20)
            #expect(run.batches.map(\.count) == [20])
        }
    }

    @Test func `S22 a stop does not wait for more, and finishes the collected files`() {
        withTempTree { tree in
            Self.makeDirectory(tree.root)
            let run = EngineRun([Self.rule(tree.root, wait: .seconds(600), maximumWait: .seconds(600))])
            for number in 0..<5 { TestFile.write(tree.path("in/\(number)"), "x") }
            #expect(Deadline.wait { run.queue.pending == 5 })
            #expect(run.calls.isEmpty)
            #expect(run.stop()?.succeeded == 5)
            #expect(run.batches.map(\.count) == [5])
        }
    }

    @Test func `S42 the paths of a batch that changed meanwhile settle again, and the others run`() {
        withTempTree { tree in
            Self.makeDirectory(tree.root)
            let runs = Locked<[[Job]]>([])
            let gate = Gate()
            let rule = Self.rule(tree.root).with { $0.settle.quiet = .seconds(2) }
            let run = EngineRun(
                [rule],
                batched: { _, invocations in
                    runs.change { $0.append(invocations.map(\.job)) }
                    gate.pass()
                    return invocations.map { _ in Outcome(.succeeded) }
                })
            TestFile.write(tree.path("in/first"), "x")
            #expect(Deadline.wait { runs.value.count == 1 })
            for name in ["a", "b"] { TestFile.write(tree.path("in/\(name)"), "x") }
            #expect(Deadline.wait { run.queue.pending == 2 })
            TestFile.write(tree.path("in/a"), "longer")
            gate.open()
            #expect(run.ended(3))
            run.stop()
            #expect(Self.names(runs.value) == [["first"], ["b"], ["a"]])
            #expect(runs.value.last?.first?.event.kind == .created)
            #expect(runs.value.last?.first?.event.snapshot.size == 6)
        }
    }
}
