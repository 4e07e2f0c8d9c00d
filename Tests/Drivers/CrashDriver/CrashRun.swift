import Glibc
import System
import TestKit

/// A run of one seed: the lives of the program, the workers, and the comparison at the end.
struct CrashRun: ~Copyable {
    typealias Failure = DriverFailure

    let options: Options
    let directory: PathBytes
    let journal: PathBytes
    private var random: SeededGenerator
    private var log: WriteAheadLog
    private(set) var life = 0
    private var kills = 0
    private var stops = 0
    /// The longest time for which a process of the program survived a kill.
    private var lingering = Duration.zero
    private var workers: [RunningProgram] = []
    private var hasBeenReady = false
    private var before: [PathBytes: Run.Content] = [:]
    /// Jobs that were running when the program was killed.
    private(set) var interrupted: [RunCheck.Expectation] = []
    /// The changes made to the journal, for the report.
    private var history: [String] = []

    /// The time limit for every required event.
    private static let limit = Duration.seconds(90)

    init(_ options: Options, in directory: PathBytes) throws(Failure) {
        self.options = options
        self.directory = directory
        journal = (options.journalDirectory ?? directory.appending("state")).appending("journal.db")
        log = WriteAheadLog(of: journal)
        random = SeededGenerator(seed: options.seed, parts: 10)
        Descendants.adopt()
        TestFile.makeDirectory(directory)
        guard TestFile.names(in: directory).isEmpty else {
            throw Failure(text: "'\(directory)' is not an empty directory")
        }
        for name in ["hot", "outside", "copies", "unchanged", "log", "state"] {
            TestFile.makeDirectory(directory.appending(name))
        }
        TestFile.write(runs, "")
        TestFile.write(
            directory.appending("rules.yaml"),
            CrashRules.text(
                recorder: Places.products.appending("crash-recorder"), log: runs, processesExisting: processesExisting))
        for name in ["one", "two"] {
            TestFile.write(directory.appending("unchanged").appending(name), "no process changes \(name)")
        }
    }

    private var runs: PathBytes { directory.appending("runs.log") }
    private var hot: PathBytes { directory.appending("hot") }

    /// Whether the mirror rule processes existing files at the start, instead of taking them as known.
    ///
    /// If not, files must not change until the program knows them: a change during the
    /// first scan is either recorded with the scan or reported.
    private var processesExisting: Bool { options.seed.isMultiple(of: 2) }

    /// Performs the run.
    ///
    /// - Returns: A one-line summary.
    mutating func run() throws(Failure) -> String {
        startWorker(0, operations: 40)
        try awaitWorkers()
        if !processesExisting { before = TreeContents.read(hot) }
        while kills < options.kills { try live() }
        return try finish()
    }

    // MARK: Lives

    /// Starts the program and interrupts it at a random time.
    private mutating func live() throws(Failure) {
        let interruption = Interruption.draw(&random)
        let program = try start()
        if interruption.isIdle {
            try awaitWorkers()
        } else if processesExisting || hasBeenReady {
            startWorkers()
        }
        // A program that stays stopped makes no progress.
        if try trouble(program) { return try kill(program) }
        switch interruption {
        case .starting(let delay): Deadline.pause(delay)
        case .working(let delay):
            try awaitReady(program)
            Deadline.pause(delay)
        case .acting(let delay):
            try awaitReady(program)
            let size = TestFile.size(of: runs)
            _ = Deadline.wait(within: .seconds(2)) { TestFile.size(of: runs) != size }
            Deadline.pause(delay)
        case .idle(let delay):
            try awaitReady(program)
            try awaitIdle(program)
            Deadline.pause(delay)
        case .stopping(let delay, let later):
            try awaitReady(program)
            Deadline.pause(later)
            program.signal(SIGTERM)
            Deadline.pause(delay)
        case .stopped(let later):
            try awaitReady(program)
            Deadline.pause(later)
            return try stop(program)
        }
        try kill(program)
        if random.isOne(in: 3) { Deadline.pause(.milliseconds(random.below(250))) }
        workers.removeAll { $0.exitStatus() != nil }
    }

    private mutating func start() throws(Failure) -> RunningProgram {
        life += 1
        if options.forgetting > 0, life.isMultiple(of: options.forgetting) {
            for suffix in ["", "-wal", "-shm"] {
                _ = PathBytes(journal.bytes + Array(suffix.utf8)).withCString { unlink($0) }
            }
        }
        mark("start")
        return RunningProgram(
            options.alight ?? Places.alight, ["run", "rules.yaml", "--journal", journal.description], in: directory,
            output: directory.appending("log/alight-\(life)"))
    }

