import Engine
import FileEvents
import Monitoring
import Rules
import Storage
import System
import Testing
import TestKit

/// `where` with an age that files reach later.
struct EngineAgeTests {
    private static func rule(_ root: PathBytes, _ condition: Condition) -> Rule {
        Rule.sample("r", [root.appending("in/*")]).with { $0.condition = condition }
    }

    private static func age(_ relation: Comparisons<Duration>.Relation, _ age: Duration) -> Condition {
        .age(Comparisons([Comparisons.Bound(relation, age)], text: ""))
    }

    @Test func `a file is handled once when it is old enough`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let run = EngineRun([Self.rule(tree.root, Self.age(.more, .seconds(1)))])
            let before = ContinuousClock.now
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { run.held.first?.reason?.hasPrefix("'where' matches at ") == true })
            #expect(run.calls.isEmpty)
            #expect(run.ended(1))
            run.stop()
            #expect(run.received == ["r created a"] && run.attempts.first?.state == .succeeded)
            #expect(run.calls.first.map { $0.start - before > .milliseconds(950) } == true)
        }
    }

    @Test func `a change restarts the wait, and a condition that can never hold is not waited for`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let small = Condition.size(Comparisons([Comparisons.Bound(.less, 3)], text: ""))
            let run = EngineRun([Self.rule(tree.root, .all([Self.age(.atLeast, .seconds(2)), small]))])
            TestFile.write(tree.path("in/large"), "xyz")
            TestFile.write(tree.path("in/a"), "x")
            #expect(Deadline.wait { run.held.map(\.path) == [tree.path("in/a")] })
            let before = ContinuousClock.now
            TestFile.write(tree.path("in/a"), "xy")
            #expect(run.ended(1))
            run.stop()
            #expect(run.received == ["r created a"] && run.calls.first?.size == 2)
            #expect(run.calls.first.map { $0.start - before > .seconds(1.9) } == true)
        }
    }

    @Test func `a run with once leaves the file to the next run`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            TestFile.write(tree.path("in/a"), "x")
            let rule = Self.rule(tree.root, Self.age(.more, .seconds(2)))
            let store = DiskStore.inMemory()
            let first = EngineRun([rule], isOnce: true, on: store)
            #expect(first.end()?.unfinished == 1 && first.calls.isEmpty)
            let second = EngineRun([rule], on: store)
            #expect(second.ended(1))
            second.stop()
            #expect(second.received == ["r created a"])
        }
    }
}
