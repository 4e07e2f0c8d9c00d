import ActionAPI
import ArgumentParser
import Configuration
import Glibc
import Rules
import Running
import Storage
import System

/// `alight apply`: runs a rule for files by hand.
struct ApplyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "apply", "Run a rule for files by hand.",
        exits: [.done, .runtimeError, .usage, .rulesInvalid, .nothingMatched, .someFailed],
        discussion: """
            Ignores the rule's 'events' and 'existing', and does not wait for files to settle. For a directory, runs \
            the rule for all files below it that match; files that 'where' excludes are listed with the reason. The \
            running instance does the work, with the rules that it has loaded, and Ctrl-C ends only the progress \
            display. Without one, this command does the work, and Ctrl-C leaves the rest to the next 'alight run'.

              alight apply thumbnails ~/Pictures/inbox
            """)

    @Argument(help: .value("rule", "The name of the rule."), completion: OfferedWords.rules)
    var rule: String

    @Argument(help: .value("path", "Files, or directories of them."), completion: .file())
    var paths: [String]

    @Flag(help: "Include files named here that the rule excludes by its path or its 'where'.")
    var force = false

    @Option(help: .value("n", "The maximum number of actions at once, if no instance is running."))
    var jobs = max(4, 2 * Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))

    @OptionGroup var rules: NamedRules
    @OptionGroup var journal: JournalOptions

    func validate() throws {
        try RunningOptions.check(jobs: jobs)
        guard !paths.contains("") else { throw ValidationError("a path is empty") }
        try journal.check()
    }

    func run() throws {
        let program = try CommandContext(try journal.settings(), asRunning: true)
        let loaded = try rules.load(program)
        let rule = try loaded.rule(named: rule)
        if loaded.ruleset.isDisabled(rule.name) {
            let help = "set 'enabled: true' (\(rule.location))"
            throw Exit(.rulesInvalid, error: "the rule '\(rule.name)' is disabled", help: help)
        }
        let named = RawArguments.paths(paths).map(program.path)
        let files = AppliedFiles(named, rule: rule, isForced: force)
        for problem in files.problems { problem.emit() }
        for (path, reason) in files.left {
            Output.error.write("'where' does not match '\(Display.path(path))': \(Display.text(reason))")
        }
        guard !files.paths.isEmpty else {
            if files.problems.isEmpty {
                Output.error.write("the rule '\(Display.text(rule.name))' matches none of these files")
            }
            throw Exit(files.problems.isEmpty ? .nothingMatched : .runtimeError)
        }
        let status =
            switch try JournalOwner.find(try journal.file(isWritten: true), isBrief: false) {
            case .instance(let client): try ask(client, rule, files.paths)
            case .command(let store): try Applying(rule: rule, paths: files.paths, jobs: jobs).run(store, program)
            }
        throw Exit(status == .done && !files.problems.isEmpty ? .runtimeError : status)
    }

    // MARK: With a running instance

    /// The interval between two reads of the journal, in microseconds.
    private static let pause: useconds_t = 100_000

    /// Asks the running instance to run the rule, and shows the progress until the jobs have finished or the user
    /// interrupts the command.
    private func ask(_ client: ControlClient, _ rule: Rule, _ paths: [PathBytes]) throws -> ExitStatus {
        let progress = ApplyProgress(total: paths.count, width: TerminalText.width(STDERR_FILENO))
        let interrupts = StopCount()
        try Signals.forEach { if $0 != SIGUSR1 { _ = interrupts.next() } }
        let command = JobCommand.apply(
            paths.map { JobRequest(id: JobID(now: DiskProbe.now()), rule: rule.name, path: $0) })
        var open = Array(zip(try client.ask(command), paths))
        let reader = try journal.open(isFollowed: true)
        // The number of jobs that are no longer in the journal.
        var gone = 0
        var isAlone = false
        while !open.isEmpty, interrupts.count == 0, !isAlone {
            // Checked before the states are read, so that the last writes of the instance are seen.
            isAlone = DiskStore.holder(of: reader.path) == nil
            let states = try reader.states(of: open.map(\.0))
            var unfinished: [(JobID, PathBytes)] = []
            var failures = 0
            for (id, path) in open {
                switch states[id] {
                case .pending, .running: unfinished.append((id, path))
                case .succeeded, .skipped: break
                case .failed:
                    guard let job = try reader.details(of: id)?.job else { continue }
                    failures += 1
                    progress.emit("\(job.id) \(job.summary): failed: \(Display.text(job.message ?? ""))")
                case nil:
                    // The job was merged into a pending job of the same path; follow that one.
                    if let successor = try reader.newest(rule: rule.name, path: path), successor != id {
                        unfinished.append((successor, path))
                    } else {
                        gone += 1
                    }
                }
            }
            open = unfinished
            progress.add(done: paths.count - open.count - progress.counts.done, failed: failures)
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
        let failed = progress.counts.failed
        Output.error.write("\(files): \(paths.count - failed - gone) done, \(failed) failed")
        return failed > 0 ? .someFailed : .done
    }
}

/// The files to which a rule is applied by hand.
struct AppliedFiles {
    /// The files in the order in which they were named, sorted by name within directories, without duplicates.
    private(set) var paths: [PathBytes] = []
    /// The errors about the named paths.
    private(set) var problems: [Problem] = []
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
            if let refusal = [path, known].lazy.compactMap({ LinkTrust.refusal(on: $0.parent) }).first {
                add(
                    problem: Display.text("\(refusal)"),
                    help: "use the path of the directory that it leads to, in a directory that only root can change")
                continue
            }
            switch KernelFileSystem().stat(path) {
            case .absent: add(problem: "'\(Display.path(path))' does not exist", help: "check the spelling of the path")
            case .unreadable(let errno):
                add(
                    problem: "cannot access '\(Display.path(path))': \(SystemError(errno: errno))",
                    help: "run it as the user that Alight runs as, or as root")
            case .present(let snapshot):
                let isMatch = rule.root(matching: known) != nil && rule.types.contains(snapshot.type)
                if isMatch, isForced {
                    add(known)
                } else if isMatch {
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
        problems.append(Problem(message, help: help))
    }

    /// Adds a file unless the rule's conditions exclude it.
    ///
    /// May read the file's content, which can take long.
    private mutating func addIfAdmitted(_ path: PathBytes, _ snapshot: Snapshot) {
        guard let condition = rule.condition, let root = rule.root(matching: path) else { return add(path) }
        switch condition.answerNow(path, root: root, snapshot: snapshot) {
        case .fails(let reason), .unknown(let reason), .unreadable(let reason):
            if seen.insert(path).inserted { left.append((path, reason)) }
        case .holds, .needsContent: add(path)
        }
    }

    private mutating func add(_ path: PathBytes) { if seen.insert(path).inserted { paths.append(path) } }

    /// Adds the files below a directory that the rule matches, without following symbolic links.
    private mutating func addAll(below directory: PathBytes) {
        let files = WatchedPaths(roots: rule.roots)
        var rest = [directory]
        while let current = rest.popLast() {
            let names: [PathBytes]
            do throws(SystemError) {
                names = try files.names(in: current).sorted()
            } catch {
                add(
                    problem: "cannot list '\(Display.path(current))': \(error)",
                    help: "run it as the user that Alight runs as, or as root")
                continue
            }
            var directories: [PathBytes] = []
            for name in names {
                let path = current.appending(name.bytes)
                guard case .present(let snapshot) = files.inspect(at: path) else { continue }
                if rule.types.contains(snapshot.type), rule.root(matching: path) != nil {
                    addIfAdmitted(path, snapshot)
                }
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
}
