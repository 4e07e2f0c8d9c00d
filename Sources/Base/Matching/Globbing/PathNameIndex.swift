/// An index over globs with one root that finds those that could match a path, by the literals in their names.
///
/// Each glob is stored under one literal: its whole last name, the suffix or prefix of that name, or a directory in its
/// path. Of these, the index uses the literal that the fewest other globs share. With many rules for one directory, a
/// path costs no more than the few globs that share its suffix. A glob without a literal is a candidate for every path.
struct PathNameIndex: Sendable {
    /// The bytes are in lower case, because extensions are compared without case.
    private enum Key: Hashable {
        case name(ArraySlice<UInt8>)
        case ending(ArraySlice<UInt8>)
        case beginning(ArraySlice<UInt8>)
        case directory(ArraySlice<UInt8>)
    }

    /// Longer literals do not distinguish more globs.
    private static let longest = 16

    private var entries: [Key: [Int]] = [:]
    /// The globs without a literal.
    private var others: [Int] = []
    private var endings: [Int] = []
    private var beginnings: [Int] = []
    private var hasDirectories = false

    /// Creates an index of globs with their numbers, which must be in ascending order.
    init(_ globs: [(number: Int, glob: Glob)]) {
        let alternatives = globs.flatMap { number, glob in
            glob.program.alternatives.map { (number: number, keys: Self.keys(of: $0, in: glob.program)) }
        }
        var counts: [Key: Int] = [:]
        for alternative in alternatives { for key in alternative.keys { counts[key, default: 0] += 1 } }
        for alternative in alternatives {
            if let key = alternative.keys.min(by: { counts[$0, default: 0] < counts[$1, default: 0] }) {
                if entries[key]?.last != alternative.number { entries[key, default: []].append(alternative.number) }
            } else if others.last != alternative.number {
                others.append(alternative.number)
            }
        }
        for key in entries.keys {
            switch key {
            case .ending(let bytes) where !endings.contains(bytes.count): endings.append(bytes.count)
            case .beginning(let bytes) where !beginnings.contains(bytes.count): beginnings.append(bytes.count)
            case .directory: hasDirectories = true
            default: break
            }
        }
    }

    /// Adds the numbers of the globs that could match, in any order and possibly twice.
    ///
    /// - Parameters:
    ///   - path: The whole path.
    ///   - start: The start of the part below the root.
    ///   - found: The array to add the numbers to.
    func find(_ path: [UInt8], from start: Int, into found: inout [Int]) {
        found += others
        guard start < path.count, !entries.isEmpty else { return }
        let below = path[start...].map(\.lowercased)[...]
        let nameStart = below.lastIndex(of: .slash).map { $0 + 1 } ?? 0
        let name = below[nameStart...]
        found += entries[.name(name)] ?? []
        for count in endings where count <= name.count { found += entries[.ending(name.suffix(count))] ?? [] }
        for count in beginnings where count <= name.count { found += entries[.beginning(name.prefix(count))] ?? [] }
        guard hasDirectories, nameStart > 0 else { return }
        for name in below[..<nameStart].split(separator: .slash) { found += entries[.directory(name)] ?? [] }
    }

    /// Returns the keys that every path matching this alternative has.
    private static func keys(of alternative: GlobAlternative, in program: GlobProgram) -> [Key] {
        guard let last = alternative.components.last else { return [] }
        func literal(_ token: Int) -> ArraySlice<UInt8>? { program.bytes(ofLiteral: token)?.map(\.lowercased)[...] }
        /// Returns the name that a component without wildcards matches.
        func name(_ component: GlobComponent) -> ArraySlice<UInt8>? {
            let parts = component.tokens.compactMap(literal)
            guard !component.isAnyDirectories, !parts.isEmpty, parts.count == component.tokens.count else { return nil }
            return Array(parts.joined())[...]
        }
        var keys: [Key] = []
        let component = program.components[last]
        if let whole = name(component) { keys.append(.name(whole)) }
        if let end = component.tokens.last.flatMap(literal) { keys.append(.ending(end.suffix(longest))) }
        if let start = component.tokens.first.flatMap(literal) { keys.append(.beginning(start.prefix(longest))) }
        let directories = program.components[alternative.components.dropLast()]
        return keys + directories.compactMap { name($0).map { .directory($0) } }
    }
}
