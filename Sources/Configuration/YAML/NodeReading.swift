import Rules

/// Reads the values of one YAML file and collects all diagnostics.
///
/// Rules and the configuration conform to it. Nothing is thrown: each reader returns nil after it has reported a
/// problem.
protocol NodeReading: SendableMetatype {
    var source: SourceText { get }
    var hostEnvironment: RuleLoader.Environment { get }
    var problems: DiagnosticCollector { get }
}

extension Sequence {
    /// Returns the values if all could be read; nil otherwise.
    func complete<Value>() -> [Value]? where Element == Value? {
        var values: [Value] = []
        for element in self {
            guard let element else { return nil }
            values.append(element)
        }
        return values
    }
}

// Keys, ranges and expansions.
extension NodeReading {
    /// Reports an error; returns nil, in place of the value that could not be read.
    func reject<Value>(_ message: String, at range: Range<Int>, help: @autoclosure () -> String? = nil) -> Value? {
        problems.error(message, at: range, help: help())
        return nil
    }

    /// Returns the result of the expression; an error is reported.
    func converted<Value>(at range: Range<Int>, _ convert: @autoclosure () throws(Problem) -> Value) -> Value? {
        do throws(Problem) {
            return try convert()
        } catch { return reject(error.message, at: range, help: error.help) }
    }

    /// Reports unknown keys; for misplaced ones, the closure returns the help.
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

    /// Returns the nearest candidate; all of them if none is near or there are few, and none if there are very many.
    func spellingHelp(for word: String, candidates: [String], noun: String, except present: [String]) -> String? {
        if candidates.count > 8, let near = Spelling.nearest(to: word, in: candidates, except: present) {
            return "write '\(near)'"
        }
        if candidates.count > 20 { return "the \(noun) are in docs/rules.md" }
        return Spelling.help(for: word, candidates: candidates, noun: noun, except: present)
    }

    /// Returns the range to underline for a node: a whole scalar or flow collection, the start of a block.
    func mark(_ node: YAMLNode) -> Range<Int> {
        if node.text != nil || node.isFlow { return node.range }
        return node.range.lowerBound..<min(node.range.lowerBound + 1, source.bytes.count)
    }

    /// Returns the range of an entry's value, or of its key if there is no value to underline.
    func mark(_ entry: YAMLNode.Entry) -> Range<Int> {
        let isBlock = entry.value.text == nil && !entry.value.isFlow
        return entry.value.isEmpty || isBlock ? entry.key.range : entry.value.range
    }

    /// Returns the range of a part of a scalar, if the file contains the string literally; otherwise the start of the
    /// scalar.
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

    /// Returns the range of the first element of a command.
    func programMark(_ entry: YAMLNode.Entry) -> Range<Int> { mark(entry.value.elements?.first ?? entry.value) }

    // MARK: - Expansions

    var machine: RuleLoader.Machine { hostEnvironment.machine }

    /// Returns the bytes of the home directory.
    func home(for node: YAMLNode) -> [UInt8]? {
        if let home = hostEnvironment.home { return Array(home.utf8) }
        return reject(
            "there is no home directory for '~'", at: mark(node, offset: 0, length: 1),
            help: "set HOME, or write the full path")
    }

    func reportUnclosed(_ text: String, at range: Range<Int>) {
        problems.error("placeholder in \(quoted(text)) has no closing '}'", at: range, help: "add '}'")
    }

    func reportUnset(_ name: String, at range: Range<Int>) {
        problems.error(
            "the environment variable \(quoted(name)) is not set", at: range,
            help: "set it in the environment of Alight, or write its value",
            severity: hostEnvironment.allowsUnsetVariables ? .warning : .error)
    }
}
