/// An indivisible part of a pattern.
struct GlobAtom {
    enum Kind: Equatable {
        case literal(UInt8)
        /// The separator of two components.
        case slash
        /// `*`.
        case star
        /// `?`.
        case one
        /// `[…]`: the index in ``GlobParser/classes``.
        case set(Int)
    }

    var kind: Kind
    /// The offset in the pattern, for messages.
    var offset: Int
}

/// A part of a pattern as written, before the expansion of braces.
enum GlobNode {
    case atom(GlobAtom)
    /// `{a,b}`: the alternatives, and the offset of the brace.
    case group([[GlobNode]], offset: Int)
}

/// Parses a pattern into nodes.
struct GlobParser {
    /// Far more than any use requires, and small enough for the stack of any thread.
    static let maximumNesting = 32

    private let pattern: [UInt8]
    private let errors: GlobErrors
    private var index = 0
    private(set) var classes: [GlobClass] = []

    init(_ pattern: [UInt8]) {
        self.pattern = pattern
        errors = GlobErrors(pattern: pattern)
    }

    /// Parses the whole pattern.
    mutating func parse() throws(GlobError) -> [GlobNode] {
        if pattern.isEmpty {
            throw GlobError(offset: 0, message: "the glob is empty", help: "write a path, such as 'in/*.jpg'")
        }
        if let nul = pattern.firstIndex(of: 0) {
            throw errors.error(at: nul, "contains a NUL byte, which no path can", help: "remove the byte")
        }
        return try sequence(depth: 0)
    }

    /// Parses to the end, or inside braces to the next `,` or `}` of this level.
    private mutating func sequence(depth: Int) throws(GlobError) -> [GlobNode] {
        var nodes: [GlobNode] = []
        while let byte = peek() {
            let start = index
            switch byte {
            case UInt8(ascii: ","), UInt8(ascii: "}"):
                if depth > 0 { return nodes }
                nodes.append(literal(byte))
            case UInt8(ascii: "{"):
                nodes += try group(depth: depth + 1)
            case UInt8(ascii: "["):
                nodes.append(.atom(GlobAtom(kind: .set(try characterClass()), offset: start)))
            case UInt8(ascii: "*"):
                nodes.append(take(.star))
            case UInt8(ascii: "?"):
                nodes.append(take(.one))
            case .slash:
                nodes.append(take(.slash))
            case UInt8(ascii: "\\"):
                guard let escaped = peek(1) else {
                    throw errors.error(
                        at: start, #"ends with '\', which escapes nothing"#, help: #"write '\\' to match a backslash"#)
                }
                index += 1
                nodes.append(literal(escaped))
            default:
                nodes.append(literal(byte))
            }
        }
        return nodes
    }

    private func peek(_ distance: Int = 0) -> UInt8? {
        index + distance < pattern.count ? pattern[index + distance] : nil
    }

    private mutating func take(_ kind: GlobAtom.Kind) -> GlobNode {
        index += 1
        return .atom(GlobAtom(kind: kind, offset: index - 1))
    }

    /// Consumes a literal byte.
    ///
    /// A slash separates components even if it is escaped.
    private mutating func literal(_ byte: UInt8) -> GlobNode { take(byte == .slash ? .slash : .literal(byte)) }
}

// MARK: - Braces

extension GlobParser {
    /// Parses `{…}`: a group, or literal braces if they contain no comma.
    private mutating func group(depth: Int) throws(GlobError) -> [GlobNode] {
        let opening = index
        guard depth <= Self.maximumNesting else {
            throw errors.error(
                at: opening, "nests braces more than \(Self.maximumNesting) deep", help: "write several globs")
        }
        let openingBrace = literal(UInt8(ascii: "{"))
        var branches = [try sequence(depth: depth)]
        while peek() == UInt8(ascii: ",") {
            index += 1
            branches.append(try sequence(depth: depth))
        }
        guard peek() != nil else {
            throw errors.error(at: opening, "has no closing '}'", help: "add '}', or write '[{]' to match a brace")
        }
        let closingBrace = literal(UInt8(ascii: "}"))
        guard branches.count == 1 else { return [.group(branches, offset: opening)] }
        guard !isRange(pattern[(opening + 1)..<(index - 1)]) else {
            throw errors.error(
                at: opening, "contains the range '\(errors.shown(opening..<index))', which globs do not expand",
                help: "write every alternative, as in '{1,2,3}', or a class, as in '[1-3]'")
        }
        return [openingBrace] + branches[0] + [closingBrace]
    }

