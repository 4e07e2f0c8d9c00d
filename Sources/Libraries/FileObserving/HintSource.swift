public import FileEvents
import Synchronization
public import System

/// What a source of hints tells.
public enum SourceReport: Sendable, Hashable {
    case hint(Hint)
    /// The listing of a root begins, for this reason; `scan` for the first one.
    case listing(PathBytes, EventOrigin)
    /// Everything that the listing found has been hinted.
    case listed(PathBytes, EventOrigin)
    /// The first listing of all roots is done.
    case ready(folders: Int)
    /// Hints are missing; listings of all roots follow.
    case overflow
    /// The listings after an overflow or on demand are done.
    case rescanned
    /// A root is not there.
    case rootMissing(PathBytes)
    /// A root that was missing is there.
    case rootAppeared(PathBytes)
    /// The file system of a folder is gone.
    case unmounted(PathBytes)
}

/// Where an observer learns that paths may have changed.
///
/// The kernel is one. Another one can be given in ``ObservationOptions/source``:
/// ``ManualSource`` in tests, or something that knows of changes that the kernel
/// does not tell. A source serves one observer.
public protocol HintSource: Sendable {
    /// Begins to tell.
    ///
    /// - Parameters:
    ///   - roots: The folders that are observed.
    ///   - tell: Callable from any thread; takes reports in order and does not block.
    /// - Throws: When there is nothing to be told; the observer is not made then.
    func start(roots: [PathBytes], tell: @escaping @Sendable ([SourceReport]) -> Void) throws(ObservationError)

    /// Lists all roots again: `listing`, a hint with `listed` for each path that is found, `listed`.
    func rescan()

    /// Ends the telling and gives everything back; called once, on the observer's thread.
    func stop()
}

/// A source of hints that a test drives.
///
/// Hints say where to look; what is found there are the files of the disk.
public final class ManualSource: HintSource {
    private struct State {
        var roots: [PathBytes] = []
        var tell: (@Sendable ([SourceReport]) -> Void)?
        var isStopped = false
    }

    private let state = Mutex(State())

    /// Makes a source that tells nothing yet.
    public init() {}

    /// The roots of its observer; none before that is made.
    public var roots: [PathBytes] { state.withLock { $0.roots } }

    /// Whether its observer has ended.
    public var isStopped: Bool { state.withLock { $0.isStopped } }

    public func start(
        roots: [PathBytes], tell: @escaping @Sendable ([SourceReport]) -> Void
    ) throws(ObservationError) {
        state.withLock { state in
            state.roots = roots
            state.tell = tell
        }
    }

    /// Tells what it is given, in order.
    public func tell(_ reports: SourceReport...) { send(reports) }

    /// Hints at one path.
    ///
    /// - Parameters:
    ///   - path: An absolute path.
    ///   - signs: By default those of a file that was made and closed.
    public func hint(_ path: PathBytes, _ signs: Hint.Signs = .content) {
        send([.hint(Hint(path: path, signs: signs))])
    }

    /// Tells the first listing, with these paths in it, and that it is done.
    public func list(_ found: PathBytes...) {
        let roots = roots
        var reports = roots.map { SourceReport.listing($0, .scan) }
        reports += found.map { .hint(Hint(path: $0, signs: .listed, origin: .scan)) }
        reports += roots.map { .listed($0, .scan) }
        send(reports + [.ready(folders: roots.count)])
    }

    /// Compares all that is known; nothing new is found.
    public func rescan() {
        let roots = roots
        let reports = roots.flatMap { [SourceReport.listing($0, .rescan), .listed($0, .rescan)] }
        send(reports + [.rescanned])
    }

    public func stop() {
        state.withLock { state in
            state.isStopped = true
            state.tell = nil
        }
    }

    private func send(_ reports: [SourceReport]) {
        let tell = state.withLock { $0.tell }
        tell?(reports)
    }
}
