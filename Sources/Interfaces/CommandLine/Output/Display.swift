import System

/// Text made safe to print on a terminal.
enum Display {
    /// Returns the path with control characters as `\n` or `\u{1b}`, and bytes that are not UTF-8 as U+FFFD.
    ///
    /// File names are untrusted: a name must not be able to move the cursor or forge a line of the log.
    static func path(_ path: PathBytes) -> String { text(path.bytes) }

    static func text(_ bytes: some Collection<UInt8>) -> String {
        // The fast path for most names: printable ASCII is safe.
        if bytes.allSatisfy({ (0x20...0x7e).contains($0) }) { return String(decoding: bytes, as: UTF8.self) }
        var shown = ""
        var decoder = UTF8.ForwardParser()
        var iterator = bytes.makeIterator()
        while true {
            switch decoder.parseScalar(from: &iterator) {
            case .valid(let encoded): shown += UTF8.decode(encoded).visible
            case .error(let length):
                // Each invalid byte is shown as U+FFFD; the exact bytes are in the JSON output.
                shown += String(repeating: "\u{FFFD}", count: max(1, length))
            case .emptyInput: return shown
            }
        }
    }

    static func text(_ text: String) -> String { self.text(text.utf8) }

    static func quoted(_ path: PathBytes) -> String { "'\(self.path(path))'" }

    /// Returns the names in quotes, separated by commas.
    static func list(_ names: some Sequence<String>) -> String { names.map { "'\(text($0))'" }.joined(separator: ", ") }

    /// Returns the paths in quotes, separated by commas.
    static func list(_ paths: some Sequence<PathBytes>) -> String { paths.map(quoted).joined(separator: ", ") }

    /// Returns the text in a color of ECMA-48, such as "31" for red; unchanged for nil.
    static func painted(_ text: String, _ color: String?) -> String {
        color.map { "\u{1B}[\($0)m\(text)\u{1B}[0m" } ?? text
    }
}

/// Words quoted as for a shell, for users to read and copy.
///
/// The output is never passed to a shell.
enum ShellWord {
    private static let plain = Set("%+,-./:=@_^".utf8)

    /// Returns the quoted words, separated by spaces.
    static func line(_ words: some Sequence<[UInt8]>) -> String { words.map(quoted).joined(separator: " ") }

    /// Returns one word: as it is, in single quotes, or as `$'…'` if it contains bytes that cannot be printed.
    static func quoted(_ word: [UInt8]) -> String {
        let isPlain = word.allSatisfy { $0.isAlphanumeric || plain.contains($0) }
        if isPlain, !word.isEmpty { return String(decoding: word, as: UTF8.self) }
        if let text = String(validating: word, as: UTF8.self), Display.text(text) == text {
            return "'\(text.replacing("'", with: "'\\''"))'"
        }
        return "$'\(escaped(word))'"
    }

    private static func escaped(_ word: [UInt8]) -> String {
        var text = ""
        for byte in word {
            switch byte {
            case 0x0A: text += "\\n"
            case 0x09: text += "\\t"
            case 0x27: text += "\\'"
            case 0x5C: text += "\\\\"
            case 0x20...0x7E: text.unicodeScalars.append(Unicode.Scalar(byte))
            default: text += "\\x" + String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
            }
        }
        return text
    }
}
