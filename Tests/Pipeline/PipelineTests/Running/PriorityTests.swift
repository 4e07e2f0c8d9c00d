import Engine
import Monitoring
import PluginProtocol
import Records
import Rules
import Running
import Storage
import System
import Testing
import TestKit

struct PriorityTests {
    @Test func `levels are in the order of priority`() {
        let rules = [("a", 0), ("high", 5), ("low", -5), ("b", 0)].map { name, priority in
            Rule.sample(name, ["/in/*"]).with { $0.priority = priority }
        }
        let lanes = Lanes(limit: 2, rules: rules)
        #expect(lanes.levels(["low", "a", "high", "b"]) == [["high"], ["a", "b"], ["low"]])
        #expect(Lanes(limit: 2, rules: []).levels(["a", "b"]) == [["a", "b"]])
    }

    @Test func `the rules that have used the least time get their share`() {
        let rules = [("a", 0), ("b", 0), ("high", 5)].map { name, priority in
            Rule.sample(name, ["/in/*"]).with { $0.priority = priority }
        }
        var lanes = Lanes(limit: 1, rules: rules)
        var now = ContinuousClock.now
        var served: [String: Int] = [:]
        for number in 0..<100 {
            let names: Set = ["high", "a", "b"]
            let name = lanes.fairTurn(names).first ?? lanes.levels(names).first?.first ?? ""
            let job = LanesTests.job("\(number)", rule: name, path: "/p")
            lanes.start([job], at: now)
            now += .seconds(1)
            lanes.end(job.id, at: now)
            served[name, default: 0] += 1
        }
        // One in ten slots goes to the two rules in turn.
        #expect(served["a"].map { (3...5).contains($0) } == true)
        #expect(served["b"].map { (3...5).contains($0) } == true)
    }

    @Test func `a free slot goes to the rule of the highest priority`() {
        withTempTree { tree in
            let root = tree.root
            let gate = Gate()
            let rules = [
                Rule.sample("low", [root.appending("low/*")], concurrency: 9),
                Rule.sample("high", [root.appending("high/*")], concurrency: 9).with { $0.priority = 1 },
            ]
            TestFile.makeDirectory(root.appending("low"))
            TestFile.makeDirectory(root.appending("high"))
            let run = EngineRun(rules, jobs: 1) { _, _ in
                gate.pass()
                return Outcome(.succeeded)
            }
            TestFile.write(root.appending("low/first"), [1])
            #expect(Deadline.wait { run.calls.count == 1 })
            for name in ["1", "2", "3"] { TestFile.write(root.appending("low/\(name)"), [1]) }
            for name in ["1", "2", "3"] { TestFile.write(root.appending("high/\(name)"), [1]) }
            #expect(Deadline.wait { run.queue.pending == 6 })
            gate.open()
            #expect(run.ended(7))
            #expect(run.calls.map(\.rule) == ["low", "high", "high", "high", "low", "low", "low"])
            run.stop()
        }
    }

    @Test func `a rule with stop keeps its files from later rules, however long it settles`() {
        withTempTree { tree in
            let root = tree.root
            let rules = [
                Rule.sample("all", [root.appending("*")]),
                Rule.sample("pdf", [root.appending("*.pdf")], settle: .milliseconds(600)).with {
                    $0.isLast = true
                    $0.priority = 1
                },
            ]
            let run = EngineRun(rules)
            TestFile.write(root.appending("a.pdf"), [1])
            TestFile.write(root.appending("a.txt"), [1])
            #expect(run.ended(2))
            run.stop()
            #expect(run.received == ["all created a.txt", "pdf created a.pdf"])
        }
    }
}
