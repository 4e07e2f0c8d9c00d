import Rules

// Single values: each reader returns nil after it has reported a problem.
extension NodeReading {
    /// Reads a string; numbers and words such as `yes` are taken literally.
    func text(_ entry: YAMLNode.Entry, help: String? = nil) -> String? {
        text(entry.value, name: quoted(entry.name), at: mark(entry), help: help)
    }

    /// Reads the string of an entry or an element, with the given name for messages.
    func text(_ node: YAMLNode, name: String, at range: Range<Int>, help: String? = nil) -> String? {
        if node.isInvalid { return nil }
        if node.isEmpty || (node.isNull && node.text != "~") {
            return reject("\(name) has no value", at: range, help: help ?? "write one, or remove the key")
        }
        if let text = node.text { return text }
        return mistyped(node, name: name, "a string", at: range)
    }

    /// Reads a string and converts it with the closure.
    func parsed<Value>(
        _ node: YAMLNode, name: String, at range: Range<Int>, help: String? = nil,
        _ parse: (String) throws(Problem) -> Value
    ) -> Value? {
        guard let text = text(node, name: name, at: range, help: help) else { return nil }
        return converted(at: range, try parse(text))
    }

    /// Reads `true` and `false`, as well as the given words for them.
    func bool(_ entry: YAMLNode.Entry, _ words: (yes: String, no: String) = ("true", "false")) -> Bool? {
        if entry.value.isPlain, let text = entry.value.text {
            if text == "true" || text == words.yes { return true }
            if text == "false" || text == words.no { return false }
        }
        return mistyped(entry, "\(words.yes) or \(words.no)", help: boolHelp(entry, words))
    }

    /// Returns the help for a value that means true or false in other formats.
    func boolHelp(_ entry: YAMLNode.Entry, _ words: (yes: String, no: String) = ("true", "false")) -> String? {
        let word: String
        switch entry.value.text?.lowercased() {
        case "true", "yes", "y", "on", "1": word = words.yes
        case "false", "no", "n", "off", "0": word = words.no
        default: return nil
        }
        return "write '\(word)'" + (entry.value.isPlain ? "" : " without quotes")
    }

    /// Reads the entries of a mapping of a few keys.
    func mapping(_ entry: YAMLNode.Entry, _ noun: String, keys: [String], help: String? = nil) -> [YAMLNode.Entry]? {
        let list = "write a mapping with \(keys.joined(separator: ", "))"
        guard let entries = entries(of: entry.value) else { return mistyped(entry, noun, help: help ?? list) }
        guard !entries.isEmpty else { return reject("\(quoted(entry.name)) is empty", at: mark(entry), help: list) }
        checkKeys(entries, known: keys, noun: "keys of \(quoted(entry.name))")
        return entries
    }

    func integer(_ entry: YAMLNode.Entry, in range: ClosedRange<Int>) -> Int? {
        let noun = "a whole number from \(range.lowerBound) to \(range.upperBound)"
        guard let text = entry.value.text else { return mistyped(entry, noun) }
        guard entry.value.isPlain, case .integer(let integer) = PlainScalar(text), let number = Int(exactly: integer),
            range.contains(number)
        else {
            let isQuoted = !entry.value.isPlain && Int(text).map(range.contains) == true
            return mistyped(entry, noun, help: isQuoted ? "write it without quotes" : nil)
        }
        return number
    }

    /// Reads a duration that is not negative; zero only if allowed.
    func duration(
        _ entry: YAMLNode.Entry, allowsZero: Bool = false, atLeast least: (Duration, String)? = nil
    ) -> Duration? {
        guard let text = entry.value.text, !entry.value.isNull else {
            return mistyped(entry, "a duration", help: "write a number and a unit, such as '2s'")
        }
        guard let duration = converted(at: entry.value.range, try DurationText.parse(text)) else { return nil }
        if duration == .zero, !allowsZero {
            return reject(
                "\(quoted(entry.name)) must be more than 0", at: entry.value.range, help: "write a time, such as '10m'")
        }
        if let least, duration < least.0 {
            return reject(
                "\(quoted(entry.name)) must be at least \(least.1), not \(quoted(text))", at: entry.value.range,
                help: "write '\(least.1)' or more")
        }
        return duration
    }

