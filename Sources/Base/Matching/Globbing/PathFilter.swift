/// Which paths are wanted, by name alone: globs, what they leave out, and how deep.
///
/// Types, events and everything else about a file come with the disk.
package struct PathFilter: Sendable, Hashable {
    /// Absolute patterns, of which one has to match.
    package var globs: [Glob]
    /// Patterns relative to the root; an excluded folder excludes everything below it.
    package var exclude: GlobSet
    /// The built-in ignores; likewise relative to the root.
    package var ignores: GlobSet
    /// What the rule's own action writes; likewise relative to the root.
    package var outputs: GlobSet
    /// Folder levels below the root that are entered; nil for all.
    package var depth: Int?
    /// Whether what is below a wanted folder belongs to it, and so is worth a look too.
    package var isTree: Bool

    package init(
        globs: [Glob], exclude: GlobSet = GlobSet([]), ignores: GlobSet = GlobSet([]),
        outputs: GlobSet = GlobSet([]), depth: Int? = nil, isTree: Bool = false
    ) {
        self.globs = globs
        self.exclude = exclude
        self.ignores = ignores
        self.outputs = outputs
        self.depth = depth
        self.isTree = isTree
    }

    /// The literal folders in front of the globs' first wildcards, each once.
    package var roots: [[UInt8]] {
        var known: Set<[UInt8]> = []
        return globs.lazy.map(\.root).filter { known.insert($0).inserted }
    }

    /// The root of the first glob that takes the absolute path; nil when it is not wanted.
    package func root(taking path: [UInt8]) -> [UInt8]? { glob(taking: path)?.root }

    /// The first glob that takes the absolute path; nil when it is not wanted.
    package func glob(taking path: [UInt8]) -> Glob? {
        globs.first { decision(on: path, by: $0) == .taken }
    }

    /// What one of the globs, with all that is left out of it, makes of a path.
    enum Decision: Equatable {
        case taken
        /// The glob does not match.
        case unmatched
        /// It lies in so many folders below the root, more than are entered.
        case tooDeep(levels: Int)
        case leftOut(Refusal.LeftOut)
    }

    /// Decides by one glob; which part of the path or which pattern it was is found out when it is asked for.
    func decision(on path: [UInt8], by glob: Glob) -> Decision {
        guard glob.matches(path), let relative = Self.relative(path, to: glob.root) else { return .unmatched }
        if let depth {
            let levels = relative.count(where: { $0 == Self.slash })
            if levels > depth { return .tooDeep(levels: levels) }
        }
        return leftOut(relative).map { .leftOut($0) } ?? .taken
    }

    /// Whether a path strictly below this folder could be wanted.
    package func reaches(below folder: [UInt8]) -> Bool {
        for glob in globs where glob.canMatch(below: folder) {
            guard let relative = Self.relative(folder, to: glob.root) else { return true }
            if relative.isEmpty { return true }
            if let depth, relative.count(where: { $0 == Self.slash }) >= depth { continue }
            if leftOut(relative) != nil { continue }
            return true
        }
        return isInTree(folder)
    }

    /// Whether a path directly in this folder could be wanted, as far as that is known without its name.
    package func mayTake(in folder: [UInt8]) -> Bool {
        reaches(below: folder) && (globs.contains { $0.canMatch(in: folder) } || isInTree(folder))
    }

    /// Whether the folder is one unit with what is in it, or in such a folder.
    private func isInTree(_ folder: [UInt8]) -> Bool {
        isTree && (root(taking: folder) != nil || !trees(holding: folder).isEmpty)
    }

    /// The wanted folders above the path, of which each is one unit with it; none unless ``isTree``.
    package func trees(holding path: [UInt8]) -> [[UInt8]] {
        guard isTree else { return [] }
        var trees: [[UInt8]] = []
        for index in path.indices.dropFirst() where path[index] == Self.slash {
            let folder = Array(path[..<index])
            guard let root = root(taking: folder), let relative = Self.relative(path, to: root) else { continue }
            if leftOut(relative) == nil { trees.append(folder) }
        }
        return trees
    }

    private func leftOut(_ relative: ArraySlice<UInt8>) -> Refusal.LeftOut? {
        if exclude.covers(relative) { return .exclude }
        if ignores.covers(relative) { return .ignores }
        return outputs.covers(relative) ? .outputs : nil
    }

    private static let slash = UInt8(ascii: "/")

    /// The part of the path below the root, without a leading slash; nil when it is not inside.
    static func relative(_ path: [UInt8], to root: [UInt8]) -> ArraySlice<UInt8>? {
        guard path.starts(with: root) else { return nil }
        if path.count == root.count { return [] }
        if root.last == slash { return path[root.count...] }
        guard path[root.count] == slash else { return nil }
        return path[(root.count + 1)...]
    }
}
