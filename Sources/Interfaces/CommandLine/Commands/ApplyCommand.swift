import ActionAPI
import ArgumentParser
import Configuration
import FileObserving
import Glibc
import Pipeline
import Rules
import Storage
import System

/// `alight apply`: runs a rule for files by hand.
struct ApplyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apply", abstract: "Run a rule for files by hand.",
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
        let program = try CommandContext(try journal.settings(), asRunning: true)
        let loaded = try rules.load(program)
        let rule = try loaded.rule(named: rule)
        if loaded.disabledRules.contains(where: { $0.name == rule.name }) {
            throw Exit(
                .rulesInvalid, error: "the rule '\(rule.name)' is disabled",
                help: "set 'enabled: true' (\(rule.location))"
            )
        }
        let named = RawArguments.paths(paths).map(program.path)
        let files = AppliedFiles(named, rule: rule, isForced: force)
        for problem in files.problems { problem.say() }
        for (path, reason) in files.left {
            Output.error.write("'where' does not match '\(Display.path(path))': \(Display.text(reason))")
        }
        guard !files.paths.isEmpty else {
            if files.problems.isEmpty {
                Output.error.write("the rule '\(Display.text(rule.name))' matches none of these files")
            }
            throw Exit(files.problems.isEmpty ? .nothingMatched : .runtimeError)
        }
        let status = try apply(rule, files.paths, program)
        throw Exit(status == .done && !files.problems.isEmpty ? .runtimeError : status)
    }

    private func apply(_ rule: Rule, _ paths: [PathBytes], _ program: CommandContext) throws -> ExitStatus {
        switch try JournalOwner.find(try journal.file(), isBrief: false) {
        case .instance(let client): return try ask(client, rule, paths)
        case .command(let retained):
            program.sayPassedOver()
            return try Applying(rule: rule, paths: paths, jobs: jobs).run(retained, program)
        }
    }

    // MARK: With a running instance

    /// The interval between two reads of the journal, in microseconds.
    private static let pause: useconds_t = 100_000

    /// Asks the running instance to run the rule, and shows the progress until the jobs have finished or the user
    /// interrupts the command.
    private func ask(_ client: ControlClient, _ rule: Rule, _ paths: [PathBytes]) throws -> ExitStatus {
        let progress = ApplyProgress(total: paths.count, width: TerminalText.errorWidth)
        let interrupts = StopCount()
        guard Signals.forEach({ if $0 != SIGUSR1 { _ = interrupts.next() } }) else { throw ObservationError.noThread }
        let command = JobCommand.apply(
            paths.map { JobRequest(id: JobID(now: DiskProbe.now()), rule: rule.name, path: $0) })
        var open = Array(zip(try client.ask(command), paths))
        let reader = try journal.open(isFollowed: true)
        var (failed, gone) = (0, 0)
        var isAlone = false
        while !open.isEmpty, interrupts.count == 0, !isAlone {
            // Checked before the states are read, so that the last writes of the instance are seen.
            isAlone = DiskStore.holder(of: reader.path) == nil
            let (still, failures, vanished) = try unfinished(open, rule.name, reader)
            failed += failures.count
            gone += vanished
            let ended = paths.count - still.count - progress.counts.done
            for job in failures {
                progress.say(
                    "\(job.id) \(Display.text(job.rule)): \(Display.path(job.path)): failed: "
                        + Display.text(job.message ?? ""))
            }
            open = still
            progress.add(done: ended, failed: failures.count)
            if !open.isEmpty { usleep(Self.pause) }
        }
        progress.end()
        let files = Reporter.count(paths.count, "file")
        if gone > 0 {
            Output.error.write(
                "\(Reporter.count(gone, "file")) changed, or already had a job, and are handled by another job")
        }
        guard open.isEmpty else {
            let why =
                isAlone
                ? "error: the running instance has stopped; the other files are in the journal, for its next start"
                : "no longer following; the jobs continue"
            Output.error.write("\(paths.count - open.count - gone) of \(files) are done; \(why)")
            return isAlone ? .runtimeError : .done
        }
        Output.error.write("\(files): \(paths.count - failed - gone) done, \(failed) failed")
        return failed > 0 ? .someFailed : .done
    }

    /// Returns the jobs that have not finished, the jobs that have failed, and the number of jobs no longer in the
    /// journal.
    private func unfinished(
        _ jobs: [(JobID, PathBytes)], _ rule: String, _ reader: JournalReader
    ) throws(StorageError) -> (still: [(JobID, PathBytes)], failures: [JobEntry], gone: Int) {
        let states = try reader.states(of: jobs.map(\.0))
        var still: [(JobID, PathBytes)] = []
        var failures: [JobEntry] = []
        var gone = 0
        for (id, path) in jobs {
            switch states[id] {
            case .pending, .running: still.append((id, path))
            case .succeeded, .skipped: break
            case .failed: if let job = try reader.details(of: id)?.job { failures.append(job) }
            case nil:
                // The job was merged into a pending job of the same path; follow that one.
                if let heir = try reader.newest(rule: rule, path: path), heir != id {
                    still.append((heir, path))
                } else {
                    gone += 1
                }
            }
        }
        return (still, failures, gone)
    }
}

