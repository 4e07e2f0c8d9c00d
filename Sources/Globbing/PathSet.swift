/// A set of paths that is known by a pattern: what an action may write.
///
/// Other than a ``Glob`` it may take its parts from another rule's globs, as
/// `/out/${name}` does: any name that they can take. Where a part is not known
/// exactly the set is larger than what is meant, never smaller.
package struct PathSet: Sendable {
    /// A part of a path.
    package enum Piece: Sendable {
        /// These bytes; slashes included.
        case literal([UInt8])
        /// Any characters of one name, also none.
        case anyText
        /// Any characters, slashes included, also none.
        case anything
        /// A whole path that one of the globs takes.
        case path(of: [Glob])
        /// What is left of it behind the glob's root.
        case relative(of: [Glob])
        /// The folders of it.
        case folder(of: [Glob])
        /// Its last name.
        case name(of: [Glob])
        /// Its last name without the extension.
        case stem(of: [Glob])
        /// The extension of its last name, without the dot.
        case `extension`(of: [Glob])
    }

    let pieces: [Piece]

    /// The paths that consist of these pieces, one after the other.
    package init(_ pieces: [Piece]) { self.pieces = pieces }

    /// How a set of paths lies to what a filter takes.
    package struct Meeting: Sendable, Hashable {
        /// A path that both hold.
        package var path: [UInt8]
        /// The glob that takes it.
        package var glob: Glob
        /// Whether the filter takes every path of the set, the built-in ignores not counted.
        package var isWhole: Bool
    }

    /// What the filter takes of the set.
    ///
    /// - Parameters:
    ///   - filter: The filter.
    ///   - others: Filters that have to match the path as well.
    ///   - sets: Sets that have to hold the path as well.
    /// - Returns: Nil when it takes nothing, or when that is too much work to find out.
    package func meeting(_ filter: PathFilter, and others: [PathFilter] = [], in sets: [PathSet] = []) -> Meeting? {
        guard case .meeting(let meeting) = PathSetSearch(self, [filter] + others, sets: sets).run() else { return nil }
        // The built-in ignores are many and say little: what is found is looked up in them instead of searched for.
        for filter in [filter] + others {
            for root in filter.roots {
                guard let relative = PathFilter.relative(meeting.path, to: root) else { continue }
                if filter.ignores.covers(relative) { return nil }
            }
        }
        return meeting
    }

    /// Whether the filter certainly takes nothing of the set, the built-in ignores not counted.
    package func isMissed(by filter: PathFilter) -> Bool { PathSetSearch(self, [filter]).run() == .nothing }
}

/// Characters, as ranges of the values of `GlobCharacter`.
struct CharacterRanges: Hashable {
    static let last = GlobCharacter.strayBase + 0xFF
    private static let slash: UInt32 = 0x2F
    private static let dot: UInt32 = 0x2E

    /// Sorted, and not touching.
    var ranges: [ClosedRange<UInt32>]

    static let all = CharacterRanges(ranges: [0...last])
    static let slashOnly = CharacterRanges(ranges: [slash...slash])
    /// What a wildcard takes.
    static let ofNames = CharacterRanges(ranges: [0...(slash - 1), (slash + 1)...last])

    func contains(_ value: UInt32) -> Bool { ranges.contains { $0.contains(value) } }

    func withoutDot() -> CharacterRanges {
        CharacterRanges(
            ranges: ranges.flatMap { range -> [ClosedRange<UInt32>] in
                guard range.contains(Self.dot) else { return [range] }
                var parts: [ClosedRange<UInt32>] = []
                if range.lowerBound < Self.dot { parts.append(range.lowerBound...(Self.dot - 1)) }
                if range.upperBound > Self.dot { parts.append((Self.dot + 1)...range.upperBound) }
                return parts
            })
    }
}

/// Reads paths character by character, in several ways at once.
struct PathAutomaton {
    struct State {
        var edges: [(characters: CharacterRanges, to: Int)] = []
        /// States that are reached without reading.
        var jumps: [Int] = []
    }

    var states: [State] = []

    mutating func add() -> Int {
        states.append(State())
        return states.count - 1
    }

    mutating func link(_ from: Int, _ to: Int, _ characters: CharacterRanges) {
        states[from].edges.append((characters, to))
    }

    mutating func jump(_ from: Int, _ to: Int) { states[from].jumps.append(to) }

    /// A loop that takes any of the characters, any number of times.
    mutating func loop(from start: Int, _ characters: CharacterRanges) -> Int {
        let state = add()
        jump(start, state)
        link(state, state, characters)
        return state
    }

    /// The literal bytes; returns the state behind them.
    mutating func literal(_ bytes: some Collection<UInt8>, from start: Int, foldsCase: Bool = false) -> Int {
        var state = start
        bytes.withSpan { span in
            var position = 0
            while position < span.count {
                let character = GlobCharacter(span, at: position, end: span.count)
                position += character.length
                let next = add()
                let value = character.value
                link(state, next, CharacterRanges(ranges: [value...value]))
                if foldsCase, (0x61...0x7A).contains(value) {
                    link(state, next, CharacterRanges(ranges: [(value - 0x20)...(value - 0x20)]))
                }
                state = next
            }
        }
        return state
    }

    /// The states that are reached from these without reading, sorted.
    func closure(_ start: [Int]) -> [Int] {
        var found = Set(start)
        var open = start
        while let state = open.popLast() {
            for next in states[state].jumps where found.insert(next).inserted { open.append(next) }
        }
        return found.sorted()
    }
}
