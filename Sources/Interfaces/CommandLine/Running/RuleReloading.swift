import FileEvents
import FileObserving
import FileWatching
import Glibc
import Handling
import Pipeline
import RuleLoading
import Rules
import Synchronization
import System

/// Loads the rules again when it is asked to, or when their files have changed, on a thread of its own.
///
/// Rules with an error are told of and left: those that ran go on.
final class RuleReloading: Sendable {
    private let wake: Wake
    /// Where the rules are, as at the start.
    private let places: [PathBytes]
    /// Only rules with one of these tags are run; all when there are none.
    private let tags: Set<String>
    private let program: ProgramSurroundings
    private let reporter: Reporter
    /// Who is told that they are being read; nil without systemd.
    private let service: ServiceManager?
    /// Takes rules that are in order.
    private let take: @Sendable (LoadedRules) -> Void
    /// The files as they were when they were read last.
    private let seen: Mutex<[PathBytes: Snapshot]>
    /// What sees changes of the files; nil when nobody looks.
    private let observer = Mutex<FileObserver?>(nil)
    private let rejected = Atomic(false)
    /// How often the rules have begun to be read again, and how often that has come to its end.
    private let begun = Atomic(0)
    private let finished = Atomic(0)

    /// How long a rules file must be quiet before it is read.
    private static let quiet = Duration.milliseconds(300)
    /// How long what happens beside the rules waits for being looked at.
    private static let rest = Duration.milliseconds(20)

    /// - Parameters:
    ///   - places: The rules files, and folders of them.
    ///   - tags: Of the rules only those with one of them are run, if there are any.
    ///   - seen: What ``files(of:_:)`` was before they were read.
    ///   - program: What they depend on.
    ///   - reporter: Who says what is wrong.
    ///   - service: Who is told that the rules are being read, and when that came to nothing.
    ///   - take: Called on the thread with rules that are in order.
    /// - Throws: When there is no descriptor to be had.
    init(
        _ places: [PathBytes], tags: Set<String>, seen: [PathBytes: Snapshot], _ program: ProgramSurroundings,
        _ reporter: Reporter, _ service: ServiceManager?, take: @escaping @Sendable (LoadedRules) -> Void
    ) throws(SystemError) {
        wake = try Wake()
        self.places = places
        self.tags = tags
        self.seen = Mutex(seen)
        self.program = program
        self.reporter = reporter
        self.service = service
        self.take = take
    }

    /// Whether the rules as they are now have errors, so that others run.
    var hasRejected: Bool { rejected.load(ordering: .relaxed) }

    /// Asks for it; many calls before it begins are one.
    func request() { wake.signal() }

    /// Asks for it, and waits until it is done; blocks.
    ///
    /// - Parameter patience: How long at most.
    /// - Returns: Whether the rules were taken; nil when that isn't known in time.
    func requestAndWait(_ patience: Duration) -> Bool? {
        let before = begun.load(ordering: .acquiring)
        request()
        let deadline = ContinuousClock.now + patience
        // One that was under way then has not read what is meant.
        while finished.load(ordering: .acquiring) <= before {
            guard ContinuousClock.now < deadline else { return nil }
            usleep(5000)
        }
        return !hasRejected
    }

    /// Begins to serve requests, for ever; false when there is no thread to be had.
    func start() -> Bool {
        let thread = WorkerThread(name: "alight-reload") { [self] in
            while true {
                wake.wait(until: nil)
                reload()
            }
        }
        return thread != nil
    }

