import ArgumentParser
import FileObserving
import FileWatching
import Glibc
import Rules

/// `alight watch`: print what happens to files, without rules.
struct WatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Print what happens to files, until stopped.",
        discussion: """
            Prints one line per event on standard output, and all else on standard error: 'ready: watching N folders' \
            once every watch is live. An event is told when its path has come to rest. Nothing is lost when the reader \
            is slow: what happens to a path meanwhile becomes one event. SIGTERM and SIGINT end it with 0, and so does \
            a reader that goes. SIGUSR1 compares everything with what was known.

              alight watch ~/Downloads
              alight watch --json --events created 'in/**/*.jpg' | while read -r event; do …; done

            \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
            """)

    @Argument(
        help: ArgumentHelp(
            "Folders, files, or quoted globs.",
            discussion: "A folder is watched with everything below it. A file needn't be there yet.",
            valueName: "path"),
        completion: .file())
    var paths: [String]

    @Flag(help: "Print one JSON object a line, with the members that plugins get.")
    var json = false

    @Option(help: ArgumentHelp("How long a path must be quiet, such as 0, 500ms or 2s.", valueName: "duration"))
    var settle = "100ms"

    @Option(
        help: ArgumentHelp(
            "Events to tell, separated by commas.",
            discussion: "Default: all differences, and what happens to the watching.", valueName: "words"),
        completion: OfferedWords.list(of: EventMask.words))
    var events: String?

    @Option(help: ArgumentHelp("Leave out what matches, and all below it; may be repeated.", valueName: "glob"))
    var exclude: [String] = []

    @Option(help: ArgumentHelp("Enter so many folder levels below a root; 0 for none.", valueName: "n"))
    var depth: Int?

    @Flag(help: "Look at names with a leading dot too.")
    var hidden = false

    @Option(
        help: ArgumentHelp("Kinds to tell of: file, directory, symlink, other, any.", valueName: "kinds"),
        completion: OfferedWords.list(of: FileType.allCases.map(\.rawValue) + ["any"]))
    var types = "any"

    @Option(
        help: ArgumentHelp("'auto', 'inotify' or 'poll'.", valueName: "backend"),
        completion: .list(["auto", "inotify", "poll"]))
    var backend = "auto"

    @Option(help: ArgumentHelp("How long to rest between two looks, where folders are polled.", valueName: "duration"))
    var poll = "10s"

    @Flag(help: "Tell first what is there.")
    var existing = false

    @Flag(help: "Also tell of files that are opened, read, and closed unwritten.")
    var raw = false

    func validate() throws {
        _ = try options()
        guard !paths.contains("") else { throw ValidationError("a path is empty") }
    }

    // MARK: Options

    private func options() throws -> ObservationOptions {
        var options = ObservationOptions()
        options.settle = try duration(settle, "--settle")
        options.pollInterval = try duration(poll, "--poll")
        guard options.pollInterval >= .milliseconds(10) else {
            throw ValidationError("'--poll \(poll)' is shorter than 10ms")
        }
        if let events { options.events = try mask(events) }
        if raw { options.events.formUnion(.raw) }
        options.excludes = exclude.map { PathBytes($0) }
        if let depth, depth < 0 { throw ValidationError("'--depth \(depth)' is negative") }
        options.depth = depth
        options.hidden = hidden
        options.types = try kinds(types)
        guard let backend = ObservationBackend(rawValue: backend) else {
            throw ValidationError(
                "unknown backend '\(Display.text(self.backend))' in --backend; write 'auto', 'inotify' or 'poll'")
        }
        options.backend = backend
        options.existing = existing
        return options
    }

    private func duration(_ text: String, _ option: String) throws -> Duration {
        do throws(DurationProblem) {
            return try DurationText.parse(text)
        } catch {
            throw ValidationError("\(option): \(error.message); \(error.help)")
        }
    }

    private func mask(_ words: String) throws -> EventMask {
        var mask: EventMask = []
        for word in words.split(separator: ",", omittingEmptySubsequences: false) {
            guard let one = EventMask(word: String(word)) else {
                let word = String(word)
                throw ValidationError(
                    "unknown event '\(Display.text(word))' in --events; \(EventSpelling.help(for: word))")
            }
            mask.formUnion(one)
        }
        return mask
    }

    private func kinds(_ words: String) throws -> Set<FileType> {
        var kinds: Set<FileType> = []
        for word in words.split(separator: ",", omittingEmptySubsequences: false) {
            if word == "any" {
                kinds.formUnion(FileType.allCases)
            } else if let kind = FileType(rawValue: String(word)) {
                kinds.insert(kind)
            } else {
                throw ValidationError(
                    "unknown kind '\(Display.text(String(word)))' in --types; the kinds are file, directory, symlink, "
                        + "other, any")
            }
        }
        return kinds
    }

    // MARK: Run

    func run() throws {
        var options = try options()
        let printer = EventPrinter(isJSON: json)
        options.notify = { printer.say($0) }
        let observer: FileObserver
        do throws(ObservationError) {
            options.globs = []
            for path in paths { options.globs += try WatchedPath.patterns(for: path) }
            observer = try FileObserver(roots: ["/"], options: options)
        } catch {
            printer.say(error)
            if case .invalidGlob = error { throw Exit(.usage) }
            throw Exit(.runtimeError)
        }
        let isSteerable = Signals.forEach { number in
            if number == SIGUSR1 {
                observer.rescan()
            } else {
                // Nothing is accepted that would have to be finished.
                Output.hurry()
                Output.standard.exit(.done)
            }
        }
        guard isSteerable else {
            printer.say(.noThread)
            throw Exit(.runtimeError)
        }
        // No task: its threads would look after themselves once a second, for ever.
        let reader = WorkerThread(name: "alight-events") {
            do throws(ObservationError) {
                try observer.forEachBatch { batch in
                    for event in batch {
                        switch printer.write(event) {
                        case .whole: continue
                        case .unread: Output.standard.exit(.done)
                        case .failed(let errno):
                            printer.sayUnwritten(errno)
                            Output.standard.exit(.runtimeError)
                        }
                    }
                }
            } catch {
                printer.say(error)
            }
            Output.standard.exit(.runtimeError)
        }
        guard let reader else {
            printer.say(.noThread)
            throw Exit(.runtimeError)
        }
        reader.detach()
        Output.standard.waitForDeparture()
        Output.standard.exit(.done)
    }
}

