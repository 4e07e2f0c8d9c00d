import ArgumentParser
import Pipeline
import Rules

/// `alight retry`: retries failed jobs, and makes pending jobs due at once.
struct RetryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Retry failed jobs, or jobs that wait for their next attempt.",
        discussion: """
            A failed job starts again with its first attempt; a pending job, named by its id, becomes due at once. The \
            running instance runs them, else the next one does. If one of several jobs cannot be retried, the others \
            still are.

              alight retry 01JD8Z3T1WQ2V7N0C5M4K9R6XB
              alight retry --rule scans

            \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
            """)

    @OptionGroup var chosen: ChosenJobs
    @OptionGroup var journal: JournalOptions

    func validate() throws {
        try chosen.check("retry")
        try journal.check()
    }

    func run() throws {
        try chosen.ask(
            ChosenJobs.Wish(
                states: [.failed, .pending], refusal: "only failed and pending jobs can be retried",
                done: "will be retried", command: { .retry($0) }),
            journal)
    }
}

/// `alight discard`: discards failed and pending jobs.
struct DiscardCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "discard", abstract: "Discard failed jobs, or pending jobs by their ids.",
        discussion: """
            A failed job is removed from the journal; a pending one becomes skipped. Their files are not changed, and \
            the rule runs again when they change.

            \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
            """)

    @OptionGroup var chosen: ChosenJobs
    @OptionGroup var journal: JournalOptions

    func validate() throws {
        try chosen.check("discard")
        try journal.check()
    }

    func run() throws {
        try chosen.ask(
            ChosenJobs.Wish(
                states: [.failed, .pending], refusal: "only failed and pending jobs can be discarded",
                done: "discarded", takesUnreadable: true, command: { .discard($0) }),
            journal)
    }
}
