/// A set of globs, any of which may match, such as the exclusions of a rule.
package struct GlobSet: Sendable, Hashable {
    /// The compiled globs, which all copies share.
    private final class Tables: Sendable {
        let globs: [Glob]
        /// The index of the globs of the form `**/NAME`.
        let names: GlobNameIndex
        /// The other globs.
        let rest: [Glob]

        init(_ globs: [Glob]) {
            self.globs = globs
            var names = GlobNameIndex()
            rest = globs.filter { !names.add($0.program) }
            self.names = names
        }
    }

    private let tables: Tables

    package init(_ globs: [Glob]) { tables = Tables(globs) }

    /// The globs, in the order in which they are tried.
    package var globs: [Glob] { tables.globs }

    /// Whether the set has no globs, so that nothing matches.
    package var isEmpty: Bool { globs.isEmpty }

    package static func == (left: GlobSet, right: GlobSet) -> Bool {
        left.tables === right.tables || left.globs == right.globs
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(globs) }
}

extension GlobSet {
    /// Returns the first glob, in order, that matches the whole path.
    package func firstMatch(_ path: some Collection<UInt8>) -> Glob? {
        path.withSpan { span in globs.first { $0.matches(span) } }
    }

    /// Whether any glob matches the path or a directory above it.
    ///
    /// A glob that matches a directory covers everything below it, and the directory needs no watch. `cache/**` covers
    /// the contents of `cache`, but not the directory itself. The path is relative to the root, without a leading
    /// slash.
    package func covers(_ relativePath: some Collection<UInt8>) -> Bool { relativePath.withSpan { covers($0) } }

    /// Whether any glob matches the path or a directory above it.
    package func covers(_ relativePath: Span<UInt8>) -> Bool {
        !tables.names.isEmpty && tables.names.covers(relativePath) || tables.rest.contains { $0.covers(relativePath) }
    }
}

extension Glob {
    /// Whether the glob matches the path or a directory above it.
    fileprivate func covers(_ path: Span<UInt8>) -> Bool {
        for index in 0..<path.count where path[index] == .slash && index > 0 {
            if matches(path.extracting(0..<index)) { return true }
        }
        return matches(path)
    }
}

extension Collection<UInt8> {
    /// Calls the closure with contiguous bytes; noncontiguous bytes are copied.
    func withSpan<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
        withContiguousStorageIfAvailable { body($0.span) } ?? body(Array(self).span)
    }
}