    private func mark(_ word: String) { TestFile.write(runs, RunLog.mark(word, life: life), appending: true) }

    /// Causes the additional trouble of the mode.
    ///
    /// - Returns: Whether the program must be killed at once.
    private mutating func trouble(_ program: RunningProgram) throws(Failure) -> Bool {
        switch options.mode {
        case .kill, .truncate: return false
        case .stop:
            guard random.isOne(in: 2) else { return false }
            Deadline.pause(.milliseconds(random.below(400)))
            program.signal(SIGSTOP)
            Deadline.pause(.milliseconds(random.below(600)))
            if random.isOne(in: 3) { return true }
            program.signal(SIGCONT)
            return false
        case .full:
            guard random.isOne(in: 2), let disk = options.journalDirectory else { return false }
            let isEarly = random.isOne(in: 4)
            if !isEarly { try awaitReady(program) }
            Deadline.pause(.milliseconds(random.below(300)))
            SmallDisk.fill(disk)
            Deadline.pause(.milliseconds(random.below(1500)))
            // The program may have refused to start.
            if isEarly { return true }
            // In the remaining cases the disk stays full until the program is killed.
            if !random.isOne(in: 3) { SmallDisk.empty(disk) }
            return false
        }
    }

    private mutating func kill(_ program: RunningProgram) throws(Failure) {
        let earlier = program.exitStatus()
        program.signal(SIGKILL)
        let status = program.wait(within: Self.limit)
        mark("kill")
        try awaitDescendants(program)
        // If a stop was faster than the kill, the program exited with 0, or with 1 on a full disk.
        let isGood = status == 0 || status == 1 && options.mode == .full && program.error.contains("the disk is full")
        guard status == 137 || isGood, earlier == nil || isGood else {
            throw failure("alight exited by itself with \(status ?? -1)", program)
        }
        kills += 1
        if let disk = options.journalDirectory { SmallDisk.empty(disk) }
        if options.mode == .truncate {
            if let change = log.lose(&random) { history.append("life \(life): the log was \(change)") }
        }
        guard TestFile.exists(journal) else { return }
        do {
            let contents = try JournalContents(copyOf: journal, to: directory.appending("log/journal-\(life).db"))
            interrupted += contents.jobs.filter { $0.state == "running" }.map {
                RunCheck.Expectation(job: $0.id, attempt: $0.attempt, life: life)
            }
            guard contents.integrity == ["ok"] else {
                throw failure("the journal is damaged after the kill: \(contents.integrity)", program)
            }
        } catch let failure as Failure {
            throw failure
        } catch {
            // The program was killed before it created the tables.
            if !"\(error)".contains("no such table") {
                throw failure("the journal can't be read after the kill: \(error)", program)
            }
        }
    }

    /// Waits until the processes that the program started have exited as well; this process is now their parent.
    ///
    /// Each run therefore belongs to one life. A process started just before the kill may
    /// still be running, because the launcher must notice the exit and be scheduled.
    private mutating func awaitDescendants(_ program: RunningProgram) throws(Failure) {
        let start = ContinuousClock.now
        let own = Set(workers.map(\.pid) + [program.pid])
        var left: [pid_t] = []
        let areGone = Deadline.wait(within: .seconds(5)) {
            left = Descendants.children().filter { !own.contains($0) }
            for process in left { waitpid(process, nil, WNOHANG) }
            return left.isEmpty
        }
        guard areGone else { throw failure("processes \(left) still run after alight was killed", program) }
        lingering = max(lingering, ContinuousClock.now - start)
    }

    /// Asks the program to stop and requires a successful exit.
    private mutating func stop(_ program: RunningProgram) throws(Failure) {
        if let disk = options.journalDirectory { SmallDisk.empty(disk) }
        program.signal(SIGCONT)
        guard program.stop(within: Self.limit) == 0 else {
            throw failure("alight did not exit with 0", program)
        }
        try awaitDescendants(program)
        stops += 1
    }

    private mutating func awaitReady(_ program: RunningProgram) throws(Failure) {
        guard program.waitUntilReady(within: Self.limit) else {
            throw failure("alight did not become ready", program)
        }
        if !hasBeenReady {
            if !processesExisting {
                guard Deadline.wait(until: { (try? JournalContents(journal).isComplete) ?? false }) else {
                    throw failure("alight did not record the existing files", program)
                }
                startWorkers()
            }
            hasBeenReady = true
        }
    }

