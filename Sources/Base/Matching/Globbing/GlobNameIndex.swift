/// Finds quickly which names of a path the globs of the form `**/NAME` match.
///
/// Such a glob asks the same of each name on the way, so it need not be compared
/// with the path once for every folder in it. And most names are left by looking
/// at their first and last byte alone: what programs leave behind is told by an
/// ending or a beginning.
struct GlobNameIndex: Sendable {
    private struct Entry {
        var program: GlobProgram
        var component: GlobComponent
    }

    /// By the last byte of the name, in lower case.
    private var byEnding: [[Entry]] = Array(repeating: [], count: 256)
    /// By the first byte of the name, in lower case.
    private var byBeginning: [[Entry]] = Array(repeating: [], count: 256)
    /// What begins and ends with a wildcard.
    private var others: [Entry] = []

    /// Whether there is nothing to be found.
    private(set) var isEmpty = true

    /// Takes a program whose alternatives all have the form; false when it has not.
    mutating func add(_ program: GlobProgram) -> Bool {
        guard let components = program.componentsAtAnyDepth else { return false }
        isEmpty = false
        for component in components {
            let entry = Entry(program: program, component: component)
            if let byte = program.lastByte(of: component) {
                byEnding[Int(byte.lowercased)].append(entry)
            } else if let byte = program.firstByte(of: component) {
                byBeginning[Int(byte.lowercased)].append(entry)
            } else {
                others.append(entry)
            }
        }
        return true
    }

    /// Whether a program matches the path or one of the folders above it.
    func covers(_ path: Span<UInt8>) -> Bool {
        var isInHidden = false
        var start = 0
        while start < path.count {
            var end = start
            while end < path.count, path[end] != .slash { end += 1 }
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
        for entry in entries where entry.program.matchesHidden || !isInHidden {
            if entry.program.matches(path, name, entry.component) { return true }
        }
        return false
    }
}

extension GlobProgram {
    /// The names of a glob that is `**/NAME` in each alternative; nil for any other.
    fileprivate var componentsAtAnyDepth: [GlobComponent]? {
        guard lead.isEmpty else { return nil }
        var names: [GlobComponent] = []
        for alternative in alternatives {
            guard alternative.components.count == 2, let first = alternative.components.first,
                components[first].isAnyFolders, !components[first + 1].isAnyFolders
            else { return nil }
            names.append(components[first + 1])
        }
        return names
    }

    /// The byte that every match of the component ends with.
    fileprivate func lastByte(of component: GlobComponent) -> UInt8? {
        guard let last = component.tokens.last, case .literal(let literal) = tokens[last] else { return nil }
        return bytes[literal.start + literal.count - 1]
    }

    /// The byte that every match of the component begins with.
    fileprivate func firstByte(of component: GlobComponent) -> UInt8? {
        guard let first = component.tokens.first, case .literal(let literal) = tokens[first] else { return nil }
        return bytes[literal.start]
    }
}
