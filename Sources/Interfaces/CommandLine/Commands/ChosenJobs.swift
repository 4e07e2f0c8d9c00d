import ArgumentParser
import Glibc
import Pipeline
import Rules
import Storage

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

    /// An operation on jobs, with its messages.
    struct Wish {
        /// The states in which a job named by its id is accepted.
        var states: Set<JobState>
        /// The reason printed for a job in another state.
        var refusal: String
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
    }

    /// Requests the operation for each job, and prints the result or the reason for a refusal.
    ///
    /// - Throws: `Exit`, always, with the exit status of the program.
    func ask(_ wish: Wish, _ journal: JournalOptions) throws {
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
            case .success(let job) where wish.states.contains(job.state):
                if seen.insert(job.id).inserted { jobs.append(job) }
            case .success(let job):
                hasFailed = true
                Output.error.write("error: job \(job.id) \(job.state.sentence): \(wish.refusal)")
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
