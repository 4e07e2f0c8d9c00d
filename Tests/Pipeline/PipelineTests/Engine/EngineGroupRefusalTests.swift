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

/// Files that belong to a group by name but that the rule does not match, or not yet.
@Suite(.timeLimit(.minutes(5)))
struct EngineGroupRefusalTests {
    /// Reloads the rules, which checks all waiting paths again.
    ///
    /// Returns when the engine has then handled another group.
    private static func inspectAgain(_ run: EngineRun, _ rules: [Rule], _ root: PathBytes, after other: String) -> Bool
    {
        let before = run.batches.count
        guard run.reloadAndWait(rules) else { return false }
        TestFile.write(root.appending("\(other).nfo"), "other")
        TestFile.write(root.appending("\(other).mkv"), "other")
        return Deadline.wait { run.batches.count > before }
    }

    /// A rule with a `ready` command, which the test plays.
    private static func asked(_ root: PathBytes, _ retry: RetryPolicy) throws -> Rule {
        try EngineGroupTests.films(root, retry: retry).with {
            $0.ready = Readiness()
            $0.ready?.command = [Template(literal: "/bin/true")]
        }
    }

    private static func names(_ calls: [Call], of action: String) -> [String] {
        calls.filter { $0.action == action }.map { String(decoding: $0.path.lastComponent, as: UTF8.self) }
    }

    @Test func `a file that fails a condition is not a member of a group until the condition holds`() throws {
        try withTempTree { tree in
            let root = tree.root
            let rule = try EngineGroupTests.films(root).with {
                $0.condition = .size(Comparisons([.init(.more, 3)], text: "> 3"))
            }
            let run = EngineRun([rule], batched: { _, all in all.map { _ in Outcome(.succeeded) } })
            TestFile.write(root.appending("a.nfo"), "1")
            TestFile.write(root.appending("a.mkv"), "12345")
            #expect(Deadline.wait { run.held.count == 1 })
            #expect(Self.inspectAgain(run, [rule], root, after: "b"))
            #expect(Self.inspectAgain(run, [rule], root, after: "c"))
            #expect(run.attempts.allSatisfy { $0.outcome.result == .succeeded })
            TestFile.write(root.appending("a.nfo"), "12345")
            #expect(Deadline.wait { run.batches.count == 3 })
            #expect(EngineGroupTests.runs(run).last == ["a.mkv", "a.nfo"])
            // The file leaves the group again.
            TestFile.write(root.appending("a.nfo"), "1")
            TestFile.write(root.appending("a.mkv"), "123456")
            #expect(Deadline.wait { run.held.count == 1 })
            run.stop()
            #expect(run.batches.count == 3)
            #expect(run.attempts.allSatisfy { $0.outcome.result == .succeeded })
        }
    }

    @Test func `a group keeps a file whose condition held when it was reported`() throws {
        try withTempTree { tree in
            let root = tree.root
            let rule = try EngineGroupTests.films(root).with {
                $0.condition = .age(Comparisons([.init(.less, .milliseconds(600))], text: "< 600ms"))
            }
            let run = EngineRun([rule], batched: { _, all in all.map { _ in Outcome(.succeeded) } })
            TestFile.write(root.appending("a.mkv"), "1")
            let written = ContinuousClock.now
            #expect(Deadline.wait { run.held.count == 1 })
            // The file is now older.
            #expect(Deadline.wait { ContinuousClock.now - written > .milliseconds(700) })
            TestFile.write(root.appending("a.nfo"), "1")
            #expect(Deadline.wait { run.batches.count == 1 })
            run.stop()
            #expect(EngineGroupTests.runs(run) == [["a.mkv", "a.nfo"]])
            #expect(run.attempts.allSatisfy { $0.outcome.result == .succeeded })
        }
    }

    @Test func `a file that an earlier rule with stop matches is not a member of a group`() throws {
        try withTempTree { tree in
            let root = tree.root
            let first = Rule.sample("first", [root.appending("a.nfo")]).with { $0.isLast = true }
            let rules = [first, try EngineGroupTests.films(root)]
            let run = EngineRun(rules, batched: { _, all in all.map { _ in Outcome(.succeeded) } })
            TestFile.write(root.appending("a.nfo"), "1")
            TestFile.write(root.appending("a.mkv"), "1")
            #expect(Deadline.wait { run.held.count == 1 })
            #expect(Self.inspectAgain(run, rules, root, after: "b"))
            #expect(EngineGroupTests.runs(run) == [["b.mkv", "b.nfo"]])
            #expect(run.received.filter { $0.hasSuffix("a.nfo") } == ["first created a.nfo"])
            // Without that rule it is a member.
            #expect(run.reloadAndWait([rules[1]]))
            #expect(Deadline.wait { run.batches.count == 2 })
            run.stop()
            #expect(EngineGroupTests.runs(run).last == ["a.mkv", "a.nfo"])
        }
    }