    /// Whether the shell would expand a sequence here: `1..3`, `a..e`, `1..9..2`.
    private func isRange(_ content: ArraySlice<UInt8>) -> Bool {
        let ends = content.split(separator: [UInt8.dot, .dot], omittingEmptySubsequences: false)
        guard ends.count == 2 || ends.count == 3 else { return false }
        let areNumbers = ends.allSatisfy(isNumber)
        let areLetters = ends[0].count == 1 && ends[1].count == 1 && ends.dropFirst(2).allSatisfy(isNumber)
        return areNumbers || areLetters
    }

    private func isNumber(_ text: ArraySlice<UInt8>) -> Bool {
        let digits = text.first == UInt8(ascii: "-") || text.first == UInt8(ascii: "+") ? text.dropFirst() : text
        return !digits.isEmpty && digits.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}

// MARK: - Classes

extension GlobParser {
    /// Parses `[…]` and returns the index of its class.
    private mutating func characterClass() throws(GlobError) -> Int {
        let opening = index
        if let name = className(at: opening), GlobClass.names.contains(where: { $0.name == name.text }) {
            let shown = errors.shown(name.range)
            throw errors.error(at: opening, "contains '\(shown)' outside of '[' and ']'", help: "write '[\(shown)]'")
        }
        index += 1
        let isNegated = peek() == UInt8(ascii: "!") || peek() == UInt8(ascii: "^")
        if isNegated { index += 1 }
        let first = index
        var ranges: [ClosedRange<UInt32>] = []
        while let byte = peek(), byte != UInt8(ascii: "]") || index == first { ranges += try classItem(of: opening) }
        guard peek() != nil else { throw errors.hasNoClosingBracket(at: opening) }
        if let slash = pattern[opening..<index].firstIndex(of: .slash) {
            throw errors.error(
                at: slash, "contains '/' between '[' and ']', which match within one name",
                help: "write '{a/b,c}' for alternatives that contain '/'")
        }
        index += 1
        classes.append(GlobClass(ranges, isNegated: isNegated))
        return classes.count - 1
    }

    /// Parses a character, a range or a `[:name:]`.
    private mutating func classItem(of opening: Int) throws(GlobError) -> [ClosedRange<UInt32>] {
        let start = index
        if let name = className(at: start) {
            guard let known = GlobClass.names.first(where: { $0.name == name.text }) else {
                throw errors.error(
                    at: start, "contains the unknown class '\(errors.shown(name.range))'",
                    help: "the classes are \(GlobClass.names.map(\.name).joined(separator: ", "))")
            }
            index = name.range.upperBound
            return known.ranges
        }
        let low = try classCharacter(of: opening)
        let lowEnd = index
        guard peek() == UInt8(ascii: "-"), let next = peek(1), next != UInt8(ascii: "]") else { return [low...low] }
        index += 1
        if let name = className(at: index) {
            throw errors.error(
                at: index, "contains a range that ends with '\(errors.shown(name.range))'",
                help: #"end the range with one character, or write '\-' to match a hyphen"#)
        }
        let highStart = index
        let high = try classCharacter(of: opening)
        guard low <= high else {
            throw errors.error(
                at: start, "contains the range '\(errors.shown(start..<index))', which is out of order",
                help: "write '\(errors.shown(highStart..<index))-\(errors.shown(start..<lowEnd))'")
        }
        return [low...high]
    }

    /// Parses one character, escaped or not.
    private mutating func classCharacter(of opening: Int) throws(GlobError) -> UInt32 {
        if peek() == UInt8(ascii: "\\") { index += 1 }
        guard index < pattern.count else { throw errors.hasNoClosingBracket(at: opening) }
        let character = GlobCharacter(pattern.span, at: index, end: pattern.count)
        index += character.length
        return character.value
    }

    /// Returns the `[:name:]` at a position, or nil; the name may be unknown.
    private func className(at start: Int) -> (text: String, range: Range<Int>)? {
        let letters = UInt8(ascii: "a")...UInt8(ascii: "z")
        guard pattern[start...].starts(with: "[:".utf8) else { return nil }
        let name = pattern[(start + 2)...].prefix { letters.contains($0) }
        guard !name.isEmpty, pattern[name.endIndex...].starts(with: ":]".utf8) else { return nil }
        return (String(decoding: name, as: UTF8.self), start..<(name.endIndex + 2))
    }
}
