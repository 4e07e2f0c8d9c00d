import Rules

// Single values: each reader returns nil after it has reported a problem.
extension NodeReading {
    /// Reads a string; numbers and words such as `yes` are taken literally.
    func text(_ entry: YAMLNode.Entry, help: String? = nil) -> String? {
        text(entry.value, name: quoted(entry.name), at: mark(entry), help: help)
    }

    /// Reads the string of an entry or an element, with the given name for messages.
    func text(_ node: YAMLNode, name: String, at range: Range<Int>, help: String? = nil) -> String? {
        if node.isFaulty { return nil }
        if node.isEmpty || (node.isNull && node.text != "~") {
            problems.error("\(name) has no value", at: range, help: help ?? "write one, or remove the key")
            return nil
        }
        if let text = node.text { return text }
        reportType(node, name: name, "a string", at: range)
        return nil
    }

    func bool(_ entry: YAMLNode.Entry) -> Bool? {
        switch entry.value.text {
        case "true" where entry.value.isPlain: return true
        case "false" where entry.value.isPlain: return false
        default: break
        }
        reportType(entry, "true or false", help: boolHelp(entry))
        return nil
    }

    /// Returns the help for a value that means true or false in other formats.
    func boolHelp(_ entry: YAMLNode.Entry) -> String? {
        let help: String
        switch entry.value.text?.lowercased() {
        case "true", "yes", "y", "on", "1": help = "write 'true'"
        case "false", "no", "n", "off", "0": help = "write 'false'"
        default: return nil
        }
        return entry.value.isPlain ? help : help + " without quotes"
    }

    /// Reads a mapping of a few keys.
    func mapping<Value>(
        _ entry: YAMLNode.Entry, _ noun: String = "a mapping", keys: [String], help: String? = nil,
        _ read: (YAMLNode) -> Value?
    ) -> Value? {
        let list = "write a mapping with \(keys.joined(separator: ", "))"
        guard let entries = entry.value.entries, FlowPlaceholder.help(for: entry.value, in: source) == nil else {
            reportType(entry, noun, help: help ?? list)
            return nil
        }
        guard !entries.isEmpty else {
            problems.error("\(quoted(entry.name)) is empty", at: mark(entry), help: list)
            return nil
        }
        checkKeys(entries, known: keys, noun: "keys of \(quoted(entry.name))")
        return read(entry.value)
    }

    func integer(_ entry: YAMLNode.Entry, in range: ClosedRange<Int>) -> Int? {
        let noun = "a whole number from \(range.lowerBound) to \(range.upperBound)"
        guard let text = entry.value.text else {
            reportType(entry, noun)
            return nil
        }
        guard entry.value.isPlain, case .integer(let integer) = PlainScalar(text), let number = Int(exactly: integer),
            range.contains(number)
        else {
            let isQuoted = !entry.value.isPlain && Int(text).map(range.contains) == true
            reportType(entry, noun, help: isQuoted ? "write it without quotes" : nil)
            return nil
        }
        return number
    }

    /// Reads a duration that is not negative; zero only if allowed.
    func duration(_ entry: YAMLNode.Entry, allowsZero: Bool = false, atLeast least: (Duration, String)? = nil)
        -> Duration?
    {
        guard let text = entry.value.text, !entry.value.isNull else {
            reportType(entry, "a duration", help: "write a number and a unit, such as '2s'")
            return nil
        }
        do throws(TextProblem) {
            let duration = try DurationText.parse(text)
            if duration == .zero, !allowsZero {
                problems.error(
                    "\(quoted(entry.name)) must be more than 0", at: entry.value.range,
                    help: "write a time, such as '10m'")
                return nil
            }
            if let least, duration < least.0 {
                problems.error(
                    "\(quoted(entry.name)) must be at least \(least.1), not \(quoted(text))",
                    at: entry.value.range, help: "write '\(least.1)' or more")
                return nil
            }
            return duration
        } catch {
            problems.error(error.message, at: entry.value.range, help: error.help)
            return nil
        }
    }

    /// Reads a number of bytes in a range; `shown` is the range for messages.
    func size(_ entry: YAMLNode.Entry, in range: ClosedRange<Int>, shown: String) -> Int? {
        guard let text = entry.value.text, !entry.value.isNull else {
            reportType(entry, "a size", help: "write a number and a unit, such as '64 KB'")
            return nil
        }
        do throws(TextProblem) {
            let size = try SizeText.parse(text)
            if range.contains(size) { return size }
            problems.error(
                "\(quoted(entry.name)) must be \(shown), not \(quoted(text))", at: entry.value.range)
        } catch {
            problems.error(error.message, at: entry.value.range, help: error.help)
        }
        return nil
    }

    /// Reads one of several words.
    func word(_ entry: YAMLNode.Entry, of words: [String], noun: String) -> String? {
        guard let text = text(entry, help: "write \(words.joined(separator: " or "))") else { return nil }
        if words.contains(text) { return text }
        problems.error(
            "\(quoted(entry.name)) can't be \(quoted(text))", at: entry.value.range,
            help: Spelling.help(for: text, candidates: words, noun: noun))
        return nil
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
            reportType(entry, "a list", help: help)
            return nil
        }
        guard allowsEmpty || !elements.isEmpty else {
            problems.error(
                "\(quoted(entry.name)) is empty", at: mark(entry), help: "write at least one, such as [\(noun)]")
            return nil
        }
        return elements
    }

    // MARK: - Wrong types

    func reportType(_ entry: YAMLNode.Entry, _ expected: String, help: String? = nil) {
        reportType(entry.value, name: quoted(entry.name), expected, at: mark(entry), help: help)
    }

    func reportType(_ node: YAMLNode, name: String, _ expected: String, at range: Range<Int>, help: String? = nil) {
        if node.isFaulty { return }
        if let placeholder = FlowPlaceholder.help(for: node, in: source) {
            problems.error(FlowPlaceholder.message, at: range, help: placeholder)
            return
        }
        if node.isNull {
            problems.error("\(name) has no value", at: range, help: help ?? "write \(expected)")
            return
        }
        problems.error("\(name) must be \(expected), not \(node.noun)", at: range, help: help)
    }
}
