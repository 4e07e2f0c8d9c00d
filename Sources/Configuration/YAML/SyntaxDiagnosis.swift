import Rules

/// Converts an error of libyaml into a message with a remedy.
struct SyntaxDiagnosis {
    private let source: SourceText
    private let error: YAMLSyntaxError
    /// The offset at which libyaml failed.
    private let at: Int
    /// The start of the construct that libyaml was reading.
    private let context: Int

    init(_ error: YAMLSyntaxError, in source: SourceText) {
        (self.source, self.error) = (source, error)
        at = source.offset(ofCharacter: error.character)
        context = source.offset(ofCharacter: error.contextCharacter)
    }

    var problem: TextProblem {
        let start = error.context?.contains("flow") == true ? context : at
        return tab() ?? FlowPlaceholder.problem(in: source, from: start, to: at) ?? textAfterClosing() ?? known
    }

    private var byte: UInt8? { at < source.bytes.count ? source.bytes[at] : nil }
    private var contextLine: Int { source.location(at: context).line }

    /// Returns a problem if the line is indented with a tab, which is the cause of any error.
    private func tab() -> TextProblem? {
        let line = source.lineRange(at: at)
        let blanks = source.bytes[line].prefix { $0 == .space || $0 == UInt8(ascii: "\t") }
        guard let tab = blanks.firstIndex(of: UInt8(ascii: "\t")) else { return nil }
        return TextProblem(
            "tabs are not allowed for indentation", at: tab..<blanks.endIndex, help: "indent with spaces")
    }

