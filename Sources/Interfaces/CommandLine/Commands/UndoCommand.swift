import ArgumentParser
import Configuration
import FileActions
import Records
import Rules
import Running
import Storage
import System

/// `alight undo`: undoes what jobs did to files.
struct UndoCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "undo", "Undo what jobs did to files that have not changed since.",
        exits: [.done, .runtimeError, .usage, .nothingMatched, .someFailed],
        discussion: """
            Moves files back that were moved, renamed or put into the trash, and removes copies and links, the last \
            change first. Never replaces an existing file or touches one that has changed since; each change that \
            cannot be undone is listed with the reason. Rules do not receive events for it. The running instance does \
            the work, else this command.

              alight undo 01JD8Z3T1WQ2V7N0C5M4K9R6XB
              alight undo --since 10m --rule sort --dry-run
            """)

    @Argument(help: .value("id", "Ids of jobs, or prefixes of them."), completion: OfferedWords.jobs([.succeeded]))
    var ids: [String] = []

    @Option(help: .value("time", "All changes since then: a duration such as 10m, a date, or a time."))
    var since: String?

    @Option(help: .value("name", "All changes by this rule; with --since, since then."), completion: OfferedWords.rules)
    var rule: String?

    @Flag(help: "Print what would be undone, and change nothing.")
    var dryRun = false

    @OptionGroup var rules: NamedRules
    @OptionGroup var journal: JournalOptions

    func validate() throws {
        let option = since != nil ? "--since" : rule.map { _ in "--rule" }
        try JobName.validate(ids, option: option, "undo --since 10m")
        try journal.check()
    }

    func run() throws {
        Signals.useDefaultActions()
        let start = try since.map { text in try parsed("--since") { try TimeText.parse(text, now: DiskProbe.now()) } }
        let reader = try journal.open()
        var hasFailed = false
        let chosen = try find(reader, since: start, &hasFailed)
        guard !chosen.isEmpty else {
            if !hasFailed { Output.error.write("there is nothing to undo") }
            throw Exit(hasFailed ? .runtimeError : .nothingMatched)
        }
        let results = dryRun ? nil : try undo(chosen, reader)
        for before in chosen {
            let after = results?.first {
                $0.started == before.started && $0.job == before.job && $0.number == before.number
            }
            if !report(before, after: dryRun ? nil : after ?? before) { hasFailed = true }
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
            guard let job = try JobName.find(name, in: reader) else {
                hasFailed = true
                continue
            }
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
        }
        return chosen.sorted { ($0.started, $0.job.description) > ($1.started, $1.job.description) }
    }

    /// Undoes the changes, and returns their records afterwards.
    private func undo(_ chosen: [RecordedChanges], _ reader: JournalReader) throws -> [RecordedChanges] {
        var jobs: [JobID] = []
        for retained in chosen where !jobs.contains(retained.job) { jobs.append(retained.job) }
        try JournalOwner.find(reader.path, isBrief: true).carryOut(.undo(jobs), rules: ruleset)
        let later = try JournalReader(reader.path)
        return try jobs.flatMap { try later.changes(of: $0) }
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

    /// Prints each change that had not been undone before, the last one first.
    ///
    /// - Parameters:
    ///   - before: The changes before the undo.
    ///   - after: The same changes after it; nil to print what would be undone.
    /// - Returns: Whether all of them can be undone.
    private func report(_ before: RecordedChanges, after: RecordedChanges?) -> Bool {
        var undoing = Undoing(isDry: true)
        var isWhole = true
        for (index, change) in (after ?? before).changes.enumerated().reversed() {
            if let undo = before.undo, undo.reasons[index] == nil { continue }
            let reason: String? =
                if let after {
                    after.undo.map { $0.reasons[index] } ?? "it was not done"
                } else {
                    undoing.undo(change, of: before.event)
                }
            if let reason {
                isWhole = false
                Output.error.write("error: job \(before.job) cannot \(change.wordsOfUndo): \(Display.text(reason))")
            } else {
                let done = after == nil ? "would \(change.wordsOfUndo)" : "undone: \(change.words)"
                Output.standard.write("\(before.job) \(done)")
            }
        }
        return isWhole
    }

    /// Prints the remaining outputs of the jobs, which cannot be undone; returns false if there are any.
    private func reportOutputs(of attempts: [RecordedChanges], _ reader: JournalReader) throws -> Bool {
        var isWhole = true
        let jobs = Dictionary(grouping: attempts, by: \.job).sorted { $0.key.description < $1.key.description }
        for (job, attempts) in jobs {
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
