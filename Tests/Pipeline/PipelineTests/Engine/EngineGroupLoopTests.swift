import ActionAPI
import Engine
import FileEvents
import Gates
import Monitoring
import PluginProtocol
import Rules
import Storage
import System
import Testing
import TestKit

/// Groups that trigger themselves, and groups that only appear to.
@Suite(.timeLimit(.minutes(5)))
struct EngineGroupLoopTests {
    @Test func `S27 a set that triggers itself ends with failed jobs that give the reason`() throws {
        try withTempTree { tree in
            let root = tree.root
            let rule = try EngineGroupTests.films(root).with {
                $0.ownWrites = .report
                $0.settle = SettlePolicy(quiet: .zero)
            }
            let run = EngineRun([rule]) { _, invocation in
                let path = invocation.job.event.path
                if path.lastComponent.elementsEqual("a.nfo".utf8) { TestFile.write(path, [1], appending: true) }
                return Outcome(.succeeded)
            }
            TestFile.write(root.appending("a.nfo"), "1")
            TestFile.write(root.appending("a.mkv"), "1")
            #expect(Deadline.wait { !run.loopDetected.isEmpty })
            #expect(Deadline.wait { run.counts.failed == 2 && run.queue.running == 0 })
            #expect(run.loopDetected.count == 1)
            // Other groups of the rule continue.
            TestFile.write(root.appending("b.nfo"), "1")
            TestFile.write(root.appending("b.mkv"), "1")
            #expect(Deadline.wait { run.received.contains("films created b.nfo") })
            // A change by another process waits until the group's pause is over.
            TestFile.write(root.appending("a.mkv"), "somebody else")
            #expect(Deadline.wait { run.queue.pending >= 1 })
            run.stop()
            #expect(run.calls.count { $0.path == root.appending("a.nfo") } == LoopGuard.limit)
            #expect(run.calls.count { $0.path == root.appending("a.mkv") } == LoopGuard.limit)
            let failed = run.attempts.filter { $0.state == .failed }
            #expect(failed.map(\.outcome.code) == ["loop", "loop"])
            #expect(failed.first?.outcome.message.hasPrefix("not run: the rule has run for this set 60 times") == true)
        }
    }

    @Test func `a group that is checked repeatedly without a run is not slowed down`() throws {
        try withTempTree { tree in
            let root = tree.root
            let rule = try EngineGroupTests.films(root).with {
                $0.ready = Readiness()
                $0.ready?.command = [Template(literal: "/bin/true")]
            }
            let asked = Locked(0)
            let isReady = Locked(false)
            let run = EngineRun([rule]) { action, _ in
                guard action.name == "exec" else { return Outcome(.succeeded) }
                asked.change { $0 += 1 }
                if isReady.value { return Outcome(.succeeded) }
                var outcome = Outcome(.retry, "not yet")
                outcome.process = ProcessDetails(status: 75, request: "")
                return outcome
            }
            let paths = ["a.nfo", "a.mkv"].map { root.appending($0) }
            for path in paths { TestFile.write(path, "1") }
            #expect(Deadline.wait { run.held.count == 2 && asked.value > 0 })
            for _ in 0..<(LoopGuard.limit + 10) {
                let before = asked.value
                // Checks every hinted path again.
                run.rescan()
                #expect(Deadline.wait { asked.value > before })
            }
            isReady.change { $0 = true }
            #expect(Deadline.wait { run.batches.count == 1 })
            run.stop()
            #expect(run.loopDetected.isEmpty)
            #expect(EngineGroupTests.runs(run) == [["a.mkv", "a.nfo"]])
        }
    }

    @Test func `a group that stays incomplete causes one warning`() throws {
        try withTempTree { tree in
            let root = tree.root
            let run = EngineRun(
                [try EngineGroupTests.films(root)], timeout: .milliseconds(400),
                batched: { _, all in all.map { _ in Outcome(.succeeded) } })
            let start = ContinuousClock.now
            for name in ["a.mkv", "a.srt"] { TestFile.write(root.appending(name), "1") }
            #expect(Deadline.wait { !run.notices.isEmpty })
            #expect(ContinuousClock.now - start >= .milliseconds(400))
            // The file then waits without a limit, and so does the other file of the group.
            #expect(Deadline.wait { run.held.allSatisfy { $0.until == nil } })
            for name in ["b.mkv", "b.nfo"] { TestFile.write(root.appending(name), "1") }
            #expect(Deadline.wait { run.batches.count == 1 })
            #expect(run.notices.count == 1)
            #expect(run.notices.first?.hasPrefix("films lacks [\"nfo\"] for \(root)/a.") == true)
            TestFile.write(root.appending("a.nfo"), "1")
            #expect(Deadline.wait { run.batches.count == 2 })
            run.stop()
            #expect(run.notices.count == 1)
            #expect(EngineGroupTests.runs(run).last == ["a.mkv", "a.nfo", "a.srt"])
        }
    }
}
