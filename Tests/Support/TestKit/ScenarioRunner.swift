import Foundation
import Glibc
package import System

/// Runs a scenario against the built program in a separate directory.
package final class ScenarioRunner {
    /// A failed expectation.
    package struct Failure: Error, CustomStringConvertible {
        package var description: String
    }

    /// A line that the program printed for an action.
    private struct OutputLine: Decodable {
        var event: String
        var path: String
        var path_base64: String?
        var from: String?
        var rule: String
        var outcome: String
        var state: String
        var message: String

        var bytes: PathBytes {
            path_base64.flatMap { Data(base64Encoded: $0) }.map { PathBytes($0) } ?? PathBytes(path)
        }
    }

    private let scenario: Scenario
    private let directory: PathBytes
    private let arguments: [String]
    /// Whether root runs the program and the script as an ordinary user.
    private let isOrdinary: Bool
    /// Words in front of the command, which execute the program in the end.
    private var prefix: [String] = []
    private var hasMounts = false
    private var program: RunningProgram?
    private var runs = 0
    private var consumed = 0
    /// Later lines that were already matched out of order.
    private var taken: Set<Int> = []
    private var open: [PathBytes: Int32] = [:]

    /// Creates a runner for one run.
    ///
    /// - Parameters:
    ///   - scenario: The scenario.
    ///   - directory: An empty directory.
    ///   - arguments: Further options of the program.
    ///   - isOrdinary: Whether root runs the scenario as user 65534, who then owns everything in the directory.
    package init(
        _ scenario: Scenario, in directory: PathBytes, arguments: [String] = [], isOrdinary: Bool = false
    ) {
        self.isOrdinary = isOrdinary
        self.scenario = scenario
        self.directory = directory
        self.arguments = arguments
    }

    /// Runs all lines.
    ///
    /// - Throws: The first failed expectation, with its line and the output of the program.
    package func run() throws {
        TestFile.write(directory.appending("rules.yaml"), scenario.rules)
        defer { for descriptor in open.values { close(descriptor) } }
        for line in scenario.lines {
            do {
                try perform(line)
            } catch {
                throw Failure(
                    description: """
                        \(scenario.name):\(line.number): \(error)
                        --- output
                        \(program?.output ?? "")
                        --- error
                        \(program?.error ?? "")
                        """)
            }
        }
        if let program, program.exitStatus() == nil {
            guard program.stop() == 0 else {
                throw Failure(description: "\(scenario.name): the program did not exit with 0")
            }
        }
    }

    private func perform(_ line: Scenario.Line) throws {
        let word = line.text(0)
        switch word {
        case "tree": make(line)
        case "needs": break
        case "limit": try limit(line)
        case "mounts":
            hasMounts = true
            prefix += ["unshare", "-m", "--propagation", "private"]
        case "first":
            if isOrdinary { own(directory, withAll: true) }
            try shell(line.text(1))
        case "sh":
            if program == nil { try start([]) }
            try shell(line.text(1))
        case "start": try start(line.words.dropFirst().map { String(decoding: $0, as: UTF8.self) })
        case "expect": try expect(line)
        case "signal": try signal(line.text(1))
        case "pause": Deadline.pause(try duration(line.text(1)))
        default:
            if program == nil { try start([]) }
            try change(word, line)
        }
    }

    // MARK: The program

    private func start(_ options: [String]) throws {
        runs += 1
        consumed = 0
        taken = []
        if isOrdinary { own(directory, withAll: true) }
        let words =
            (isOrdinary ? Self.asOrdinaryUser : []) + prefix
            + [Places.alight.description, "run", "rules.yaml", "--log-format", "json"] + arguments + options
        let program = RunningProgram(
            "/usr/bin/env", words, in: directory, output: directory.appending("log-\(runs)"))
        self.program = program
        if options.contains("--once") { return }
        guard program.waitUntilReady() else { throw Failure(description: "the program did not become ready") }
    }

    /// Words that run the following command as an ordinary user.
    package static let asOrdinaryUser = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

    /// The reason that scenarios can't run as an ordinary user here; nil if they can.
    package static let ordinaryUserProblem: String? = {
        if geteuid() != 0 { return "the tests do not run as root, so all scenarios already run as an ordinary user" }
        let words = asOrdinaryUser + ["test", "-x", Places.alight.description]
        let isReachable = runCommand(words, in: "/") == 0
        return isReachable ? nil : "user 65534 can't reach \(Places.alight)"
    }()

    /// The reason that a scenario can't run here; nil if it can.
    package static func problem(of scenario: Scenario, isOrdinary: Bool) -> String? {
        for line in scenario.lines where line.text(0) == "needs" {
            switch line.text(1) {
            case "root": if isOrdinary || geteuid() != 0 { return "it requires root" }
            case "ordinary": if !isOrdinary && geteuid() == 0 { return "it requires an ordinary user" }
            case "writers": if isOrdinary || writerProblem != nil { return writerProblem ?? "it requires root" }
            case "fuse":
                if !TestFile.exists("/dev/fuse") || runCommand(["sh", "-c", "command -v bindfs"], in: "/") != 0 {
                    return "FUSE or bindfs is missing"
                }
            case "overlay":
                let line =
                    "mount -t tmpfs none /mnt && cd /mnt && mkdir l u w m && "
                    + "mount -t overlay none -o lowerdir=l,upperdir=u,workdir=w m"
                let status = runCommand(["unshare", "-m", "sh", "-c", line], in: "/")
                if status != 0 { return "overlayfs can't be mounted here" }
            case "btrfs":
                let line = "truncate -s 128M i && /sbin/mkfs.btrfs -q i && mount -o loop i /mnt"
                let status = withTempTree { tree in runCommand(["unshare", "-m", "sh", "-c", line], in: tree.root) }
                if status != 0 { return "btrfs, mkfs.btrfs or a loop device is missing" }
            case "namespaces":
                let words = (isOrdinary ? asOrdinaryUser : []) + ["unshare", "-Ur", "true"]
                if runCommand(words, in: "/") != 0 { return "user namespaces are not available" }
            default: return "unknown requirement '\(line.text(1))'"
            }
        }
        return nil
    }

    /// Handles `limit watches N` and `limit instances N`: sets an inotify limit for the program only.
    private func limit(_ line: Scenario.Line) throws {
        guard let name = ["watches": "max_inotify_watches", "instances": "max_inotify_instances"][line.text(1)],
            let value = Int(line.text(2))
        else { throw Failure(description: "unknown limit '\(line.text(1))'") }
        let script = "echo \(value) >/proc/sys/user/\(name) && exec \"$@\""
        prefix += ["unshare", "-Ur", "sh", "-c", script, "sh"]
    }

    /// Runs a shell command in the directory, with the same mounts as the program.
    private func shell(_ text: String) throws {
        // nsenter(1) starts at the root directory of the other namespace.
        let entered = hasMounts ? ["nsenter", "-t", String(program?.pid ?? 0), "-m"] : []
        let script = ["sh", "-c", "cd \"$0\" && eval \"$1\"", directory.description, text]
        let words = ["ALIGHT=\(Places.alight)"] + (isOrdinary ? Self.asOrdinaryUser : []) + entered + script
        let status = Self.runCommand(words, in: directory)
        guard status == 0 else { throw Failure(description: "sh exited with \(status)") }
    }

    /// Runs a command and waits for it.
    ///
    /// Its background processes continue.
    private static func runCommand(_ words: [String], in directory: PathBytes) -> Int32 {
        withTempTree { tree in
            let program = RunningProgram("/usr/bin/env", words, in: directory, output: tree.path("command"))
            return program.wait() ?? -1
        }
    }

    /// Makes the ordinary user the owner of a path and of the directories above it, up to the test's own.
    private func own(_ path: PathBytes, withAll: Bool = false) {
        guard isOrdinary else { return }
        if withAll {
            _ = Self.runCommand(["chown", "-hR", "--from=0", "65534:65534", path.description], in: "/")
            return
        }
        var path = path
        while path.isInside(directory), path != directory {
            _ = path.withCString { lchown($0, 65534, 65534) }
            path = path.parent
        }
    }

    private func signal(_ name: String) throws {
        let numbers = [
            "TERM": SIGTERM, "INT": SIGINT, "KILL": SIGKILL, "USR1": SIGUSR1, "STOP": SIGSTOP, "CONT": SIGCONT,
        ]
        guard let number = numbers[name] else { throw Failure(description: "unknown signal '\(name)'") }
        if number != SIGSTOP {
            program?.signal(number)
        } else if program?.freeze() != true {
            throw Failure(description: "the program does not stop")
        }
    }

    // MARK: Files

    private func path(_ line: Scenario.Line, _ index: Int) -> PathBytes {
        guard index < line.words.count else { return directory }
        return directory.appending(line.words[index])
    }

    /// Handles `tree PATH = "text"`, and `tree PATH/` for a directory.
    private func make(_ line: Scenario.Line) {
        let target = path(line, 1)
        if line.words[1].last == .slash {
            TestFile.makeDirectory(target.normalized)
        } else {
            TestFile.write(target, line.words.count > 3 ? line.words[3] : [])
        }
    }

    private func change(_ word: String, _ line: Scenario.Line) throws {
        let target = path(line, 1)
        var result: Int32 = 0
        switch word {
        case "write": make(line)
        case "append": TestFile.write(target, line.words.count > 3 ? line.words[3] : [], appending: true)
        case "open":
            open[target] = target.withCString { Glibc.open($0, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644) }
        case "put":
            guard let descriptor = open[target] else { throw Failure(description: "not open: \(target)") }
            TestFile.put(descriptor, line.words[3])
        case "close":
            guard let descriptor = open.removeValue(forKey: target) else { throw Failure(description: "not open") }
            result = Glibc.close(descriptor)
        case "move":
            result = target.withCString { from in path(line, 3).withCString { rename(from, $0) } }
        case "link":
            result = target.withCString { from in path(line, 3).withCString { Glibc.link(from, $0) } }
        case "symlink":
            result = PathBytes(line.words[1]).withCString { from in
                path(line, 3).withCString { Glibc.symlink(from, $0) }
            }
        case "delete": result = target.withCString { unlink($0) }
        case "rmtree": TestFile.removeTree(target)
        case "mkdir": TestFile.makeDirectory(target)
        case "touch": result = target.withCString { utimensat(AT_FDCWD, $0, nil, 0) }
        case "chmod":
            let mode = mode_t(line.text(1), radix: 8) ?? 0
            result = path(line, 2).withCString { Glibc.chmod($0, mode) }
        default: throw Failure(description: "unknown word '\(word)'")
        }
        guard result == 0 else { throw Failure(description: "\(word): \(SystemError(errno: errno))") }
        if ["write", "append", "open", "mkdir"].contains(word) { own(target) }
        if ["link", "symlink"].contains(word) { own(path(line, 3)) }
    }

    // MARK: Expectations

    private func expect(_ line: Scenario.Line) throws {
        switch line.text(1) {
        case "nothing": try expectNothing(try duration(line.text(4)))
        case "file":
            let target = path(line, 2)
            guard Deadline.wait(until: { TestFile.read(target) == line.words[4] }) else {
                let content = TestFile.text(target)
                throw Failure(description: "\(line.text(2)) contains \(content.debugDescription)")
            }
        case "text":
            let target = path(line, 2)
            func text() -> String { TestFile.text(target) ?? "" }
            guard Deadline.wait(until: { text().contains(line.text(3)) }) else {
                throw Failure(description: "\(line.text(2)) contains \(text().debugDescription)")
            }
        case "no":
            guard Deadline.wait(until: { !TestFile.exists(path(line, 2)) }) else {
                throw Failure(description: "\(line.text(2)) exists")
            }
        case "error":
            guard Deadline.wait(until: { program?.error.contains(line.text(2)) ?? false }) else {
                throw Failure(description: "standard error does not contain '\(line.text(2))'")
            }
        case "exit":
            let status = program?.wait()
            guard status == Int32(line.text(2)) else {
                throw Failure(description: "the exit status is \(status.map(String.init) ?? "missing")")
            }
        case "among":
            try expectEvent(Scenario.Line(number: line.number, words: Array(line.words.dropFirst())), inOrder: false)
        default: try expectEvent(line, inOrder: true)
        }
    }

    /// Handles `expect EVENT PATH [from PATH] [by RULE] [message TEXT] [outcome WORD] [state WORD]`.
    ///
    /// The next line must be for that event and path. Without order, it may come after lines that are expected later.
    /// The same applies with `by RULE`, because actions of several rules that only read a file run at the same time.
    private func expectEvent(_ line: Scenario.Line, inOrder: Bool) throws {
        let target = path(line, 2)
        var wanted: [String: [UInt8]] = [:]
        for index in stride(from: 3, to: line.words.count - 1, by: 2) {
            wanted[line.text(index)] = line.words[index + 1]
        }
        let rule = wanted["by"].map { String(decoding: $0, as: UTF8.self) }
        let inOrder = inOrder && rule == nil
        func isWanted(_ output: OutputLine) -> Bool {
            output.event == line.text(1) && output.bytes == target && (rule ?? output.rule) == output.rule
        }
        let found = try Deadline.poll { () throws -> OutputLine? in
            let lines = program?.lines ?? []
            while taken.remove(consumed) != nil { consumed += 1 }
            for index in lines.indices.dropFirst(consumed) where !taken.contains(index) {
                let output = try JSONDecoder().decode(OutputLine.self, from: Data(lines[index].utf8))
                if inOrder {
                    consumed += 1
                    return output
                }
                if isWanted(output) {
                    taken.insert(index)
                    return output
                }
            }
            return nil
        }
        guard let found else { throw Failure(description: "no \(line.text(1)) of \(line.text(2))") }
        guard isWanted(found) else {
            throw Failure(description: "unexpected \(found.event) \(found.path)")
        }
        func check(_ word: String, _ value: String?) throws {
            guard let want = wanted[word].map({ String(decoding: $0, as: UTF8.self) }) else { return }
            guard value == want else { throw Failure(description: "\(word) is \(value ?? "absent")") }
        }
        try check("by", found.rule)
        try check("outcome", found.outcome)
        try check("state", found.state)
        try check("message", found.message)
        if let from = wanted["from"], found.from != directory.appending(from).description {
            throw Failure(description: "from is \(found.from ?? "absent")")
        }
    }

    private func expectNothing(_ limit: Duration) throws {
        let extra = Deadline.poll(within: limit) { () -> String? in
            let lines = program?.lines ?? []
            return lines.indices.dropFirst(consumed).first { !taken.contains($0) }.map { lines[$0] }
        }
        if let extra { throw Failure(description: "unexpected: \(extra)") }
    }

    private func duration(_ text: String) throws -> Duration {
        if text.hasSuffix("ms"), let number = Int(text.dropLast(2)) { return .milliseconds(number) }
        if text.hasSuffix("s"), let number = Int(text.dropLast()) { return .seconds(number) }
        throw Failure(description: "'\(text)' is not a duration")
    }
}
