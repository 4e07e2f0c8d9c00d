import FileEvents
import Rules
import System
import Testing

/// The effects of the ends of actions on the job of a new file, on the journal and on the ledger.
///
/// ``OutcomeScene`` defines the words.
struct OutcomeCase: Sendable, CustomTestStringConvertible {
    var name: String
    /// How the actions end.
    var when: String
    /// The actions that run: name, event, number of the attempt.
    var calls: String
    /// The reported attempts: state of the job, number, pause, code.
    var reports: String
    /// The states of the jobs at the end.
    var jobs: String
    /// The row of the file at the end.
    var row: String
    var retry = RetryPolicy(attempts: 2, delay: .seconds(10))
    var actions = ["act"]
    var onFailure: [String] = []
    /// Whether the user retries the job in the end.
    var isRetried = false

    var testDescription: String { name.isEmpty ? when : "\(name): \(when)" }

    init(
        _ name: String = "", when: String, calls: String, reports: String, jobs: String, row: String,
        _ change: (inout Self) -> Void = { _ in }
    ) {
        (self.name, self.when, self.calls, self.reports) = (name, when, calls, reports)
        (self.jobs, self.row) = (jobs, row)
        change(&self)
    }

    func check(_ location: SourceLocation = #_sourceLocation) {
        let scene = OutcomeScene { base in
            Rule.sample(
                "r", [base.appending("*")], events: [.created, .modified, .deleted], actions: actions, retry: retry
            ).with { $0.onFailure = onFailure.map { EngineFailureTests.action($0) } }
        }
        scene.run(when, isRetried: isRetried)
        let found = [scene.calls, scene.reports, scene.jobs, scene.row]
        #expect(found == [calls, reports, jobs, row], sourceLocation: location)
    }
}

struct OutcomeTests {
    private static let attempts = [
        OutcomeCase(
            when: "succeed", calls: "act created 1", reports: "succeeded 1", jobs: "succeeded", row: "certain"),
        OutcomeCase(when: "skip", calls: "act created 1", reports: "skipped 1", jobs: "skipped", row: "certain"),
        OutcomeCase(
            when: "refuse", calls: "act created 1", reports: "skipped 1 where", jobs: "skipped", row: "withheld"),
        OutcomeCase(
            when: "delete a + gone", calls: "act created 1", reports: "skipped 1 gone", jobs: "skipped", row: ""),
        OutcomeCase(when: "fail", calls: "act created 1", reports: "failed 1", jobs: "failed", row: "failed"),
        OutcomeCase(
            when: "retry", calls: "act created 1, act created 2", reports: "pending 1 after 10s, succeeded 2",
            jobs: "succeeded", row: "certain"),
        OutcomeCase(
            when: "retry, retry", calls: "act created 1, act created 2", reports: "pending 1 after 10s, failed 2",
            jobs: "failed", row: "failed"),
        OutcomeCase(
            when: "retry, retry", calls: "act created 1, act created 2, act created 3",
            reports: "pending 1 after 10s, pending 2 after 20s, succeeded 3", jobs: "succeeded", row: "certain"
        ) { $0.retry.attempts = 3 },
        OutcomeCase(
            "the action's own pause", when: "retry-soon", calls: "act created 1, act created 2",
            reports: "pending 1 after 3s, succeeded 2", jobs: "succeeded", row: "certain"),
        OutcomeCase(
            "no attempt is used", when: "not-ready, not-ready, not-ready",
            calls: "act created 1, act created 1, act created 1, act created 1",
            reports: "pending 1 after 1s, pending 1 after 1s, pending 1 after 1s, succeeded 1", jobs: "succeeded",
            row: "certain"),
        OutcomeCase(
            "no attempt is used", when: "stop, stop, stop",
            calls: "act created 1, act created 1 interrupted, act created 1 interrupted, act created 1 interrupted",
            reports: "pending 1 after 0s interrupted, pending 1 after 0s interrupted, pending 1 after 0s interrupted, "
                + "succeeded 1", jobs: "succeeded", row: "certain"),
        OutcomeCase(
            when: "timeout", calls: "act created 1, act created 2 interrupted",
            reports: "pending 1 after 10s timed-out, succeeded 2", jobs: "succeeded", row: "certain"),
        OutcomeCase(
            when: "crash", calls: "act created 1, act created 2 interrupted",
            reports: "pending 1 after 10s signal, succeeded 2", jobs: "succeeded", row: "certain"),
        OutcomeCase(
            when: "status", calls: "act created 1, act created 2",
            reports: "pending 1 after 10s status-1, succeeded 2", jobs: "succeeded", row: "certain"),
        OutcomeCase(
            "only temporary failures are retried", when: "status", calls: "act created 1",
            reports: "failed 1 status-1", jobs: "failed", row: "failed"
        ) { $0.retry.on = .temporary },
        OutcomeCase(
            "only temporary failures are retried", when: "retry", calls: "act created 1, act created 2",
            reports: "pending 1 after 10s, succeeded 2", jobs: "succeeded", row: "certain"
        ) { $0.retry.on = .temporary },
        OutcomeCase(
            "retried by the user", when: "fail", calls: "act created 1, act created 1",
            reports: "failed 1, succeeded 1", jobs: "succeeded", row: "certain"
        ) { $0.isRetried = true },
    ]

