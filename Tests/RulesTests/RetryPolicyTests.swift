import Rules
import TestKit
import Testing

struct RetryPolicyTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var attempt: Int
        var longest: Duration
        var testDescription: String { "after attempt \(attempt) at most \(longest)" }
    }

    static let cases = [
        Case(attempt: 1, longest: .seconds(10)),
        Case(attempt: 2, longest: .seconds(20)),
        Case(attempt: 3, longest: .seconds(40)),
        Case(attempt: 6, longest: .seconds(320)),
        Case(attempt: 7, longest: .seconds(640)),
        Case(attempt: 8, longest: .seconds(900)),
        Case(attempt: 1_000_000_000, longest: .seconds(900)),
        Case(attempt: 0, longest: .seconds(10)),
        Case(attempt: -1, longest: .seconds(10)),
    ]

    @Test(arguments: cases)
    func `the pause doubles up to its bound`(_ example: Case) {
        let policy = RetryPolicy()
        #expect(policy.pause(after: example.attempt, random: 1) == example.longest)
        #expect(policy.pause(after: example.attempt, random: 0) == example.longest / 2)
    }

    @Test func `any random number gives a pause between half and all`() {
        var generator = SeededGenerator(seed: 1)
        let policy = RetryPolicy(attempts: 9, delay: .milliseconds(37), maximumDelay: .seconds(3))
        for _ in 0..<1_000 {
            let attempt = Int.random(in: 1...20, using: &generator)
            let pause = policy.pause(after: attempt, random: Double.random(in: 0...1, using: &generator))
            let longest = min(.milliseconds(37) * (1 << min(attempt - 1, 20)), .seconds(3))
            #expect(pause >= longest / 2 && pause <= longest)
        }
        #expect(policy.pause(after: 1, random: -5) == .milliseconds(37) / 2)
        #expect(policy.pause(after: 1, random: 5) == .milliseconds(37))
    }

    @Test(.timeLimit(.minutes(15)))
    func `a delay of nothing stays nothing however often it doubles`() {
        let policy = RetryPolicy(attempts: .max, delay: .zero, maximumDelay: .seconds(1))
        #expect(policy.pause(after: .max, random: 1) == .zero)
    }

    @Test func `a delay above the bound is the bound`() {
        let policy = RetryPolicy(attempts: 2, delay: .seconds(100), maximumDelay: .seconds(1))
        #expect(policy.pause(after: 1, random: 1) == .seconds(1))
    }
}
