extension Unicode.Scalar {
    /// The character; for one that is invisible or reorders the text beside it, an escape such as `\n` or `\u{202e}`.
    package var visible: String {
        switch self {
        case "\n": return "\\n"
        case "\t": return "\\t"
        case "\r": return "\\r"
        default: break
        }
        return switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: "\\u{\(String(value, radix: 16))}"
        default: String(self)
        }
    }
}

extension String {
    /// Creates a string with U+FFFD for each control character but the tab, which could control a terminal, and for
    /// what is not UTF-8.
    package init(cleaning bytes: some Collection<UInt8>) {
        self.init()
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
            let isControl = scalar.properties.generalCategory == .control && scalar != "\t"
            unicodeScalars.append(isControl ? "\u{FFFD}" : scalar)
        }
    }

    /// Creates a string of octal digits, as of a file mode, with at least this number of them.
    package init(octal number: some BinaryInteger, digits: Int = 4) {
        let text = String(number, radix: 8)
        self.init(repeating: "0", count: Swift.max(0, digits - text.count))
        self += text
    }
}
