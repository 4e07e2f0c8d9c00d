import ActionAPI
import ArgumentParser
import Configuration
import FileObserving
import Foundation
import Glibc
import Monitoring
import PluginProtocol
import Reconciling
import Rules
import System
import Watching

/// `alight watch`: prints file events, without rules.
struct WatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "watch", "Print file events, without rules, until stopped.",
        discussion: """
            Prints one line per event on standard output, and all messages on standard error: 'ready: watching N \
            directories' once all watches are set up. An event is printed after its path has settled. If the reader is \
            slow, several events of a path become one, and none is lost. Exits with status 0 on SIGTERM and SIGINT, and \
            when the reader closes the pipe. SIGUSR1 rescans all files.

              alight watch ~/Downloads
              alight watch --json --events created 'in/**/*.jpg' | jq .path
            """)

    @Argument(
        help: .value(
            "path", "Directories, files, or quoted globs.",
            discussion: "A directory is watched with everything below it. A file need not exist yet."),
        completion: .file())
    var paths: [String]

    @Flag(help: "Print one JSON object per line, with the members that plugins receive.")
    var json = false

    @Option(
        help: .value("duration", "The time without changes after which a path has settled, such as 0, 500ms or 2s."))
    var settle = "100ms"

    @Option(
        help: .value(
            "events", "The events to print, separated by commas.",
            discussion: "Default: all changes of files, and the events of the watch itself, such as 'overflow'."),
        completion: OfferedWords.list(of: EventMask.words))
    var events: String?

    @Option(help: .value("glob", "Exclude matching paths, and everything below them; may be repeated."))
    var exclude: [String] = []

    @Option(help: .value("n", "Descend at most N directory levels below a root."))
    var depth: Int?

    @Flag(help: "Include names with a leading dot.")
    var hidden = false

    @Option(
        help: .value("types", "The file types to include: file, directory, symlink, other, any."),
        completion: OfferedWords.list(of: FileType.allCases.map(\.rawValue) + ["any"]))
    var types = "any"

    @Option(
        help: .value("backend", "How directories are watched: auto, inotify or poll."),
        completion: .list(["auto", "inotify", "poll"]))
    var backend = "auto"

    @Option(help: .value("duration", "The interval at which directories are polled."))
    var poll = "10s"

    @Flag(help: "Print existing files first.")
    var existing = false

    @Flag(help: "Include files that are opened, read, or closed without being written.")
    var raw = false

    func validate() throws {
        _ = try options()
        guard !paths.contains("") else { throw ValidationError("a path is empty") }
    }

    // MARK: Options

    private func options() throws -> ObservationOptions {
        var options = ObservationOptions()
        options.settle = try parsed("--settle") { try DurationText.parse(settle) }
        options.pollInterval = try parsed("--poll") { try DurationText.parse(poll) }
        guard options.pollInterval >= .milliseconds(10) else {
            throw ValidationError("'--poll \(poll)' is shorter than 10ms")
        }
        if let events { options.events = try mask(events) }
        if raw { options.events.formUnion(.raw) }
        options.excludes = exclude.map { PathBytes($0) }
        if let depth, depth < 0 { throw ValidationError("'--depth \(depth)' is negative") }
        (options.depth, options.hidden, options.types) = (depth, hidden, try kinds(types))
        guard let backend = ObservationBackend(rawValue: backend) else {
            throw ValidationError(
                "unknown backend '\(Display.text(self.backend))' in --backend; write 'auto', 'inotify' or 'poll'")
        }
        (options.backend, options.existing) = (backend, existing)
        return options
    }

    private func mask(_ words: String) throws -> EventMask {
        try Self.union(of: words) { word in
            if let events = EventMask(word: word) { return events }
            throw ValidationError(
                "unknown event '\(Display.text(word))' in --events; \(EventSpelling.help(for: word))")
        }
    }

    private func kinds(_ words: String) throws -> Set<FileType> {
        try Self.union(of: words) { word in
            if word == "any" { return Set(FileType.allCases) }
            if let type = FileType(rawValue: word) { return [type] }
            let all = "the types are file, directory, symlink, other, any"
            throw ValidationError("unknown type '\(Display.text(word))' in --types; \(all)")
        }
    }

    /// Returns the union of what the words of a list stand for.
    private static func union<Members: SetAlgebra>(
        of words: String, _ members: (String) throws -> Members
    ) throws -> Members {
        try words.split(separator: ",", omittingEmptySubsequences: false)
            .reduce(into: []) { $0.formUnion(try members(String($1))) }
    }

    // MARK: Run

    func run() throws {
        var options = try options()
        let printer = EventPrinter(isJSON: json)
        options.notify = { printer.emit($0) }
        let observer: FileObserver
        do throws(ObservationError) {
            options.globs = []
            for path in paths { options.globs += try WatchedPath.patterns(for: path) }
            observer = try FileObserver(roots: ["/"], options: options)
        } catch {
            printer.emit(error)
            if case .invalidGlob = error { throw Exit(.usage) }
            throw Exit(.runtimeError)
        }
        try Signals.forEach { number in
            if number == SIGUSR1 {
                observer.rescan()
            } else {
                // There is no accepted work to finish.
                Output.hurry()
                Output.standard.exit(.done)
            }
        }
        // Not a task: the threads of its executor would wake up once a second, indefinitely.
        let reader = WorkerThread(name: "alight-events") {
            do throws(ObservationError) {
                try observer.forEachBatch { batch in
                    for event in batch {
                        if printer.write(event) != .whole { Output.standard.exit(Output.checked(.done)) }
                    }
                }
            } catch {
                printer.emit(error)
            }
            Output.standard.exit(.runtimeError)
        }
        guard let reader else { throw ObservationError.noThread }
        reader.detach()
        Output.standard.waitForDeparture()
        Output.standard.exit(.done)
    }
}

