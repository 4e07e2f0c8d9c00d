public import FileEvents
import Synchronization

/// Says that a path may have changed.
///
/// Nothing else about it is promised: the observer looks at the disk to find out.
/// A hint that is doubled, late or wrong does no harm.
public struct PathHint: Sendable, Hashable {
    /// What gave rise to the hint.
    public struct Signs: OptionSet, Sendable, Hashable {
        // The bits are those of the watcher's own signs.
        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }

        /// Content was written.
        public static let written = Signs(rawValue: 1 << 0)
        /// A descriptor that was open for writing is closed.
        public static let closed = Signs(rawValue: 1 << 1)
        /// The name appeared: made, linked, or renamed to.
        public static let appeared = Signs(rawValue: 1 << 2)
        /// The name went: deleted, or renamed away.
        public static let vanished = Signs(rawValue: 1 << 3)
        /// Mode, owner, times, link count or extended attributes changed.
        public static let attributes = Signs(rawValue: 1 << 4)
        /// The path was found by listing its folder.
        public static let listed = Signs(rawValue: 1 << 5)
        /// Everything known below the path is dirty too.
        public static let subtree = Signs(rawValue: 1 << 6)
        /// The name came from, or went to, another place by a rename; with `appeared` it is complete at once.
        public static let moved = Signs(rawValue: 1 << 7)
    }

    public var path: PathBytes
    public var signs: Signs
    public var origin: EventOrigin

    public init(_ path: PathBytes, _ signs: Signs = [.appeared, .written, .closed], origin: EventOrigin = .live) {
        self.path = path
        self.signs = signs
        self.origin = origin
    }
}

/// What a source of hints tells.
public enum SourceReport: Sendable, Hashable {
    case hint(PathHint)
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
    public func hint(_ path: PathBytes, _ signs: PathHint.Signs = [.appeared, .written, .closed]) {
        send([.hint(PathHint(path, signs))])
    }

    /// Tells the first listing, with these paths in it, and that it is done.
    public func list(_ found: PathBytes...) {
        let roots = roots
        var reports = roots.map { SourceReport.listing($0, .scan) }
        reports += found.map { .hint(PathHint($0, .listed, origin: .scan)) }
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
