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

/// Reloads of rules while watching continues.
@Suite(.timeLimit(.minutes(3)))
struct EngineReloadTests {
    @Test func `a thousand files created during a hundred reloads are each handled once`() {
        withTempTree { tree in
            for name in ["in", "other", "in/deep"] { TestFile.makeDirectory(tree.path(name)) }
            let retained = Rule.sample(
                "kept", [tree.root.appending("in/**")], settle: .milliseconds(40), concurrency: 4)
            let outer = Rule.sample("outer", [tree.root.appending("*/x*")])
            let other = Rule.sample("other", [tree.root.appending("other/*")])
            let slower = retained.with { $0.timeout = .seconds(30) }
            let sets = [[retained], [other, slower], [outer, retained], [slower, other, outer]]
            let run = EngineRun([retained])
            for number in 0..<1000 {
                if number % 10 == 0 { run.reload(sets[number / 10 % 4]) }
                TestFile.write(tree.path(number % 3 == 0 ? "in/deep/\(number)" : "in/\(number)"), "x")
            }
            #expect(Deadline.wait { run.calls.count { $0.rule == "kept" } >= 1000 })
            #expect(run.reloadAndWait([retained]))
            TestFile.write(tree.path("in/last"), "x")
            #expect(Deadline.wait { run.calls.contains { $0.path == tree.path("in/last") } })
            run.stop()
            let paths = run.calls.filter { $0.rule == "kept" }.map(\.path)
            #expect(paths.count == 1001)
            #expect(Set(paths).count == 1001)
            #expect(run.calls.allSatisfy { $0.kind == .created })
        }
    }

    @Test func `a new rule receives new files, not existing ones`() {
        withTempTree { tree in
            for name in ["in", "new"] { TestFile.makeDirectory(tree.path(name)) }
            TestFile.write(tree.path("new/old"), "x")
            let first = Rule.sample("first", [tree.root.appending("in/*")])
            let second = Rule.sample("second", [tree.root.appending("new/*")])
            let run = EngineRun([first])
            #expect(run.reloadAndWait([first, second]))
            TestFile.write(tree.path("new/a"), "x")
            #expect(run.ended(1))
            TestFile.write(tree.path("in/b"), "x")
            #expect(run.ended(2))
            run.stop()
            #expect(run.received == ["second created a", "first created b"])
        }
    }

