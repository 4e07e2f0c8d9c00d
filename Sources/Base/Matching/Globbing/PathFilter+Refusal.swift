extension PathFilter {
    /// The reason why a path does not match, for messages.
    package struct Refusal: Sendable, Hashable {
        package enum Reason: Sendable, Hashable {
            /// The path is outside the root, or is the root itself.
            case outside
            /// The glob matches only deeper paths, and could match some below this one.
            case above
            /// The glob does not match this part of the path.
            case glob(at: [UInt8])
            /// This part of the path has a leading dot, which wildcards do not match.
            case hidden([UInt8])
            /// The path is more directory levels below the root than the limit.
            case depth(levels: Int, limit: Int)
            /// A pattern excludes the path, or the directory above it that is given here; relative to the root.
            case excluded(Exclusion, by: Glob, covering: [UInt8])
        }

        /// The kinds of patterns that exclude a path.
        package enum Exclusion: String, Sendable, Hashable {
            case exclude
            /// The built-in ignores.
            case ignores
            case outputs
        }

        /// The glob that comes closest to matching the path.
        package var glob: Glob
        package var reason: Reason
    }

    /// Returns the reason why the absolute path does not match; nil exactly when ``root(matching:)`` returns a root.
    ///
    /// With several globs, the result is for the glob that fails last, at the deepest part of the path. A match that is
    /// excluded is closer than no match.
    package func refusal(of path: [UInt8]) -> Refusal? {
        var nearest: (refusal: Refusal, score: Int)?
        for glob in globs {
            guard let (reason, score) = refusal(of: path, by: glob) else { return nil }
            if nearest.map({ score > $0.score }) ?? true { nearest = (Refusal(glob: glob, reason: reason), score) }
        }
        return nearest?.refusal
    }

    /// Returns the reason for one glob, and how close it came; nil if it matches the path.
    private func refusal(of path: [UInt8], by glob: Glob) -> (reason: Refusal.Reason, score: Int)? {
        let longest = path.count + 1
        guard let relative = Self.relative(path, to: glob.root), !relative.isEmpty else { return (.outside, 0) }
        switch decision(on: path, by: glob) {
        case .matched: return nil
        case .tooDeep(let levels): return (.depth(levels: levels, limit: depth ?? levels), longest + 1)
        case .excluded(let kind): return excluded(relative, kind).map { ($0, longest + 2) }
        case .unmatched:
            // A `**` could match below any path, so that is not informative.
            if glob.depth != nil, glob.canMatch(below: path) { return (.above, longest) }
            let failed = Self.failure(of: path, by: glob)
            if let name = Self.hiddenName(of: path, upTo: failed, by: glob) {
                return (.hidden(Array(path[name])), longest)
            }
            return (.glob(at: Array(path[failed])), failed.lowerBound)
        }
    }

    /// Returns the first part of the path after which no match is possible.
    private static func failure(of path: [UInt8], by glob: Glob) -> Range<Int> {
        var start = glob.root.last == .slash ? glob.root.count : glob.root.count + 1
        while let end = path[start...].firstIndex(of: .slash), glob.canMatch(below: path[..<end]) { start = end + 1 }
        return start..<(path[start...].firstIndex(of: .slash) ?? path.count)
    }

    /// Returns the hidden part of a path that would match if wildcards matched leading dots.
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

    /// Returns the exclusion of the topmost directory that a pattern of the kind matches, or of the path itself.
    private func excluded(_ relative: ArraySlice<UInt8>, _ kind: Refusal.Exclusion) -> Refusal.Reason? {
        let set =
            switch kind {
            case .exclude: exclude
            case .ignores: ignores
            case .outputs: outputs
            }
        let ends = relative.indices.filter { relative[$0] == .slash && $0 > relative.startIndex } + [relative.endIndex]
        return ends.lazy.compactMap { end in
            set.firstMatch(relative[..<end]).map { .excluded(kind, by: $0, covering: Array(relative[..<end])) }
        }.first
    }
}
