import Configuration
import FileEvents
import FileObserving
import Glibc
import Plugins
import Programs
import Rules
import Synchronization
import System

/// Reloads the rules on request, or when their files have changed, on a thread of its own.
///
/// Rules with errors are reported and rejected; the rules loaded before stay in effect.
final class RuleReloading: Sendable {
    private let wake = Wake()
    /// The locations of the rules, as at the start.
    private let locations: [PathBytes]
    /// The tags of the rules to run; all rules if empty.
    private let tags: Set<String>
    private let program: CommandContext
    private let reporter: Reporter
    /// The service manager that is notified of reloads; nil without systemd.
    private let service: ServiceManager?
    /// Receives rules that have no errors.
    private let take: @Sendable (LoadedRules) -> Void
    /// The files as they were when they were last read.
    private let seen: Mutex<RulesFiles>
    private let rejected = Atomic(false)
    /// The number of reloads that have started; `finished` is its value when the last reload finished.
    private let started = Atomic(0)
    private let finished = Atomic(0)

    /// The time for which a rules file must not change before it is read.
    private static let quiet = Duration.milliseconds(300)
    /// The pause after each read of the kernel queue, so that events beside the rules seldom wake the thread.
    private static let rest = Duration.milliseconds(20)

    /// Creates the reloading, without starting it.
    ///
    /// - Parameters:
    ///   - locations: The rules files, and directories of them.
    ///   - tags: The tags of the rules to run; all rules if empty.
    ///   - seen: The files before the rules were read.
    ///   - program: The environment for loading rules.
    ///   - reporter: Prints diagnostics.
    ///   - service: Notified when the rules are being read, and when they are rejected.
    ///   - take: Called on the thread with rules that have no errors.
    init(
        _ locations: [PathBytes], tags: Set<String>, seen: RulesFiles, _ program: CommandContext,
        _ reporter: Reporter, _ service: ServiceManager?, take: @escaping @Sendable (LoadedRules) -> Void
    ) {
        self.seen = Mutex(seen)
        (self.locations, self.tags, self.take) = (locations, tags, take)
        (self.program, self.reporter, self.service) = (program, reporter, service)
    }

    /// Whether the current rules files have errors, so that earlier rules are in effect.
    var hasRejected: Bool { rejected.load(ordering: .relaxed) }

    /// Requests a reload.
    ///
    /// Several requests before it starts cause one reload.
    func request() { wake.signal() }

    /// Requests a reload, and blocks until it is done.
    ///
    /// - Parameter timeout: The timeout.
    /// - Returns: Whether the rules were accepted; nil after the timeout.
    func requestAndWait(_ timeout: Duration) -> Bool? {
        let before = started.load(ordering: .acquiring)
        request()
        let deadline = ContinuousClock.now + timeout
        // A reload that was already running may have read older files, so wait for the next one.
        while finished.load(ordering: .acquiring) <= before {
            guard ContinuousClock.now < deadline else { return nil }
            usleep(5000)
        }
        return !hasRejected
    }

    /// Starts to serve requests indefinitely.
    ///
    /// - Throws: An `ObservationError` when no thread can be started.
    func start() throws(ObservationError) {
        let thread = WorkerThread(name: "alight-reload") { [self] in
            while true {
                wake.wait(until: nil)
                reload()
            }
        }
        if thread == nil { throw .noThread }
    }

    /// Watches the files of the rules and the links that lead to them, and requests a reload when they change.
    ///
    /// After each change, whatever the links lead to then is watched. Changes between reading the rules and watching
    /// them are detected by comparing the files.
    ///
    /// - Throws: An `ObservationError` when they cannot be watched.
    func watchFiles() throws(ObservationError) {
        let files = seen.withLock { $0 }
        guard !files.globs.isEmpty else { return }
        let observer = try Self.observer(of: files)
        // Not a task: the threads of its executor would wake up once a second, indefinitely.
        let thread = WorkerThread(name: "alight-rules") { [self] in
            do throws(ObservationError) {
                try watch(files, observer)
            } catch {
                reporter.emit(
                    .warning, "the rules are no longer watched for changes: \(Display.text(error.description))",
                    help: "send SIGHUP after a change")
            }
        }
        guard let thread else { throw .noThread }
        thread.detach()
    }

