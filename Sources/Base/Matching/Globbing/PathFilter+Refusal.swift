extension PathFilter {
    /// Why a path is not wanted, for people to read.
    package struct Refusal: Sendable, Hashable {
        package enum Reason: Sendable, Hashable {
            /// It lies outside of the root, or is the root itself.
            case outside
            /// All that the glob matches lies further down, and could lie below it.
            case above
            /// This part of it is not what the glob asks for.
            case glob(at: [UInt8])
            /// This part of it has a leading dot, and wildcards match none.
            case hidden([UInt8])
            /// It lies in so many folders below the root, more than are entered.
            case depth(levels: Int, limit: Int)
            /// A pattern leaves out the path, or the folder above it that is named here; relative to the root.
            case leftOut(LeftOut, by: Glob, covering: [UInt8])
        }

        /// What patterns leave something out.
        package enum LeftOut: String, Sendable, Hashable {
            case exclude
            /// The built-in ones.
            case ignores
            case outputs
        }

        /// The glob that comes nearest to taking the path.
        package var glob: Glob
        package var reason: Reason

        package init(glob: Glob, reason: Reason) {
            self.glob = glob
            self.reason = reason
        }
    }

    /// Why the absolute path is not wanted; nil exactly when ``root(taking:)`` has a root.
    ///
    /// Of several globs the one is named that fails last: at the deepest part of
    /// the path, and a match that is left out comes nearer than none.
    package func refusal(of path: [UInt8]) -> Refusal? {
        var nearest: (refusal: Refusal, score: Int)?
        for glob in globs {
            guard let (reason, score) = refusal(of: path, by: glob) else { return nil }
            if nearest.map({ score > $0.score }) ?? true { nearest = (Refusal(glob: glob, reason: reason), score) }
        }
        return nearest?.refusal
    }

    /// The reason of one glob, and how near it came; nil when it takes the path.
    private func refusal(of path: [UInt8], by glob: Glob) -> (reason: Refusal.Reason, score: Int)? {
        let longest = path.count + 1
        guard let relative = Self.relative(path, to: glob.root), !relative.isEmpty else { return (.outside, 0) }
        switch decision(on: path, by: glob) {
        case .taken: return nil
        case .tooDeep(let levels): return (.depth(levels: levels, limit: depth ?? levels), longest + 1)
        case .leftOut(let kind): return leftOut(relative, kind).map { ($0, longest + 2) }
        case .unmatched:
            // Below anything there could be a match of a `**`: that says nothing.
            if glob.depth != nil, glob.canMatch(below: path) { return (.above, longest) }
            let failed = Self.failure(of: path, by: glob)
            if let name = Self.hiddenName(of: path, upTo: failed, by: glob) {
                return (.hidden(Array(path[name])), longest)
            }
            return (.glob(at: Array(path[failed])), failed.lowerBound)
        }
    }

    /// The first part of the path behind which no match can be.
    private static func failure(of path: [UInt8], by glob: Glob) -> Range<Int> {
        var start = glob.root.last == .slash ? glob.root.count : glob.root.count + 1
        while let end = path[start...].firstIndex(of: .slash), glob.canMatch(below: path[..<end]) { start = end + 1 }
        return start..<(path[start...].firstIndex(of: .slash) ?? path.count)
    }

    /// The hidden part of a path that would match if wildcards took leading dots.
    private static func hiddenName(of path: [UInt8], upTo failed: Range<Int>, by glob: Glob) -> Range<Int>? {
        var options = glob.options
        guard !options.matchesHidden else { return nil }
        options.matchesHidden = true
        guard let wider = try? Glob(glob.pattern, options: options), wider.matches(path) else { return nil }
        var start = failed.lowerBound
        while start > glob.root.count {
            if path[start] == .dot { return start..<(path[start...].firstIndex(of: .slash) ?? path.count) }
            guard let slash = path[..<(start - 1)].lastIndex(of: .slash) else { return nil }
            start = slash + 1
        }
        return nil
    }

    /// The topmost folder that a pattern of the kind names, or the path itself.
    private func leftOut(_ relative: ArraySlice<UInt8>, _ kind: Refusal.LeftOut) -> Refusal.Reason? {
        let set =
            switch kind {
            case .exclude: exclude
            case .ignores: ignores
            case .outputs: outputs
            }
        let ends = relative.indices.filter { relative[$0] == .slash && $0 > relative.startIndex } + [relative.endIndex]
        return ends.lazy.compactMap { end in
            set.firstMatch(relative[..<end]).map { .leftOut(kind, by: $0, covering: Array(relative[..<end])) }
        }.first
    }
}
