/// Finds among many filters those that could take a path, so that a path costs by the few that are like it.
///
/// A filter takes only what is inside one of its roots. So it is looked up by
/// the folders above the path, and no filter for another place is asked; among
/// those of one root by the names that they ask for, see ``PathNameIndex``.
package struct PathFilterIndex: Sendable {
    /// The filters with one root.
    private struct Place: Sendable {
        var names: PathNameIndex
        /// All of them, each once.
        var all: [Int]
        /// Of filters that go into the same folders, one; by their index in `filters`.
        var reaching: [Int]
        /// Those for which a folder is one unit.
        var trees: [Int]
    }

    private let filters: [PathFilter]
    private let all: [Int]
    private let trees: [Int]
    private var byRoot: [ArraySlice<UInt8>: Place] = [:]
    /// The lengths that roots have, each once.
    private var lengths: [Int] = []
    /// The folders above the roots: each has to be entered to get to one.
    private var above: Set<ArraySlice<UInt8>> = []
    /// All roots, so that those in one folder stand together.
    private var roots: [ArraySlice<UInt8>] = []

    /// So few filters are asked one after the other sooner than looked up.
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
        // Of filters that go into the same folders, the number of the first; a filter has many roots, and is compared once.
        var firsts: [FolderFilter: Int] = [:]
        let first = filters.indices.map { index in
            let folders = FolderFilter(filters[index])
            let first = firsts[folders] ?? index
            firsts[folders] = first
            return first
        }
        for (root, here) in globs {
            let indices = Set(here.map(\.number)).sorted()
            byRoot[root] = Place(
                names: PathNameIndex(here), all: indices, reaching: Set(indices.map { first[$0] }).sorted(),
                trees: indices.filter { filters[$0].isTree })
            for end in root.indices where root[end] == .slash && root.count > 1 {
                above.insert(root[..<max(end, 1)])
            }
        }
        lengths = Set(byRoot.keys.map(\.count)).sorted()
        roots = byRoot.keys.sorted { $0.lexicographicallyPrecedes($1) }
    }

    /// The filters that could take the path, by their index and in their order.
    package func candidates(for path: [UInt8]) -> [Int] {
        if filters.count <= Self.few { return all }
        var found: [Int] = []
        for (place, start) in places(of: path) { place.names.find(path, from: start, into: &found) }
        return found.count > 1 ? Set(found).sorted() : found
    }

    /// The filters that could take the folder or something in it, by their roots alone, in their order.
    package func candidates(inside folder: [UInt8]) -> [Int] {
        if filters.count <= Self.few { return all }
        var found = places(of: folder).map(\.0.all)
        let below = folder.last == .slash ? folder : folder + [.slash]
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

    /// The filters of which this is a root, in their order.
    package func filters(at root: [UInt8]) -> [Int] {
        if filters.count <= Self.few { return all.filter { filters[$0].roots.contains(root) } }
        return byRoot[root[...]]?.all ?? []
    }

    /// The roots at or above the path, with where the part below begins.
    private func places(of path: [UInt8]) -> [(Place, start: Int)] {
        var places: [(Place, start: Int)] = []
        for length in lengths where length <= path.count {
            guard length == path.count || length == 1 || path[length] == .slash else { continue }
            guard let place = byRoot[path[..<length]] else { continue }
            places.append((place, length == 1 ? 1 : length + 1))
        }
        return places
    }

    /// The filters for which a folder is one unit with what is below it, and which could take one around the path.
    package func treeCandidates(for path: [UInt8]) -> [Int] {
        if trees.isEmpty || filters.count <= Self.few { return trees }
        return Set(places(of: path).flatMap { place, _ in place.trees }).sorted()
    }

    /// Whether any filter takes the path, or a folder above it as one unit with what is in it.
    package func takes(_ path: [UInt8]) -> Bool {
        candidates(for: path).contains { filters[$0].root(taking: path) != nil }
            || treeCandidates(for: path).contains { !filters[$0].trees(holding: path).isEmpty }
    }

    /// Whether any filter could take a path strictly below the folder.
    package func reaches(below folder: [UInt8]) -> Bool {
        if filters.count <= Self.few { return filters.contains { $0.reaches(below: folder) } }
        return above.contains(folder[...])
            || places(of: folder).contains { place, _ in
                place.reaching.contains { filters[$0].reaches(below: folder) }
            }
    }

    /// Whether any filter could take a path directly in the folder.
    package func mayTake(in folder: [UInt8]) -> Bool {
        if filters.count <= Self.few { return filters.contains { $0.mayTake(in: folder) } }
        return places(of: folder).contains { place, _ in
            place.reaching.contains { filters[$0].mayTake(in: folder) }
        }
    }
}

/// What decides which folders a filter goes into: equal ones go into the same.
private struct FolderFilter: Hashable {
    /// The globs without their last names, where these play no part; then with the options.
    private var folders: [[UInt8]]
    private var options: [Glob.Options]
    private var filter: PathFilter

    init(_ filter: PathFilter) {
        folders = filter.globs.map { Self.folder(of: $0.pattern) }
        options = filter.globs.map(\.options)
        self.filter = filter
        // A folder that is one unit is entered for its own name.
        if !filter.isTree { self.filter.globs = [] }
    }

    /// The pattern up to its last slash; all of it where the slash may be within braces, and where `**` is or may be the
    /// end, as in `{**,x}`.
    private static func folder(of pattern: [UInt8]) -> [UInt8] {
        guard let slash = pattern.lastIndex(of: .slash), !pattern[(slash + 1)...].elementsEqual("**".utf8),
            !pattern[..<slash].contains(where: { "{[\\".utf8.contains($0) }),
            !pattern[(slash + 1)...].contains(UInt8(ascii: "{"))
        else { return pattern }
        return Array(pattern[...slash])
    }

    /// The sets are compared, and not hashed: most are the same set.
    func hash(into hasher: inout Hasher) { hasher.combine(folders) }
}
