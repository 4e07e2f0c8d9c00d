/// An error in a glob: its location, its message, and the remedy.
package struct GlobError: Error, Sendable, Hashable {
    /// The offset in the pattern in bytes.
    package var offset: Int
    /// The message, with the pattern as it was written.
    package var message: String
    /// The remedy.
    package var help: String
}

/// Creates the errors of a pattern.
struct GlobErrors {
    let pattern: [UInt8]

    /// The pattern for messages.
    var glob: String { "glob '\(shown(pattern.indices))'" }

    /// Returns a part of the pattern for display: bytes that are not UTF-8 become U+FFFD, and a long part is cut.
    func shown(_ range: Range<Int>) -> String {
        let bytes = pattern[range]
        var text = ""
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars.prefix(Self.shownScalars) {
            text += scalar.value < 0x20 ? scalar.escaped(asASCII: true) : String(Character(scalar))
        }
        return bytes.count > Self.shownScalars && text.unicodeScalars.count >= Self.shownScalars ? text + "…" : text
    }

    /// The length of a pattern that is still readable in one line.
    private static let shownScalars = 120

    /// Creates an error; the clause follows the pattern in the message.
    func error(at offset: Int, _ clause: String, help: String) -> GlobError {
        GlobError(offset: offset, message: "\(glob) \(clause)", help: help)
    }

    func hasTooManyAlternatives(at offset: Int) -> GlobError {
        error(
            at: offset, "expands to more than \(GlobExpansion.maximumAlternatives) alternatives",
            help: "use '*' or write several globs")
    }

    func isTooLong(at offset: Int) -> GlobError {
        error(
            at: offset, "is longer than \(GlobExpansion.maximumLength) bytes when its braces are expanded",
            help: "use '*' or write several globs")
    }

    func hasNoClosingBracket(at offset: Int) -> GlobError {
        error(at: offset, "has no closing ']'", help: "add ']', or write '[[]' to match a bracket")
    }
}

extension UInt8 {
    static let slash = UInt8(ascii: "/")
    static let dot = UInt8(ascii: ".")
}