    /// Watches the rules' files, and the folders of them, and asks for a reload when they have changed.
    ///
    /// What was named by a symbolic link is watched there, and where that leads now. What has changed
    /// between the reading and the watching shows by the files themselves.
    ///
    /// - Throws: When they can't be watched.
    func watchFiles() throws(ObservationError) {
        var options = ObservationOptions()
        options.settle = Self.quiet
        options.events = EventMask([.created, .modified, .moved, .deleted]).union(.lifecycle)
        options.existing = true
        options.rest = Self.rest
        options.types = [.file, .symlink]
        options.globs = Self.paths(of: places, program).flatMap(Self.patterns)
        guard !options.globs.isEmpty else { return }
        let observer = try FileObserver(roots: ["/"], options: options)
        self.observer.withLock { $0 = observer }
        // No task: its threads would look after themselves once a second, for ever.
        let thread = WorkerThread(name: "alight-rules") { [weak self] in
            do throws(ObservationError) {
                try observer.forEachBatch { self?.take($0) }
            } catch {
                self?.reporter.say(
                    .warning, "the rules are no longer watched for changes: \(Display.text(error.description))",
                    help: "send SIGHUP after a change")
            }
        }
        guard let thread else { throw .noThread }
        thread.detach()
    }

    private func take(_ batch: [FileEvent]) {
        let isNews = batch.contains { !$0.kind.isLifecycle && $0.origin != .scan }
        if isNews || Self.files(of: places, program) != seen.withLock({ $0 }) { request() }
    }

    /// The rules files as they are now.
    static func files(of places: [PathBytes], _ program: ProgramSurroundings) -> [PathBytes: Snapshot] {
        var files: [PathBytes: Snapshot] = [:]
        for path in paths(of: places, program) {
            let inside = DiskProbe.names(in: path).filter { name in
                name.bytes.suffix(5).elementsEqual(".yaml".utf8) || name.bytes.suffix(4).elementsEqual(".yml".utf8)
            }
            for file in isFolder(path) ? inside.map({ path.appending($0.bytes) }) : [path] {
                if case .present(let snapshot) = DiskProbe.look(at: file) { files[file] = snapshot }
            }
        }
        return files
    }

    /// How many watches that takes: one for each folder on the way.
    static func watches(of places: [PathBytes], _ program: ProgramSurroundings) -> Int {
        var folders: Set<PathBytes> = []
        for path in paths(of: places, program) {
            var folder = isFolder(path) ? path : path.parent
            while folders.insert(folder).inserted { folder = folder.parent }
        }
        return folders.count
    }

    /// Where the rules are, by the names that were given, and where links among those lead.
    private static func paths(of places: [PathBytes], _ program: ProgramSurroundings) -> [PathBytes] {
        let folder = program.loading.currentFolder
        return places.flatMap { place in
            let path = folder.resolving(place.bytes).normalized
            return Set([path, DiskProbe.resolve(path) ?? path])
        }
    }

    private static func isFolder(_ path: PathBytes) -> Bool {
        guard case .present(let snapshot) = DiskProbe.look(at: path) else { return false }
        return snapshot.type == .directory
    }

    /// What stands for a rules file, or for those in a folder; patterns below `/`.
    private static func patterns(for path: PathBytes) -> [PathBytes] {
        guard let relative = path.relative(to: "/"), !relative.isEmpty else { return [] }
        let literal = PathBytes(relative).escapedForGlob
        guard isFolder(path) else { return [literal] }
        return ["*.yaml", "*.yml"].map { literal.appending($0) }
    }

    private func reload() {
        begun.wrappingAdd(1, ordering: .releasing)
        defer { finished.store(begun.load(ordering: .relaxed), ordering: .releasing) }
        service?.noteReloading()
        let files = Self.files(of: places, program)
        seen.withLock { $0 = files }
        program.discovery.forget()
        program.host.retireOutdated()
        var loaded = program.loader.load(places)
        if !tags.isEmpty { loaded.keepOnly(tags: tags) }
        for diagnostic in loaded.diagnostics { reporter.say(diagnostic) }
        rejected.store(loaded.hasErrors, ordering: .relaxed)
        guard !loaded.hasErrors else {
            reporter.say(
                .error, "the new rules contain errors; the rules loaded before stay in effect",
                help: "fix the errors; the rules are reloaded when their files change, or on SIGHUP")
            service?.noteNotReloaded()
            return
        }
        if loaded.ruleset.rules.isEmpty { reporter.say(.warning, "no rule is enabled: nothing is watched") }
        service?.noteLoaded()
        take(loaded)
    }
}
