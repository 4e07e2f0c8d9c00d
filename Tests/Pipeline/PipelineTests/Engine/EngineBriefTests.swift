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

/// Rules with brief actions, where one attempt includes several files without a visible difference.
@Suite(.timeLimit(.minutes(15)))
struct EngineBriefTests {
    /// Delays the first run while files gather.
    ///
    /// Returns the names of each run, the reports and the number of batches.
    private static func play(
        _ rule: (PathBytes) -> Rule, _ names: [String], size: Int = 1,
        outcome: @escaping @Sendable (Job) -> Outcome = { _ in Outcome(.succeeded) }
    ) -> (runs: [[String]], attempts: [AttemptReport], batches: Int) {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let runs = Locked<[[String]]>([])
            let isFree = Locked(false)
            let rule = rule(tree.root)
            let run = EngineRun(
                [rule],
                batched: { _, invocations in
                    runs.change { $0.append(invocations.map { "\(PathBytes($0.job.event.path.lastComponent))" }) }
                    if runs.value.count == 1 { _ = Deadline.wait { isFree.value } }
                    return invocations.map { outcome($0.job) }
                })
            TestFile.write(tree.path("in/first"), "x")
            #expect(Deadline.wait { runs.value == [["first"]] })
            for name in names { TestFile.write(tree.path("in/\(name)"), String(repeating: "x", count: size)) }
            #expect(Deadline.wait { run.queue.pending == names.count })
            isFree.change { $0 = true }
            #expect(Deadline.wait { run.counts.succeeded == names.count + 1 })
            run.stop()
            return (runs.value, run.attempts, run.batches.count)
        }
    }

    static let names = (10..<30).map(String.init)

    @Test func `an attempt includes several files, and each is reported separately`() {
        let (runs, attempts, batches) = Self.play(
            { Rule.sample("r", [$0.appending("in/*")], actions: ["log"]) }, Self.names)
        #expect(runs.map(\.count) == [1, 2, 4, 8, 6])
        #expect(runs.flatMap(\.self).sorted() == Self.names + ["first"])
        #expect(attempts.count == 21 && batches == 0)
    }

    @Test func `a file that fails is retried alone`() {
        let (runs, attempts, _) = Self.play(
            {
                Rule.sample(
                    "r", [$0.appending("in/*")], actions: ["copy"],
                    retry: RetryPolicy(attempts: 3, delay: .milliseconds(1), maximumDelay: .milliseconds(2)))
            }, Self.names
        ) { job in
            job.event.path.lastComponent.elementsEqual("17".utf8) && job.attempt == 1
                ? Outcome(.retry, "not now") : Outcome(.succeeded)
        }
        #expect(runs.flatMap(\.self).filter { $0 == "17" }.count == 2)
        #expect(runs.flatMap(\.self).count == 22)
        #expect(attempts.filter { $0.state == .pending }.map(\.attempt) == [1])
    }

    @Test func `if all fail, few files lose an attempt before the rule is slowed down`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            for name in Self.names { TestFile.write(tree.path("in/\(name)"), "x") }
            let retry = RetryPolicy(attempts: 3, delay: .seconds(600), maximumDelay: .seconds(600))
            let isBroken = Locked(false)
            let rule = Rule.sample("r", [tree.path("in/*")], actions: ["copy"], retry: retry)
            let runs = Locked(0)
            let run = EngineRun(
                [rule], jobs: 1,
                batched: { _, invocations in
                    runs.change { $0 += 1 }
                    let outcome = isBroken.value ? Outcome(.retry, "the disk is full") : Outcome(.succeeded)
                    // These are the attempts with one, two and four files.
                    if runs.value == 3 { isBroken.change { $0 = true } }
                    return invocations.map { _ in outcome }
                })
            for name in Self.names { TestFile.write(tree.path("in/\(name)"), "y") }
            #expect(Deadline.wait { run.notices == ["r slowed after 5: the disk is full"] })
            let failed = run.attempts.filter { $0.state == .pending }
            #expect(failed.count <= 8 + 1, "\(failed.count)")
            // The failed files are not retried all at the same time.
            #expect(Set(failed.compactMap(\.pause)).count > 1)
            run.stop()
        }
    }

    @Test(arguments: ["a program", "large files", "a rule that restarts", "a handler that takes long"])
    func `actions that may take long run one at a time`(_ why: String) {
        let size = why == "large files" ? 1_100_000 : 1
        let (runs, _, _) = Self.play(
            { root in
                Rule.sample(
                    "r", [root.appending("in/*")], actions: [why == "a handler that takes long" ? "webhook" : "copy"],
                    isProgram: why == "a program"
                ).with { if why == "a rule that restarts" { $0.whileBusy = .restart } }
            }, ["a", "b", "c"], size: size)
        #expect(runs.map(\.count) == [1, 1, 1, 1])
    }
}
