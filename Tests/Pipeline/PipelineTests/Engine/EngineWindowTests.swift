import Engine
import Monitoring
import Rules
import System
import Testing
import TestKit

struct EngineWindowTests {
    /// A clock that currently shows the given time of day and continues from there.
    static func clock(showing hour: Int64, _ minute: Int64, _ second: Int64) -> LocalClock {
        let now = DiskProbe.now().seconds
        let offset = (hour * 3_600 + minute * 60 + second - now % 86_400)
        return LocalClock { _ in offset }
    }

    static let evening = RunWindow([RunWindow.Span(start: 22 * 60, end: 23 * 60)])

    @Test func `jobs wait outside the hours and run when these start`() {
        withTempTree { tree in
            let root = tree.root
            let rule = Rule.sample("late", [root.appending("*")]).with { $0.window = Self.evening }
            let run = EngineRun([rule], clock: Self.clock(showing: 21, 59, 57))
            let start = ContinuousClock.now
            TestFile.write(root.appending("a"), [1])
            TestFile.write(root.appending("b"), [1])
            #expect(Deadline.wait { run.held.count == 2 || !run.calls.isEmpty })
            // The action receives the newer state of a waiting file.
            TestFile.write(root.appending("a"), [1, 2, 3])
            #expect(run.ended(2))
            #expect(ContinuousClock.now - start > .seconds(1))
            run.stop()
            #expect(run.received.sorted() == ["late created a", "late created b"])
            #expect(run.calls.first { $0.path.lastComponent.elementsEqual("a".utf8) }?.size == 3)
            #expect(run.attempts.allSatisfy { $0.attempt == 1 })
            // The write may also happen just as the hours start.
            let closed = run.notices.filter { $0.hasPrefix("late opens at ") }
            #expect(closed.count == 1 && closed.first?.hasSuffix("22:00") == true, "\(run.notices)")
        }
    }

    @Test func `a run with once does not wait for the hours`() {
        withTempTree { tree in
            let root = tree.root
            TestFile.write(root.appending("a"), [1])
            let rules = [
                Rule.sample("late", [root.appending("*")]).with { $0.window = Self.evening },
                Rule.sample("now", [root.appending("*")]),
            ]
            let run = EngineRun(rules, isOnce: true, clock: Self.clock(showing: 12, 0, 0))
            #expect(run.end()?.unfinished == 1)
            #expect(run.received == ["now created a"])
        }
    }
}
