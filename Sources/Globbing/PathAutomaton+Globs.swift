// What a glob, or a part of it, is as an automaton.
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
