import System

/// The paths of the unfinished frozen events of one view.
struct FrozenPaths {
    private var counts: [PathBytes: Int] = [:]

    var isEmpty: Bool { counts.isEmpty }

    /// Returns the number of unfinished frozen events that name a path.
    func count(of path: PathBytes) -> Int { counts[path] ?? 0 }

    mutating func add(_ paths: [PathBytes]) {
        for path in paths { counts[path, default: 0] += 1 }
    }

    mutating func remove(_ path: PathBytes) { counts[path] = counts[path].flatMap { $0 > 1 ? $0 - 1 : nil } }
}