    @Test(arguments: attempts) func `an outcome ends the job, or leads to another attempt`(_ outcome: OutcomeCase) {
        outcome.check()
    }

    private static let kills = [
        OutcomeCase(
            when: "kill", calls: "act created 1, act created 2 interrupted", reports: "succeeded 2", jobs: "succeeded",
            row: "certain"),
        OutcomeCase(
            "beyond the attempts", when: "kill, kill",
            calls: "act created 1, act created 2 interrupted, act created 3 interrupted", reports: "succeeded 3",
            jobs: "succeeded", row: "certain"
        ) { $0.retry.attempts = 1 },
        OutcomeCase(
            "the last of five beyond the attempts", when: "kill, kill, kill, kill, kill",
            calls: "act created 1" + (2...6).map { ", act created \($0) interrupted" }.joined(),
            reports: "succeeded 6", jobs: "succeeded", row: "certain"
        ) { $0.retry.attempts = 1 },
        OutcomeCase(
            "one too many", when: "kill, kill, kill, kill, kill, kill",
            calls: "act created 1" + (2...6).map { ", act created \($0) interrupted" }.joined(),
            reports: "failed 6 cut-off", jobs: "failed", row: "failed"
        ) { $0.retry.attempts = 1 },
        OutcomeCase(
            "its file was deleted", when: "delete a + kill", calls: "act created 1, act deleted 1 interrupted",
            reports: "skipped 0 superseded, succeeded 1", jobs: "skipped, succeeded", row: ""),
        OutcomeCase(
            "its file was written", when: "write a + kill", calls: "act created 1, act created 2 interrupted",
            reports: "succeeded 2", jobs: "succeeded", row: "certain"),
        OutcomeCase(
            "it may have removed its file", when: "delete a + kill",
            calls: "move created 1, move created 2 interrupted", reports: "succeeded 2", jobs: "succeeded", row: ""
        ) { $0.actions = ["move"] },
    ]

    @Test(arguments: kills) func `after a kill, the attempt is repeated as interrupted`(_ outcome: OutcomeCase) {
        outcome.check()
    }

    private static let changes = [
        OutcomeCase(
            "written by its action", when: "write a + retry", calls: "act created 1, act created 2 interrupted",
            reports: "pending 1 after 10s, succeeded 2", jobs: "succeeded", row: "certain"),
        OutcomeCase(
            "it may have removed its file", when: "delete a + timeout",
            calls: "move created 1, move created 2 interrupted",
            reports: "pending 1 after 10s timed-out, succeeded 2", jobs: "succeeded", row: ""
        ) { $0.actions = ["move"] },
        OutcomeCase(
            "written later", when: "retry & write a", calls: "act created 1, act created 1 interrupted",
            reports: "pending 1 after 10s, skipped 0 superseded, succeeded 1", jobs: "skipped, succeeded",
            row: "certain"),
        OutcomeCase(
            "deleted later", when: "retry & delete a", calls: "act created 1, act deleted 1 interrupted",
            reports: "pending 1 after 10s, skipped 0 superseded, succeeded 1", jobs: "skipped, succeeded", row: ""),
        OutcomeCase(
            "written meanwhile", when: "write a + succeed", calls: "act created 1, act modified 1 interrupted",
            reports: "succeeded 1, succeeded 1", jobs: "succeeded, succeeded", row: "certain"),
        OutcomeCase(
            "a later success ends the failed job", when: "fail & write a", calls: "act created 1, act modified 1",
            reports: "failed 1, succeeded 1", jobs: "skipped, succeeded", row: "certain"),
        OutcomeCase(
            "the deletion fails", when: "succeed & delete a, retry",
            calls: "act created 1, act deleted 1, act deleted 2",
            reports: "succeeded 1, pending 1 after 10s, succeeded 2", jobs: "succeeded, succeeded", row: ""),
    ]

