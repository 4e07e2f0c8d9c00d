import Pipeline
import FileEvents
import Testing

/// Rules that feed themselves, with time by hand.
struct BrakeTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Milliseconds between two events.
        let apart: Int
        let count: Int
        /// The number of the event that is one too many; nil for none.
        let tripped: Int?
    }

    static let cases = [
        Case(testDescription: "sixty at once are allowed", apart: 0, count: 60, tripped: nil),
        Case(testDescription: "the sixty-first within a minute is not", apart: 0, count: 61, tripped: 61),
        Case(testDescription: "one a second for ever is allowed", apart: 1_000, count: 500, tripped: nil),
        Case(testDescription: "a little faster is not", apart: 980, count: 500, tripped: 61),
    ]

    @Test(arguments: cases)
    func `S27 brake`(_ example: Case) {
        var brake = Brake()
        var now = ContinuousClock.now
        var tripped: Int?
        for number in 1...example.count where tripped == nil {
            if brake.note(rule: "r", path: "/a", at: now) { tripped = number }
            now += .milliseconds(example.apart)
        }
        #expect(tripped == example.tripped)
    }

    @Test func `S27 the path rests for a minute, for that rule alone, and begins anew`() {
        var brake = Brake()
        let start = ContinuousClock.now
        for _ in 0..<60 { _ = brake.note(rule: "r", path: "/a", at: start) }
        let isTripped = brake.note(rule: "r", path: "/a", at: start)
        #expect(isTripped)
        #expect(brake.deadline == start + Brake.period)
        var held = brake.paths(of: "r", at: start + .seconds(59))
        #expect(held == ["/a"])
        held = brake.paths(of: "other", at: start)
        #expect(held.isEmpty)
        held = brake.paths(of: "r", at: start + .seconds(60))
        #expect(held.isEmpty && brake.deadline == nil)
        let isTrippedAgain = brake.note(rule: "r", path: "/a", at: start + .seconds(60))
        #expect(!isTrippedAgain)
    }

    @Test func `what is taken back does not count, and what belongs to a path rests with it`() {
        var brake = Brake()
        let now = ContinuousClock.now
        brake.takeBack(rule: "r", path: "/a")
        for _ in 0..<200 {
            let isTripped = brake.note(rule: "r", path: "/a", at: now)
            #expect(!isTripped)
            brake.takeBack(rule: "r", path: "/a")
        }
        for _ in 0..<60 { _ = brake.note(rule: "r", path: "/a", at: now) }
        let isTripped = brake.note(rule: "r", path: "/a", at: now)
        #expect(isTripped)
        brake.rest(rule: "r", paths: ["/a.x", "/a.y"], at: now)
        var held = brake.paths(of: "r", at: now + .seconds(59))
        #expect(held == ["/a", "/a.x", "/a.y"])
        held = brake.paths(of: "r", at: now + .seconds(60))
        #expect(held.isEmpty)
    }

    @Test func `many paths that are told once each are not kept for ever`() {
        var brake = Brake()
        var now = ContinuousClock.now
        for number in 0..<20_000 {
            let isTripped = brake.note(rule: "r", path: PathBytes("/\(number)"), at: now)
            #expect(!isTripped)
            now += .seconds(1)
        }
        #expect(brake.count <= 1_025)
    }
}
