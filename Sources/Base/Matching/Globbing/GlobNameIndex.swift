/// An index that finds the names of a path that globs of the form `**/NAME` match.
///
/// Such a glob applies the same test to each name of the path, so the whole path need not be matched once per
/// directory. Most names are ruled out by their first and last byte alone, because temporary files of programs have a
/// typical suffix or prefix.
struct GlobNameIndex: Sendable {
    private struct Entry {
        var program: GlobProgram
        var component: GlobComponent
    }

    /// The entries by the last byte of the name, in lower case.
    private var byEnding: [[Entry]] = Array(repeating: [], count: 256)
    /// The entries by the first byte of the name, in lower case.
    private var byBeginning: [[Entry]] = Array(repeating: [], count: 256)
    /// The entries that start and end with a wildcard.
    private var others: [Entry] = []

    /// Whether the index has no entries.
    private(set) var isEmpty = true

    /// Adds a program whose alternatives all have this form.
    ///
    /// Returns false if they do not.
    mutating func add(_ program: GlobProgram) -> Bool {
        guard let components = Self.componentsAtAnyDepth(program) else { return false }
        isEmpty = false
        for component in components {
            let entry = Entry(program: program, component: component)
            if let byte = component.tokens.last.flatMap({ program.bytes(ofLiteral: $0)?.last }) {
                byEnding[Int(byte.lowercased)].append(entry)
            } else if let byte = component.tokens.first.flatMap({ program.bytes(ofLiteral: $0)?.first }) {
                byBeginning[Int(byte.lowercased)].append(entry)
            } else {
                others.append(entry)
            }
        }
        return true
    }

    /// Whether a program matches the path or a directory above it.
    func covers(_ path: Span<UInt8>) -> Bool {
        var isInHidden = false
        var start = 0
        while start < path.count {
            let end = GlobProgram.endOfName(path, from: start)
            // A path with an empty name matches nothing from there on.
            guard end > start else { return false }
            let name = start..<end
            if matches(path, name, byEnding[Int(path[end - 1].lowercased)], isInHidden)
                || matches(path, name, byBeginning[Int(path[start].lowercased)], isInHidden)
                || matches(path, name, others, isInHidden)
            {
                return true
            }
            if path[start] == .dot { isInHidden = true }
            start = end + 1
        }
        return false
    }

    private func matches(_ path: Span<UInt8>, _ name: Range<Int>, _ entries: [Entry], _ isInHidden: Bool) -> Bool {
        entries.contains { entry in
            (entry.program.matchesHidden || !isInHidden) && entry.program.matches(path, name, entry.component)
        }
    }

    /// Returns the names of a glob that is `**/NAME` in each alternative; nil for any other glob.
    private static func componentsAtAnyDepth(_ program: GlobProgram) -> [GlobComponent]? {
        guard program.lead.isEmpty else { return nil }
        var names: [GlobComponent] = []
        for alternative in program.alternatives {
            let components = program.components[alternative.components]
            guard components.count == 2, let first = components.first, first.isAnyDirectories,
                let last = components.last, !last.isAnyDirectories
            else { return nil }
            names.append(last)
        }
        return names
    }
}
