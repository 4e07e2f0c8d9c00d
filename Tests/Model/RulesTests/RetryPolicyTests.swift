import PluginProtocol
import Rules
import Testing
import TestKit

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
    func `the delay doubles up to its maximum`(_ example: Case) {
        let policy = RetryPolicy()
        #expect(policy.pause(after: example.attempt, random: 1) == example.longest)
        #expect(policy.pause(after: example.attempt, random: 0) == example.longest / 2)
    }

    @Test func `a random number gives a delay between half and all of the back-off`() {
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
    func `a delay of zero stays zero however often it doubles`() {
        let policy = RetryPolicy(attempts: .max, delay: .zero, maximumDelay: .seconds(1))
        #expect(policy.pause(after: .max, random: 1) == .zero)
    }

    @Test func `a delay above the maximum is reduced to it`() {
        let policy = RetryPolicy(attempts: 2, delay: .seconds(100), maximumDelay: .seconds(1))
        #expect(policy.pause(after: 1, random: 1) == .seconds(1))
    }
}

/// The outcomes that finish a job.
struct FinalOutcomeTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var outcome: Outcome
        var attempt = 1
        var on = RetryPolicy.Failures.any
        var isFinal: Bool
        var failsJob: Bool
    }

    static let cases = [
        Case(testDescription: "succeeded", outcome: Outcome(.succeeded), isFinal: true, failsJob: false),
        Case(testDescription: "skipped", outcome: Outcome(.skipped), isFinal: true, failsJob: false),
        Case(testDescription: "failed", outcome: Outcome(.failed), isFinal: true, failsJob: true),
        Case(testDescription: "not ready", outcome: Outcome(.notReady), attempt: 99, isFinal: false, failsJob: false),
        Case(testDescription: "the first retry", outcome: Outcome(.retry), isFinal: false, failsJob: false),
        Case(testDescription: "the last retry", outcome: Outcome(.retry), attempt: 3, isFinal: true, failsJob: true),
        Case(testDescription: "beyond the last", outcome: Outcome(.retry), attempt: 4, isFinal: true, failsJob: true),
        Case(
            testDescription: "interrupted at the last", outcome: .interrupted("x"), attempt: 3, isFinal: false,
            failsJob: false),
        Case(testDescription: "a timeout", outcome: .timedOut("x"), isFinal: false, failsJob: false),
        Case(
            testDescription: "a timeout where only temporary failures are retried", outcome: .timedOut("x"),
            on: .temporary, isFinal: true, failsJob: true),
        Case(
            testDescription: "temporary, where only that counts", outcome: Outcome(.retry), on: .temporary,
            isFinal: false, failsJob: false),
    ]

    @Test(arguments: cases)
    func `an outcome is final or retried as the policy specifies`(_ example: Case) {
        var policy = RetryPolicy(attempts: 3)
        policy.on = example.on
        #expect(policy.isFinal(example.outcome, attempt: example.attempt) == example.isFinal)
        #expect(policy.failsJob(example.outcome, attempt: example.attempt) == example.failsJob)
    }

    @Test func `a file that is not ready is checked again after a quarter of its age`() {
        let policy = RetryPolicy(maximumDelay: .seconds(600))
        func pause(_ age: Duration, quiet: Duration = .seconds(2)) -> Duration {
            policy.pause(whileNotReady: quiet, age: age)
        }
        #expect(pause(.seconds(1)) == .seconds(2))
        #expect(pause(.seconds(40)) == .seconds(10))
        #expect(pause(.seconds(86_400)) == .seconds(600))
        #expect(pause(.seconds(-9), quiet: .zero) == .seconds(1))
        #expect(pause(.seconds(86_400), quiet: .seconds(900)) == .seconds(900))
    }
}
