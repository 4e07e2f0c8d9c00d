import System

/// HTML text in which external strings cannot become markup.
///
/// Literals are used as they are; interpolated strings are escaped, unless they are `HTML` themselves. This is the
/// only place where the text of pages is escaped. Attributes in literals must use double quotes.
package struct HTML: Sendable, Hashable, ExpressibleByStringInterpolation {
    package private(set) var text: String

    package init(stringLiteral value: String) { text = value }
    package init(stringInterpolation interpolation: Interpolation) { text = interpolation.text }

    package struct Interpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        package init(literalCapacity: Int, interpolationCount: Int) {
            text.reserveCapacity(literalCapacity + 16 * interpolationCount)
        }

        package mutating func appendLiteral(_ literal: String) { text += literal }
        package mutating func appendInterpolation(_ html: HTML) { text += html.text }
        package mutating func appendInterpolation(_ parts: [HTML]) { for part in parts { text += part.text } }
        package mutating func appendInterpolation(_ outside: String) { text += HTML.escaped(outside) }
        package mutating func appendInterpolation(_ number: some BinaryInteger) { text += String(number) }

        /// Appends text of several lines: newlines and tabs are preserved, other invisible characters are escaped.
        package mutating func appendInterpolation(lines outside: String) {
            text += HTML.escaped(outside, keepsLines: true)
        }
    }

    /// Returns the text with markup as character references, and invisible characters as `\n` or `\u{202e}`.
    ///
    /// File names are untrusted: a name must neither become markup nor reverse the text beside it.
    package static func escaped(_ text: String, keepsLines: Bool = false) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            case "\n" where keepsLines, "\t" where keepsLines: escaped.unicodeScalars.append(scalar)
            default: escaped += scalar.visible
            }
        }
        return escaped
    }

    /// Returns the text percent-encoded as a part of a URL, except for letters, digits and `-._~`.
    package static func urlPart(_ text: String) -> String { String(percentEncoding: text.utf8, encodingSlashes: true) }
}
