import ArgumentParser
import Glibc
import Pipeline
import Rules
import Storage
import System

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

    func validate() throws { try chosen.check("retry") }

    func run() throws {
        try chosen.ask(ChosenJobs.Wish(verb: "retried", done: "will be retried", command: { .retry($0) }))
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

    func validate() throws { try chosen.check("discard") }

    func run() throws {
        try chosen.ask(
            ChosenJobs.Wish(verb: "discarded", done: "discarded", takesUnreadable: true, command: { .discard($0) }))
    }
}

/// The jobs that `retry` and `discard` operate on.
struct ChosenJobs: ParsableArguments {
    @Argument(
        help: ArgumentHelp("Ids of jobs, or prefixes of them.", valueName: "id"),
        completion: OfferedWords.jobs([.failed, .pending]))
    var ids: [String] = []

    @Flag(help: "All failed jobs; with --rule, those of that rule.")
    var all = false

    @Option(help: ArgumentHelp("All failed jobs of this rule.", valueName: "name"), completion: OfferedWords.rules)
    var rule: String?

    @OptionGroup var journal: JournalOptions

    /// An operation on jobs, with its messages.
    struct Wish {
        /// The participle in the reason printed for a job that is neither failed nor pending.
        var verb: String
        /// The text printed for a job on which the operation was requested.
        var done: String
        /// Whether the operation accepts a job of which only the journal row is readable.
        var takesUnreadable = false
        var command: ([JobID]) -> JobCommand
    }

    /// Validates the arguments.
    ///
    /// - Throws: `ValidationError` when no jobs are named, or when they are named in more than one way.
    func check(_ command: String) throws {
        let isByKind = all || rule != nil
        guard isByKind || !ids.isEmpty else {
            throw ValidationError("name jobs by their ids, or write 'alight \(command) --all' or '--rule NAME'")
        }
        guard !isByKind || ids.isEmpty else {
            throw ValidationError("ids cannot be combined with '\(all ? "--all" : "--rule")'; leave out one of them")
        }
        try JobName.validate(ids)
        try journal.check()
    }

    /// Requests the operation for each job, and prints the result or the reason for a refusal.
    ///
    /// - Throws: `Exit`, always, with the exit status of the program.
    func ask(_ wish: Wish) throws {
        Signals.endUsually()
        let reader = try journal.open()
        var hasFailed = false
        let jobs = try find(wish, reader, &hasFailed)
        if jobs.isEmpty {
            if ids.isEmpty, !hasFailed {
                let of = rule.map { " of the rule '\(Display.text($0))'" } ?? ""
                Output.error.write("there are no failed jobs\(of)")
            }
            throw Exit(hasFailed ? .runtimeError : .done)
        }
        try JournalOwner.find(reader.path, isBrief: true).carryOut(wish.command(jobs.map(\.id)))
        let lines = jobs.map { "\($0.id) \(wish.done): \(Display.text($0.rule)): \(Display.path($0.path))" }
        Output.standard.write(lines.joined(separator: "\n"))
        throw Exit(hasFailed ? .runtimeError : .done)
    }

    /// Returns the jobs that the operation accepts, without duplicates.
    ///
    /// Errors for the others have been printed.
    private func find(
        _ wish: Wish, _ reader: JournalReader, _ hasFailed: inout Bool
    ) throws(StorageError) -> [JobEntry] {
        if ids.isEmpty {
            // Oldest first, so that they are retried in the order in which they were created.
            let jobs = try reader.jobs(JournalQuery(states: [.failed], rule: rule)).jobs
            return jobs.sorted { $0.id.description < $1.id.description }.filter { !refuse($0, wish, &hasFailed) }
        }
        var jobs: [JobEntry] = []
        var seen: Set<JobID> = []
        for name in ids {
            switch try JobName.find(name, in: reader) {
            case .success(let job) where refuse(job, wish, &hasFailed): break
            case .success(let job) where job.state == .failed || job.state == .pending:
                if seen.insert(job.id).inserted { jobs.append(job) }
            case .success(let job):
                hasFailed = true
                Output.error.write(
                    "error: job \(job.id) \(job.state.sentence): only failed and pending jobs can be \(wish.verb)")
            case .failure(let problem):
                hasFailed = true
                problem.say()
            }
        }
        return jobs
    }

    /// Prints an error and returns true if only the row of a job is readable and the operation needs more.
    private func refuse(_ job: JobEntry, _ wish: Wish, _ hasFailed: inout Bool) -> Bool {
        guard job.isUnreadable, !wish.takesUnreadable else { return false }
        hasFailed = true
        Output.error.write(
            "error: job \(job.id) cannot be read: its event is not known\n"
                + "    help: 'alight apply' runs its rule for the file, 'alight discard' removes the job")
        return true
    }
}

extension JobState {
    /// The predicate of a sentence about a job in this state.
    var sentence: String {
        switch self {
        case .pending: "is pending"
        case .running: "is running"
        case .succeeded: "has succeeded"
        case .skipped: "was skipped"
        case .failed: "has failed"
        }
    }
}

/// Names of jobs: ids, and prefixes of ids.
enum JobName {
    /// The minimum length of a prefix; fewer characters of the time in an id are too ambiguous.
    private static let least = 4
    /// The maximum number of jobs to list when a prefix is ambiguous.
    private static let mostCandidates = 10

    /// An error for a name that does not identify a job.
    struct Problem: Error {
        var message: String
        var help: String

        func say() { Output.error.write("error: \(message)\n    help: \(help)") }
    }

    /// Validates names before a journal is opened.
    ///
    /// - Throws: `ValidationError` for names that are too short.
    static func validate(_ names: [String]) throws {
        for name in names where name.utf8.count < least {
            throw ValidationError("'\(Display.text(name))' is not a job id; give at least \(least) characters of one")
        }
    }

    /// Returns the only job whose id has this prefix.
    ///
    /// Case does not matter; ids contain only uppercase letters.
    static func find(_ name: String, in reader: JournalReader) throws(StorageError) -> Result<JobEntry, Problem> {
        let id = name.uppercased()
        let isID = id.utf8.allSatisfy { $0.isDigit || $0.isUppercaseLetter }
        let found = isID ? try reader.jobs(beginningWith: id, limit: mostCandidates + 1) : []
        if found.count == 1 { return .success(found[0]) }
        if let exact = found.first(where: { $0.id.description == id }) { return .success(exact) }
        let shown = Display.text(name)
        guard !found.isEmpty else {
            let message = "there is no job '\(shown)' in '\(Display.path(reader.path))'"
            return .failure(Problem(message: message, help: "`alight jobs` lists them"))
        }
        let candidates = found.prefix(mostCandidates).map { job in
            "\n    \(job.id)  \(job.state.rawValue)  \(Display.text(job.rule)): \(job.event) \(Display.path(job.path))"
        }
        let rest = found.count > mostCandidates ? "\n    …" : ""
        return .failure(
            Problem(
                message: "'\(shown)' matches the ids of several jobs:\(candidates.joined())\(rest)",
                help: "give more of the id"))
    }
}
