import ArgumentParser
import Engine
import FileEvents
import Glibc
import Handling
import Journaling
import Logging
import RuleLoading
import Rules
import Settling

/// `alight apply`: a rule is run for files by hand.
struct ApplyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apply",
        abstract: "Run a rule for files by hand.",
        discussion: """
            Ignores the rule's 'events' and 'existing', and does not wait for files to settle. For a directory, runs \
            the rule for all files below it that match; files that 'where' excludes are listed with the reason. The \
            running instance does the work, with the rules that it has loaded, and Ctrl-C ends only the progress \
            display. Without one, this command does the work, and Ctrl-C leaves the rest to the next 'alight run'.

              alight apply thumbnails ~/Pictures/inbox

            \(ExitStatus.table(of: [.done, .runtimeError, .usage, .rulesInvalid, .nothingMatched, .someFailed]))
            """)

    @Argument(help: ArgumentHelp("The name of the rule.", valueName: "rule"), completion: OfferedWords.rules)
    var rule: String

    @Argument(help: ArgumentHelp("Files, or directories of them.", valueName: "path"), completion: .file())
    var paths: [String]

    @Flag(help: "Include files named here that the rule excludes by its path or its 'where'.")
    var force = false

    @Option(help: ArgumentHelp("The maximum number of actions at once, if no instance is running.", valueName: "n"))
    var jobs = max(4, 2 * Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))

    @OptionGroup var rules: NamedRules
    @OptionGroup var journal: JournalOptions

    func validate() throws {
        guard (1...256).contains(jobs) else { throw ValidationError("'--jobs \(jobs)' is not between 1 and 256") }
        guard !paths.contains("") else { throw ValidationError("a path is empty") }
        try journal.check()
    }

    func run() throws {
        let program = try ProgramSurroundings(try journal.settings(), asRunning: true)
        let loaded = try rules.load(program)
        let rule = try loaded.rule(named: rule)
        if loaded.disabledRules.contains(where: { $0.name == rule.name }) {
            Output.error.write(
                "error: the rule '\(Display.text(rule.name))' is disabled\n    help: set 'enabled: true' (\(rule.place))"
            )
            throw Exit(.rulesInvalid)
        }
        let named = RawArguments.paths(paths).map { path in
            program.loading.currentFolder.resolving(path.bytes).normalized
        }
        let files = AppliedFiles(named, rule: rule, isForced: force)
        for problem in files.problems { Output.error.write("error: \(problem.message)\n    help: \(problem.help)") }
        for (path, reason) in files.left {
            Output.error.write("'where' leaves '\(Display.path(path))': \(Display.text(reason))")
        }
        guard !files.paths.isEmpty else {
            if files.problems.isEmpty {
                Output.error.write("the rule '\(Display.text(rule.name))' takes none of the files there")
            }
            throw Exit(files.problems.isEmpty ? .nothingMatched : .runtimeError)
        }
        let status = try apply(rule, files.paths, program)
        throw Exit(status == .done && !files.problems.isEmpty ? .runtimeError : status)
    }

    private func apply(_ rule: Rule, _ paths: [PathBytes], _ program: ProgramSurroundings) throws -> ExitStatus {
        let file = try journal.file()
        let kept: DiskJournal
        do throws(JournalError) {
            kept = try OpenJournal.file(at: file)
        } catch {
            if case .held = error { return try follow(rule, paths, try journal.open(isFollowed: true)) }
            Output.error.write("error: \(Display.text(error.description))\n    help: \(error.help)")
            throw Exit(.runtimeError)
        }
        program.sayPassedOver()
        return try Applying(rule: rule, paths: paths, jobs: jobs).run(kept, program)
    }

    // MARK: With a running Alight

    private func follow(_ rule: Rule, _ paths: [PathBytes], _ reader: JournalReader) throws -> ExitStatus {
        let progress = ApplyProgress(total: paths.count, width: TerminalText.errorWidth)
        let follower = JobFollower(reader: reader, rule: rule.name, progress: progress, isLeft: StopCount())
        let isSteerable = Signals.forEach { number in
            if number != SIGUSR1, number != SIGUSR2 { _ = follower.isLeft.next() }
        }
        guard isSteerable else { throw Applying.noThread() }
        let result = try Faults.said { () throws(JournalFault) in try follower.run(paths) }
        progress.end()
        let files = Reporter.count(paths.count, "file")
        let done = paths.count - result.open - result.unknown
        if result.unknown == paths.count {
            Output.error.write(
                "error: the running Alight has made no job of it\n"
                    + "    help: see what it said; has it a rule '\(Display.text(rule.name))'?")
            return .runtimeError
        }
        if result.unknown > 0 {
            Output.error.write(
                "\(Reporter.count(result.unknown, "file")) changed, or had a job already, and are handled with another one"
            )
        }
        if result.open > 0 {
            let why =
                result.isAlone
                ? "error: the Alight that had them has ended; the others are in the journal, for its next start"
                : "not followed any more; the jobs go on"
            Output.error.write("\(done) of \(files) are done; \(why)")
            return result.isAlone ? .runtimeError : .done
        }
        Output.error.write("\(files): \(done - result.failed) done, \(result.failed) failed")
        return result.failed > 0 ? .someFailed : .done
    }
}
