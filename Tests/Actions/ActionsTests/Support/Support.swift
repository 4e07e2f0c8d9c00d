import ActionAPI
import CAlightLinux
import FileEvents
import Foundation
import Globbing
import JSON
import Logging
import PersistentPlugins
import PluginProtocol
@testable import Plugins
import Programs
import Rules
import System
import Testing
import TestKit

/// A temporary directory for one test, removed with its contents.
final class TemporaryDirectory: Sendable {
    let path = TestFile.makeTemporaryDirectory()

    deinit { TestFile.removeTree(path) }

    /// Writes a file that can be executed immediately.
    @discardableResult
    func write(_ name: String, _ text: String, mode: mode_t = 0o755) throws -> PathBytes {
        let file = path.appending(name)
        try Data(text.utf8).write(to: URL(fileURLWithPath: file.description))
        try #require(file.withCString { chmod($0, mode) } == 0)
        // A process that another test is about to start may inherit the descriptor until it calls execve(2).
        #expect(Deadline.wait { file.withCString { cal_probe_entry_writers(AT_FDCWD, $0) } != EAGAIN })
        return file
    }

    @discardableResult
    func directory(_ name: String, mode: mode_t = 0o755) throws -> PathBytes {
        let directory = path.appending(name)
        TestFile.makeDirectory(directory)
        try #require(directory.withCString { chmod($0, mode) } == 0)
        return directory
    }

    func text(of name: String) -> String? { try? String(contentsOfFile: "\(path)/\(name)", encoding: .utf8) }

    /// Returns the process IDs that a script wrote into a file, one per line.
    func processes(in name: String) -> [pid_t] {
        (text(of: name) ?? "").split(separator: "\n").compactMap { pid_t($0) }
    }
}

/// Whether no process has this ID.
///
/// A zombie counts as a process.
func isGone(_ process: pid_t) -> Bool { kill(process, 0) != 0 && errno == ESRCH }

/// Runs the closure on `count` threads at once and waits for all of them.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let group = DispatchGroup()
    for index in 0..<count {
        group.enter()
        Thread.detachNewThread {
            body(index)
            group.leave()
        }
    }
    group.wait()
}

