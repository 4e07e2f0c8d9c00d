package import FileEvents
package import Globbing
package import System

/// The treatment of existing files by the first listing of a view.
package enum InitialScanPolicy: Sendable, Hashable {
    /// Existing files count as handled.
    case ignore
    /// Existing files are due.
    case report
    /// Files that differ from the ledger are due.
    ///
    /// With a time, a file without a row is due only if its metadata changed at that time or later, or if the view
    /// has matched it before, so that it was already due.
    case compare(since: Timestamp?, formerly: PathSelection? = nil)
    /// Existing files count as handled, and replace the rows of the ledger.
    ///
    /// With a time, a file that changed at that time or earlier is due.
    case replace(since: Timestamp?)

    /// Whether a file without a row is due.
    func reports(_ snapshot: Snapshot, at path: PathBytes) -> Bool {
        switch self {
        case .ignore: false
        case .report: true
        case .compare(let since, let former):
            since.map { $0 <= snapshot.changed || former?.matches(path, snapshot.type) == true } ?? true
        case .replace: !replaces(snapshot)
        }
    }

    /// Whether the state of a file with a row replaces that row.
    func replaces(_ snapshot: Snapshot?) -> Bool {
        guard case .replace(let since) = self else { return false }
        guard let since, let snapshot else { return true }
        return since < snapshot.changed
    }

    /// Whether the rows of an earlier run are compared.
    var usesLedger: Bool { self != .ignore && self != .report }
}

/// The files that a view matches by path and type.
package struct PathSelection: Sendable, Hashable {
    private let filter: PathFilter
    private let types: Set<FileType>

    package init(filter: PathFilter, types: Set<FileType>) { (self.filter, self.types) = (filter, types) }

    func matches(_ path: PathBytes, _ type: FileType) -> Bool {
        types.contains(type) && filter.root(matching: path.bytes) != nil
    }
}

/// The files and the events that one rule or one observer receives.
package struct View: Sendable {
    package var id: RuleID
    package var filter: PathFilter
    package var types: Set<FileType>
    package var mask: EventMask
    package var settle: SettlePolicy
    package var initialScan: InitialScanPolicy
    /// Whether due paths are stored until they are leased.
    package var storesDuePaths = false
    /// Whether its roots are polled, because the kernel reports no events for them.
    package var isPolled = false
    /// Whether a program works on the file and may change it as a normal effect.
    package var mayChangeInput = false
    /// The text in one event of a view that follows the growth of files; nil for all others.
    package var tail: Tail?
    package var whileBusy = WhileBusy.coalesce
    /// Whether its owner receives all due events at once, by ``ViewReconciler/takeDue(at:)``, and none is leased.
    package var receivesAtOnce = false

    /// The limits of the text in one event.
    package struct Tail: Sendable {
        package var maximumBytes: Int
        /// The time for which an unfinished line at the end waits; nil if the text is not divided into lines.
        package var lineWait: Duration?

        package init(maximumBytes: Int, lineWait: Duration?) {
            (self.maximumBytes, self.lineWait) = (maximumBytes, lineWait)
        }
    }

    package init(
        id: RuleID, filter: PathFilter, types: Set<FileType>, mask: EventMask, settle: SettlePolicy,
        initialScan: InitialScanPolicy
    ) {
        (self.id, self.filter, self.types) = (id, filter, types)
        (self.mask, self.settle, self.initialScan) = (mask, settle, initialScan)
    }

    /// Whether extended attributes are compared.
    package var readsExtended: Bool { !mask.isDisjoint(with: [.attributes, .xattr]) }

    /// Whether an event with content is frozen as soon as it has settled.
    package var freezes: Bool { tail != nil }

    /// Whether the first listing reports existing files.
    var reportsExisting: Bool { if case .replace = initialScan { false } else { initialScan != .ignore } }

    var roots: [PathBytes] { filter.roots.map { PathBytes($0) } }

    /// Returns the root of a path that the view matches by name; nil if it does not.
    func root(of path: PathBytes) -> PathBytes? { filter.root(matching: path.bytes).map { PathBytes($0) } }
}
