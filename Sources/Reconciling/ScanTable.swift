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
    }

    private var scans: [Int: Scan] = [:]
    private var next = 0

    var isEmpty: Bool { scans.isEmpty }

    /// Notes a listing of a root; one that goes on for the same root is taken up by it.
    ///
    /// - Returns: Whether it is a new one.
    mutating func add(_ root: PathBytes, _ origin: EventOrigin) -> Bool {
        if let running = scans.first(where: { $0.value.root == root }) {
            scans[running.key]?.isListed = false
            return false
        }
        next += 1
        scans[next] = Scan(root: root, origin: origin)
        return true
    }

    /// The listing of the root; nil when there is none.
    func of(_ root: PathBytes) -> Int? { scans.first { $0.value.root == root }?.key }

    /// The listing of the nearest root above the path.
    func innermost(holding path: PathBytes) -> Int? {
        guard !scans.isEmpty else { return nil }
        return scans.filter { path.isInside($0.value.root) }
            .max { $0.value.root.bytes.count < $1.value.root.bytes.count }?.key
    }

    mutating func setListed(_ scan: Int) { scans[scan]?.isListed = true }

    mutating func begin(_ scan: Int?) {
        if let scan { scans[scan]?.waiting += 1 }
    }

    mutating func end(_ scan: Int) { scans[scan]?.waiting -= 1 }

    /// Removes and returns the listings that wait for nothing more, in the order in which they began.
    mutating func takeEnded() -> [Scan] {
        guard !scans.isEmpty else { return [] }
        let ended = scans.filter { $0.value.isListed && $0.value.waiting <= 0 }.sorted { $0.key < $1.key }
        for (key, _) in ended { scans[key] = nil }
        return ended.map(\.value)
    }
}
