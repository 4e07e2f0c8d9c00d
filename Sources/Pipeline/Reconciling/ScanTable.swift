import FileEvents
import System

/// The current listings of roots, each with the number of paths for which it waits.
struct ScanTable {
    struct Scan {
        var root: PathBytes
        var origin: EventOrigin
        /// Whether all paths have been found.
        var isListed = false
        /// The number of paths that it found to differ and that have not been inspected since.
        var waiting = 0

        var isOver: Bool { isListed && waiting <= 0 }
    }

    private var scans: [UInt32: Scan] = [:]
    private var byRoot: [PathBytes: UInt32] = [:]
    private var next: UInt32 = 0

    var isEmpty: Bool { scans.isEmpty }

    /// Adds a listing of a root; a current listing of the same root is continued.
    ///
    /// - Returns: Whether the listing is new.
    mutating func add(_ root: PathBytes, _ origin: EventOrigin) -> Bool {
        if let running = byRoot[root] {
            scans[running]?.isListed = false
            return false
        }
        next += 1
        scans[next] = Scan(root: root, origin: origin)
        byRoot[root] = next
        return true
    }

    /// Returns the listing of the innermost root that contains the path.
    func innermost(holding path: PathBytes) -> UInt32? {
        scans.isEmpty ? nil : path.andParents.lazy.compactMap { byRoot[$0] }.first
    }

    mutating func setListed(_ root: PathBytes) {
        if let scan = byRoot[root] { scans[scan]?.isListed = true }
    }

    mutating func start(_ scan: UInt32?) {
        if let scan { scans[scan]?.waiting += 1 }
    }

    mutating func end(_ scan: UInt32) { scans[scan]?.waiting -= 1 }

    /// Removes and returns the listings that wait for nothing more, in the order in which they started.
    mutating func takeEnded() -> [Scan] {
        guard !scans.isEmpty else { return [] }
        return scans.filter(\.value.isOver).keys.sorted().compactMap { number in
            guard let scan = scans.removeValue(forKey: number) else { return nil }
            byRoot[scan.root] = nil
            return scan
        }
    }
}