/// What a person names, as patterns below `/`.
private enum WatchedPath {
    /// A folder is all that is below it, a file itself, and what is not there may become either.
    static func patterns(for text: String) throws(ObservationError) -> [PathBytes] {
        let folder = text.hasPrefix("/") ? PathBytes("/") : ProgramSurroundings.currentFolder
        let path = text.hasPrefix("/") ? PathBytes(text).normalized : folder.appending(text).normalized
        let name = relative(path.escapedForGlob)
        let below = name.map { $0.appending("**") } ?? "**"
        var status = stat()
        if path.withCString({ stat($0, &status) }) == 0 {
            return [status.st_mode & S_IFMT == S_IFDIR ? below : name ?? below]
        }
        guard text.utf8.contains(where: { "*?[{".utf8.contains($0) }) else { return [name ?? below, below] }
        // What stands in front of a relative glob is no part of it, so it is taken literally.
        let glob = PathBytes(text)
        try ObservationOptions.check(glob)
        return [
            text.hasPrefix("/")
                ? relative(glob) ?? below : (relative(folder.escapedForGlob)?.appending(glob.bytes) ?? glob)
        ]
    }

    /// The path below `/`; nil for `/` itself.
    private static func relative(_ path: PathBytes) -> PathBytes? {
        let rest = path.bytes.drop { $0 == .slash }
        return rest.isEmpty ? nil : PathBytes(rest)
    }
}