    private static func observer(of files: RulesFiles) throws(ObservationError) -> FileObserver {
        var options = ObservationOptions()
        options.settle = quiet
        options.events = EventMask([.created, .modified, .moved, .deleted]).union(.lifecycle)
        options.existing = true
        options.rest = rest
        options.types = [.file, .symlink]
        options.globs = files.globs.sorted()
        return try FileObserver(roots: ["/"], options: options)
    }

    /// Requests reloads indefinitely; replaces the observer whenever the links lead elsewhere.
    private func watch(_ files: RulesFiles, _ observer: FileObserver) throws(ObservationError) {
        var (files, observer) = (files, observer)
        while true {
            var current = files
            try observer.forEachBatch { batch in
                current = RulesFiles(at: locations, program)
                let isNews = batch.contains { !$0.kind.isLifecycle && $0.origin != .scan }
                if isNews || current != seen.withLock({ $0 }) { request() }
                if current.globs != files.globs { observer.stopWithoutWaiting() }
            }
            // The first scan of the next observer compares the files again.
            files = current
            observer = try Self.observer(of: files)
        }
    }

    private func reload() {
        started.wrappingAdd(1, ordering: .releasing)
        defer { finished.store(started.load(ordering: .relaxed), ordering: .releasing) }
        service?.recordReloading()
        let files = RulesFiles(at: locations, program)
        seen.withLock { $0 = files }
        program.discovery.forget()
        program.host.retireOutdated()
        var loaded = program.loader.load(locations)
        if !tags.isEmpty { loaded.keepOnly(tags: tags) }
        for diagnostic in loaded.diagnostics { reporter.emit(diagnostic) }
        rejected.store(loaded.hasErrors, ordering: .relaxed)
        guard !loaded.hasErrors else {
            reporter.emit(
                .error, "the new rules contain errors; the rules loaded before stay in effect",
                help: "fix the errors; the rules are reloaded when their files change, or on SIGHUP")
            service?.recordNotReloaded()
            return
        }
        if loaded.ruleset.rules.isEmpty { reporter.emit(.warning, "no rule is enabled: nothing is watched") }
        if let problem = program.scratchProblem(for: loaded.ruleset.rules) {
            reporter.emit(.warning, Display.text(problem.message), help: problem.help)
        }
        service?.recordLoaded()
        take(loaded)
    }
}

/// The rules files and the symbolic links that lead to them, as they are at one time.
///
/// All paths are without links before their last name. So the target of a link may be replaced at any place on the way
/// to a file, as Kubernetes, GNU Stow and NixOS do.
struct RulesFiles: Equatable {
    /// The existing files and links.
    private var states: [PathBytes: Snapshot] = [:]
    /// The globs below `/` of everything that can change the files; missing paths are included.
    private(set) var globs: Set<PathBytes> = []

    /// - Parameters:
    ///   - locations: Rules files, and directories of them.
    ///   - program: The environment for loading rules.
    init(at locations: [PathBytes], _ program: CommandContext) {
        for location in locations { add(program.path(location), isEntry: false) }
    }

    private mutating func add(_ path: PathBytes, isEntry: Bool) {
        var walk = PathWalk(path)
        while let (location, found) = walk.next() {
            if let snapshot = found.snapshot, snapshot.type == .symlink { add(location, snapshot) }
        }
        let snapshot = KernelFileSystem().stat(walk.end).snapshot
        let isDirectory = snapshot?.type == .directory
        // A missing path may become either.
        if !isDirectory { add(walk.end, snapshot) }
        guard !isEntry, isDirectory || snapshot == nil else { return }
        for suffix in RuleLoader.suffixes { insert(walk.end.escapedForGlob.appending("*" + suffix)) }
        for name in (try? KernelFileSystem().names(in: walk.end)) ?? [] where RuleLoader.isRulesFile(name.bytes) {
            add(walk.end.appending(name.bytes), isEntry: true)
        }
    }

    private mutating func add(_ path: PathBytes, _ snapshot: Snapshot?) {
        states[path] = snapshot
        insert(path.escapedForGlob)
    }

    private mutating func insert(_ glob: PathBytes) {
        if let relative = glob.relative(to: "/"), !relative.isEmpty { globs.insert(PathBytes(relative)) }
    }

    /// The number of watches that the globs need: one for each directory on the way.
    var watchCount: Int {
        var directories: Set<PathBytes> = []
        for glob in globs {
            var directory = PathBytes("/").appending(glob.bytes).parent
            while directories.insert(directory).inserted { directory = directory.parent }
        }
        return directories.count
    }
}
