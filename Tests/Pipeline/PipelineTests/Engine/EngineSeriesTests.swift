import ActionAPI
import Engine
import FileEvents
import Monitoring
import PluginProtocol
import Records
import Rules
import System
import Testing
import TestKit

/// Brief actions that run in series: as if each had been started by itself.
@Suite(.timeLimit(.minutes(15)))
struct EngineSeriesTests {
    /// An engine with one slot and files `0` to `9`: the action of the fourth waits until the test releases it, and so
    /// do those behind it in the series.
    ///
    /// - Parameters:
    ///   - change: What happens meanwhile, to the files of the given names, among others.
    ///   - check: What is expected afterwards. It receives those names, sorted, and a function that returns the names for
    ///     which actions have started since then.
    private static func play(
        _ change: (EngineRun, borrowing TemporaryTree, [String]) -> Void,
        then check: (EngineRun, [String], () -> [String]) -> Void
    ) {
        withTempTree { tree in
            let (first, fourth, isHeld) = (Gate(), Gate(), Locked(false))
            let count = Locked(0)
            let rules = [
                Rule.sample("r", [tree.path("in/*")], concurrency: 8),
                Rule.sample("high", [tree.path("high/*")]).with { $0.priority = 1 },
            ]
            let run = EngineRun(rules, jobs: 1) { _, _ in
                count.change { $0 += 1 }
                switch count.value {
                case 1: first.pass()
                case 5:
                    isHeld.change { $0 = true }
                    fourth.pass()
                default: break
                }
                return Outcome(.succeeded)
            }
            TestFile.write(tree.path("in/first"), "x")
            #expect(Deadline.wait { run.calls.count == 1 })
            for number in 0..<10 { TestFile.write(tree.path("in/\(number)"), "x") }
            #expect(Deadline.wait { run.queue.pending == 10 })
            first.open()
            #expect(Deadline.wait { isHeld.value })
            let started = run.calls.count
            let rest = Set((0..<10).map(String.init)).subtracting(run.names).sorted()
            change(run, tree, rest)
            fourth.open()
            check(run, rest) { Array(run.names.dropFirst(started)) }
        }
    }

    @Test func `a job that takes long delays none of those behind it`() {
        withTempTree { tree in
            let gate = Gate()
            let run = EngineRun([.sample("r", [tree.path("in/*")], concurrency: 8)], jobs: 2) { _, invocation in
                if invocation.job.event.path.lastComponent.elementsEqual("50".utf8) { gate.pass() }
                return Outcome(.succeeded)
            }
            for number in 0..<100 { TestFile.write(tree.path("in/\(number)"), "x") }
            #expect(run.ended(99))
            #expect(Deadline.wait { run.queue.count == 1 })
            #expect(run.status?.running.map(\.path) == [tree.path("in/50")])
            gate.open()
            #expect(run.ended(100))
            run.stop()
            #expect(run.mostAtOnce == 2)
            #expect(run.calls.count == 100 && run.calls.allSatisfy { $0.attempt == 1 })
        }
    }

    @Test func `a pause takes back the jobs that have not started`() {
        Self.play { run, _, _ in
            run.pause("r")
            #expect(Deadline.wait { run.status?.pauses.hold("r") ?? false })
        } then: { run, rest, names in
            #expect(Deadline.wait { run.queue.running == 0 })
            #expect(names() == [])
            run.resume("r")
            #expect(run.ended(11))
            run.stop()
            #expect(names().sorted() == rest)
            #expect(run.calls.allSatisfy { $0.attempt == 1 })
        }
    }

    @Test func `a file of a rule with a higher priority is next`() {
        Self.play { run, tree, rest in
            TestFile.write(tree.path("high/important"), "x")
            #expect(run.isDue(tree.path("high/important")))
        } then: { run, rest, names in
            #expect(run.ended(12))
            run.stop()
            #expect(names().first == "important")
        }
    }

    @Test func `a file that changes before its turn is received once, with its new content`() {
        Self.play { run, tree, rest in
            for name in rest { TestFile.write(tree.path("in/\(name)"), "new content") }
        } then: { run, rest, names in
            #expect(run.ended(11))
            #expect(run.isIdle)
            run.stop()
            #expect(names().sorted() == rest)
            #expect(run.calls.suffix(rest.count).allSatisfy { $0.size == 11 && $0.attempt == 1 })
        }
    }

    @Test func `a file that is removed before its turn is skipped`() {
        Self.play { run, tree, rest in
            TestFile.removeTree(tree.path("in/\(rest[0])"))
        } then: { run, rest, names in
            #expect(run.ended(11))
            #expect(run.stop()?.skipped == 1)
            #expect(names().sorted() == Array(rest.dropFirst()))
        }
    }

    @Test func `other rules do not change what runs`() {
        Self.play { run, tree, rest in
            let rules = [Rule.sample("r", [tree.path("in/*")], concurrency: 8)]
            #expect(run.reloadAndWait(rules))
        } then: { run, rest, names in
            #expect(run.ended(11))
            run.stop()
            #expect(names().sorted() == rest)
            #expect(run.calls.allSatisfy { $0.attempt == 1 })
        }
    }

    @Test func `a stop starts none of the jobs behind the one that runs`() {
        Self.play { run, _, _ in
            run.askToStopAtOnce()
            #expect(Deadline.wait { run.status?.phase == .ending })
        } then: { run, rest, names in
            #expect(run.end()?.unfinished == rest.count)
            #expect(names() == [])
        }
    }
}

extension EngineRun {
    /// The names of the files that actions have received, in order.
    fileprivate var names: [String] { calls.map { String(decoding: $0.path.lastComponent, as: UTF8.self) } }
}
