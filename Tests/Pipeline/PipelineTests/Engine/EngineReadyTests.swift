import Engine
import Glibc
import Monitoring
import PluginProtocol
import Rules
import System
import Testing
import TestKit

struct EngineReadyTests {
    static func marked(_ root: PathBytes) throws -> Rule {
        let template = try #require(Template("${name}.done"))
        return Rule.sample("r", [root.appending("*.txt")]).with { rule in
            rule.ready = Readiness()
            rule.ready?.doneFile = template
        }
    }

    /// Starts a rule with a done file, for which `a.txt` and `b.txt` wait.
    private static func runWithTwoWaiting(_ root: PathBytes) throws -> EngineRun {
        let run = EngineRun([try marked(root)])
        TestFile.write(root.appending("a.txt"), [1])
        TestFile.write(root.appending("b.txt"), [1])
        #expect(Deadline.wait { run.held.count == 2 })
        return run
    }

    @Test func `a job waits for its done file and starts when the file is created`() throws {
        try withTempTree { tree in
            let root = tree.root
            let run = try Self.runWithTwoWaiting(root)
            // The next check is now at least a second away.
            let start = ContinuousClock.now
            TestFile.write(root.appending("a.txt.done"), [])
            #expect(run.ended(1))
            #expect(ContinuousClock.now - start < .milliseconds(800))
            #expect(run.attempts.map(\.attempt) == [1])
            #expect(run.received == ["r created a.txt"])
            #expect(run.held.count == 1)
            run.stop()
        }
    }

    @Test func `a file that changes while it waits is reported as it is then, and a deleted one is skipped`() throws {
        try withTempTree { tree in
            let root = tree.root
            let run = try Self.runWithTwoWaiting(root)
            TestFile.write(root.appending("a.txt"), [1, 2, 3])
            TestFile.write(root.appending("a.txt.done"), [])
            _ = root.appending("b.txt").withCString { unlink($0) }
            #expect(run.ended(2))
            run.stop()
            #expect(run.calls.map(\.size) == [3])
            let skipped = run.attempts.first { $0.outcome.result == .skipped }
            #expect(skipped?.path == root.appending("b.txt"))
        }
    }

    @Test func `a file waits for its age and its size`() {
        withTempTree { tree in
            let root = tree.root
            let rule = Rule.sample("r", [root.appending("*")]).with { rule in
                rule.ready = Readiness()
                rule.ready?.minimumAge = .milliseconds(900)
                rule.ready?.minimumSize = 3
            }
            let run = EngineRun([rule])
            TestFile.write(root.appending("small"), [1])
            let start = ContinuousClock.now
            TestFile.write(root.appending("large"), [1, 2, 3])
            #expect(run.ended(1))
            #expect(ContinuousClock.now - start > .milliseconds(850))
            #expect(run.received == ["r created large"])
            TestFile.write(root.appending("small"), [1, 2, 3])
            #expect(run.ended(2))
            run.stop()
            #expect(run.attempts.allSatisfy { $0.attempt == 1 })
        }
    }

    @Test func `a command that is not ready costs no attempt, and one that fails does`() {
        withTempTree { tree in
            let root = tree.root
            let rule = Rule.sample("r", [root.appending("*")], retry: RetryPolicy(attempts: 2, delay: .milliseconds(1)))
                .with { rule in
                    rule.ready = Readiness()
                    rule.ready?.command = [Template(literal: "/bin/true")]
                }
            let asked = Locked(0)
            let run = EngineRun([rule]) { action, _ in
                guard action.name == "exec" else { return Outcome(.succeeded) }
                let count = asked.change { count in
                    count += 1
                    return count
                }
                guard count < 3 else { return Outcome(.succeeded) }
                var outcome = Outcome(.retry, "busy", code: "status-75")
                outcome.process = ProcessDetails(status: count == 1 ? 75 : 1, request: "")
                return outcome
            }
            TestFile.write(root.appending("a"), [1])
            #expect(run.ended(2))
            run.stop()
            #expect(run.attempts.map(\.outcome.result) == [.retry, .succeeded])
            #expect(run.attempts.map(\.attempt) == [1, 2])
            #expect(run.attempts.first?.outcome.message == "'ready': busy")
            #expect(run.calls.count { $0.action == "act" } == 1)
        }
    }

    @Test func `a result of the action is never taken for a refusal`() {
        withTempTree { tree in
            let root = tree.root
            let rule = Rule.sample("r", [root.appending("*")], retry: RetryPolicy(attempts: 3, delay: .zero))
                .with { rule in
                    rule.ready = Readiness()
                    rule.ready?.command = [Template(literal: "/bin/true")]
                }
            let asked = Locked(0)
            let run = EngineRun([rule]) { action, _ in
                guard action.name == "exec" else { return Outcome(.retry, "'ready': I am not") }
                let count = asked.change { count in
                    count += 1
                    return count
                }
                var outcome = Outcome(count == 1 ? .succeeded : .retry, "busy")
                outcome.process = ProcessDetails(status: count == 1 ? 0 : 1, request: "")
                return outcome
            }
            TestFile.write(root.appending("a"), [1])
            #expect(run.ended(2))
            run.stop()
            #expect(
                run.attempts.prefix(2).map(\.outcome.message) == ["'ready': I am not", "'ready', run again: busy"])
        }
    }

    @Test func `a run with once leaves files that are not ready and waits for a minimum age`() throws {
        try withTempTree { tree in
            let root = tree.root
            TestFile.write(root.appending("a.txt"), [1])
            let aged = Rule.sample("aged", [root.appending("*")]).with { rule in
                rule.ready = Readiness()
                rule.ready?.minimumAge = .seconds(1)
            }
            let run = EngineRun([try Self.marked(root), aged], isOnce: true)
            #expect(run.end()?.unfinished == 1)
            #expect(run.received == ["aged created a.txt"])
        }
    }
}
