import System

/// The paths of the unfinished frozen events of one view.
struct FrozenPaths {
    /// The events at the path of a frozen event since its action started.
    struct Running {
        /// Whether an event has named it.
        var wasNamed = false
        /// Whether hints may have been lost.
        var missedHints = false
    }

    private var counts: [PathBytes: Int] = [:]
    private var running: [PathBytes: Running] = [:]

    var isEmpty: Bool { counts.isEmpty }

    /// Returns the number of unfinished frozen events that name a path.
    func count(of path: PathBytes) -> Int { counts[path] ?? 0 }

    mutating func add(_ paths: [PathBytes]) {
        for path in paths { counts[path, default: 0] += 1 }
    }

    mutating func remove(_ path: PathBytes) { counts[path] = counts[path].flatMap { $0 > 1 ? $0 - 1 : nil } }

    mutating func start(_ path: PathBytes) { running[path] = Running() }

    mutating func finish(_ path: PathBytes) -> Running? { running.removeValue(forKey: path) }

    mutating func markNamed(_ path: PathBytes) { running[path]?.wasNamed = true }

    mutating func markNamed(inside directory: PathBytes) {
        for path in running.keys where path.isInside(directory) { running[path]?.wasNamed = true }
    }

    mutating func markMissedHints() {
        for path in running.keys { running[path]?.missedHints = true }
    }
}