func makeLauncher() throws -> ProcessLauncher { ProcessLauncher(launcher: try #require(ProcessLauncher.find())) }

/// Creates a command that runs a script with the shell.
func shell(
    _ script: String, input: [UInt8] = [], output: Command.Output = .collected(limit: 1 << 20),
    timeout: Duration = .seconds(60), grace: Duration = .seconds(10), linger: Duration = .seconds(2)
) -> Command {
    Command(
        executable: "/bin/sh", arguments: [Array("-c".utf8), Array(script.utf8)],
        environment: [("PATH", Array("/usr/bin:/bin".utf8))], input: input, output: output, timeout: timeout,
        grace: grace, linger: linger)
}

extension ProgramResult {
    /// The standard output as a string.
    var text: String { String(decoding: output, as: UTF8.self) }
}

/// A logger that records its messages.
final class LogLines: Sendable {
    private let lines = Locked<[String]>([])

    var all: [String] { lines.value }

    var logger: Logger {
        Logger(label: "test") { _ in Sink(lines: self.lines) }
    }

    private struct Sink: Logging.LogHandler {
        let lines: Locked<[String]>
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace
        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }
        func log(event: LogEvent) { lines.change { $0.append("\(event.level): \(event.message)") } }
    }
}

extension RuntimeDirectories {
    /// Returns the list that begins with a directory for tests.
    static func first(_ directory: PathBytes) -> RuntimeDirectories {
        RuntimeDirectories(service: directory, session: nil, temporary: nil, user: geteuid())
    }
}

/// An environment for plugins and commands, with its own launcher, scratch directories and log.
struct Stage {
    let directory: TemporaryDirectory
    let host: PluginHost
    let launcher: ProcessLauncher
    let environment: ProgramEnvironment
    let log = LogLines()
    let stop = StopSignal()
    let progress = Locked<[String]>([])

    init(grace: Duration = .seconds(10), serveLimits: ServeLimits = ServeLimits()) throws {
        directory = TemporaryDirectory()
        launcher = try makeLauncher()
        environment = ProgramEnvironment(home: "/home/nobody", timeZone: "Europe/Berlin", isRoot: geteuid() == 0)
        host = PluginHost(
            launcher: launcher, scratchDirectories: ScratchDirectories(in: .first(directory.path.appending("scratch"))),
            environment: environment, grace: grace, serveLimits: serveLimits)
    }

    func discovery(_ yaml: [String: JSONValue] = [:]) -> PluginDiscovery {
        PluginDiscovery(host: host, searchDirectories: [directory.path.appending("search")]) { file in
            guard let value = yaml[String(decoding: file.parent.lastComponent, as: UTF8.self)] else {
                return .failure(Problem("no text"))
            }
            return .success(PositionedValue(value))
        }
    }

    /// The directory in which the attempts of a job run, available after the first attempt has started.
    func scratch() -> PathBytes { PathBytes("\(host.scratchDirectories.example)-\(Self.job)") }

    /// The job of invocations, unless a test specifies another one.
    static let job = JobID("01JD8Z3T1WQ2V7N0C5M4K9R6XB")

    /// The entries beside and inside the scratch directory of this instance.
    var leftovers: [String] {
        let base = directory.path.appending("scratch").description
        let all = (try? FileManager.default.subpathsOfDirectory(atPath: base)) ?? ["unreadable"]
        let own = String(decoding: scratch().parent.lastComponent, as: UTF8.self)
        return all.filter { $0 != own }.sorted()
    }

    /// Runs a script as a plugin.
    func plugin(
        _ script: String, change: (inout PluginDescription) -> Void = { _ in },
        invoke: (inout Invocation) -> Void = { _ in }
    ) throws -> Outcome {
        var description = PluginDescription(name: "resize", version: "1", parameters: nil)
        change(&description)
        let executable = try directory.write("resize", script)
        let plugin = InstalledPlugin(
            description: description, location: executable, executable: executable, arguments: [], notices: [])
        return PluginHandler(plugin: plugin, host: host).run(invocation(invoke))
    }

    /// Runs an action without built-in handlers.
    func run(_ work: Action.Work, invocation: (inout Invocation) -> Void = { _ in }) -> Outcome {
        let registry = HandlerRegistry(builtIn: [], discovery: discovery())
        let action = Action(work, location: SourcePosition(file: "rules.yaml", line: 3, column: 1))
        return ActionRunner(registry: registry).run(action, self.invocation(invocation))
    }

    func invocation(_ change: (inout Invocation) -> Void = { _ in }) -> Invocation {
        let event = Self.event(path: "/srv/in/a b.jpg")
        var job = Job(id: Stage.job, rule: "thumbnails", event: event)
        job.attempt = 2
        job.previous = PreviousAttempt(attempt: 1, outcome: "retry", message: "busy")
        let progress = progress
        var invocation = Invocation(
            job: job, rule: SourcePosition(file: "rules/photos.yaml", line: 12, column: 5),
            baseDirectory: directory.path,
            maximumAttempts: 5, parameters: .object([:]),
            roots: [],
            now: Timestamp(seconds: 1_763_708_667, nanoseconds: 0), timeout: .seconds(60), stop: stop, log: log.logger
        ) { fraction, message in
            progress.change { $0.append("\(fraction) \(message ?? "-")") }
        }
        change(&invocation)
        return invocation
    }

    static func event(path: PathBytes, kind: EventKind = .created, from: PathBytes? = nil) -> FileEvent {
        let snapshot = Snapshot(
            identity: FileIdentity(deviceMajor: 8, deviceMinor: 1, inode: 131_204, birth: 1_763_708_660_002_000_000),
            type: .file, size: 48213, modified: Timestamp(seconds: 1_763_708_663, nanoseconds: 118_204_511),
            changed: Timestamp(seconds: 1_763_708_663, nanoseconds: 0),
            born: Timestamp(seconds: 1_763_708_660, nanoseconds: 2_000_000), mode: 0o644, uid: 1000, gid: 1000, links: 1
        )
        return FileEvent(
            kind: kind, path: path, root: "/srv/in", from: from, snapshot: snapshot,
            time: Timestamp(seconds: 1_763_708_665, nanoseconds: 120_000_000))
    }

    /// Changes the path of the invocation's event.
    static func use(path: PathBytes, in invocation: inout Invocation) {
        invocation.job.event = event(path: path)
    }
}

/// Threads for handlers, which must not block those of Swift's own pool.
private let pool = WorkerPool(limit: 300)

/// Blocks until the closure has returned; it runs on other threads.
func waiting<Value: Sendable>(for body: @escaping @Sendable () async -> Value) -> Value {
    let value = Request<Value>()
    pool.submit([{ value.end(await body()) }])
    guard let result = value.wait() else { preconditionFailure("a wait without a limit has an end") }
    return result
}

extension ActionRunner {
    /// Runs the action for one event.
    func run(_ action: Action, _ invocation: Invocation) -> Outcome {
        waiting { await run(action, [invocation]) }.first ?? Outcome(.failed, "no outcome")
    }

    func runBlocking(_ action: Action, _ invocations: [Invocation]) -> [Outcome] {
        waiting { await run(action, invocations) }
    }
}

extension Handler {
    func run(_ invocation: Invocation) -> Outcome { run([invocation]).first ?? Outcome(.failed, "no outcome") }

    func run(_ invocations: [Invocation]) -> [Outcome] { waiting { await perform(invocations) } }
}
