/// Finds among many filters those that could take a path, so that a path costs by the filters of its folders alone.
///
/// A filter takes only what is inside one of its roots. So it is looked up by
/// the folders above the path, and no filter for another place is asked.
package struct PathFilterIndex: Sendable {
    private let filters: [PathFilter]
    private let all: [Int]
    private let trees: [Int]
    /// The filters of each root, by their index in `filters`.
    private var byRoot: [ArraySlice<UInt8>: [Int]] = [:]
    /// The lengths that roots have, each once.
    private var lengths: [Int] = []
    /// The folders above the roots: each has to be entered to get to one.
    private var above: Set<ArraySlice<UInt8>> = []

    /// So few filters are asked one after the other sooner than looked up.
    private static let few = 4

    package init(_ filters: [PathFilter]) {
        self.filters = filters
        all = Array(filters.indices)
        trees = filters.indices.filter { filters[$0].isTree }
        guard filters.count > Self.few else { return }
        for (index, filter) in filters.enumerated() {
            for root in filter.roots {
                byRoot[root[...], default: []].append(index)
                for end in root.indices where root[end] == .slash && root.count > 1 {
                    above.insert(root[..<max(end, 1)])
                }
            }
        }
        lengths = Set(byRoot.keys.map(\.count)).sorted()
    }

    /// The filters that could take the path, or something below it, by their index and in their order.
    package func candidates(for path: [UInt8]) -> [Int] {
        if filters.count <= Self.few { return all }
        var found: [Int] = []
        var isMixed = false
        for length in lengths where length <= path.count {
            guard length == path.count || length == 1 || path[length] == .slash else { continue }
            guard let here = byRoot[path[..<length]] else { continue }
            isMixed = !found.isEmpty
            found += here
        }
        // Of two roots one inside the other, the second may have filters that come first, or again.
        return isMixed ? Set(found).sorted() : found
    }

    /// The filters for which a folder is one unit with what is below it, and which could take one around the path.
    package func treeCandidates(for path: [UInt8]) -> [Int] {
        trees.isEmpty ? [] : candidates(for: path).filter { filters[$0].isTree }
    }

    /// Whether any filter takes the path, or a folder above it as one unit with what is in it.
    package func takes(_ path: [UInt8]) -> Bool {
        candidates(for: path).contains { index in
            filters[index].root(taking: path) != nil || !filters[index].trees(holding: path).isEmpty
        }
    }

    /// Whether any filter could take a path strictly below the folder.
    package func reaches(below folder: [UInt8]) -> Bool {
        above.contains(folder[...]) || candidates(for: folder).contains { filters[$0].reaches(below: folder) }
    }
}
