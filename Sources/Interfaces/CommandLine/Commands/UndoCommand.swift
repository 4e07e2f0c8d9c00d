import ArgumentParser
import Configuration
import FileActions
import Pipeline
import Rules
import Storage
import System

/// `alight undo`: undoes what jobs did to files.
struct UndoCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "undo", abstract: "Undo what jobs did to files that have not changed since.",
        discussion: """
            Moves files back that were moved, renamed or put into the trash, and removes copies and links, the last \
            change first. Never replaces an existing file or touches one that has changed since; each change that \
            cannot be undone is listed with the reason. Rules do not receive events for it. The running instance does \
            the work, else this command.

              alight undo 01JD8Z3T1WQ2V7N0C5M4K9R6XB
              alight undo --since 10m --rule sort --dry-run

            \(ExitStatus.table(of: [.done, .runtimeError, .usage, .nothingMatched, .someFailed]))
            """)

    @Argument(
        help: ArgumentHelp("Ids of jobs, or prefixes of them.", valueName: "id"),
        completion: OfferedWords.jobs([.succeeded]))
    var ids: [String] = []

    @Option(help: ArgumentHelp("All changes since then: a duration such as 10m, a date, or a time.", valueName: "time"))
    var since: String?

    @Option(
        help: ArgumentHelp("All changes by this rule; with --since, since then.", valueName: "name"),
        completion: OfferedWords.rules)
    var rule: String?

    @Flag(help: "Print what would be undone, and change nothing.")
    var dryRun = false

    @OptionGroup var rules: NamedRules
    @OptionGroup var journal: JournalOptions

    func validate() throws {
        let isByKind = since != nil || rule != nil
        guard isByKind || !ids.isEmpty else {
            throw ValidationError("name jobs by their ids, or write 'alight undo --since 10m' or '--rule NAME'")
        }
        guard !isByKind || ids.isEmpty else {
            throw ValidationError(
                "ids cannot be combined with '\(since == nil ? "--rule" : "--since")'; leave out one of them")
        }
        try JobName.validate(ids)
        try journal.check()
    }

    func run() throws {
        Signals.endUsually()
        let start = try since.map { try TimeText.since($0, now: DiskProbe.now()) }
        let reader = try journal.open()
        var hasFailed = false
        let chosen = try find(reader, since: start, &hasFailed)
        guard !chosen.isEmpty else {
            if !hasFailed { Output.error.write("there is nothing to undo") }
            throw Exit(hasFailed ? .runtimeError : .nothingMatched)
        }
        if dryRun {
            for retained in chosen where !preview(retained) { hasFailed = true }
            if try !reportOutputs(of: chosen, reader) { hasFailed = true }
            throw Exit(hasFailed ? .someFailed : .done)
        }
        var jobs: [JobID] = []
        for retained in chosen where !jobs.contains(retained.job) { jobs.append(retained.job) }
        try JournalOwner.find(reader.path, isBrief: true).carryOut(.undo(jobs), rules: ruleset)
        let later = try JournalReader(reader.path)
        let results = try jobs.flatMap { try later.changes(of: $0) }
        for before in chosen {
            let after = results.first {
                $0.started == before.started && $0.job == before.job && $0.number == before.number
            }
            if !report(after ?? before, before: before) { hasFailed = true }
        }
        if try !reportOutputs(of: chosen, reader) { hasFailed = true }
        throw Exit(hasFailed ? .someFailed : .done)
    }

    /// Returns the attempts to undo, most recent first; prints errors about jobs that were named.
    private func find(
        _ reader: JournalReader, since: Timestamp?, _ hasFailed: inout Bool
    ) throws(StorageError) -> [RecordedChanges] {
        var chosen: [RecordedChanges] = []
        if ids.isEmpty {
            for job in try reader.jobsWithChanges(since: since, rule: rule) {
                chosen += try reader.changes(of: job).filter { !$0.isUndone }
            }
            return chosen
        }
        var seen: Set<JobID> = []
        for name in ids {
            switch try JobName.find(name, in: reader) {
            case .success(let job):
                guard seen.insert(job.id).inserted else { continue }
                let retained = try reader.changes(of: job.id)
                let open = retained.filter { !$0.isUndone }
                chosen += open
                guard open.isEmpty else { continue }
                hasFailed = true
                if let undo = retained.first?.undo {
                    Output.error.write("error: job \(job.id) was undone at \(TimeText.long(undo.time))")
                } else {
                    let state = job.state == .running || job.state == .pending ? " and \(job.state.sentence)" : ""
                    Output.error.write("error: job \(job.id) has done nothing that can be undone\(state)")
                }
            case .failure(let problem):
                hasFailed = true
                problem.say()
            }
        }
        return chosen.sorted { ($0.started, $0.job.description) > ($1.started, $1.job.description) }
    }

    /// Returns the rules that must not receive events for the undo; without any, prints a warning.
    private func ruleset() -> Ruleset {
        guard
            let program = try? CommandContext(try journal.settings(), startsPlugins: false, asRunning: true)
        else { return Ruleset([]) }
        let loaded = program.rulesInSilence(RawArguments.paths(rules.rules))
        guard let loaded, !loaded.hasErrors else {
            Output.error.write(
                "warning: no rules could be loaded; the next 'alight run' may report restored files to other rules "
                    + "that match them\n" + "    help: name them with --rules")
            return Ruleset([])
        }
        return loaded.ruleset
    }

    // MARK: Output

    /// Prints what would be done; returns false if some of it cannot be undone.
    private func preview(_ retained: RecordedChanges) -> Bool {
        var undoing = Undoing(isDry: true)
        return report(retained, before: retained, done: { "would \($0.wordsOfUndo)" }) {
            undoing.undo($1, of: retained.event)
        }
    }

    /// Prints what was done; returns false if some of it could not be undone.
    private func report(_ after: RecordedChanges, before: RecordedChanges) -> Bool {
        report(after, before: before, done: { "undone: \($0.words)" }) { index, _ in
            guard let undo = after.undo else { return "it was not done" }
            return undo.reasons[index]
        }
    }

    /// Prints each change that had not been undone before, the last one first.
    ///
    /// - Parameters:
    ///   - retained: The changes.
    ///   - before: The changes before the undo.
    ///   - done: Returns the text for a change that can be undone.
    ///   - reason: Returns the reason why a change cannot be undone; nil if it can.
    /// - Returns: Whether all of them can be undone.
    private func report(
        _ retained: RecordedChanges, before: RecordedChanges, done: (FileChange) -> String,
        reason: (Int, FileChange) -> String?
    ) -> Bool {
        var isWhole = true
        for (index, change) in retained.changes.enumerated().reversed() {
            if let undo = before.undo, undo.reasons[index] == nil { continue }
            if let reason = reason(index, change) {
                isWhole = false
                Output.error.write("error: job \(retained.job) cannot \(change.wordsOfUndo): \(Display.text(reason))")
            } else {
                Output.standard.write("\(retained.job) \(done(change))")
            }
        }
        return isWhole
    }

    /// Prints the remaining outputs of the jobs, which cannot be undone; returns false if there are any.
    private func reportOutputs(of attempts: [RecordedChanges], _ reader: JournalReader) throws -> Bool {
        var isWhole = true
        for (job, attempts) in Dictionary(grouping: attempts, by: \.job).sorted(by: {
            $0.key.description < $1.key.description
        }) {
            let details = try reader.details(of: job)
            let touched = attempts.flatMap(\.changes).flatMap(\.paths)
            for output in details?.job.outputs ?? []
            where !touched.contains(where: { output.isInside($0) }) && KernelFileSystem().stat(output) != .absent {
                isWhole = false
                Output.error.write(
                    "error: job \(job) keeps '\(Display.path(output))': its action did not report how to undo that "
                        + "output; undo it by hand")
            }
        }
        return isWhole
    }
}
