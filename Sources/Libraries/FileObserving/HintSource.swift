public import FileEvents
import Synchronization
public import System
import Watching

/// A report of a source of hints.
public enum SourceReport: Sendable, Hashable {
    case hint(Hint)
    /// The listing of a root has started, for this reason; `scan` for the initial one.
    case listing(PathBytes, EventOrigin)
    /// Everything that the listing found has been hinted.
    case listed(PathBytes, EventOrigin)
    /// The initial listing of all roots is done.
    case ready(directories: Int)
    /// Hints are missing; listings of all roots follow.
    case overflow
    /// The listings after an overflow or on request are done.
    case rescanned
    /// A root does not exist.
    case rootMissing(PathBytes)
    /// A root that was missing exists now.
    case rootAppeared(PathBytes)
    /// The file system of a directory was unmounted.
    case unmounted(PathBytes)
}

/// A source of hints that paths may have changed.
///
/// The default is the kernel. ``ObservationOptions/source`` sets another one:
/// ``ManualSource`` in tests, or a source that detects changes that the kernel does
/// not report. A source serves one observer.
public protocol HintSource: Sendable {
    /// Starts to send reports.
    ///
    /// - Parameters:
    ///   - roots: The observed directories.
    ///   - report: Receives reports in order; callable from any thread, and does not block.
    /// - Throws: When the source can't send reports; the observer is then not created.
    func start(roots: [PathBytes], report: @escaping @Sendable ([SourceReport]) -> Void) throws(ObservationError)

    /// Lists all roots again: `listing`, a hint with `listed` for each path found, `listed`.
    func rescan()

    /// Stops sending reports and releases all resources; called once, on the observer's thread.
    func stop()
}

/// A source of hints that a test drives.
///
/// Hints only name paths to check; the observer reads the actual files from the disk.
public final class ManualSource: HintSource {
    private struct State {
        var roots: [PathBytes] = []
        var report: (@Sendable ([SourceReport]) -> Void)?
        var isStopped = false
    }

    private let state = Mutex(State())

    /// Creates a source that does not report anything yet.
    public init() {}

    /// The roots of its observer; empty before the observer is created.
    public var roots: [PathBytes] { state.withLock { $0.roots } }

    /// Whether its observer has stopped.
    public var isStopped: Bool { state.withLock { $0.isStopped } }

    public func start(
        roots: [PathBytes], report: @escaping @Sendable ([SourceReport]) -> Void
    ) throws(ObservationError) {
        state.withLock { state in
            state.roots = roots
            state.report = report
        }
    }

    /// Sends the reports, in order.
    public func report(_ reports: SourceReport...) { send(reports) }

    /// Sends a hint for one path.
    ///
    /// - Parameters:
    ///   - path: An absolute path.
    ///   - signs: The signs; by default those of a file that was created and closed.
    public func hint(_ path: PathBytes, _ signs: Hint.Signs = .content) {
        send([.hint(Hint(path: path, signs: signs))])
    }

    /// Sends the initial listing with these paths, and the report that it is done.
    public func list(_ found: PathBytes...) {
        let roots = roots
        var reports = roots.map { SourceReport.listing($0, .scan) }
        reports += found.map { .hint(Hint(path: $0, signs: .listed, origin: .scan)) }
        reports += roots.map { .listed($0, .scan) }
        send(reports + [.ready(directories: roots.count)])
    }

    /// Sends a listing of each root without hints, so that all known paths are compared.
    public func rescan() {
        let roots = roots
        let reports = roots.flatMap { [SourceReport.listing($0, .rescan), .listed($0, .rescan)] }
        send(reports + [.rescanned])
    }

    public func stop() {
        state.withLock { state in
            state.isStopped = true
            state.report = nil
        }
    }

    private func send(_ reports: [SourceReport]) {
        let report = state.withLock { $0.report }
        report?(reports)
    }
}

extension ObservationPlan {
    /// Starts the source of the options, which fills the queue from now on.
    ///
    /// - Throws: When it can't be started.
    func startSource(_ queue: HintQueue) throws(ObservationError) -> any HintProducer {
        if let source = options.source {
            try source.start(roots: roots) { reports in
                queue.add(reports.compactMap(\.hint), reports: reports.compactMap(\.watchReport))
            }
            return OtherSource(source: source)
        }
        do throws(WatchError) {
            return try Watcher(scope: scope, queue: queue)
        } catch {
            throw ObservationError(error)
        }
    }
}

/// A source that is not the kernel: it has no queue to drain, and its scope is fixed.
private struct OtherSource: HintProducer {
    let source: any HintSource

    func rescan() { source.rescan() }
    func change(to scope: WatchScope, number: Int) {}
    func hintAgain(_ doubt: DoubtedPaths) {}
    func drain() {}
    func stop() { source.stop() }
}

extension SourceReport {
    fileprivate var hint: Hint? { if case .hint(let hint) = self { hint } else { nil } }

    fileprivate var watchReport: WatchReport? {
        switch self {
        case .hint: nil
        case .listing(let root, let origin): .listing(root, origin)
        case .listed(let root, let origin): .listed(root, origin)
        case .ready(let directories): .ready(directories: directories)
        case .overflow: .overflow
        case .rescanned: .rescanned
        case .rootMissing(let root): .rootMissing(root, watching: root.parent)
        case .rootAppeared(let root): .rootAppeared(root)
        case .unmounted(let directory): .unmounted(directory, point: directory)
        }
    }
}
