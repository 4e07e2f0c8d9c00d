import FileEvents
import System

/// The directories to watch and list: those that appeared are visited first, then the scans of whole roots.
struct ListingQueue {
    /// A directory to be watched and listed.
    struct Visit {
        var directory: DirectoryTree.ID
        var origin: EventOrigin
        /// Whether it belongs to the current scan.
        var isScan = false
    }

    /// The listing of a whole root.
    struct Scan {
        var root: Int
        var origin: EventOrigin
        var visits: [Visit]
        var hasStarted = false
    }

    /// The state of a directory listing that is read in chunks.
    struct Listing {
        var reader: DirectoryReader
        var visit: Visit
        /// The directory's path with a slash at the end.
        var prefix: [UInt8]
        /// The root whose tree contains the directory.
        var root: Int
        /// Whether only differences to the last poll are reported.
        var isComparison = false
        /// The signs of each hint from this listing.
        var signs: Hint.Signs = []
        /// The entries found, for comparison at the next poll; nil if the directory is not polled.
        var contents: PolledDirectory?
    }

    var current: Listing?
    var scans: [Scan] = []
    /// Directories that appeared outside a scan; they are visited first.
    private var visits: [Visit] = []
    /// Visits that failed because no descriptor or memory was available, to be retried later.
    private var postponed: [Visit] = []
    private var postponedUntil = ContinuousClock.now

    private static let postponement = Duration.seconds(1)

    /// Whether nothing is being listed or waits for it, except for postponed visits outside a scan.
    var isEmpty: Bool { scans.isEmpty && visits.isEmpty && current == nil }

    /// Whether a step can be done now.
    var hasWork: Bool { current != nil || !visits.isEmpty || canScan }

    /// Whether the current scan can continue: it has not come to a point where everything left was postponed.
    var canScan: Bool { scans.first.map { !$0.visits.isEmpty || !postponed.contains(where: \.isScan) } ?? false }

    /// The time at which postponed visits are retried.
    var nextDue: ContinuousClock.Instant? { postponed.isEmpty ? nil : postponedUntil }

    mutating func add(_ visit: Visit) {
        if visit.isScan, !scans.isEmpty { return scans[0].visits.append(visit) }
        // A change of the roots may have ended the scan.
        visits.append(Visit(directory: visit.directory, origin: visit.origin))
    }

    mutating func takeVisit() -> Visit? { visits.popLast() }

    mutating func postpone(_ visit: Visit) {
        postponed.append(visit)
        postponedUntil = .now + Self.postponement
    }

    /// Adds the postponed visits that are due.
    mutating func resumePostponed(at now: ContinuousClock.Instant) {
        guard let due = nextDue, now >= due else { return }
        for visit in postponed { add(visit) }
        postponed = []
    }

    /// Drops all scans; visits outside them remain.
    mutating func dropScans() {
        scans = []
        postponed.removeAll(where: \.isScan)
    }
}
