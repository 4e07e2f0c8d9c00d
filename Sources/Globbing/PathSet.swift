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
    /// - Returns: Nil when it takes nothing, or when that is too much work to find out.
    package func meeting(_ filter: PathFilter) -> Meeting? {
        guard let meeting = PathSetSearch(self, filter).run() else { return nil }
        // The built-in ignores are many and say little: what is found is looked up in them instead of searched for.
        for root in filter.roots {
            guard let relative = PathFilter.relative(meeting.path, to: root) else { continue }
            if filter.ignores.covers(relative) { return nil }
        }
        return meeting
    }
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

// MARK: - Parts of globs

extension PathAutomaton {
    /// Which part of a glob is meant.
    enum Part { case path, relative, folder, name, stem, `extension` }

    /// The part of each alternative of the glob; returns the state behind all of them.
    mutating func glob(_ program: GlobProgram, _ part: Part, from start: Int) -> Int {
        let end = add()
        for alternative in program.alternatives {
            let components = program.components[alternative.components]
            guard let last = components.last else { continue }
            switch part {
            case .path, .folder, .relative:
                var state = add()
                jump(start, state)
                if part == .folder {
                    // Without its last slash, which belongs to what follows, and so with nothing of `/`.
                    state = literal(program.lead.dropLast(), from: state)
                    folders(components.dropLast(), program, from: state, to: end)
                } else {
                    if part == .path { state = literal(program.lead, from: state) }
                    for component in components.dropLast() {
                        state = self.component(component, program, from: state, isLast: false)
                    }
                    jump(self.component(last, program, from: state, isLast: true), end)
                }
            case .name: jump(component(last, program, from: start, isLast: true), end)
            case .stem, .extension: jump(self.split(last, program, part, from: start), end)
            }
        }
        return end
    }

    /// Folders, each with a slash in front of it.
    private mutating func folders(
        _ components: ArraySlice<GlobComponent>, _ program: GlobProgram, from start: Int, to end: Int
    ) {
        var state = start
        let slash = CharacterRanges.slashOnly
        for component in components {
            if component.isAnyFolders {
                let many = add()
                jump(state, many)
                let behind = add()
                link(many, behind, slash)
                let name = self.name(from: behind, matchesHidden: program.matchesHidden)
                jump(name, many)
                state = many
            } else {
                let behind = add()
                link(state, behind, slash)
                state = self.component(component, program, from: behind, isLast: true)
            }
        }
        jump(state, end)
    }

    /// Any name that is not empty.
    private mutating func name(from start: Int, matchesHidden: Bool) -> Int {
        let state = add()
        link(start, state, matchesHidden ? .ofNames : CharacterRanges.ofNames.withoutDot())
        link(state, state, .ofNames)
        return state
    }

    /// A component, and the slash behind it unless it is the last.
    private mutating func component(
        _ component: GlobComponent, _ program: GlobProgram, from start: Int, isLast: Bool
    ) -> Int {
        if component.isAnyFolders {
            let many = add()
            jump(start, many)
            let name = self.name(from: many, matchesHidden: program.matchesHidden)
            link(name, many, .slashOnly)
            return many
        }
        let first = add()
        let end = tokens(component.tokens, program, from: first)
        begin(first, from: start, takesDot: program.matchesHidden || component.startsWithDot)
        guard !isLast else { return end }
        let behind = add()
        link(end, behind, .slashOnly)
        return behind
    }

    /// Links a state to what follows the beginning of a name: a name is not empty, and may not begin with a dot.
    private mutating func begin(_ first: Int, from start: Int, takesDot: Bool) {
        for state in closure([first]) {
            for edge in states[state].edges {
                link(start, edge.to, takesDot ? edge.characters : edge.characters.withoutDot())
            }
        }
    }

    private mutating func tokens(_ tokens: Range<Int>, _ program: GlobProgram, from start: Int) -> Int {
        var state = start
        for token in program.tokens[tokens] {
            switch token {
            case .literal(let literal):
                let bytes = program.bytes[literal.start..<(literal.start + literal.count)]
                state = self.literal(bytes, from: state, foldsCase: literal.foldsCase)
            case .star: state = loop(from: state, .ofNames)
            case .one:
                let next = add()
                link(state, next, .ofNames)
                state = next
            case .set(let number):
                let next = add()
                link(state, next, program.classes[number].characters)
                state = next
            }
        }
        return state
    }

    /// The stem or the extension of a last name, when a literal with the last dot ends it; else any text.
    private mutating func split(
        _ component: GlobComponent, _ program: GlobProgram, _ part: Part, from start: Int
    ) -> Int {
        guard let token = component.tokens.last, case .literal(let literal) = program.tokens[token] else {
            return loop(from: start, .ofNames)
        }
        let bytes = program.bytes[literal.start..<(literal.start + literal.count)]
        guard let dot = bytes.lastIndex(of: .dot), dot > bytes.startIndex || component.tokens.count > 1 else {
            // The dot may be further in front, or there may be none.
            return loop(from: start, .ofNames)
        }
        // A dot that is part of the same literal run, for `*.tar.gz`, or begins it.
        if part == .extension {
            return self.literal(bytes[(dot + 1)...], from: start, foldsCase: literal.foldsCase)
        }
        let first = add()
        let state = tokens(component.tokens.dropLast(), program, from: first)
        let end = self.literal(bytes[..<dot], from: state, foldsCase: false)
        begin(first, from: start, takesDot: program.matchesHidden || component.startsWithDot)
        return end
    }
}

extension GlobClass {
    /// The characters of the class, with its negation and case; never a slash.
    var characters: CharacterRanges {
        var ranges: [ClosedRange<UInt32>] = []
        func add(_ value: UInt32, to upper: UInt32) {
            if let last = ranges.last, last.upperBound + 1 == value {
                ranges[ranges.count - 1] = last.lowerBound...upper
            } else {
                ranges.append(value...upper)
            }
        }
        for value in UInt32(0)..<128 where value != 0x2F && contains(value) { add(value, to: value) }
        // Beyond ASCII membership changes only at the bounds of what is listed.
        let bounds = ([128] + listed.flatMap { [$0.lowerBound, $0.upperBound + 1] }).filter {
            $0 >= 128 && $0 <= CharacterRanges.last
        }
        let sorted = Set(bounds).sorted()
        for (index, lower) in sorted.enumerated() where contains(lower) {
            add(lower, to: index + 1 < sorted.count ? sorted[index + 1] - 1 : CharacterRanges.last)
        }
        return CharacterRanges(ranges: ranges)
    }
}
