import Rules

/// Detects unquoted placeholders within `{ }` and `[ ]`, where YAML interprets their braces.
enum FlowPlaceholder {
    static let message = "a placeholder inside { } or [ ] must be quoted"

    /// Returns a problem if an unquoted placeholder appears in a flow collection between two offsets.
    ///
    /// The scan starts at the beginning of the line that contains the first offset. A placeholder after the second
    /// offset, where parsing failed, is not the cause.
    static func problem(in source: SourceText, from start: Int, to end: Int) -> TextProblem? {
        let bytes = source.bytes
        var index = source.lineRange(at: min(start, end)).lowerBound
        var open = 0
        var tokenStart = index
        var isInToken = false
        while index < min(end + 2, bytes.count) {
            let byte = bytes[index]
            let isAtStart = !isInToken
            isInToken = isInToken || !isBlank(byte)
            defer {
                if tokenStart > index { isInToken = false }
                index += 1
            }
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "'"):
                if isAtStart, let closing = bytes[(index + 1)...].firstIndex(of: byte) { index = closing }
            case UInt8(ascii: "$"):
                if open > 0, index + 1 < bytes.count, bytes[index + 1] == UInt8(ascii: "{") {
                    let first = bytes[tokenStart..<index].firstIndex { !isBlank($0) } ?? index
                    let range = BareText.range(in: source, from: first)
                    return TextProblem(message, at: range, help: "write \(BareText.quoted(source.text(range)))")
                }
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                if isAtStart || open > 0 {
                    open += 1
                    tokenStart = index + 1
                }
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                open = max(0, open - 1)
                tokenStart = index + 1
            case UInt8(ascii: ","): if open > 0 { tokenStart = index + 1 }
            case UInt8(ascii: ":"), UInt8(ascii: "-"):
                if index + 1 < bytes.count, isBlank(bytes[index + 1]), byte == UInt8(ascii: ":") || isAtStart {
                    tokenStart = index + 1
                }
            case UInt8(ascii: "\n"): tokenStart = index + 1
            default: break
            }
        }
        return nil
    }

    /// Returns the replacement for a mapping such as `{stem: null}`, the result of an unquoted `{stem}`; nil for any
    /// other node.
    static func help(for node: YAMLNode, in source: SourceText) -> String? {
        guard node.isFlow, let entries = node.entries, entries.count == 1, let entry = entries.first, entry.key.isPlain,
            entry.value.isEmpty, let word = entry.key.text, Placeholder(word: word) != nil || word.hasPrefix("env:")
        else { return nil }
        return "write \(BareText.quoted("${\(word)}"))"
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte.isBlank || byte == UInt8(ascii: "\r") }
}
