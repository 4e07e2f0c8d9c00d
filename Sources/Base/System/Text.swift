extension Unicode.Scalar {
    /// The character; for one that is invisible or reorders the text beside it, an escape such as `\n` or `\u{202e}`.
    package var visible: String {
        switch (self, properties.generalCategory) {
        case ("\n", _): "\\n"
        case ("\t", _): "\\t"
        case ("\r", _): "\\r"
        case (_, .control), (_, .format), (_, .lineSeparator), (_, .paragraphSeparator):
            "\\u{\(String(value, radix: 16))}"
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

    /// Creates the digits of a number in upper case, padded with zeros to a width.
    package init(_ number: some BinaryInteger, radix: Int = 10, width: Int) {
        let digits = String(number, radix: radix, uppercase: true)
        self = String(repeating: "0", count: Swift.max(0, width - digits.utf8.count)) + digits
    }

    /// Creates a part of a URL: all bytes but letters, digits, `-._~` and slashes are percent-encoded.
    package init(percentEncoding bytes: some Sequence<UInt8>, encodingSlashes: Bool = false) {
        let digits = Array("0123456789ABCDEF".utf8)
        let plain = encodingSlashes ? "-._~" : "-._~/"
        let encoded = bytes.flatMap { byte -> [UInt8] in
            byte.isAlphanumeric || plain.utf8.contains(byte)
                ? [byte] : [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
        self.init(decoding: encoded, as: UTF8.self)
    }
}

// Classes of ASCII characters.
extension UInt8 {
    package var isDigit: Bool { (0x30...0x39).contains(self) }
    package var isUppercaseLetter: Bool { (0x41...0x5A).contains(self) }
    package var isHexadecimalDigit: Bool { isDigit || (0x41...0x46).contains(self) || (0x61...0x66).contains(self) }
    package var isAlphanumeric: Bool { isDigit || isUppercaseLetter || (0x61...0x7A).contains(self) }
}

extension [UInt8] {
    /// The index of the first byte that is not UTF-8; nil if there is none.
    package var firstInvalidUTF8: Int? {
        do {
            _ = try UTF8Span(validating: span)
            return nil
        } catch {
            return error.byteOffsets.lowerBound
        }
    }
}
