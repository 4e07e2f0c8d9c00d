import ArgumentParser
import Journaling
import Rules

/// `alight retry`: dead letters are tried again.
struct RetryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Try dead letters again as if they were new, or jobs that wait for their next attempt.",
        discussion: """
            A running Alight takes them up at once, else the next one does. A job that is pending is named by its id, \
            and is due at once. Where one of several jobs can't be tried again, the others are all the same.

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
                states: [.dead, .pending], refusal: "only dead letters and pending jobs are tried again",
                done: "will be tried again",
                request: { .retry($0) }),
            journal)
    }
}

/// `alight discard`: dead letters, and jobs that are pending, are forgotten.
struct DiscardCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "discard",
        abstract: "Forget dead letters, or by their ids jobs that are pending.",
        discussion: """
            Of a dead letter nothing is left in the journal, and a pending job is kept as one that was skipped. Their \
            files are not touched, and the rule is told when they change again.

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
                states: [.dead, .pending], refusal: "only dead letters and pending jobs are discarded",
                done: "discarded", takesUnreadable: true, request: { .discard($0) }),
            journal)
    }
}