    @Test(arguments: changes) func `a change of the file belongs to the attempt or replaces the job`(
        _ outcome: OutcomeCase
    ) { outcome.check() }

    private static let steps = [
        OutcomeCase(
            when: "succeed, retry", calls: "one created 1, two created 1, two created 2",
            reports: "pending 1 after 10s, succeeded 2", jobs: "succeeded", row: "certain"
        ) { $0.actions = ["one", "two"] },
        OutcomeCase(
            when: "skip", calls: "one created 1", reports: "skipped 1", jobs: "skipped", row: "certain"
        ) { $0.actions = ["one", "two"] },
        OutcomeCase(
            when: "succeed, kill", calls: "one created 1, two created 1, two created 2 interrupted",
            reports: "succeeded 2", jobs: "succeeded", row: "certain"
        ) { $0.actions = ["one", "two"] },
        OutcomeCase(
            "new content starts again", when: "succeed, retry & write a",
            calls: "one created 1, two created 1, one created 1 interrupted, two created 1 interrupted",
            reports: "pending 1 after 10s, skipped 0 superseded, succeeded 1", jobs: "skipped, succeeded",
            row: "certain"
        ) { $0.actions = ["one", "two"] },
        OutcomeCase(
            "the second one changes the file", when: "succeed, write a + retry",
            calls: "one created 1, two created 1, one created 2 interrupted, two created 2 interrupted",
            reports: "pending 1 after 10s, succeeded 2", jobs: "succeeded", row: "certain"
        ) { $0.actions = ["one", "two"] },
        OutcomeCase(
            "the first one removes the file", when: "delete a + succeed, retry",
            calls: "move created 1, two created 1, two created 2", reports: "pending 1 after 10s, succeeded 2",
            jobs: "succeeded", row: ""
        ) { $0.actions = ["move", "two"] },
        OutcomeCase(
            "the first one removes the file", when: "delete a + succeed, kill",
            calls: "move created 1, two created 1, two created 2 interrupted", reports: "succeeded 2",
            jobs: "succeeded", row: ""
        ) { $0.actions = ["move", "two"] },
        OutcomeCase(
            "the first one removes the file, which is there again", when: "delete a + succeed, retry & create a",
            calls:
                "move created 1, two created 1, two created 2, move created 1 interrupted, two created 1 interrupted",
            reports: "pending 1 after 10s, succeeded 2, succeeded 1", jobs: "succeeded, succeeded", row: "certain"
        ) { $0.actions = ["move", "two"] },
    ]

    @Test(arguments: steps) func `finished steps are kept for the same event`(_ outcome: OutcomeCase) {
        outcome.check()
    }

    private static let onFailure = [
        OutcomeCase(
            when: "fail", calls: "act created 1, aside created 1", reports: "failed 1", jobs: "failed", row: "failed"
        ) { $0.onFailure = ["aside"] },
        OutcomeCase(
            when: "retry, retry", calls: "act created 1, act created 2, aside created 2",
            reports: "pending 1 after 10s, failed 2", jobs: "failed", row: "failed"
        ) { $0.onFailure = ["aside"] },
        OutcomeCase(
            when: "retry", calls: "act created 1, act created 2", reports: "pending 1 after 10s, succeeded 2",
            jobs: "succeeded", row: "certain"
        ) { $0.onFailure = ["aside"] },
        OutcomeCase(
            "it is not retried", when: "fail, retry", calls: "act created 1, aside created 1", reports: "failed 1",
            jobs: "failed", row: "failed"
        ) { $0.onFailure = ["aside"] },
        OutcomeCase(
            "it resumes after a kill", when: "fail, succeed, kill",
            calls: "act created 1, aside created 1, tell created 1, tell created 1 interrupted", reports: "failed 1",
            jobs: "failed", row: "failed"
        ) { $0.onFailure = ["aside", "tell"] },
        OutcomeCase(
            "retried by the user", when: "fail", calls: "act created 1, aside created 1, act created 1",
            reports: "failed 1, succeeded 1", jobs: "succeeded", row: "certain"
        ) {
            $0.onFailure = ["aside"]
            $0.isRetried = true
        },
        OutcomeCase(
            "it moves the file away", when: "fail, delete a + succeed", calls: "act created 1, move created 1",
            reports: "failed 1", jobs: "failed", row: ""
        ) { $0.onFailure = ["move"] },
    ]

    @Test(arguments: onFailure) func `on_failure follows the final failure, once`(_ outcome: OutcomeCase) {
        outcome.check()
    }
}
