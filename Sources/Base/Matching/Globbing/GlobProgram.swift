/// One test of a part of a name.
enum GlobToken: Sendable {
    /// Bytes of ``GlobProgram/bytes``.
    case literal(GlobLiteral)
    /// `*`.
    case star
    /// `?`.
    case one
    /// `[…]`: the index in ``GlobProgram/classes``.
    case set(Int)
}

/// Bytes that a name must contain.
struct GlobLiteral: Sendable {
    /// The position in ``GlobProgram/bytes``.
    var start: Int
    var count: Int
    /// Whether case is ignored; the bytes are then in lower case.
    var foldsCase: Bool
    /// The number of bytes at the end that start an incomplete character, which occurs only in a pattern that is not
    /// UTF-8.
    var openCount: Int
    /// Whether the first byte continues a character, which occurs only in a pattern that is not UTF-8.
    var startsInside: Bool
}

/// One name of a path, or any number of directories.
struct GlobComponent: Sendable {
    /// The tokens in ``GlobProgram/tokens``.
    var tokens: Range<Int>
    /// Whether it is `**`; at the end of a pattern, it is followed by a `*`.
    var isAnyDirectories: Bool
    /// Whether it starts with a literal dot.
    var startsWithDot: Bool
    var hasStar: Bool
}

/// One alternative of the braces.
struct GlobAlternative: Sendable {
    /// The components below the root in ``GlobProgram/components``.
    var components: Range<Int>
    /// The suffix of every match, which rules out most paths at once.
    var suffix: GlobLiteral?
}

/// A pattern compiled for matching: flat tables, so that matching allocates nothing.
final class GlobProgram: Sendable {
    let root: [UInt8]
    let depth: Int?
    /// The root as the prefix of every match, with its slash.
    let lead: [UInt8]
    let isAbsolute: Bool
    let matchesHidden: Bool
    let alternatives: [GlobAlternative]
    let components: [GlobComponent]
    let tokens: [GlobToken]
    let bytes: [UInt8]
    let classes: [GlobClass]

    init(_ pattern: [UInt8], options: Glob.Options) throws(GlobError) {
        let errors = GlobErrors(pattern: pattern)
        guard pattern.count <= GlobExpansion.maximumLength else { throw errors.isTooLong(at: 0) }
        var parser = GlobParser(pattern)
        let expansion = try GlobExpansion(try parser.parse(), errors: errors)
        var tables = GlobTables(classes: parser.classes, foldsExtension: !options.isCaseSensitive)
        for alternative in expansion.alternatives { tables.add(alternative.dropFirst(expansion.rootCount)) }
        let directories = expansion.alternatives[0].prefix(expansion.rootCount).map(Self.literalBytes)
        let joined = Array(directories.joined(separator: [.slash]))
        let anchor: [UInt8] = expansion.isAbsolute ? [.slash] : []
        root = joined.isEmpty && !expansion.isAbsolute ? [.dot] : anchor + joined
        lead = joined.isEmpty ? anchor : root + [.slash]
        (isAbsolute, matchesHidden) = (expansion.isAbsolute, options.matchesHidden)
        (alternatives, components, tokens) = (tables.alternatives, tables.components, tables.tokens)
        (bytes, classes, depth) = (tables.bytes, tables.classes, tables.depth)
    }

    /// Returns the bytes of a literal; nil for another token.
    func bytes(ofLiteral token: Int) -> ArraySlice<UInt8>? {
        if case .literal(let literal) = tokens[token] { bytes(of: literal) } else { nil }
    }

    func bytes(of literal: GlobLiteral) -> ArraySlice<UInt8> { bytes[literal.start..<(literal.start + literal.count)] }

    private static func literalBytes(_ component: [GlobAtom]) -> [UInt8] {
        component.compactMap { if case .literal(let byte) = $0.kind { byte } else { nil } }
    }
}

/// A builder for the tables of a program.
private struct GlobTables {
    var alternatives: [GlobAlternative] = []
    var components: [GlobComponent] = []
    var tokens: [GlobToken] = []
    var bytes: [UInt8] = []
    var classes: [GlobClass]
    let foldsExtension: Bool

    /// The number of directory levels below the root in the deepest alternative.
    var depth: Int? {
        guard !components.contains(where: \.isAnyDirectories) else { return nil }
        return alternatives.map { $0.components.count - 1 }.max()
    }

    mutating func add(_ parts: ArraySlice<[GlobAtom]>) {
        let first = components.count
        for (number, atoms) in zip(parts.indices, parts) {
            let isLast = number == parts.endIndex - 1
            if atoms.count == 2, atoms.allSatisfy({ $0.kind == .star }) {
                let follows = components.count > first && components[components.count - 1].isAnyDirectories
                if !follows { addComponent([], isAnyDirectories: true) }
                // A `**` at the end matches everything below: any directories, and then one name.
                if isLast { addComponent(atoms.prefix(1), isAnyDirectories: false) }
            } else {
                addComponent(atoms[...], isAnyDirectories: false, foldsExtension: isLast && foldsExtension)
            }
        }
        var suffix: GlobLiteral?
        if case .literal(let literal) = tokens.last { suffix = literal }
        alternatives.append(GlobAlternative(components: first..<components.count, suffix: suffix))
    }

    private mutating func addComponent(
        _ atoms: ArraySlice<GlobAtom>, isAnyDirectories: Bool, foldsExtension: Bool = false
    ) {
        let first = tokens.count
        // The dot of `.bashrc` starts a name, not an extension.
        let dot = foldsExtension ? atoms.dropFirst().lastIndex { $0.kind == .literal(.dot) } : nil
        var run: [UInt8] = []
        for (number, atom) in zip(atoms.indices, atoms) {
            if number == dot { flush(&run, foldsCase: false) }
            let foldsCase = dot.map { number >= $0 } ?? false
            if case .literal(let byte) = atom.kind {
                run.append(foldsCase ? byte.lowercased : byte)
                continue
            }
            flush(&run, foldsCase: foldsCase)
            switch atom.kind {
            case .star:
                if tokens.count > first, case .star = tokens[tokens.count - 1] { continue }
                tokens.append(.star)
            case .one:
                tokens.append(.one)
            case .set(let number) where foldsCase:
                classes.append(classes[number].foldingCase())
                tokens.append(.set(classes.count - 1))
            case .set(let number):
                tokens.append(.set(number))
            case .literal, .slash:
                preconditionFailure("a component holds literals here, or a slash")
            }
        }
        flush(&run, foldsCase: dot != nil)
        components.append(
            GlobComponent(
                tokens: first..<tokens.count, isAnyDirectories: isAnyDirectories,
                startsWithDot: atoms.first?.kind == .literal(.dot),
                hasStar: atoms.contains { $0.kind == .star }))
    }

    private mutating func flush(_ run: inout [UInt8], foldsCase: Bool) {
        guard let first = run.first else { return }
        var openCount = 0
        if let lead = run.suffix(3).lastIndex(where: { !UTF8.isContinuation($0) }) {
            let count = run.count - lead
            if GlobCharacter.expectedLength(run[lead]) > count { openCount = count }
        }
        let literal = GlobLiteral(
            start: bytes.count, count: run.count, foldsCase: foldsCase, openCount: openCount,
            startsInside: UTF8.isContinuation(first))
        bytes += run
        tokens.append(.literal(literal))
        run = []
    }
}

extension UInt8 {
    /// The lower-case letter of an ASCII capital letter; any other byte unchanged.
    package var lowercased: UInt8 { (0x41...0x5A).contains(self) ? self | 0x20 : self }
}