    /// The problem by libyaml's words for it.
    private var known: TextProblem {
        switch (error.context, error.problem) {
        case ("while scanning an alias", _) where context > 0 && source.bytes[context - 1].isClosing:
            return mustBeQuoted(from: BareText.start(in: source, before: context))
        case ("while scanning an alias", _), ("while scanning an anchor", _), ("while scanning a tag", _),
            ("while scanning a block scalar", "did not find expected comment or line break"),
            ("while scanning a directive", _), (_, "found undefined tag handle"):
            return mustBeQuoted(from: context)
        case (_, "found character that cannot start any token"): return mustBeQuoted(from: at)
        case (_, "found unexpected end of stream"), (_, "found unexpected document indicator"): return unclosedQuote()
        case (_, "found unknown escape character"):
            return here(
                2, "unknown escape \(quoted(source.text(at..<min(at + 2, source.bytes.count)))) in double quotes",
                help: #"write '\\' for a backslash, or use single quotes"#)
        case (_, "did not find expected hexdecimal number"), (_, "found invalid Unicode character escape code"):
            return here(1, "invalid escape", help: #"write '\\' for a backslash, or use single quotes"#)
        case (_, "could not find expected ':'"):
            return TextProblem(
                "missing ':' after this key", at: context..<source.lineRange(at: context).upperBound,
                help: "write 'key: value', and indent a string that continues")
        case (_, "mapping values are not allowed in this context"):
            return missingBlank()
                ?? here(
                    1, "a ':' is not allowed here",
                    help: "quote a string that contains ': ', or fix the indentation of this line")
        case (_, "block sequence entries are not allowed in this context"):
            return here(1, "a list cannot start here", help: "start it on a new line, or quote the '-'")
        case (_, "did not find expected key"):
            return here(
                1, "this does not belong to the mapping that starts on line \(contextLine)",
                help: "indent all keys of a mapping equally")
        case (_, "did not find expected '-' indicator"):
            return here(
                1, "this does not belong to the list that starts on line \(contextLine)",
                help: "indent every '-' of a list equally, and its content deeper")
        case (_, "did not find expected ',' or ']'"): return unclosedFlow(opening: "[", closing: "]")
        case (_, "did not find expected ',' or '}'"): return unclosedFlow(opening: "{", closing: "}")
        case (_, "did not find expected node content"):
            return here(1, "a value is missing here", help: "write one, or quote a string")
        case (_, "found unexpected ':'"):
            return here(1, "a ':' is not allowed here", help: "quote a string that contains ':'")
        case (_, "did not find expected <document start>"):
            return here(1, "this is after the end of the document", help: "a file contains one document")
        default: return here(1, "this is not YAML: \(error.problem)", help: nil)
        }
    }

    private func here(_ length: Int, _ message: String, help: String?) -> TextProblem {
        TextProblem(message, at: at..<(at + length), help: help)
    }

    // MARK: - Strings that need quotes

    private func mustBeQuoted(from start: Int) -> TextProblem {
        let range = BareText.range(in: source, from: start)
        let text = source.text(range)
        return TextProblem(
            "a string that starts with '\(escaped(text.prefix(1)))' must be quoted", at: range,
            help: "write \(BareText.quoted(text))")
    }

    /// Detects strings such as `{a,b}/x` and `"a"b`, of which YAML reads only the start.
    private func textAfterClosing() -> TextProblem? {
        let line = source.lineRange(at: at)
        let before = source.bytes[line.lowerBound..<min(at, line.upperBound)]
        guard let byte, at < line.upperBound, let last = before.last(where: { $0 != .space }) else { return nil }
        if last == UInt8(ascii: "\"") || last == UInt8(ascii: "'"), byte != UInt8(ascii: ":") {
            return here(1, "a string continues after its closing quote", help: "quote the whole string")
        }
        guard last.isClosing else { return nil }
        if byte.isClosing { return here(1, "unmatched '\(escaped(source.text(at..<(at + 1))))'", help: "remove it") }
        guard before.last == last, byte != UInt8(ascii: ":") else { return nil }
        let start = BareText.start(in: source, before: at)
        return source.bytes[start].isOpening ? mustBeQuoted(from: start) : nil
    }

    /// Detects a `path:in` in the previous line, which merged both lines into one string.
    private func missingBlank() -> TextProblem? {
        let line = source.lineRange(at: at)
        guard line.lowerBound > 0 else { return nil }
        let before = source.lineRange(at: line.lowerBound - 1)
        let start = BareText.start(in: source, before: before.upperBound)
        let letters = UInt8(ascii: "a")...UInt8(ascii: "z")
        let key = source.bytes[start..<before.upperBound].prefix { letters.contains($0) || $0 == UInt8(ascii: "_") }
        guard !key.isEmpty, key.endIndex < before.upperBound, source.bytes[key.endIndex] == UInt8(ascii: ":") else {
            return nil
        }
        let value = source.text((key.endIndex + 1)..<before.upperBound)
        return TextProblem(
            "missing space after this ':'", at: start..<before.upperBound,
            help: "write '\(escaped("\(source.text(start..<key.endIndex)): \(value)", limit: 80))'")
    }

    private func unclosedQuote() -> TextProblem {
        let quote = source.text(context..<min(context + 1, source.bytes.count))
        return TextProblem(
            "this quote is not closed", at: context..<source.lineRange(at: context).upperBound,
            help: "add \(quote) at the end of the string")
    }

    private func unclosedFlow(opening: String, closing: String) -> TextProblem {
        if let text = textWithBraces() { return text }
        guard source.location(at: at).line == contextLine, byte != nil else {
            return TextProblem("this '\(opening)' is not closed", at: context..<(context + 1), help: "add '\(closing)'")
        }
        return here(
            1, "expected ',' or '\(closing)' here", help: "quote a string that contains brackets, braces or ': '")
    }

    /// Detects `[in/*.{jpg,png}]`, in which the string would end at the brace.
    private func textWithBraces() -> TextProblem? {
        guard let byte, byte.isOpening, at > 0, !",[{ \n\t".utf8.contains(source.bytes[at - 1]) else { return nil }
        let line = source.lineRange(at: at)
        var start = at
        while start > line.lowerBound, !",[{".utf8.contains(source.bytes[start - 1]) {
            let isSpace = source.bytes[start - 1] == .space
            if isSpace, start - 1 > line.lowerBound, source.bytes[start - 2] == UInt8(ascii: ":") { break }
            start -= 1
        }
        while start < at, source.bytes[start] == .space { start += 1 }
        let range = BareText.range(in: source, from: start)
        return TextProblem(
            "inside { } or [ ] a string with '\(escaped(source.text(at..<(at + 1))))' must be quoted", at: range,
            help: "write \(BareText.quoted(source.text(range)))")
    }
}

/// Strings without quotes where YAML requires them.
enum BareText {
    /// Returns the range of a string from its start: up to a comma, an unmatched bracket, a comment or the end of the
    /// line.
    static func range(in source: SourceText, from start: Int) -> Range<Int> {
        let line = source.lineRange(at: start)
        var end = start
        var open = 0
        while end < line.upperBound {
            let byte = source.bytes[end]
            if open == 0, byte.isClosing || byte == UInt8(ascii: ",") { break }
            if byte == UInt8(ascii: "#"), end > start, source.bytes[end - 1] == .space { break }
            if byte.isOpening { open += 1 }
            if byte.isClosing { open -= 1 }
            end += 1
        }
        while end > start + 1, source.bytes[end - 1] == .space { end -= 1 }
        return start..<max(end, start)
    }

    /// Returns the start of the value that contains an offset: after `: `, `- `, a comma or an opening bracket.
    static func start(in source: SourceText, before location: Int) -> Int {
        let line = source.lineRange(at: location)
        var start = line.lowerBound
        var open = 0
        for index in line.lowerBound..<min(location, line.upperBound) {
            let byte = source.bytes[index]
            let isBeforeSpace = index + 1 >= line.upperBound || source.bytes[index + 1] == .space
            if byte.isOpening { open += 1 }
            if byte.isClosing { open = max(0, open - 1) }
            if isBeforeSpace, open == 0, ":-".utf8.contains(byte) { start = index + 1 }
        }
        while start < location, source.bytes[start] == .space { start += 1 }
        return start
    }

    /// Returns the string as a quoted scalar on one line.
    static func quoted(_ text: String) -> String {
        if !text.contains("\""), !text.contains("\\") { return "\"\(escaped(text, limit: 200))\"" }
        return "'\(escaped(text.replacing("'", with: "''"), limit: 200))'"
    }

    /// Whether a string has another meaning without quotes in `[ ]`.
    static func needsQuotes(_ text: String) -> Bool {
        text.isEmpty || text.contains { "*&!|>%@`{}[],#'\"?:".contains($0) }
    }
}
