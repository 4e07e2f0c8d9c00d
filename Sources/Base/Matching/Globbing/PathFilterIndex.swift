/// An index over many filters that finds those that could match a path, so that the cost of a path depends on few
/// filters.
///
/// A filter matches only paths inside its roots. The index finds filters by the directories above the path, so filters
/// of other directories are not evaluated. Among the filters of one root, it selects by the names in their globs, see
/// ``PathNameIndex``.
package struct PathFilterIndex: Sendable {
    /// The filters of one root.
    private struct Location: Sendable {
        var names: PathNameIndex
        /// All filters of the root, without duplicates.
        var all: [Int]
        /// One filter for each group that enters the same directories, as indices in `filters`.
        var reaching: [Int]
        /// The filters that treat a directory as a unit.
        var trees: [Int]
    }

    private let filters: [PathFilter]
    private let all: [Int]
    private let trees: [Int]
    private var byRoot: [ArraySlice<UInt8>: Location] = [:]
    /// The lengths of the roots, without duplicates.
    private var lengths: [Int] = []
    /// The directories above the roots: each must be entered to reach a root.
    private var above: Set<ArraySlice<UInt8>> = []
    /// All roots, sorted so that those in one directory are adjacent.
    private var roots: [ArraySlice<UInt8>] = []

    /// Up to this number of filters, evaluating all of them is faster than a lookup.
    private static let few = 4

    package init(_ filters: [PathFilter]) {
        self.filters = filters
        all = Array(filters.indices)
        trees = filters.indices.filter { filters[$0].isTree }
        guard filters.count > Self.few else { return }
        var globs: [ArraySlice<UInt8>: [(number: Int, glob: Glob)]] = [:]
        for (index, filter) in filters.enumerated() {
            for glob in filter.globs { globs[glob.root[...], default: []].append((index, glob)) }
        }
        // The number of the first filter that enters the same directories. A filter may have many roots, and is
        // compared once.
        var firsts: [DirectoryFilter: Int] = [:]
        let first = filters.indices.map { index in
            let directories = DirectoryFilter(filters[index])
            let first = firsts[directories] ?? index
            firsts[directories] = first
            return first
        }
        for (root, here) in globs {
            let indices = Set(here.map(\.number)).sorted()
            byRoot[root] = Location(
                names: PathNameIndex(here), all: indices, reaching: Set(indices.map { first[$0] }).sorted(),
                trees: indices.filter { filters[$0].isTree })
            for end in root.indices where root[end] == .slash && root.count > 1 { above.insert(root[..<max(end, 1)]) }
        }
        lengths = Set(byRoot.keys.map(\.count)).sorted()
        roots = byRoot.keys.sorted { $0.lexicographicallyPrecedes($1) }
    }

    /// Returns the filters that could match the path, as indices in their order.
    package func candidates(for path: [UInt8]) -> [Int] {
        if filters.count <= Self.few { return all }
        var found: [Int] = []
        for (location, start) in locations(of: path) { location.names.find(path, from: start, into: &found) }
        return found.count > 1 ? Set(found).sorted() : found
    }

    /// Returns the filters that could match the directory or a path in it, by their roots alone, in their order.
    package func candidates(inside directory: [UInt8]) -> [Int] {
        if filters.count <= Self.few { return all }
        var found = locations(of: directory).map(\.0.all)
        let below = directory.last == .slash ? directory : directory + [.slash]
        var index = firstRoot(notBefore: below)
        while index < roots.endIndex, roots[index].starts(with: below) {
            found.append(byRoot[roots[index]]?.all ?? [])
            index += 1
        }
        return found.count == 1 ? found[0] : Set(found.joined()).sorted()
    }

    private func firstRoot(notBefore path: [UInt8]) -> Int {
        var (low, high) = (0, roots.count)
        while low < high {
            let middle = (low + high) / 2
            if roots[middle].lexicographicallyPrecedes(path) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Returns the filters with this root, in their order.
    package func filters(at root: [UInt8]) -> [Int] {
        if filters.count <= Self.few { return all.filter { filters[$0].roots.contains(root) } }
        return byRoot[root[...]]?.all ?? []
    }

    /// Returns the roots at or above the path, with the start of the part below each.
    private func locations(of path: [UInt8]) -> [(Location, start: Int)] {
        var locations: [(Location, start: Int)] = []
        for length in lengths where length <= path.count {
            guard length == path.count || length == 1 || path[length] == .slash else { continue }
            guard let location = byRoot[path[..<length]] else { continue }
            locations.append((location, length == 1 ? 1 : length + 1))
        }
        return locations
    }

    /// Returns the filters that treat a directory and its contents as a unit, and could match one at or above the path.
    package func treeCandidates(for path: [UInt8]) -> [Int] {
        if trees.isEmpty || filters.count <= Self.few { return trees }
        return Set(locations(of: path).flatMap { location, _ in location.trees }).sorted()
    }

    /// Whether any filter matches the path, or a directory above it as a unit with its contents.
    package func takes(_ path: [UInt8]) -> Bool {
        candidates(for: path).contains { filters[$0].root(matching: path) != nil }
            || treeCandidates(for: path).contains { !filters[$0].trees(holding: path).isEmpty }
    }

    /// Whether any filter could match a path strictly below the directory.
    package func reaches(below directory: [UInt8]) -> Bool {
        if filters.count <= Self.few { return filters.contains { $0.reaches(below: directory) } }
        return above.contains(directory[...])
            || locations(of: directory).contains { location, _ in
                location.reaching.contains { filters[$0].reaches(below: directory) }
            }
    }

    /// Whether any filter could match a path directly in the directory.
    package func canMatch(in directory: [UInt8]) -> Bool {
        if filters.count <= Self.few { return filters.contains { $0.canMatch(in: directory) } }
        return locations(of: directory).contains { location, _ in
            location.reaching.contains { filters[$0].canMatch(in: directory) }
        }
    }
}

/// The parts of a filter that determine which directories it enters: equal values enter the same directories.
private struct DirectoryFilter: Hashable {
    /// The globs without their last names if these are irrelevant, compared together with the options.
    private var directories: [[UInt8]]
    private var options: [Glob.Options]
    private var filter: PathFilter

    init(_ filter: PathFilter) {
        directories = filter.globs.map { Self.directory(of: $0.pattern) }
        options = filter.globs.map(\.options)
        self.filter = filter
        // A directory that is a unit is entered because of its own name.
        if !filter.isTree { self.filter.globs = [] }
    }

    /// Returns the pattern up to its last slash.
    ///
    /// Returns the whole pattern if the slash may be inside braces, and if `**` is or may be the end, as in `{**,x}`.
    private static func directory(of pattern: [UInt8]) -> [UInt8] {
        guard let slash = pattern.lastIndex(of: .slash), !pattern[(slash + 1)...].elementsEqual("**".utf8),
            !pattern[..<slash].contains(where: { "{[\\".utf8.contains($0) }),
            !pattern[(slash + 1)...].contains(UInt8(ascii: "{"))
        else { return pattern }
        return Array(pattern[...slash])
    }

    /// Hashes only the directories; the sets are compared, because most filters have the same sets.
    func hash(into hasher: inout Hasher) { hasher.combine(directories) }
}
