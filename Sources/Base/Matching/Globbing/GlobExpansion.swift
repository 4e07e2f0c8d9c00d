/// The expansion of the braces of a pattern: every alternative becomes a list of components.
struct GlobExpansion {
    /// A longer list is a mistake, or should be several globs.
    static let maximumAlternatives = 1024
    /// The limit for all alternatives together, and for the pattern itself.
    static let maximumLength = 65_536

    let alternatives: [[[GlobAtom]]]
    let isAbsolute: Bool
    /// The number of leading components that form the root: directories with the same literal name in every
    /// alternative.
    let rootCount: Int

    init(_ nodes: [GlobNode], errors: GlobErrors) throws(GlobError) {
        let lists = try Self.expand(nodes, offset: 0, errors: errors)
        guard lists.allSatisfy({ !$0.isEmpty }) else {
            throw errors.error(
                at: 0, "has an alternative that is empty", help: "write at least one name in every alternative")
        }
        let absolute = lists.count { $0[0].kind == .slash }
        guard absolute == 0 || absolute == lists.count else {
            throw errors.error(at: 0, "is absolute in one alternative and relative in another", help: "write two globs")
        }
        alternatives = try lists.map { (list) throws(GlobError) in try Self.components(of: list, errors: errors) }
        isAbsolute = absolute > 0
        // If a `.` was dropped, as in `in/{.,a}`, the name before it is a match: `in` itself.
        rootCount = alternatives.reduce(Self.directoryCount(of: nodes)) { min($0, $1.count - 1) }
    }

    private static func expand(_ nodes: [GlobNode], offset: Int, errors: GlobErrors) throws(GlobError) -> [[GlobAtom]] {
        var lists: [[GlobAtom]] = [[]]
        lists[0].reserveCapacity(nodes.count)
        var length = 0
        for node in nodes {
            switch node {
            case .atom(let atom):
                length += lists.count
                guard length <= maximumLength else { throw errors.isTooLong(at: offset) }
                for number in lists.indices { lists[number].append(atom) }
            case .group(let branches, let offset):
                var tails: [[GlobAtom]] = []
                for branch in branches {
                    tails += try expand(branch, offset: offset, errors: errors)
                    guard tails.count <= maximumAlternatives else { throw errors.hasTooManyAlternatives(at: offset) }
                }
                guard lists.count * tails.count <= maximumAlternatives else {
                    throw errors.hasTooManyAlternatives(at: offset)
                }
                length = length * tails.count + lists.count * tails.reduce(0) { $0 + $1.count }
                guard length <= maximumLength else { throw errors.isTooLong(at: offset) }
                lists = lists.flatMap { head in tails.map { head + $0 } }
            }
        }
        return lists
    }

    /// Splits an alternative at its slashes, and drops empty components and `.`.
    private static func components(of atoms: [GlobAtom], errors: GlobErrors) throws(GlobError) -> [[GlobAtom]] {
        if let last = atoms.last, last.kind == .slash {
            let isWhole = errors.pattern.last == .slash
            throw GlobError(
                offset: last.offset,
                message: "\(isWhole ? errors.glob : "an alternative of \(errors.glob)") ends with '/'",
                help: "add '*' for the files in the directory, or remove the slash for the directory itself")
        }
        var components: [[GlobAtom]] = []
        for part in atoms.split(whereSeparator: { $0.kind == .slash }) {
            let isDots = part.count <= 2 && part.allSatisfy { $0.kind == .literal(.dot) }
            if isDots, part.count == 2, let first = part.first {
                throw errors.error(
                    at: first.offset, "contains '..'", help: "write the directory itself; a glob only compares names")
            }
            if !isDots { components.append(Array(part)) }
        }
        guard !components.isEmpty else {
            throw errors.error(
                at: atoms.first?.offset ?? 0, "matches no file",
                help: "write '*' for the files of the directory, or '**' for all below it")
        }
        return components
    }

    /// Counts the literal directories before the first wildcard or group.
    private static func directoryCount(of nodes: [GlobNode]) -> Int {
        var directories = 0
        var name: [UInt8] = []
        for node in nodes {
            guard case .atom(let atom) = node else { return directories }
            switch atom.kind {
            case .literal(let byte): name.append(byte)
            case .slash:
                directories += name.isEmpty || name == [.dot] ? 0 : 1
                name = []
            case .star, .one, .set: return directories
            }
        }
        return directories
    }
}
