import ArgumentParser
import Records
import Rules
import Running
import Storage
import System

/// `alight retry`: retries failed jobs, and makes pending jobs due at once.
struct RetryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "retry", "Retry failed jobs, or jobs that wait for their next attempt.",
        discussion: """
            A failed job starts again with its first attempt; a pending job, named by its id, becomes due at once. The \
            running instance runs them, else the next one does. If one of several jobs cannot be retried, the others \
            still are.

              alight retry 01JD8Z3T1WQ2V7N0C5M4K9R6XB
              alight retry --rule scans
            """)

    @OptionGroup var chosen: ChosenJobs

    func validate() throws { try chosen.check("retry") }

    func run() throws {
        try chosen.request("retried", done: "will be retried", runsAgain: true) { .retry($0) }
    }
}

/// `alight discard`: discards failed and pending jobs.
struct DiscardCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "discard", "Discard failed jobs, or pending jobs by their ids.",
        discussion: """
            A failed job is removed from the journal; a pending one becomes skipped. Their files are not changed, and \
            the rule runs again when they change.
            """)

    @OptionGroup var chosen: ChosenJobs

    func validate() throws { try chosen.check("discard") }

    func run() throws {
        try chosen.request("discarded", done: "discarded", runsAgain: false) { .discard($0) }
    }
}

/// The jobs that `retry` and `discard` operate on.
struct ChosenJobs: ParsableArguments {
    @Argument(
        help: .value("id", "Ids of jobs, or prefixes of them."), completion: OfferedWords.jobs([.failed, .pending]))
    var ids: [String] = []

    @Flag(help: "All failed jobs; with --rule, those of that rule.")
    var all = false

    @Option(help: .value("name", "All failed jobs of this rule."), completion: OfferedWords.rules)
    var rule: String?

    @OptionGroup var journal: JournalOptions

    /// Validates the arguments.
    ///
    /// - Throws: `ValidationError` when no jobs are named, or when they are named in more than one way.
    func check(_ command: String) throws {
        try JobName.validate(ids, option: all ? "--all" : rule.map { _ in "--rule" }, "\(command) --all")
        try journal.check()
    }

    /// Requests an operation for each job, and prints the result or the reason for a refusal.
    ///
    /// - Parameters:
    ///   - verb: The participle in the reason printed for a job that is neither failed nor pending.
    ///   - done: The text printed for a job for which the operation was requested.
    ///   - runsAgain: Whether the operation runs the jobs again: then their events must be readable, and files that a
    ///     later job has processed are left out unless their jobs are named.
    ///   - command: Returns the operation.
    /// - Throws: `Exit`, always, with the exit status of the program.
    func request(
        _ verb: String, done: String, runsAgain: Bool, _ command: ([JobID]) -> JobCommand
    ) throws -> Never {
        Signals.useDefaultActions()
        let reader = try journal.open()
        var hasFailed = false
        var jobs: [JobEntry] = []
        var seen: Set<JobID> = []
        func add(_ job: JobEntry?) {
            if let job, !Self.refuse(job, verb, runsAgain) {
                if seen.insert(job.id).inserted { jobs.append(job) }
            } else {
                hasFailed = true
            }
        }
        for name in ids { add(try JobName.find(name, in: reader)) }
        if ids.isEmpty {
            // Oldest first, so that they are retried in the order in which they were created.
            let failed = try reader.jobs(JournalQuery(states: [.failed], rule: rule)).jobs
            for job in failed.sorted(by: { $0.id.description < $1.id.description })
            where !runsAgain || job.supersededBy == nil {
                add(job)
            }
        }
        if !jobs.isEmpty {
            try JournalOwner.find(reader.path, isBrief: true).carryOut(command(jobs.map(\.id)))
            Output.standard.write(jobs.map { "\($0.id) \(done): \($0.summary)" }.joined(separator: "\n"))
        } else if !hasFailed {
            let of = rule.map { " of the rule '\(Display.text($0))'" } ?? ""
            Output.error.write("there are no failed jobs\(of)")
        }
        throw Exit(hasFailed ? .runtimeError : .done)
    }

    /// Prints an error and returns true if the operation does not accept a job.
    private static func refuse(_ job: JobEntry, _ verb: String, _ runsAgain: Bool) -> Bool {
        if job.isUnreadable, runsAgain {
            Output.error.write(
                "error: job \(job.id) cannot be read: its event is not known\n"
                    + "    help: 'alight apply' runs its rule for the file, 'alight discard' removes the job")
        } else if job.state != .failed, job.state != .pending {
            let sentence = "\(job.id) \(job.state.sentence)"
            Output.error.write("error: job \(sentence): only failed and pending jobs can be \(verb)")
        } else {
            return false
        }
        return true
    }
}

extension JobEntry {
    /// The rule and the path: `thumbnails: /in/cat.jpg`.
    var summary: String { "\(Display.text(rule)): \(Display.path(path))" }
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

    /// Validates the arguments of a command that takes names of jobs, or options that select them.
    ///
    /// - Parameters:
    ///   - names: The names.
    ///   - option: The option that was given instead of names.
    ///   - alternative: The command with an option instead of names, without `alight`.
    /// - Throws: `ValidationError` unless one of both was given, and for names that are too short.
    static func validate(_ names: [String], option: String?, _ alternative: String) throws {
        if let option, !names.isEmpty {
            throw ValidationError("ids cannot be combined with '\(option)'; leave out one of them")
        }
        if option == nil, names.isEmpty {
            throw ValidationError("name jobs by their ids, or write 'alight \(alternative)' or '--rule NAME'")
        }
        try validate(names)
    }

    /// Validates names before a journal is opened.
    ///
    /// - Throws: `ValidationError` for names that are too short.
    static func validate(_ names: [String]) throws {
        for name in names where name.utf8.count < least {
            throw ValidationError("'\(Display.text(name))' is not a job id; give at least \(least) characters of one")
        }
    }

    /// Returns the only job whose id has this prefix; nil after printing an error if none or several have it.
    ///
    /// Case does not matter; ids contain only uppercase letters.
    static func find(_ name: String, in reader: JournalReader) throws(StorageError) -> JobEntry? {
        let id = name.uppercased()
        let isID = id.utf8.allSatisfy { $0.isDigit || $0.isUppercaseLetter }
        let found = isID ? try reader.jobs(beginningWith: id, limit: mostCandidates + 1) : []
        if let job = found.count == 1 ? found[0] : found.first(where: { $0.id.description == id }) { return job }
        let shown = Display.text(name)
        var message = "there is no job '\(shown)' in '\(Display.path(reader.path))'\n    help: `alight jobs` lists them"
        if !found.isEmpty {
            let candidates = found.prefix(mostCandidates).map { job in
                "\n    \(job.id)  \(job.state.rawValue)  \(Display.text(job.rule)): \(job.event) \(Display.path(job.path))"
            }
            let rest = found.count > mostCandidates ? "\n    …" : ""
            message = "'\(shown)' matches the ids of several jobs:\(candidates.joined())\(rest)"
            message += "\n    help: give more of the id"
        }
        Output.error.write("error: \(message)")
        return nil
    }
}
