import ActionAPI
import Engine
import FileEvents
import Gates
import Glibc
import Monitoring
import PluginProtocol
import Rules
import Running
import Storage
import System
import Testing
import TestKit

/// Rewrites, a rule's own writes, and the events of roots.
@Suite(.timeLimit(.minutes(15)))
struct EngineContentTests {
    // MARK: The same content

    @Test func `S02 a rewrite with the same bytes is skipped when the rule asks for it`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let run = EngineRun([.sample("r", [tree.path("in/*")]).with { $0.sameContent = .ignore }])
            let path = tree.path("in/a")
            for (number, content) in ["same", "same", "size", "size", "same"].enumerated() {
                TestFile.write(path, content)
                #expect(run.ended(number + 1))
            }
            run.stop()
            #expect(run.received == ["r created a", "r modified a", "r modified a"])
            #expect(run.attempts.map(\.state) == [.succeeded, .skipped, .succeeded, .skipped, .succeeded])
            #expect(run.attempts[1].outcome.code == "same-content")
        }
    }

    @Test func `S02 content that was not handled is not compared`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let policy = RetryPolicy(attempts: 3, delay: .milliseconds(20), maximumDelay: .milliseconds(20))
            let rule = Rule.sample("r", [tree.path("in/*")], retry: policy).with { $0.sameContent = .ignore }
            let run = EngineRun([rule]) { _, invocation in
                if invocation.job.event.kind == .created { return Outcome(.failed) }
                return Outcome(invocation.job.attempt < 3 ? .retry : .succeeded)
            }
            let path = tree.path("in/a")
            TestFile.write(path, "x")
            #expect(run.ended(1))
            TestFile.write(path, "x")
            #expect(run.ended(4))
            #expect(run.attempts.map(\.state) == [.failed, .pending, .pending, .succeeded])
            TestFile.write(path, "x")
            #expect(run.ended(5))
            run.stop()
            #expect(run.attempts.last?.state == .skipped)
        }
    }

    @Test func `S02 the content that was handled is remembered under a new name`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let rule = Rule.sample("r", [tree.path("in/*")], events: [.created, .modified, .moved])
                .with { $0.sameContent = .ignore }
            let run = EngineRun([rule])
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(1))
            EngineEventTests.move(tree.path("in/a"), tree.path("in/b"))
            #expect(run.ended(2))
            TestFile.write(tree.path("in/b"), "x")
            #expect(run.ended(3))
            run.stop()
            #expect(run.received == ["r created a", "r moved b from a"])
            #expect(run.attempts.last?.outcome.code == "same-content")
        }
    }

    // MARK: Own writes

    @Test func `S27 with report changes to the file while its action runs are reported`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let rule = Rule.sample("r", [tree.path("in/*")], isProgram: true).with { $0.ownWrites = .report }
            let run = EngineRun([rule]) { _, invocation in
                let path = invocation.job.event.path
                let size = invocation.job.event.snapshot.size
                if size < 4 { TestFile.write(path, Array("x".utf8), appending: true) }
                return Outcome(.succeeded)
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(4))
            run.stop()
            #expect(run.calls.map(\.size) == [1, 2, 3, 4])
        }
    }

    @Test func `S27 outputs that the action names are known even with report`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let rule = Rule.sample("r", [tree.path("in/*")], isProgram: true).with { $0.ownWrites = .report }
            let run = EngineRun([rule]) { _, invocation in
                let path = invocation.job.event.path
                if path.lastComponent.elementsEqual("last".utf8) { return Outcome(.succeeded) }
                let output = path.parent.appending("out")
                TestFile.write(output, "made")
                TestFile.write(path, "changed")
                return Outcome(.succeeded, outputs: [output, path])
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(1))
            TestFile.write(tree.path("in/last"), "x")
            #expect(run.ended(2))
            run.stop()
            #expect(run.received == ["r created a", "r created last"])
        }
    }

    @Test func `S27 a rule that triggers itself ends with a failed job that gives the reason`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let rule = Rule.sample("r", [tree.path("in/*")], settle: .zero, isProgram: true)
                .with { $0.ownWrites = .report }
            let run = EngineRun([rule]) { _, invocation in
                if invocation.job.event.path.lastComponent.elementsEqual("a".utf8) {
                    TestFile.write(invocation.job.event.path, [1], appending: true)
                }
                return Outcome(.succeeded)
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { !run.loopDetected.isEmpty })
            #expect(run.loopDetected == [tree.path("in/a")])
            #expect(Deadline.wait { run.counts.failed == 1 && run.queue.running == 0 })
            // Other paths of the rule continue.
            TestFile.write(tree.path("in/b"), "x")
            #expect(Deadline.wait { run.received.contains("r created b") })
            // A change by another process waits until the pause is over.
            TestFile.write(tree.path("in/a"), "somebody else")
            #expect(run.isDue(tree.path("in/a")))
            let summary = run.stop()
            #expect(run.calls.count { $0.path == tree.path("in/a") } == LoopGuard.limit)
            #expect(summary?.unfinished == 1)
        }
    }

    @Test func `S27 two rules that trigger each other end with a failed job of one of them`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("a"))
            TestFile.makeDirectory(tree.path("b"))
            let rules = ["a", "b"].map { name in
                Rule.sample(name, [tree.path("\(name)/*")], settle: .zero)
            }
            let run = EngineRun(rules) { _, invocation in
                let path = invocation.job.event.path
                let other = invocation.job.rule == "a" ? "b" : "a"
                TestFile.write(path.parent.parent.appending("\(other)/x"), [1], appending: true)
                return Outcome(.succeeded)
            }
            TestFile.write(tree.path("a/x"), "x")
            #expect(Deadline.wait { run.counts.failed == 1 })
            #expect(Deadline.wait { run.queue.running == 0 && run.queue.pending == 0 })
            run.stop()
            #expect(run.calls.count { $0.path == tree.path("a/x") } == LoopGuard.limit)
            #expect(run.calls.count { $0.path == tree.path("b/x") } == LoopGuard.limit)
        }
    }

    // MARK: Moves

    @Test func `S04 a file that changed and moved before the change was reported is moved, then modified`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/b"), "x")
            let gate = Gate()
            let run = EngineRun([.sample("r", [tree.path("in/*")], events: EngineEventTests.all)]) { _, _ in
                gate.pass()
                return Outcome(.succeeded)
            }
            TestFile.write(tree.path("in/first"), "x")
            #expect(Deadline.wait { run.calls.count == 1 })
            TestFile.write(tree.path("in/b"), "longer")
            #expect(Deadline.wait { run.queue.pending == 1 })
            EngineEventTests.move(tree.path("in/b"), tree.path("in/c"))
            #expect(run.isDue(tree.path("in/c")))
            gate.open()
            #expect(run.ended(3))
            run.stop()
            #expect(run.received == ["r created first", "r moved c from b", "r modified c"])
            #expect(run.calls.last?.size == 6)
        }
    }

    // MARK: Roots

    @Test func `S19 a root that is to be created exists before the first watch`() {
        withTempTree { tree in
            let rule = Rule.sample("r", [tree.path("deep/er/in/*")]).with { $0.missing = .create }
            let run = EngineRun([rule])
            TestFile.write(tree.path("deep/er/in/a"), "x")
            #expect(run.ended(1))
            run.stop()
            #expect(run.received == ["r created a"])
        }
    }

    @Test func `S19 S20 a root that is missing, or cannot be created, fails the start with its path`() {
        withTempTree { tree in
            TestFile.write(tree.path("file"), "x")
            let root = tree.root
            func problem(_ glob: String, _ missing: MissingRoot) -> (any Error)? {
                let rule = Rule.sample("r", [root.appending(glob)]).with { $0.missing = missing }
                let engine = Engine(
                    ruleset: Ruleset([rule]), options: EngineOptions(jobs: 1, isOnce: true),
                    store: DiskStore.inMemory(),
                    perform: { _, invocations in invocations.map { _ in Outcome(.succeeded) } },
                    log: .silent, report: { _ in })
                do throws(StartError) {
                    return try engine.run().error
                } catch {
                    return error
                }
            }
            let missing = problem("absent/*", .fail)
            #expect(
                "\(missing.map { "\($0)" } ?? "")"
                    == "rules.yaml:1: rule 'r' needs the directory '\(root)/absent', which does not exist")
            let refused = problem("file/in/*", .create)
            #expect(
                "\(refused.map { "\($0)" } ?? "")"
                    == "rules.yaml:1: rule 'r' cannot create its directory '\(root)/file/in': Not a directory")
            for word in MissingRoot.allCases {
                #expect("\(problem("file/*", word).map { "\($0)" } ?? "")".contains("it is not a directory"))
            }
        }
    }

    @Test func `S19 events of a missing root reach the action`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let run = EngineRun([.sample("r", [tree.path("in/*")], events: [.rootGone, .rootBack])])
            EngineEventTests.move(tree.path("in"), tree.path("away"))
            #expect(run.ended(1))
            EngineEventTests.move(tree.path("away"), tree.path("in"))
            #expect(run.ended(2))
            run.stop()
            #expect(run.received == ["r root_gone in", "r root_back in"])
            #expect(run.attempts.allSatisfy { $0.state == .succeeded })
        }
    }
}
