import ActionAPI
import ArgumentParser
import Configuration
import ControlAPI
import Engine
import FileActions
import FileObserving
import Foundation
import Glibc
import Monitoring
import Plugins
import Records
import Rules
import Running
import Storage
import System

/// `alight run`: watches files and runs the actions of rules, in the foreground.
struct RunCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "run", "Watch files and run the actions of rules until stopped.",
        exits: [.done, .runtimeError, .usage, .rulesInvalid, .nothingMatched, .someFailed],
        discussion: """
            Prints 'ready: watching N directories for M rules' on standard error once all watches are set up, then \
            one line per action on standard output.

            SIGTERM and SIGINT finish the accepted jobs and exit with status 0. A second signal stops at once, with \
            status 1 if that interrupted an action. SIGHUP reloads the rules, and so does a change of their files; if \
            they contain errors, the rules loaded before stay in effect. When the terminal of the program is closed, \
            SIGHUP stops it, unless it was started with nohup. SIGUSR1 rescans all files. Under systemd, Alight \
            reports when it is ready, and logs to the systemd journal.

            With --dry-run, prints each action that would run, with its placeholders expanded, and continues as if it \
            had succeeded. Nothing is run, written or sent, and the journal is only read.
            """)

    @OptionGroup var rules: RulesOptions

    @OptionGroup var journal: JournalOptions

    @OptionGroup var control: ControlOptions

    @Flag(help: "Handle existing files that are new or changed since the last run, then exit.")
    var once = false

    @Flag(help: "Print the actions that would run, and change nothing.")
    var dryRun = false

    @Flag(help: "Reload the rules only on SIGHUP, not when their files change.")
    var noAutoReload = false

    @OptionGroup var running: RunningOptions

    func validate() throws { try control.check(isOnce: once, isDry: dryRun) }

    // Long because it is the order of the start and of the end: each step needs the ones before.
    func run() throws {
        let settings = try journal.load(running, control).settings
        let program = try CommandContext(settings, startsPlugins: !dryRun)
        let locations = once ? [] : try rules.locations(program)
        let seen = RulesFiles(at: locations, program)
        let loaded = try rules.load(program)
        let format = settings.logFormat?.value ?? .text
        // The output of a dry run is for the user, not for a log.
        let reporter = Reporter(
            format: dryRun && format == .journal ? .text : format, minimum: settings.logLevel?.value ?? .info)
        if !once, !dryRun { keepFromBlocking(reporter) }
        defer {
            Output.standard.flush()
            Output.error.flush()
        }
        do {
            program.reportSkippedDirectory(reporter)
            let service = once ? nil : ServiceManager(ProcessInfo.processInfo.environment)
            let dry = dryRun ? DryRun(runner: program.runner, reporter: reporter) : nil
            guard !loaded.ruleset.rules.isEmpty else {
                let which = rules.tags.isEmpty ? "all rules" : "all rules that have the tag"
                reporter.emit(.error, "\(which) are disabled", help: "set 'enabled: true' in one of them")
                throw Exit(.rulesInvalid)
            }
            if let dry {
                dry.start(loaded.ruleset)
                program.reportUndescribed(reporter)
            }
            if !dryRun { try program.requireScratch(for: loaded.ruleset.rules) }
            try settings.checkJournalDirectory()
            let retained = try open(settings.journalLocation(), keeping: settings.retention, reporter)
            var options = EngineOptions(
                jobs: settings.actionLimit, isOnce: once, ignored: retained.names(below: loaded.ruleset.roots))
            options.extraJobs = settings.extraActions
            options.isDry = dryRun
            options.hasWork = { [runner = program.runner] rule, action, job in
                var job = job
                job.isInterrupted = true
                let invocation = rule.invocation(
                    for: job, now: DiskProbe.now(), timeout: .seconds(10), count: 1, stop: StopSignal(),
                    log: reporter.logger)
                return runner.isDone(action, invocation)
            }
            options.undo = Undoing.undo
            if !dryRun { options.signOfLife = service?.watchdog.map { $0 / 4 } }
            if !once, !noAutoReload { options.watchesBeside = seen.watchCount }
            let feed = once || dryRun ? nil : EventFeed(now: DiskProbe.now())
            let metrics = feed.map { _ in RunningMetrics() }
            let perform: @Sendable (Action, [Invocation]) async -> [Outcome] =
                if let dry { { dry.perform($0, $1) } } else {
                    { [runner = program.runner] in await runner.run($0, $1) }
                }
            let engine = Engine(
                ruleset: loaded.ruleset, options: options, store: retained.journal,
                perform: perform, log: reporter.logger,
                metrics: metrics.map { EngineMetrics($0.registry) },
                report: { report in
                    feed?.take(report)
                    dry?.report(report) ?? reporter.report(report)
                    service?.record(report)
                })
            if !dryRun { LeftoverSearch(loaded.ruleset.rules).start() }
            let stops = StopCount()
            let reloading = try reloading(engine, locations, seen, program, retained, reporter, service, dry)
            let terminal = Terminal()
            try Signals.forEach(reloads: true) { number in
                if number == SIGUSR1 {
                    engine.rescan()
                } else if number == SIGHUP, !terminal.hasHungUp {
                    if once { return }
                    reloading?.request()
                } else if stops.next() == 1 {
                    // With --once or --dry-run, writes wait for the reader, and the engine may be blocked in one.
                    if once || dryRun { Output.hurry() }
                    engine.stop()
                } else {
                    Output.hurry()
                    engine.stopAtOnce()
                }
            }
            let controlling = try feed.map { feed in
                let operations = RunningOperations(engine, journal: retained.file, reloading)
                return try RunningControl(
                    control.addresses(settings), settings, operations, metrics, feed, reporter,
                    note: { [journal = retained.journal] in journal.note(control: $0) })
            }
            let summary: EngineSummary
            do {
                defer {
                    // From now on, another instance may use the socket.
                    retained.journal.note(control: nil)
                    controlling?.end()
                }
                defer { program.host.close(isAtOnce: stops.count > 1) }
                summary = try engine.run()
            }
            if let dry {
                dry.end(summary, waiting: retained.journal.openJobs().adding(summary.due.map(\.entry)))
                throw Exit(status(summary))
            }
            // A write that failed earlier and has succeeded since is not an error.
            let failure = retained.journal.close(at: DiskProbe.now())
            // The error that stopped the run has already been reported.
            if let failure, failure.mayPass || failure != summary.journalError { reporter.emit(failure) }
            reporter.end(summary, isRetained: retained.file != nil && failure == nil)
            throw Exit(failure == nil ? status(summary) : .runtimeError)
        } catch {
            guard Problem(error) != nil else { throw error }
            reporter.emit(error)
            throw Exit(.runtimeError)
        }
    }

    /// Makes output never block the engine, and reports lines that are dropped because the output is not read.
    private func keepFromBlocking(_ reporter: Reporter) {
        for (output, name) in [(Output.standard, "standard output"), (Output.error, "standard error")] {
            output.neverBlock { dropped in
                if let dropped {
                    reporter.emit(.warning, "\(Reporter.count(dropped, "line")) for \(name) were dropped")
                } else {
                    reporter.emit(
                        .warning, "\(name) is not being read: further lines are dropped",
                        help: "read it, or redirect it to a file or to /dev/null")
                }
            }
        }
    }

    /// Creates the reloading of the rules; returns nil with `--once`, which reads them only once.
    ///
    /// - Throws: An `ObservationError` when no thread is available for it.
    private func reloading(
        _ engine: Engine, _ locations: [PathBytes], _ seen: RulesFiles, _ program: CommandContext,
        _ retained: OpenJournal, _ reporter: Reporter, _ service: ServiceManager?, _ dry: DryRun?
    ) throws -> RuleReloading? {
        if once { return nil }
        let reloading = RuleReloading(locations, tags: Set(rules.tags), seen: seen, program, reporter, service) {
            loaded in
            dry?.reportRoots(of: loaded.ruleset)
            engine.reload(loaded.ruleset, ignored: retained.names(below: loaded.ruleset.roots))
        }
        try reloading.start()
        guard !noAutoReload else { return reloading }
        do throws(ObservationError) {
            try reloading.watchFiles()
        } catch {
            reporter.emit(
                .warning, "cannot watch the rules for changes: \(Display.text(error.description))",
                help: "send SIGHUP after a change")
        }
        return reloading
    }

    /// Opens the journal, and reports interrupted and unreadable jobs.
    ///
    /// - Throws: A `JournalError` when it cannot be used.
    private func open(
        _ location: JournalLocation, keeping retention: JournalRetention, _ reporter: Reporter
    ) throws -> OpenJournal {
        let retained = try OpenJournal(location, keeping: retention, isDry: dryRun)
        let journal = retained.journal
        if dryRun, let file = retained.file, let holder = DiskStore.holder(of: file) {
            let process = holder > 0 ? " (process \(holder))" : ""
            reporter.emit(
                .notice, "another instance uses this journal\(process); its running jobs are listed as well")
        } else if journal.interrupted > 0 {
            let jobs = Reporter.count(journal.interrupted, "job")
            reporter.emit(.notice, "\(jobs) interrupted by the last exit, to be run again")
        }
        for directory in retained.kept {
            reporter.emit(
                .warning,
                "the file of an interrupted job is gone; what its program left is in '\(Display.path(directory))'",
                help: "see 'alight show \(PathBytes(directory.lastComponent))'")
        }
        if let first = journal.unreadable.first {
            let jobs = Reporter.count(journal.unreadable.count, "job")
            reporter.emit(
                .error,
                "\(jobs) cannot be read; stored as failed: \(Display.text(first.description))"
                    + (journal.unreadable.count > 1 ? ", …" : ""),
                help: "see 'alight jobs --state failed'; 'alight apply' runs a rule for a file")
        }
        return retained
    }

    private func status(_ summary: EngineSummary) -> ExitStatus {
        if summary.error != nil || (summary.isForced && summary.unfinished > 0) { return .runtimeError }
        guard once else { return .done }
        if summary.failed > 0 { return .someFailed }
        return summary.isIdle ? .nothingMatched : .done
    }
}
