import FileEvents

/// The listings of roots that go on, each with the paths that it waits for.
struct ScanTable {
    struct Scan {
        var root: PathBytes
        var origin: EventOrigin
        /// Whether everything has been found.
        var isListed = false
        /// Paths that it found different, and that have not been looked at since.
        var waiting = 0

        /// Whether it waits for nothing more.
        var isOver: Bool { isListed && waiting <= 0 }
    }

    private var scans: [Int: Scan] = [:]
    /// The number of each by its root: there may be as many as rules.
    private var byRoot: [PathBytes: Int] = [:]
    /// Those that wait for nothing more, or did a moment ago.
    private var ended: Set<Int> = []
    private var next = 0

    var isEmpty: Bool { scans.isEmpty }

    /// Notes a listing of a root; one that goes on for the same root is taken up by it.
    ///
    /// - Returns: Whether it is a new one.
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

    /// The listing of the root; nil when there is none.
    func of(_ root: PathBytes) -> Int? { byRoot[root] }

    /// The listing of the nearest root above the path.
    func innermost(holding path: PathBytes) -> Int? {
        guard !scans.isEmpty else { return nil }
        for folder in path.andParents {
            if let scan = byRoot[folder] { return scan }
        }
        return nil
    }

    mutating func setListed(_ scan: Int) {
        scans[scan]?.isListed = true
        noteEnd(scan)
    }

    mutating func begin(_ scan: Int?) {
        if let scan { scans[scan]?.waiting += 1 }
    }

    mutating func end(_ scan: Int) {
        scans[scan]?.waiting -= 1
        noteEnd(scan)
    }

    private mutating func noteEnd(_ scan: Int) {
        if scans[scan]?.isOver == true { ended.insert(scan) }
    }

    /// Removes and returns the listings that wait for nothing more, in the order in which they began.
    mutating func takeEnded() -> [Scan] {
        guard !ended.isEmpty else { return [] }
        let numbers = ended.filter { scans[$0]?.isOver == true }.sorted()
        ended = []
        return numbers.compactMap { number in
            guard let scan = scans.removeValue(forKey: number) else { return nil }
            byRoot[scan.root] = nil
            return scan
        }
    }
}
