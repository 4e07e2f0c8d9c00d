import ActionAPI
import Engine
import FileEvents
import Monitoring
import PluginProtocol
import Rules
import Running
import Storage
import Synchronization
import System
import Testing
import TestKit

/// Runs of a rule for files that a user names.
@Suite(.timeLimit(.minutes(15)))
struct ApplyRunTests {
    private static func make(
        _ rule: Rule, _ store: DiskStore = .inMemory(), _ attempts: Locked<[AttemptReport]> = Locked([]),
        _ perform: @escaping @Sendable (Invocation) -> Outcome
    ) -> ApplyRun {
        ApplyRun(
            rule, limit: 2, store: store, perform: { _, invocations in invocations.map(perform) }, log: .silent,
            report: { report in attempts.change { $0 += report.attempts } })
    }

    private static func requests(_ paths: [PathBytes]) -> [JobRequest] {
        paths.map { JobRequest(id: JobID(now: DiskProbe.now()), rule: "r", path: $0) }
    }

    @Test func `the action runs once for each file, and failed attempts are retried`() {
        withTempTree { tree in
            let paths = (0..<10).map { tree.path("in/\($0)") }
            for path in paths { TestFile.write(path, "x") }
            var rule = Rule.sample("r", [tree.path("in/*")], concurrency: 2)
            rule.retry = RetryPolicy(attempts: 2, delay: .milliseconds(10), maximumDelay: .milliseconds(20))
            let attempts = Locked<[AttemptReport]>([])
            let run = Self.make(rule, .inMemory(), attempts) { invocation in
                let isFirst = invocation.job.attempt == 1
                return Outcome(isFirst && invocation.job.event.path == paths[3] ? .retry : .succeeded)
            }
            let summary = run.run(Self.requests(paths))
            #expect(summary.open.isEmpty && summary.error == nil)
            #expect(attempts.value.count == 11)
            #expect(Set(attempts.value.filter { $0.state == .succeeded }.map(\.path)) == Set(paths))
        }
    }

    @Test func `a missing file is skipped, and a permanent failure is a failed job`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/a"), "x")
            let attempts = Locked<[AttemptReport]>([])
            let run = Self.make(Rule.sample("r", [tree.path("in/*")]), .inMemory(), attempts) { _ in
                Outcome(.failed, "no")
            }
            let summary = run.run(Self.requests([tree.path("in/a"), tree.path("in/gone")]))
            #expect(summary.open.isEmpty)
            #expect(attempts.value.map(\.state).sorted { $0.rawValue < $1.rawValue } == [.failed, .skipped])
        }
    }

    @Test func `a stop leaves unstarted files to the next run`() {
        withTempTree { tree in
            let paths = (0..<5).map { tree.path("in/\($0)") }
            for path in paths { TestFile.write(path, "x") }
            let store = DiskStore.inMemory()
            let rule = Rule.sample("r", [tree.path("in/*")])
            let gate = Gate()
            let started = Atomic(0)
            let run = Self.make(rule, store) { _ in
                started.add(1, ordering: .relaxed)
                gate.pass()
                return Outcome(.succeeded)
            }
            let stopper = WorkerThread(name: "stopper") {
                _ = Deadline.wait { started.load(ordering: .relaxed) == 1 }
                run.stop()
                gate.open()
            }
            #expect(stopper != nil)
            let summary = run.run(Self.requests(paths))
            #expect(started.load(ordering: .relaxed) <= 2)
            #expect(summary.open.count >= 3)
            let next = EngineRun([rule], on: store)
            #expect(next.ended(summary.open.count))
            next.stop()
            #expect(next.calls.count == summary.open.count && Set(next.calls.map(\.path)) == summary.open)
        }
    }

    @Test func `a file that changes before its action starts is checked again`() {
        withTempTree { tree in
            let first = tree.path("in/a")
            let second = tree.path("in/b")
            for path in [first, second] { TestFile.write(path, "x") }
            let sizes = Locked<[UInt64]>([])
            let run = Self.make(Rule.sample("r", [tree.path("in/*")])) { invocation in
                // The rule runs one job at a time, so the other file changes while it waits.
                let event = invocation.job.event
                sizes.change { $0.append(event.snapshot.size) }
                let other = event.path == first ? second : first
                if sizes.value.count == 1 { TestFile.write(other, "changed") }
                return Outcome(.succeeded)
            }
            let summary = run.run(Self.requests([first, second]))
            #expect(summary.open.isEmpty)
            #expect(sizes.value == [1, 7])
        }
    }
}