/// The files to which a rule is applied by hand.
struct AppliedFiles {
    /// The files in the order in which they were named, sorted by name within directories, without duplicates.
    private(set) var paths: [PathBytes] = []
    /// The errors about the named paths.
    private(set) var problems: [HandlerProblem] = []
    /// The files that the rule's conditions exclude, with the reason.
    private(set) var left: [(path: PathBytes, reason: String)] = []
    private var seen: Set<PathBytes> = []
    private let rule: Rule

    /// Collects the files.
    ///
    /// - Parameters:
    ///   - named: Absolute, normalized paths.
    ///   - rule: The rule.
    ///   - isForced: Whether the rule need not match paths that are named themselves.
    init(_ named: [PathBytes], rule: Rule, isForced: Bool) {
        self.rule = rule
        for path in named {
            let known = PathExplanation.alias(of: path, below: rule.roots) ?? path
            switch KernelFileSystem().stat(path) {
            case .absent: add(problem: "'\(Display.path(path))' does not exist", help: "check the spelling of the path")
            case .unreadable(let errno):
                add(
                    problem: "cannot access '\(Display.path(path))': \(SystemError(errno: errno))",
                    help: "run it as the user that Alight runs as, or as root")
            case .present(let snapshot):
                let isTaken = rule.root(taking: known) != nil && rule.types.contains(snapshot.type)
                if isTaken, isForced {
                    add(known)
                } else if isTaken {
                    addIfAdmitted(known, snapshot)
                } else if snapshot.type == .directory, !isForced || !rule.types.contains(.directory) {
                    addAll(below: known)
                } else if isForced {
                    add(known)
                } else {
                    add(
                        problem: "the rule '\(rule.name)' does not match '\(Display.path(path))'",
                        help: "'alight explain' shows why; --force runs it anyway")
                }
            }
        }
    }

    private mutating func add(problem message: String, help: String) {
        problems.append(HandlerProblem(message: message, help: help))
    }

    /// Adds a file unless the rule's conditions exclude it.
    ///
    /// May read the file's content, which can take long.
    private mutating func addIfAdmitted(_ path: PathBytes, _ snapshot: Snapshot) {
        guard let condition = rule.condition, let root = rule.root(taking: path) else { return add(path) }
        switch condition.answerNow(path, root: root, snapshot: snapshot) {
        case .fails(let reason), .unknown(let reason): if seen.insert(path).inserted { left.append((path, reason)) }
        case .holds, .needsContent: add(path)
        }
    }

    private mutating func add(_ path: PathBytes) { if seen.insert(path).inserted { paths.append(path) } }

    /// Adds the files below a directory that the rule matches, without following symbolic links.
    private mutating func addAll(below directory: PathBytes) {
        let files = WatchedPaths(roots: rule.roots)
        var rest = [directory]
        while let current = rest.popLast() {
            var directories: [PathBytes] = []
            for name in names(in: current, files).sorted() {
                let path = current.appending(name.bytes)
                guard case .present(let snapshot) = files.inspect(at: path) else { continue }
                if rule.types.contains(snapshot.type), rule.root(taking: path) != nil { addIfAdmitted(path, snapshot) }
                // A directory above the rule's root may contain it.
                if snapshot.type == .directory,
                    rule.reaches(below: path) || rule.roots.contains(where: { $0.isInside(path) })
                {
                    directories.append(path)
                }
            }
            rest += directories.reversed()
        }
    }

    private mutating func names(in directory: PathBytes, _ files: WatchedPaths) -> [PathBytes] {
        do throws(SystemError) {
            return try files.names(in: directory)
        } catch {
            add(
                problem: "cannot list '\(Display.path(directory))': \(error)",
                help: "run it as the user that Alight runs as, or as root")
            return []
        }
    }
}
