/// A filter of paths by name alone: globs, exclusions and a maximum depth.
///
/// File types, events and metadata are checked later, against the disk.
package struct PathFilter: Sendable, Hashable {
    /// Absolute patterns, at least one of which must match.
    package var globs: [Glob]
    /// Patterns relative to the root; an excluded directory excludes everything below it.
    package var exclude: GlobSet
    /// The built-in ignores, also relative to the root.
    package var ignores: GlobSet
    /// The paths that the rule's own action writes, also relative to the root.
    package var outputs: GlobSet
    /// The number of directory levels below the root that are entered; nil for all.
    package var depth: Int?
    /// Whether the contents of a matching directory belong to it, and are therefore checked too.
    package var isTree: Bool

    package init(
        globs: [Glob], exclude: GlobSet = GlobSet([]), ignores: GlobSet = GlobSet([]),
        outputs: GlobSet = GlobSet([]), depth: Int? = nil, isTree: Bool = false
    ) {
        (self.globs, self.exclude, self.ignores, self.outputs) = (globs, exclude, ignores, outputs)
        (self.depth, self.isTree) = (depth, isTree)
    }

    /// The literal directories before the first wildcard of each glob, without duplicates.
    package var roots: [[UInt8]] {
        var known: Set<[UInt8]> = []
        return globs.lazy.map(\.root).filter { known.insert($0).inserted }
    }

    /// Returns the root of the first glob that matches the absolute path; nil if no glob does.
    package func root(matching path: [UInt8]) -> [UInt8]? { glob(matching: path)?.root }

    /// Returns the first glob that matches the absolute path; nil if no glob does.
    package func glob(matching path: [UInt8]) -> Glob? { globs.first { decision(on: path, by: $0) == .matched } }

    /// The decision of one glob, including all exclusions, on a path.
    enum Decision: Equatable {
        case matched
        /// The glob does not match.
        case unmatched
        /// The path is more directory levels below the root than the limit.
        case tooDeep(levels: Int)
        case excluded(Refusal.Exclusion)
    }

    /// Returns the decision of one glob.
    ///
    /// The responsible part of the path or pattern is computed only on request.
    func decision(on path: [UInt8], by glob: Glob) -> Decision {
        guard glob.matches(path), let relative = Self.relative(path, to: glob.root) else { return .unmatched }
        if let depth {
            let levels = relative.count(where: { $0 == .slash })
            if levels > depth { return .tooDeep(levels: levels) }
        }
        return excluded(relative).map { .excluded($0) } ?? .matched
    }

    /// Whether a path strictly below this directory could match.
    package func reaches(below directory: [UInt8]) -> Bool {
        for glob in globs where glob.canMatch(below: directory) {
            guard let relative = Self.relative(directory, to: glob.root) else { return true }
            if relative.isEmpty { return true }
            if let depth, relative.count(where: { $0 == .slash }) >= depth { continue }
            if excluded(relative) != nil { continue }
            return true
        }
        return isInTree(directory)
    }

    /// Whether a path directly in this directory could match, as far as that is known without its name.
    package func canMatch(in directory: [UInt8]) -> Bool {
        reaches(below: directory) && (globs.contains { $0.canMatch(in: directory) } || isInTree(directory))
    }

    /// Whether the directory is a unit with its contents, or is inside such a directory.
    private func isInTree(_ directory: [UInt8]) -> Bool {
        isTree && (root(matching: directory) != nil || !trees(holding: directory).isEmpty)
    }

    /// Returns the matching directories above the path, each of which forms a unit with it; none unless ``isTree`` is
    /// set.
    package func trees(holding path: [UInt8]) -> [[UInt8]] {
        guard isTree else { return [] }
        var trees: [[UInt8]] = []
        for index in path.indices.dropFirst() where path[index] == .slash {
            let directory = Array(path[..<index])
            guard let root = root(matching: directory), let relative = Self.relative(path, to: root) else { continue }
            if excluded(relative) == nil { trees.append(directory) }
        }
        return trees
    }

    private func excluded(_ relative: ArraySlice<UInt8>) -> Refusal.Exclusion? {
        if exclude.covers(relative.span) { return .exclude }
        if ignores.covers(relative.span) { return .ignores }
        return outputs.covers(relative.span) ? .outputs : nil
    }

    /// Returns the part of the path below the root, without a leading slash; nil if the path is not inside the root.
    static func relative(_ path: [UInt8], to root: [UInt8]) -> ArraySlice<UInt8>? {
        guard path.starts(with: root) else { return nil }
        if path.count == root.count { return [] }
        if root.last == .slash { return path[root.count...] }
        guard path[root.count] == .slash else { return nil }
        return path[(root.count + 1)...]
    }
}