    @Test func `a rule with new paths receives their events and none of the old paths`() {
        withTempTree { tree in
            for name in ["in", "new"] { TestFile.makeDirectory(tree.path(name)) }
            TestFile.write(tree.path("new/old"), "x")
            let run = EngineRun([Rule.sample("r", [tree.root.appending("in/*")])])
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(1))
            #expect(run.reloadAndWait([Rule.sample("r", [tree.root.appending("new/*")])]))
            TestFile.write(tree.path("in/b"), "x")
            TestFile.write(tree.path("new/c"), "x")
            #expect(run.ended(2))
            #expect(run.reloadAndWait([Rule.sample("r", [tree.root.appending("{in,new}/*")])]))
            TestFile.write(tree.path("in/d"), "x")
            #expect(run.ended(3))
            run.stop()
            #expect(run.received == ["r created a", "r created c", "r created d"])
        }
    }

    @Test func `files that settle during a reload are reported, also to a rule that does not catch up`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let rule = Rule.sample("r", [tree.root.appending("in/*")], settle: .milliseconds(300)).with {
                $0.catchUp = false
            }
            let run = EngineRun([rule])
            for number in 0..<5 {
                TestFile.write(tree.path("in/\(number)"), "x")
                #expect(run.reloadAndWait([rule.with { $0.concurrency = number + 1 }]))
            }
            #expect(run.ended(5))
            run.stop()
            #expect(Set(run.received) == Set((0..<5).map { "r created \($0)" }))
            #expect(run.calls.count == 5)
        }
    }

    @Test func `a running action finishes under its old rule, and a removed rule starts nothing more`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let gate = Gate()
            let rule = Rule.sample("r", [tree.root.appending("in/*")], actions: ["old"])
            let run = EngineRun([rule]) { action, invocation in
                if action.name == "old" { gate.pass() }
                return Outcome(.succeeded)
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { run.calls.count == 1 })
            TestFile.write(tree.path("in/b"), "x")
            #expect(Deadline.wait { run.queue.pending == 1 })
            let other = Rule.sample("other", [tree.root.appending("in/*.txt")])
            #expect(run.reloadAndWait([other]))
            gate.open()
            #expect(run.ended(1))
            let first = run.attempts.first
            #expect(first?.action == "old" && first?.state == .succeeded)
            // The rule is loaded again, under another name, and does what is pending.
            let renamed = Rule.sample("s", [tree.root.appending("in/*")], actions: ["new"]).with {
                $0.formerly = ["r"]
            }
            #expect(run.reloadAndWait([renamed]))
            #expect(run.ended(2))
            #expect(run.calls.last?.action == "new" && run.received.last == "s created b")
            #expect(run.stop()?.unfinished == 0)
            #expect(run.calls.count == 2)
        }
    }

    @Test func `an action that fails after its rule was renamed is retried under the new name`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let gate = Gate()
            let retry = RetryPolicy(attempts: 3, delay: .milliseconds(1))
            let rule = Rule.sample("r", [tree.root.appending("in/*")], retry: retry)
            let run = EngineRun([rule]) { _, invocation in
                guard invocation.job.rule == "r" else { return Outcome(.succeeded) }
                gate.pass()
                return Outcome(.retry, "not now")
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { run.calls.count == 1 })
            let renamed = Rule.sample("s", [tree.root.appending("in/*")], retry: retry).with { $0.formerly = ["r"] }
            #expect(run.reloadAndWait([renamed]))
            gate.open()
            #expect(run.ended(2))
            run.stop()
            #expect(run.calls.map(\.rule) == ["r", "s"])
            #expect(run.calls.map(\.attempt) == [1, 2])
        }
    }

    @Test(arguments: [Outcome(.succeeded), Outcome(.retry, "not now")], [false, true])
    func `a rule that is loaded again while its action runs does not run it a second time`(
        _ outcome: Outcome, sharesFile: Bool
    ) {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let gate = Gate()
            let rule = Rule.sample(
                "r", [tree.root.appending("in/*")], concurrency: 2,
                retry: RetryPolicy(attempts: 3, delay: .milliseconds(1))
            ).with { if sharesFile { $0.actions[0].traits.insert(.sharesFile) } }
            let other = Rule.sample("other", [tree.root.appending("in/*.txt")])
            let run = EngineRun([rule]) { _, invocation in
                let job = invocation.job
                guard job.rule == "r", job.attempt == 1, job.event.snapshot.size == 1 else {
                    return Outcome(.succeeded)
                }
                gate.pass()
                return outcome
            }
            TestFile.write(tree.path("in/a.txt"), "x")
            #expect(Deadline.wait { run.calls.count == 1 })
            #expect(run.reloadAndWait([other]))
            #expect(run.reloadAndWait([rule, other]))
            TestFile.write(tree.path("in/b"), "")
            #expect(Deadline.wait { run.calls.contains { $0.path == tree.path("in/b") } })
            let isDone = outcome.result == .succeeded
            // Events of the file for both rules wait for the action.
            if isDone { TestFile.write(tree.path("in/a.txt"), "xy") }
            #expect(run.calls.count == 2)
            gate.open()
            #expect(Deadline.wait { run.calls.count == (isDone ? 4 : 3) && run.queue.count == 0 })
            #expect(run.stop()?.unfinished == 0)
            let calls = run.calls.filter { $0.path == tree.path("in/a.txt") }
            #expect(calls.count { $0.rule == "other" } == (isDone ? 1 : 0))
            #expect(calls.filter { $0.rule == "r" }.map(\.attempt) == (isDone ? [1, 1] : [1, 2]))
        }
    }

    @Test func `a running action counts for its rule under another name`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let gate = Gate()
            let rule = Rule.sample("r", [tree.root.appending("in/*")])
            let run = EngineRun([rule]) { _, invocation in
                if invocation.job.event.path.bytes.last == UInt8(ascii: "a") { gate.pass() }
                return Outcome(.succeeded)
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { run.calls.count == 1 })
            #expect(run.reloadAndWait([rule.with { ($0.name, $0.formerly) = ("s", ["r"]) }]))
            TestFile.write(tree.path("in/b"), "x")
            // The old name now belongs to another rule.
            let other = Rule.sample("r", [tree.root.appending("other/*")])
            #expect(run.reloadAndWait([rule.with { $0.name = "s" }, other]))
            let before = DiskProbe.now()
            TestFile.write(tree.path("in/a"), "longer")
            #expect(run.isDue(tree.path("in/a"), since: before))
            gate.open()
            #expect(run.ended(3))
            run.stop()
            #expect(run.attempts.map(\.rule) == ["s", "s", "s"])
            #expect(run.received == ["r created a", "s created b", "s modified a"])
            #expect(run.mostAtOnce == 1)
        }
    }

    @Test func `a path cools down after a run that started under another name`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let gate = Gate()
            let rule = Rule.sample("r", [tree.root.appending("in/*")]).with { $0.cooldown = .seconds(3_600) }
            let run = EngineRun([rule]) { _, _ in
                gate.pass()
                return Outcome(.succeeded)
            }
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { run.calls.count == 1 })
            #expect(run.reloadAndWait([rule.with { ($0.name, $0.formerly) = ("s", ["r"]) }]))
            gate.open()
            #expect(run.ended(1))
            TestFile.write(tree.path("in/a"), "longer")
            #expect(
                Deadline.wait {
                    run.due.first?.reason?.hasPrefix("it ran a short time ago; its 'cooldown' ends at ") == true
                })
            run.stop()
            #expect(run.calls.count == 1)
        }
    }

    @Test func `due work for a path that the rule no longer matches is dropped, and retries are skipped`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let gate = Gate()
            let rule = Rule.sample("r", [tree.root.appending("in/*")])
            let run = EngineRun([rule]) { _, invocation in
                if invocation.job.event.path.lastComponent.elementsEqual("failing".utf8) {
                    return Outcome(.retry, retryAfter: .seconds(3))
                }
                gate.pass()
                return Outcome(.succeeded)
            }
            TestFile.write(tree.path("in/failing"), "x")
            #expect(run.ended(1))
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { run.calls.count == 2 })
            for name in ["b", "c.txt"] { TestFile.write(tree.path("in/\(name)"), "x") }
            #expect(Deadline.wait { run.queue.pending == 3 })
            #expect(run.reloadAndWait([Rule.sample("r", [tree.root.appending("in/*.txt")])]))
            gate.open()
            #expect(run.ended(4))
            run.stop()
            #expect(run.received == ["r created failing", "r created a", "r created c.txt"])
            let skipped = run.attempts.filter { $0.state == .skipped }
            #expect(skipped.map(\.path) == [tree.path("in/failing")] && skipped.first?.outcome.code == "path")
        }
    }

    @Test func `invalid rules leave the others in place`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let rule = Rule.sample("r", [tree.root.appending("in/*")])
            let run = EngineRun([rule])
            run.reload([Rule.sample("s", [tree.root.appending("gone/*")]).with { $0.missing = .fail }])
            #expect(Deadline.wait { run.refusals.count == 1 })
            TestFile.write(tree.path("in/a"), "x")
            #expect(run.ended(1))
            run.stop()
            #expect(run.received == ["r created a"])
            #expect(run.reloads == 0)
        }
    }

    @Test func `nested roots are added and removed`() {
        withTempTree { tree in
            for name in ["in", "in/deep", "in/deep/er"] { TestFile.makeDirectory(tree.path(name)) }
            let outer = Rule.sample("outer", [tree.root.appending("in/**")])
            let inner = Rule.sample("inner", [tree.root.appending("in/deep/**")])
            let shallow = Rule.sample("shallow", [tree.root.appending("in/*")])
            let run = EngineRun([outer])
            var count = 0
            for (number, rules) in [[inner], [outer, inner], [outer], [shallow, inner], [shallow], [inner, outer]]
                .enumerated()
            {
                #expect(run.reloadAndWait(rules))
                let names = ["in/\(number)", "in/deep/\(number)", "in/deep/er/\(number)"]
                for name in names { TestFile.write(tree.path(name), "x") }
                for rule in rules {
                    let taken = names.filter { rule.root(matching: tree.path($0)) != nil }
                    count += taken.count
                    for name in taken {
                        #expect(
                            Deadline.wait {
                                run.calls.contains { $0.rule == rule.name && $0.path == tree.path(name) }
                            }, "\(rule.name) \(name)")
                    }
                }
            }
            run.stop()
            let pairs = run.calls.map { "\($0.rule) \($0.path)" }
            #expect(Set(pairs).count == pairs.count)
            #expect(pairs.count >= count)
        }
    }
}
