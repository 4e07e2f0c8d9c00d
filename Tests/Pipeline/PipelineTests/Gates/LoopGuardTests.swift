import Engine
import Gates
import System
import Testing

/// Rules that trigger themselves, with a manual clock.
struct LoopGuardTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Milliseconds between two runs.
        let apart: Int
        let count: Int
        /// The number of the run that trips the guard; nil for none.
        let tripped: Int?
    }

    static let cases = [
        Case(testDescription: "sixty at once are allowed", apart: 0, count: 60, tripped: nil),
        Case(testDescription: "the sixty-first within a minute is not", apart: 0, count: 61, tripped: 61),
        Case(testDescription: "one a second without end is allowed", apart: 1_000, count: 500, tripped: nil),
        Case(testDescription: "a little faster is not", apart: 980, count: 500, tripped: 61),
    ]

    @Test(arguments: cases)
    func `S27 a path is paused after more than sixty runs in a minute`(_ example: Case) {
        var loop = LoopGuard()
        var now = ContinuousClock.now
        var tripped: Int?
        for number in 1...example.count where tripped == nil {
            if loop.count("/a", at: now) { tripped = number }
            now += .milliseconds(example.apart)
        }
        #expect(tripped == example.tripped)
    }

    @Test func `S27 a path is paused for a minute, and then counted from zero`() {
        var loop = LoopGuard()
        let start = ContinuousClock.now
        for _ in 0..<60 { _ = loop.count("/a", at: start) }
        let isTripped = loop.count("/a", at: start)
        #expect(isTripped)
        let ends = ["/a", "/b"].map { loop.end(of: $0, at: start + .seconds(59)) }
        #expect(ends == [start + LoopGuard.period, nil])
        let later = loop.end(of: "/a", at: start + .seconds(60))
        #expect(later == nil)
        let isTrippedAgain = loop.count("/a", at: start + .seconds(60))
        #expect(!isTrippedAgain)
    }

    @Test func `a withdrawn run does not count, and paths that belong together are paused together`() {
        var loop = LoopGuard()
        let now = ContinuousClock.now
        loop.takeBack("/a")
        for _ in 0..<200 {
            let isTripped = loop.count("/a", at: now)
            #expect(!isTripped)
            loop.takeBack("/a")
        }
        loop.suspend(["/a.x", "/a.y"], at: now)
        let ends = ["/a", "/a.x", "/a.y"].map { loop.end(of: $0, at: now) }
        #expect(ends == [nil, now + LoopGuard.period, now + LoopGuard.period])
    }

    @Test func `many paths with one run each use bounded memory`() {
        var loop = LoopGuard()
        var now = ContinuousClock.now
        for number in 0..<20_000 {
            let isTripped = loop.count(PathBytes("/\(number)"), at: now)
            #expect(!isTripped)
            now += .seconds(1)
        }
        #expect(loop.count <= 1_025)
    }
}
