import Engine
import FileEvents
import PluginProtocol
import Rules
import TestKit
import Testing

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
            let name = lanes.owed(names).first ?? lanes.levels(names).first?.first ?? ""
            let job = LanesTests.job("\(number)", rule: name, path: "/p")
            lanes.start([job], at: now)
            now += .seconds(1)
            lanes.end(job.id, at: now)
            served[name, default: 0] += 1
        }
        // One of ten is owed, by turns to the two.
        #expect(served["a"].map { (3...5).contains($0) } == true)
        #expect(served["b"].map { (3...5).contains($0) } == true)
    }
}