    /// Reads a number of bytes in a range; `shown` is the range for messages.
    func size(_ entry: YAMLNode.Entry, in range: ClosedRange<Int>, shown: String) -> Int? {
        guard let text = entry.value.text, !entry.value.isNull else {
            return mistyped(entry, "a size", help: "write a number and a unit, such as '64 KB'")
        }
        guard let size = converted(at: entry.value.range, try SizeText.parse(text)) else { return nil }
        if range.contains(size) { return size }
        return reject("\(quoted(entry.name)) must be \(shown), not \(quoted(text))", at: entry.value.range)
    }

    /// Reads one of several words.
    func word(_ entry: YAMLNode.Entry, of words: [String], noun: String) -> String? {
        guard let text = text(entry, help: "write \(words.joined(separator: " or "))") else { return nil }
        if words.contains(text) { return text }
        return reject(
            "\(quoted(entry.name)) can't be \(quoted(text))", at: entry.value.range,
            help: Spelling.help(for: text, candidates: words, noun: noun))
    }

    /// Reads one of the raw values of a type.
    func choice<Choice: RawRepresentable<String> & CaseIterable>(_ entry: YAMLNode.Entry) -> Choice? {
        word(entry, of: Choice.allCases.map(\.rawValue), noun: "choices").flatMap { Choice(rawValue: $0) }
    }

    /// Reads the elements of a list that is not empty; the noun is an example of them, for messages.
    func elements(_ entry: YAMLNode.Entry, noun: String, allowsEmpty: Bool = false) -> [YAMLNode]? {
        guard let elements = entry.value.elements else {
            var help = "write a list, such as [\(noun)]"
            if let text = entry.value.text, !entry.value.isNull {
                help = "write [\(BareText.needsQuotes(text) ? BareText.quoted(text) : text)]"
            }
            return mistyped(entry, "a list", help: help)
        }
        guard allowsEmpty || !elements.isEmpty else {
            return reject(
                "\(quoted(entry.name)) is empty", at: mark(entry), help: "write at least one, such as [\(noun)]")
        }
        return elements
    }

    /// Reads the strings of a list; those with errors are left out.
    ///
    /// - Parameters:
    ///   - entry: The key and the list.
    ///   - noun: The name of an element for messages.
    ///   - example: Elements, for messages.
    ///   - allowsEmpty: Whether the list may be empty.
    ///   - read: Reads one string.
    /// - Returns: The values; nil if there are none, which has been reported.
    func list<Value>(
        _ entry: YAMLNode.Entry, of noun: String, example: String, allowsEmpty: Bool = false,
        _ read: (String, YAMLNode) -> Value?
    ) -> [Value]? {
        let values = elements(entry, noun: example, allowsEmpty: allowsEmpty)?.compactMap { node in
            text(node, name: noun, at: mark(node)).flatMap { read($0, node) }
        }
        return allowsEmpty || values?.isEmpty == false ? values : nil
    }

    /// Returns the elements of a list, or a value that is not a list, with the ranges to underline.
    func values(_ entry: YAMLNode.Entry) -> [(node: YAMLNode, range: Range<Int>)] {
        entry.value.elements.map { $0.map { ($0, mark($0)) } } ?? [(entry.value, mark(entry))]
    }

    // MARK: - Wrong types

    /// Reports a value of another type; returns nil.
    func mistyped<Value>(_ entry: YAMLNode.Entry, _ expected: String, help: String? = nil) -> Value? {
        mistyped(entry.value, name: quoted(entry.name), expected, at: mark(entry), help: help)
    }

    func mistyped<Value>(
        _ node: YAMLNode, name: String, _ expected: String, at range: Range<Int>, help: String? = nil
    ) -> Value? {
        if node.isInvalid || reportPlaceholder(node, at: range) { return nil }
        if node.isNull { return reject("\(name) has no value", at: range, help: help ?? "write \(expected)") }
        return reject("\(name) must be \(expected), not \(node.noun)", at: range, help: help)
    }

    /// Returns the entries of a mapping; nil for any other node, and for an unquoted placeholder.
    func entries(of node: YAMLNode) -> [YAMLNode.Entry]? {
        FlowPlaceholder.help(for: node, in: source) == nil ? node.entries : nil
    }

    /// Reports an unquoted placeholder; returns whether the node is one.
    func reportPlaceholder(_ node: YAMLNode, at range: Range<Int>) -> Bool {
        guard let help = FlowPlaceholder.help(for: node, in: source) else { return false }
        problems.error(FlowPlaceholder.message, at: range, help: help)
        return true
    }
}
