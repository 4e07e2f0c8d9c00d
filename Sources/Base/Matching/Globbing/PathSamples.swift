/// Words that replace wildcards, so that a pattern becomes sample paths to match against other patterns.
///
/// The words come from those other patterns: `*.x` matches a path that `a*` matches only if `a` replaces its star.
package struct PathWords: Sendable {
    /// The words, neutral ones first, so that a found path looks like a name.
    package private(set) var words = ["m3Vw", "Qx7q", "7", "x", "x/7/x/7/x/7/x/7"].map { Array($0.utf8) }
    private var known: Set<[UInt8]> = []

    /// The neutral words alone.
    package static let plain = PathWords()

    /// Collects the words of patterns that are expected to match the same paths as other patterns.
    ///
    /// - Parameters:
    ///   - globs: The patterns that the words come from.
    ///   - others: The patterns whose wildcards the words replace.
    ///   - literals: Further strings next to such wildcards.
    package init(of globs: [Glob] = [], for others: [Glob] = [], beside literals: [[UInt8]] = []) {
        known = Set(words)
        let texts = literals.filter { !$0.isEmpty } + others.flatMap { $0.program.texts(like: words[0]) }
        for glob in globs {
            for text in glob.program.texts(like: words[0]) { add(text) }
            addPaths(of: glob.program, like: texts)
        }
        // Next to a string, the rest of a word is enough.
        for text in texts {
            for word in words {
                if word.starts(with: text) { add(Array(word.dropFirst(text.count))) }
                if word.suffix(text.count).elementsEqual(text) { add(Array(word.dropLast(text.count))) }
            }
        }
    }

    private mutating func add(_ word: [UInt8]) { if !word.isEmpty, known.insert(word).inserted { words.append(word) } }

    /// Adds whole names, and nested directories.
    private mutating func addPaths(of program: GlobProgram, like texts: [[UInt8]]) {
        let root = program.lead.split(separator: .slash).map(Array.init)
        for alternative in program.alternatives {
            var names = root
            for component in program.components[alternative.components] where !component.isAnyDirectories {
                let runs = program.runs(of: component)
                for text in [words[0]] + texts where !text.contains(.slash) {
                    let parts = runs.map { program.sample(of: $0, like: text) }
                    add(Array(parts.joined()))
                    add(Array(parts.joined(separator: words[0])))
                }
                names.append(Array(runs.map { program.sample(of: $0, like: words[0]) }.joined(separator: words[0])))
            }
            names.forEach { add($0) }
            for start in names.indices { add(Array(names[start...].dropLast().joined(separator: [.slash]))) }
        }
    }

    /// Returns every choice of one element from each list, joined; an even selection if there are more than the limit.
    package static func combinations(of lists: [[[UInt8]]], limit: Int) -> [[UInt8]] {
        let total = lists.reduce(1) { min($0 * $1.count, 1 << 40) }
        return (0..<min(total, limit)).map { number in
            var rest = total > limit ? number * 7919 % total : number
            return lists.flatMap { list in
                defer { rest /= list.count }
                return list[rest % list.count]
            }
        }
    }
}

extension Glob {
    /// Returns paths that the glob matches: for each alternative, the paths with words in place of the wildcards.
    package func samples(_ words: PathWords, limit: Int = 4_000) -> [[UInt8]] {
        var known: Set<[UInt8]> = []
        return program.alternatives.flatMap { alternative in
            PathWords.combinations(
                of: program.lists(for: alternative, words.words), limit: max(limit / program.alternatives.count, 16))
        }.filter { matches($0) && known.insert($0).inserted }
    }

    /// The suffixes of its matches, in lower case; empty for an alternative that ends with a wildcard.
    package var endings: [[UInt8]] {
        program.alternatives.map { $0.suffix.map { program.bytes(of: $0).map(\.lowercased) } ?? [] }
    }
}

extension GlobProgram {
    /// Returns the literals, the parts between stars, and the characters at the bounds of classes.
    fileprivate func texts(like word: [UInt8]) -> [[UInt8]] {
        let runs = components.flatMap { self.runs(of: $0) }.map { sample(of: $0, like: word) }.filter { !$0.isEmpty }
        return runs
            + tokens.flatMap { token -> [[UInt8]] in
                switch token {
                case .literal(let literal): [Array(bytes(of: literal))]
                case .set(let number): classes[number].bounds.map(GlobCharacter.bytes)
                case .star, .one: []
                }
            }
    }

    /// Returns the parts of a name between its stars.
    fileprivate func runs(of component: GlobComponent) -> [ArraySlice<GlobToken>] {
        tokens[component.tokens].split(omittingEmptySubsequences: false) { if case .star = $0 { true } else { false } }
    }

    /// Returns the choices for each part of the path.
    fileprivate func lists(for alternative: GlobAlternative, _ words: [[UInt8]]) -> [[[UInt8]]] {
        let names = words.filter { !$0.contains(.slash) }
        var lists = [[lead]]
        for index in alternative.components {
            guard !components[index].isAnyDirectories else {
                lists.append([[]] + words.map { $0 + [.slash] })
                continue
            }
            let runs = self.runs(of: components[index])
            for (number, run) in runs.enumerated() {
                if number > 0 { lists.append(names + [[]]) }
                var known: Set<[UInt8]> = []
                lists.append(names.map { sample(of: run, like: $0) }.filter { known.insert($0).inserted })
            }
            if index != alternative.components.upperBound - 1 { lists.append([[.slash]]) }
        }
        return lists
    }

    /// Returns a match of a run, with the characters of the word where they match.
    fileprivate func sample(of run: ArraySlice<GlobToken>, like word: [UInt8]) -> [UInt8] {
        var sample: [UInt8] = []
        for token in run {
            if case .literal(let literal) = token {
                sample += bytes(of: literal)
                continue
            }
            let location = sample.count % word.count
            var character = GlobCharacter(word.span, at: location, end: word.count).value
            if case .set(let number) = token, !classes[number].contains(character) {
                character = ([0x78, 0x37] + classes[number].bounds).first { classes[number].contains($0) } ?? character
            }
            sample += GlobCharacter.bytes(of: character)
        }
        return sample
    }
}

extension GlobCharacter {
    fileprivate static func bytes(of character: UInt32) -> [UInt8] {
        if character >= strayBase { return [UInt8(truncatingIfNeeded: character - strayBase)] }
        return Unicode.Scalar(character).map { Array(String(Character($0)).utf8) } ?? []
    }
}
