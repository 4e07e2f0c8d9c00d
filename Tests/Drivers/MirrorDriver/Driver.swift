import Glibc
import System
import TestKit

/// A run of one seed: the program, the workers, the mirror and the comparisons.
struct Driver: ~Copyable {
    typealias Failure = DriverFailure

    private let options: Options
    private let directory: PathBytes
    private let tree: PathBytes
    private let roots: [PathBytes]
    private var mirror = Mirror()
    private var random: SeededGenerator
    private var rounds = 0
    /// The reader of the program's output in the mode `slow`.
    private var reader: RunningProgram?

    /// The time limit for a quiet point, even while events arrive.
    private static let limit = Duration.seconds(300)
    /// The number of watches in the mode `limit`.
    private static let watches = 20

    init(_ options: Options, in directory: PathBytes) {
        self.options = options
        self.directory = directory
        tree = directory.appending("tree")
        roots = Universe.roots.map { [tree] in tree.appending($0.bytes) }
        random = SeededGenerator(seed: options.seed, parts: 3)
    }

    /// Performs the run.
    ///
    /// - Returns: A one-line summary.
    /// - Throws: The first quiet point with a difference.
    mutating func run() throws(Failure) -> String {
        try prepare()
        let program = try start()
        guard var lines = LineReader(directory.appending("alight.out")) else {
            throw Failure(text: "cannot read what the program prints")
        }
        var left = options.operations
        while left > 0 {
            rounds += 1
            let count = min(left, options.every)
            left -= count
            try performRound(count, program)
            let disk = makeQuietPoint()
            try compare(disk, program, &lines)
            if left == 0 { try end(program, disk, &lines) }
        }
        return """
            \(options.title): \(options.operations) operations of \(options.processes) processes, \
            \(lines.count) events, \(mirror.entries.count) paths at the end, equal at \(rounds) quiet points
            """
    }

    // MARK: The program

    private var isUnprivileged: Bool { options.mode == .unreadable && getuid() == 0 }

    private static let setpriv = ["--reuid=65534", "--regid=65534", "--clear-groups"]

    private func prepare() throws(Failure) {
        guard directory.withCString({ mkdir($0, 0o755) }) == 0 || TestFile.names(in: directory).isEmpty else {
            throw Failure(text: "'\(directory)' is not an empty directory")
        }
        _ = directory.withCString { chmod($0, 0o755) }
        for path in [tree, tree.appending("far"), tree.appending("outside"), directory.appending("log")] + roots {
            TestFile.makeDirectory(path)
            if isUnprivileged { _ = path.withCString { chown($0, 65534, 65534) } }
        }
        if isUnprivileged {
            // The program creates its journal in this directory.
            let state = directory.appending(".state")
            TestFile.makeDirectory(state)
            _ = state.withCString { chown($0, 65534, 65534) }
            // Other users may not have access to the directory of the products.
            TestFile.makeDirectory(directory.appending("bin"))
            for program in [alight, alight.parent.appending("alight-launch"), driver] {
                TestFile.copyTree(program, directory.appending("bin").appending(Array(program.lastComponent)))
            }
        }
        // Existing files are taken as known at the start.
        try work(min(300, options.operations), workers: 1)
        if options.mode == .unreadable { TreeScan.uncover(roots) }
        makeRoots()
    }

    private var alight: PathBytes { options.alight ?? Places.alight }

    private var driver: PathBytes { Places.products.appending("mirror-driver") }