    @Test(arguments: [PluginResponse.Outcome.failed, .skipped, .retry])
    func `a file that ready refused keeps its group waiting until it changes`(result: PluginResponse.Outcome) throws {
        try withTempTree { tree in
            let root = tree.root
            let rule = try Self.asked(root, RetryPolicy(attempts: 1))
            let run = EngineRun([rule]) { action, invocation in
                guard action.name == "exec", invocation.job.event.path.lastComponent.elementsEqual("a.nfo".utf8),
                    invocation.job.event.snapshot.size < 3
                else { return Outcome(.succeeded) }
                return Outcome(result, "too short")
            }
            TestFile.write(root.appending("a.nfo"), "1")
            TestFile.write(root.appending("a.mkv"), "1")
            #expect(Deadline.wait { run.attempts.count == 1 })
            #expect(Deadline.wait { run.held.count == 1 })
            #expect(Self.inspectAgain(run, [rule], root, after: "b"))
            #expect(Self.inspectAgain(run, [rule], root, after: "c"))
            #expect(run.attempts.count == 5)
            #expect(run.attempts.first?.outcome.code == "ready")
            #expect(run.attempts.first?.outcome.message == "'ready': too short")
            #expect(Self.names(run.calls, of: "exec").count { $0 == "a.nfo" } == 1)
            TestFile.write(root.appending("a.nfo"), "123")
            #expect(Deadline.wait { run.batches.count == 3 })
            run.stop()
            #expect(EngineGroupTests.runs(run).last == ["a.mkv", "a.nfo"])
            #expect(run.queue.count == 0)
        }
    }

    @Test func `a refusal is known to the next run, and the file is retried with another ready command`() throws {
        try withTempTree { tree in
            let root = tree.root
            TestFile.makeDirectory(root.appending("in"))
            let directory = root.appending("in")
            let rule = try Self.asked(directory, RetryPolicy(attempts: 1))
            let file = root.appending("store.db")
            let play: @Sendable (Action, Invocation) -> Outcome = { action, invocation in
                let isAsked = action.name == "exec" && action.isAsked("/bin/true")
                guard isAsked, invocation.job.event.path.lastComponent.elementsEqual("a.nfo".utf8) else {
                    return Outcome(.succeeded)
                }
                return Outcome(.failed, "no")
            }
            let store = try DiskStore(at: file, now: .now)
            let first = EngineRun([rule], on: store, perform: play)
            TestFile.write(directory.appending("a.nfo"), "1")
            TestFile.write(directory.appending("a.mkv"), "1")
            #expect(Deadline.wait { first.counts.failed == 1 && first.held.count == 1 })
            first.stop()
            _ = store.close(at: .now)

            let again = try DiskStore(at: file, now: .now)
            let second = EngineRun([rule], on: again, perform: play)
            #expect(Self.inspectAgain(second, [rule], directory, after: "b"))
            #expect(Self.inspectAgain(second, [rule], directory, after: "c"))
            #expect(!Self.names(second.calls, of: "exec").contains("a.nfo"))
            #expect(second.held.count == 1 && second.counts.failed == 0)
            let other = rule.with { $0.ready?.command = [Template(literal: "/bin/echo")] }
            #expect(second.reloadAndWait([other]))
            #expect(Deadline.wait { second.batches.count == 3 })
            second.stop()
            #expect(EngineGroupTests.runs(second).last == ["a.mkv", "a.nfo"])
            _ = again.close(at: .now)
        }
    }

    @Test func `a file that ready accepts in another attempt is handled with its group`() throws {
        try withTempTree { tree in
            let root = tree.root
            let rule = try Self.asked(root, RetryPolicy(attempts: 3, delay: .milliseconds(1)))
            let asked = Locked(0)
            let run = EngineRun([rule]) { action, invocation in
                guard action.name == "exec", invocation.job.event.path.lastComponent.elementsEqual("a.nfo".utf8)
                else { return Outcome(.succeeded) }
                let count = asked.change { count in
                    count += 1
                    return count
                }
                return count < 3 ? Outcome(.retry, "busy") : Outcome(.succeeded)
            }
            TestFile.write(root.appending("a.nfo"), "1")
            TestFile.write(root.appending("a.mkv"), "1")
            #expect(Deadline.wait { run.attempts.count >= 4 })
            run.stop()
            #expect(EngineGroupTests.runs(run) == [["a.mkv", "a.nfo"]])
            #expect(run.batches.first?.map(\.attempt) == [1, 3])
            #expect(Self.names(run.calls, of: "act") == ["a.mkv", "a.nfo"])
            #expect(run.queue.count == 0)
        }
    }

    @Test func `a group whose ready command was stopped is checked again, and none of it counts as started`() throws {
        try withTempTree { tree in
            let root = tree.root
            let rule = try Self.asked(root, RetryPolicy())
            let store = DiskStore.inMemory()
            let first = EngineRun([rule], on: store) { action, invocation in
                guard action.name == "exec" else { return Outcome(.succeeded) }
                _ = Deadline.wait { invocation.stop.isRaised }
                return .interrupted("stopped")
            }
            TestFile.write(root.appending("a.nfo"), "1")
            TestFile.write(root.appending("a.mkv"), "1")
            #expect(Deadline.wait { !first.calls.isEmpty })
            first.askToStopAtOnce()
            _ = first.end()
            #expect(first.attempts.isEmpty)
            let second = EngineRun([rule], on: store)
            #expect(Deadline.wait { second.batches.count == 1 })
            second.stop()
            #expect(EngineGroupTests.runs(second) == [["a.mkv", "a.nfo"]])
            #expect(second.attempts.map(\.attempt) == [1, 1])
        }
    }
}

extension Action {
    /// Whether it is this command.
    fileprivate func isAsked(_ word: String) -> Bool {
        guard case .exec(let words) = work else { return false }
        return words == [Template(literal: word)]
    }
}

extension Timestamp {
    fileprivate static var now: Timestamp { DiskProbe.now() }
}