/// The paths that a user names, as patterns below `/`.
private enum WatchedPath {
    /// Returns the patterns for a path: everything below a directory, a file itself, and both for a path that does not
    /// exist and is not a glob.
    static func patterns(for text: String) throws(ObservationError) -> [PathBytes] {
        let path = PathBytes.current.resolving(text.utf8).normalized
        let name = relative(path.escapedForGlob)
        let below = name.map { $0.appending("**") } ?? "**"
        if let snapshot = KernelFileSystem().stat(following: path).snapshot {
            return [snapshot.type == .directory ? below : name ?? below]
        }
        guard text.utf8.contains(where: { "*?[{".utf8.contains($0) }) else { return [name ?? below, below] }
        // The directory in front of a relative glob is not part of the pattern, so it is escaped.
        let glob = PathBytes(text)
        try ObservationOptions.check(glob)
        return [relative(PathBytes.current.escapedForGlob.resolving(glob.bytes)) ?? below]
    }

    /// Returns the path relative to `/`; nil for `/` itself.
    private static func relative(_ path: PathBytes) -> PathBytes? {
        let rest = path.bytes.drop { $0 == .slash }
        return rest.isEmpty ? nil : PathBytes(rest)
    }
}

/// Prints events as text or JSON lines on standard output, and messages about the watch on standard error.
struct EventPrinter: Sendable {
    let isJSON: Bool

    /// Writes one line.
    func write(_ event: FileEvent) -> Output.Written {
        Output.standard.write(isJSON ? PluginEvent(event).line : Self.line(event, hasColor: Output.standard.hasColor))
    }

    /// Formats an event: `11:24:03 modified /in/cat.jpg (extended), 41 bytes`.
    static func line(_ event: FileEvent, hasColor: Bool) -> String {
        let color =
            switch event.kind {
            case .created, .arriving: "32"
            case .modified: "33"
            case .deleted: "31"
            case .moved: "36"
            case .attributes: "35"
            default: "2"
            }
        let word = event.kind.rawValue.padding(toLength: 10, withPad: " ", startingAt: 0)
        var line = "\(TimeText.clock(event.time)) "
        line += Display.painted(word, hasColor ? color : nil) + " "
        if let from = event.from { line += "\(Display.path(from)) → " }
        line += Display.path(event.path)
        switch event.snapshot.type {
        case .directory where event.path.bytes != [.slash]: line += "/"
        case .symlink: line += " (symlink)"
        default: break
        }
        var details = event.changed.map { Display.text($0) }
        if event.isReplaced { details.append("replaced") }
        if event.isByMove { details.append("by a move") }
        if event.origin != .live, !event.kind.isLifecycle { details.append(event.origin.rawValue) }
        if !details.isEmpty { line += " (\(details.joined(separator: ", ")))" }
        if event.snapshot.type == .file, !event.kind.isLifecycle {
            line += ", \(Reporter.count(event.snapshot.size, "byte"))"
        }
        return line
    }

    // MARK: Standard error

    private let reporter = Reporter(format: .text)

    func emit(_ error: ObservationError) { reporter.emit(error) }

    func emit(_ notice: ObservationNotice) {
        switch notice {
        case .ready(let directories):
            reporter.emit(.notice, "ready: watching \(Reporter.count(directories, "directory"))")
        case .progress(let directories): reporter.watching(.progress(directories: directories))
        case .overflow: reporter.watching(.overflow)
        case .rescanned: break
        case .rootMissing(let root): reporter.emit(.notice, "'\(Display.path(root))' does not exist; waiting for it")
        case .rootAppeared(let root): reporter.watching(.rootAppeared(root))
        case .unmounted(let directory): reporter.watching(.unmounted(directory, point: directory))
        case .mounted(let directory): reporter.watching(.mounted(directory))
        case .polling(let directory, let fileSystem, let interval):
            let reason =
                fileSystem.map { "the kernel does not report all changes on \(Display.text($0))" }
                ?? "'--backend poll' is set"
            reporter.reportPolling(directory, every: interval, reason)
        case .watchLimit(let sysctl, let limit, let needed, let polled):
            reporter.watching(.limited(InotifyLimit(name: sysctl, value: limit), needed: needed, polled: polled))
        case .unreadable(let path, let errno): reporter.report(.notice(.unreadable(path, errno: errno)))
        case .stillWritten(let path, let duration): reporter.report(.notice(.stillWritten(path, for: duration)))
        case .failure(let error): emit(error)
        }
    }
}
