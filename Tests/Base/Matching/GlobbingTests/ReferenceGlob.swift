/// A simple matcher that the real one is compared with; too slow for other use.
///
/// It expands braces textually, splits names into characters and tries every
/// length for every star. It reports no errors: patterns must be valid.
struct ReferenceGlob {
    typealias Character = [UInt8]

    let matchesHidden: Bool
    let foldsExtension: Bool
    private let alternatives: [[[Character]]]

    init(_ pattern: [UInt8], matchesHidden: Bool, foldsExtension: Bool) {
        self.matchesHidden = matchesHidden
        self.foldsExtension = foldsExtension
        alternatives = Self.expand(pattern).map { Self.names($0).filter { $0 != [[0x2E]] } }
    }

    func matches(_ path: [UInt8]) -> Bool {
        let names = Self.names(path)
        return alternatives.contains { match($0[...], names[...]) }
    }

    /// Whether a pattern can match below the directory.
    func canMatch(below directory: [UInt8]) -> Bool {
        let names = Self.names(directory)
        return alternatives.contains { goesOn($0[...], names[...]) }
    }

    /// Whether a pattern can match an entry of the directory.
    func canMatch(in directory: [UInt8]) -> Bool {
        let names = Self.names(directory)
        return alternatives.contains { endsWithin($0[...], names[...]) }
    }

    private func match(_ parts: ArraySlice<[Character]>, _ names: ArraySlice<[Character]>) -> Bool {
        guard let part = parts.first else { return names.isEmpty }
        if part == [[0x2A], [0x2A]] {
            if parts.count == 1 { return !names.isEmpty && names.allSatisfy(isVisible) }
            if match(parts.dropFirst(), names) { return true }
            guard let name = names.first else { return false }
            return isVisible(name) && match(parts, names.dropFirst())
        }
        guard let name = names.first else { return false }
        return component(part, name, isLast: parts.count == 1) && match(parts.dropFirst(), names.dropFirst())
    }

    private func goesOn(_ parts: ArraySlice<[Character]>, _ names: ArraySlice<[Character]>) -> Bool {
        guard let part = parts.first else { return false }
        guard let name = names.first else { return true }
        if part == [[0x2A], [0x2A]] {
            return goesOn(parts.dropFirst(), names) || isVisible(name) && goesOn(parts, names.dropFirst())
        }
        return component(part, name, isLast: parts.count == 1) && goesOn(parts.dropFirst(), names.dropFirst())
    }

    private func endsWithin(_ parts: ArraySlice<[Character]>, _ names: ArraySlice<[Character]>) -> Bool {
        let isLastAny = parts.last == [[0x2A], [0x2A]]
        guard let name = names.first else {
            return parts.count { $0 != [[0x2A], [0x2A]] } == (isLastAny ? 0 : 1) && !parts.isEmpty
        }
        guard let part = parts.first else { return false }
        if part == [[0x2A], [0x2A]] {
            return endsWithin(parts.dropFirst(), names) || isVisible(name) && endsWithin(parts, names.dropFirst())
        }
        return component(part, name, isLast: parts.count == 1) && endsWithin(parts.dropFirst(), names.dropFirst())
    }

    private func isVisible(_ name: [Character]) -> Bool { matchesHidden || name.first != [0x2E] }

    private func component(_ part: [Character], _ name: [Character], isLast: Bool) -> Bool {
        guard isVisible(name) || part.first == [0x2E] else { return false }
        let dot = isLast && foldsExtension ? part.dropFirst().lastIndex(of: [0x2E]) : nil
        return tokens(part[...], name[...], foldsBehind: dot ?? part.count)
    }

    private func tokens(_ part: ArraySlice<Character>, _ name: ArraySlice<Character>, foldsBehind dot: Int) -> Bool {
        guard let token = part.first else { return name.isEmpty }
        let rest = part.dropFirst()
        if token == [0x2A] {
            return (0...name.count).contains { tokens(rest, name.dropFirst($0), foldsBehind: dot) }
        }
        guard let character = name.first else { return false }
        let fold: (Character) -> Character = { part.startIndex > dot && $0[0] < 0x80 ? [$0[0].lowered] : $0 }
        if token == [0x5B], let end = rest.firstIndex(of: [0x5D]) {
            let isNegated = rest.first == [0x21]
            let isListed = rest[..<end].dropFirst(isNegated ? 1 : 0).map(fold).contains(fold(character))
            return isListed != isNegated && tokens(part[(end + 1)...], name.dropFirst(), foldsBehind: dot)
        }
        guard token == [0x3F] || fold(token) == fold(character) else { return false }
        return tokens(rest, name.dropFirst(), foldsBehind: dot)
    }

    /// Expands the first group of braces, then the results recursively.
    static func expand(_ pattern: [UInt8]) -> [[UInt8]] {
        guard let opening = pattern.firstIndex(of: 0x7B) else { return [pattern] }
        var level = 0
        var cuts = [opening]
        for index in opening..<pattern.count {
            switch pattern[index] {
            case 0x7B: level += 1
            case 0x7D: level -= 1
            case 0x2C where level == 1: cuts.append(index)
            default: break
            }
            guard level == 0 else { continue }
            cuts.append(index)
            break
        }
        let tail = pattern[((cuts.last ?? opening) + 1)...]
        return zip(cuts, cuts.dropFirst()).flatMap { (start: Int, end: Int) -> [[UInt8]] in
            expand(Array(pattern[..<opening]) + Array(pattern[(start + 1)..<end]) + Array(tail))
        }
    }

    /// Splits a path into components, and those into characters; empty components are dropped.
    private static func names(_ path: [UInt8]) -> [[Character]] {
        path.split(separator: 0x2F).map { characters(Array($0)) }
    }

    private static func characters(_ name: [UInt8]) -> [Character] {
        guard !name.isEmpty else { return [] }
        let length = (1...min(4, name.count)).first {
            String(validating: name[..<$0], as: UTF8.self)?.unicodeScalars.count == 1
        }
        return [Array(name[..<(length ?? 1)])] + characters(Array(name[(length ?? 1)...]))
    }
}

extension UInt8 {
    fileprivate var lowered: UInt8 { (0x41...0x5A).contains(self) ? self + 0x20 : self }
}
