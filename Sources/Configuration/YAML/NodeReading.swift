import Rules

/// Reads the values of one YAML file, and tells all that is wrong with them at once.
///
/// Rules and the configuration are read by it. Nothing is thrown: each reader
/// returns nil after it has told what is wrong.
protocol NodeReading: SendableMetatype {
    var source: SourceText { get }
    var surroundings: RuleLoader.Surroundings { get }
    var problems: DiagnosticCollector { get }
}

// Keys, places, and what texts are filled with.
extension NodeReading {
    /// Tells of keys that are not known; of those that are misplaced, the closure says where they belong.
    func checkKeys(
        _ entries: [YAMLNode.Entry], known: [String], noun: String, misplaced: [String] = [],
        misplacedHelp: (String) -> String = { _ in "" }
    ) {
        for entry in entries where !known.contains(entry.name) {
            problems.error(
                "unknown key \(quoted(entry.name))", at: entry.key.range,
                help: misplaced.contains(entry.name)
                    ? misplacedHelp(entry.name)
                    : spellingHelp(for: entry.name, candidates: known, noun: noun, except: entries.map(\.name)))
        }
    }

    /// The nearest of the candidates; all of them when none is near, or when they are few, and none of a great many.
    func spellingHelp(for word: String, candidates: [String], noun: String, except present: [String] = []) -> String? {
        if candidates.count > 8, let near = Spelling.nearest(to: word, in: candidates, except: present) {
            return "write '\(near)'"
        }
        if candidates.count > 20 { return "the \(noun) are in docs/rules.md" }
        return Spelling.help(for: word, candidates: candidates, noun: noun, except: present)
    }

    /// What a caret underlines for a node: all of a scalar or a flow collection, the beginning of a block.
    func mark(_ node: YAMLNode) -> Range<Int> {
        if node.text != nil || node.isFlow { return node.range }
        return node.range.lowerBound..<min(node.range.lowerBound + 1, source.bytes.count)
    }

    /// The value of an entry, or its key when there is no value to point at.
    func mark(_ entry: YAMLNode.Entry) -> Range<Int> {
        let isBlock = entry.value.text == nil && !entry.value.isFlow
        return entry.value.isEmpty || isBlock ? entry.key.range : entry.value.range
    }

    /// The part of a scalar's text, when the file holds the text letter by letter; else its beginning.
    func mark(_ node: YAMLNode, offset: Int, length: Int) -> Range<Int> {
        guard case .scalar(let text, let style) = node.content else { return mark(node) }
        let quote = style == .plain ? 0 : 1
        let start = node.range.lowerBound + quote
        let end = node.range.upperBound - quote
        guard style != .block, start <= end, source.bytes[start..<end].elementsEqual(text.utf8) else {
            return node.range.lowerBound..<(node.range.lowerBound + 1)
        }
        return min(start + offset, end)..<min(start + offset + max(length, 1), max(end, start + offset + 1))
    }

    // MARK: - What texts are filled with

    /// The bytes of the home folder.
    func home(for node: YAMLNode) -> [UInt8]? {
        if let home = surroundings.home { return Array(home.utf8) }
        problems.error(
            "there is no home folder for '~'", at: mark(node, offset: 0, length: 1),
            help: "set HOME, or write the folder out")
        return nil
    }

    func reportUnclosed(_ text: String, at range: Range<Int>) {
        problems.error("placeholder in \(quoted(text)) has no closing '}'", at: range, help: "add '}'")
    }

    func reportUnset(_ name: String, at range: Range<Int>) {
        problems.error(
            "the environment variable \(quoted(name)) is not set", at: range,
            help: "set it where Alight is started, or write its value",
            severity: surroundings.allowsUnsetVariables ? .warning : .error)
    }
}