    private mutating func start() throws(Failure) -> RunningProgram {
        if !options.source.reportsExisting { mirror = Mirror(TreeScan.metadata(below: roots)) }
        let arguments = options.source.arguments(options.mode, in: directory)
        let output = directory.appending(options.mode == .slow ? "program" : "alight")
        let program: RunningProgram
        if options.mode == .limit {
            let script = #"echo \#(Self.watches) >/proc/sys/user/max_inotify_watches && exec "$0" "$@""#
            program = RunningProgram(
                "/usr/bin/unshare",
                ["--user", "--map-root-user", "/bin/sh", "-c", script, "\(alight)"] + arguments, in: directory,
                output: output)
        } else if options.mode == .slow {
            let pipe = directory.appending("pipe")
            guard pipe.withCString({ mkfifo($0, 0o600) }) == 0 else { throw Failure(text: "cannot make '\(pipe)'") }
            reader = RunningProgram("/bin/cat", ["\(pipe)"], in: directory, output: directory.appending("alight"))
            program = RunningProgram(
                "/bin/sh", ["-c", #"exec "$0" "$@" >pipe"#, "\(alight)"] + arguments, in: directory, output: output)
        } else if isUnprivileged {
            program = RunningProgram(
                "/usr/bin/setpriv", Self.setpriv + ["\(directory)/bin/alight"] + arguments, in: directory,
                output: output)
        } else {
            program = RunningProgram(alight, arguments, in: directory, output: output)
        }
        guard program.waitUntilReady() else { throw Failure(text: "alight did not become ready:\n\(program.error)") }
        return program
    }

    /// Stops the program and compares once more, because its last events must be correct as well.
    private mutating func end(
        _ program: RunningProgram, _ disk: [PathBytes: Metadata], _ lines: inout LineReader
    ) throws(Failure) {
        guard program.stop(within: Self.limit) == 0 else {
            throw Failure(text: "alight did not exit with 0:\n\(program.error)")
        }
        try take(&lines)
        try check(disk, program, "after the exit")
        let sign: String? =
            switch options.mode {
            case .overflow: "overflowed"
            case .limit: "_watches"
            case .poll: "polling"
            case .plain, .slow, .unreadable: nil
            }
        if let sign, !program.error.contains(sign) {
            throw Failure(
                text: "the run did not test its mode: standard error does not contain '\(sign)'\n\(program.error)")
        }
    }

    // MARK: Operations

    private mutating func performRound(_ count: Int, _ program: RunningProgram) throws(Failure) {
        // Every other round, so that a round without trouble follows.
        if let reader, rounds % 2 == 1 {
            reader.signal(SIGSTOP)
            try work(count, workers: options.processes)
            // Events that settle before the reader continues must be merged.
            Deadline.pause(.milliseconds(200))
            reader.signal(SIGCONT)
            return
        }
        guard options.mode == .overflow, rounds % 2 == 1 else { return try work(count, workers: options.processes) }
        // With a full queue at the start, the kernel reports nothing of the round. Later, it loses a part, or all if a
        // root was replaced meanwhile and is not watched yet. So the first flood is at the start.
        let isFullAtStart = rounds == 1 || random.isOne(in: 2)
        makeRoots()
        guard program.freeze() else { throw Failure(text: "alight can't be stopped:\n\(program.error)") }
        if isFullAtStart { flood() }
        try work(count, workers: options.processes)
        if !isFullAtStart { flood() }
        program.signal(SIGCONT)
    }

    /// Fills the kernel's queue, with no other difference than two files.
    private func flood() {
        makeRoots()
        let queue = TestFile.read("/proc/sys/fs/inotify/max_queued_events") ?? []
        let size = Int(String(decoding: queue, as: UTF8.self).trimmed) ?? 16_384
        let files = [roots[0].appending("flood-1"), roots[0].appending("flood-2")]
        for file in files { TestFile.write(file, "flood") }
        // The kernel merges an event with an equal one before it, so the two files alternate.
        for turn in 0...(size / 2 + 100) {
            for file in files { _ = file.withCString { chmod($0, turn.isMultiple(of: 2) ? 0o644 : 0o600) } }
        }
    }

    /// Runs the workers of one round and waits for them.
    private func work(_ count: Int, workers: Int) throws(Failure) {
        var running: [RunningProgram] = []
        for worker in 0..<workers {
            let share = count / workers + (worker < count % workers ? 1 : 0)
            let arguments = [
                "--worker", "\(worker)", "--round", "\(rounds)", "--seed", "\(options.seed)", "--operations",
                "\(max(1, share))", "--mode", options.mode.rawValue, "--without",
                options.without.sorted().joined(separator: ","), "--directory", "\(directory)",
            ]
            let output = directory.appending("log").appending("\(rounds)-\(worker)")
            if isUnprivileged {
                running.append(
                    RunningProgram(
                        "/usr/bin/setpriv", Self.setpriv + ["\(directory)/bin/mirror-driver"] + arguments,
                        in: directory, output: output))
            } else {
                running.append(RunningProgram(driver, arguments, in: directory, output: output))
            }
        }
        for worker in running {
            guard worker.wait(within: .seconds(600)) == 0 else {
                throw Failure(text: "a worker did not exit with 0: \(worker.error)")
            }
        }
    }

    private func makeRoots() {
        for root in roots {
            TestFile.makeDirectory(root)
            if isUnprivileged {
                for path in [root.parent, root] { _ = path.withCString { lchown($0, 65534, 65534) } }
            }
        }
    }

    // MARK: Quiet points

    /// Restores the required directories at a quiet point and reads the whole tree.
    private func makeQuietPoint() -> [PathBytes: Metadata] {
        if options.mode == .unreadable { TreeScan.uncover(roots) }
        makeRoots()
        // A final change: when it is reported, all changes that settled before it are reported as well.
        let marker = roots[rounds % roots.count].appending("quiet-\(rounds)")
        TestFile.write(marker, "quiet")
        return TreeScan.metadata(below: roots)
    }

    private mutating func compare(
        _ disk: [PathBytes: Metadata], _ program: RunningProgram, _ lines: inout LineReader
    ) throws(Failure) {
        let end = ContinuousClock.now + Self.limit
        var last = ContinuousClock.now
        var known = -1
        while true {
            try take(&lines)
            if lines.count != known {
                known = lines.count
                last = ContinuousClock.now
                if mirror.equals(disk) { break }
            }
            guard program.exitStatus() == nil else {
                throw Failure(text: "alight exited by itself with \(program.exitStatus() ?? -1):\n\(program.error)")
            }
            let now = ContinuousClock.now
            if now > end || now > last + .seconds(options.timeout) { break }
            Deadline.pause(.milliseconds(10))
        }
        try check(disk, program, "at quiet point \(rounds)")
    }

    private mutating func take(_ lines: inout LineReader) throws(Failure) {
        do {
            try lines.take { line, number in
                let event = try options.source.read(line, number: number)
                if options.losing > 0, number.isMultiple(of: options.losing) { return }
                mirror.take(event)
            }
        } catch {
            throw Failure(text: "\(error)")
        }
    }

    private func check(_ disk: [PathBytes: Metadata], _ program: RunningProgram, _ time: String) throws(Failure) {
        let differences = mirror.differences(from: disk)
        guard !differences.isEmpty || !mirror.contradictions.isEmpty else { return }
        let findings = Findings(
            tree: tree, mirror: mirror, differences: differences, log: OperationLog(directory.appending("log")))
        throw Failure(text: "\(time) \(findings.text)\nstandard error of alight:\n\(program.error.lastLines(20))")
    }
}

extension String {
    fileprivate var trimmed: String { filter { !$0.isWhitespace } }
}
