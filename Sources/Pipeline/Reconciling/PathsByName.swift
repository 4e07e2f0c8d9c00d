import System

/// A set of paths in the order of their last components: those with the same name in different directories are
/// adjacent.
struct PathsByName {
    private(set) var paths: [PathBytes] = []

    init() {}

    init(_ paths: [PathBytes]) { self.paths = paths.sorted { Self.order($0, $1) < 0 } }

    var isEmpty: Bool { paths.isEmpty }

    /// Inserts a path; returns false if it is in the set.
    @discardableResult
    mutating func insert(_ path: PathBytes) -> Bool {
        let index = firstIndex { Self.order($0, path) >= 0 }
        guard index == paths.count || paths[index] != path else { return false }
        paths.insert(path, at: index)
        return true
    }

    /// Removes a path; returns false if it is not in the set.
    @discardableResult
    mutating func remove(_ path: PathBytes) -> Bool {
        let index = firstIndex { Self.order($0, path) >= 0 }
        guard index < paths.count, paths[index] == path else { return false }
        paths.remove(at: index)
        return true
    }

    mutating func popLast() -> PathBytes? { paths.popLast() }

    /// Returns the paths with the same last component as the path.
    func namesakes(of path: PathBytes) -> ArraySlice<PathBytes> {
        guard !paths.isEmpty else { return [] }
        let start = firstIndex { Self.nameOrder($0, path) >= 0 }
        return paths[start...].prefix { Self.nameOrder($0, path) == 0 }
    }

    /// Returns the index of the first path that satisfies a condition, which all later ones satisfy too.
    private func firstIndex(where condition: (PathBytes) -> Bool) -> Int {
        (0..<paths.count).bisected { condition(paths[$0]) }
    }

    private static func order(_ left: PathBytes, _ right: PathBytes) -> Int {
        let names = nameOrder(left, right)
        if names != 0 { return names }
        return left.bytes.withUnsafeBytes { left in right.bytes.withUnsafeBytes { left.compare($0) } }
    }

    private static func nameOrder(_ left: PathBytes, _ right: PathBytes) -> Int {
        left.lastComponent.withUnsafeBytes { left in right.lastComponent.withUnsafeBytes { left.compare($0) } }
    }
}