    /// Waits until no job is open, or for at most three seconds.
    private func awaitIdle(_ program: RunningProgram) throws(Failure) {
        _ = Deadline.wait(within: .seconds(3)) { (try? JournalContents(journal).open.isEmpty) ?? false }
        guard program.exitStatus() == nil else { throw failure("alight exited by itself", program) }
    }

    // MARK: Workers

    private mutating func startWorkers() {
        guard workers.count < 2 * options.processes else { return }
        for worker in 0..<options.processes { startWorker(worker, operations: 10 + random.below(40)) }
    }

    private mutating func startWorker(_ number: Int, operations: Int) {
        let arguments = [
            "--worker", "\(number)", "--life", "\(life)", "--seed", "\(options.seed)", "--operations", "\(operations)",
            "--directory", directory.description,
        ]
        workers.append(
            RunningProgram(
                Places.products.appending("crash-driver"), arguments, in: directory,
                output: directory.appending("log/worker-\(life)-\(number)")))
    }

    private mutating func awaitWorkers() throws(Failure) {
        for worker in workers {
            guard worker.wait(within: Self.limit) == 0 else {
                throw Failure(text: "a worker did not exit with 0: \(worker.error)")
            }
        }
        workers = []
    }

    // MARK: Final comparison

    /// Lets a last life handle everything and compares the results.
    private mutating func finish() throws(Failure) -> String {
        let program = try start()
        try awaitReady(program)
        try awaitWorkers()
        guard var lines = LineReader(runs) else { throw Failure(text: "cannot read what the recorders wrote") }
        var log = RunLog(tree: hot)
        let tree = TreeContents.read(hot)
        var last = ContinuousClock.now
        let end = last + Self.limit
        var known = -1
        var findings: [Finding] = []
        while true {
            lines.take { line, _ in log.take(line) }
            if lines.count != known { (known, last) = (lines.count, ContinuousClock.now) }
            findings = makeCheck(log, tree).missing()
            let open = (try? JournalContents(journal).open) ?? []
            if findings.isEmpty, open.isEmpty { break }
            guard program.exitStatus() == nil else { throw failure("alight exited by itself", program) }
            let now = ContinuousClock.now
            if now > end || now > last + .seconds(options.timeout) { break }
            Deadline.pause(.milliseconds(100))
        }
        try stop(program)
        lines.take { line, _ in log.take(line) }
        return try check(log, tree, program)
    }

    private func makeCheck(_ log: RunLog, _ tree: [PathBytes: Run.Content]) -> RunCheck {
        RunCheck(
            log: log, tree: tree, before: before, copies: TreeContents.read(directory.appending("copies")),
            mayForget: options.mode == .truncate)
    }

    private func check(
        _ log: RunLog, _ tree: [PathBytes: Run.Content], _ program: RunningProgram
    ) throws(Failure) -> String {
        let check = makeCheck(log, tree)
        let operations = OperationLog(directory.appending("log"))
        var repeats = RunCheck.Repeats()
        var findings = check.missing() + check.wrongRuns(operations, &repeats)
        do {
            findings += check.wrongJobs(try JournalContents(journal), interrupted)
        } catch {
            findings.append(Finding(text: "the journal can't be read: \(error)"))
        }
        findings += Leftovers(directory: directory).findings()
        guard findings.isEmpty else {
            let report = Report(findings: findings, log: log, operations: operations, history: history)
            throw Failure(text: "\(report.text)\nstandard error of the last alight:\n\(program.error.lastLines(10))")
        }
        return """
            \(options.title): \(kills) kills and \(stops) stops during \(operations.count) operations of \
            \(options.processes) processes; \(log.runs.count) runs, \(tree.count) files at the end; repeated after an \
            interruption \(repeats.interrupted), after a failure \(repeats.retried), forgotten \(repeats.forgotten); \
            its processes survived a kill by up to \(Int(lingering / .milliseconds(1))) ms
            """
    }

    private func failure(_ text: String, _ program: RunningProgram) -> Failure {
        let lines = (history + ["\(text), in life \(life):"]).joined(separator: "\n")
        return Failure(text: "\(lines)\n\(program.error.lastLines(20))")
    }
}

extension TestFile {
    fileprivate static func size(of path: PathBytes) -> Int {
        var status = stat()
        return path.withCString { lstat($0, &status) } == 0 ? Int(status.st_size) : -1
    }
}
