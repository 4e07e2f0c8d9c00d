import System

/// The meaning of an unquoted scalar in YAML 1.2's core schema.
package enum PlainScalar: Sendable, Equatable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    /// A whole number that does not fit into 64 bits.
    case tooLarge
    /// `.inf` or `.nan`, which JSON can't express.
    case notFinite
    /// A number such as `0644`: 644 in YAML 1.2, 420 in YAML 1.1, and neither is intended.
    case leadingZero
    case text

    package init(_ text: String) {
        switch text {
        case _ where Self.isNull(text): self = .null
        case "true", "True", "TRUE": self = .bool(true)
        case "false", "False", "FALSE": self = .bool(false)
        default: self = Self.number(Array(text.utf8))
        }
    }

    static func isNull(_ text: String) -> Bool {
        switch text {
        case "", "~", "null", "Null", "NULL": true
        default: false
        }
    }

    private static func number(_ bytes: [UInt8]) -> PlainScalar {
        // A longer string is not a number in practice.
        guard let first = bytes.first, bytes.count <= 400 else { return .text }
        let isSigned = first == UInt8(ascii: "-") || first == UInt8(ascii: "+")
        let digits = isSigned ? bytes.dropFirst() : bytes[...]
        guard let leading = digits.first else { return .text }
        guard leading.isDigit || leading == UInt8(ascii: ".") else { return .text }
        if digits.allSatisfy(\.isDigit) {
            if digits.count > 1, leading == UInt8(ascii: "0") { return .leadingZero }
            return Int64(String(decoding: bytes, as: UTF8.self)).map(PlainScalar.integer) ?? .tooLarge
        }
        let rest = digits.dropFirst(2)
        if !isSigned, !rest.isEmpty {
            let isHexadecimal = digits.starts(with: "0x".utf8) && rest.allSatisfy(\.isHexadecimalDigit)
            if isHexadecimal || (digits.starts(with: "0o".utf8) && rest.allSatisfy(\.isOctalDigit)) {
                let number = Int64(String(decoding: rest, as: UTF8.self), radix: isHexadecimal ? 16 : 8)
                return number.map(PlainScalar.integer) ?? .tooLarge
            }
        }
        switch String(decoding: digits, as: UTF8.self) {
        case ".inf", ".Inf", ".INF": return .notFinite
        case ".nan", ".NaN", ".NAN": return isSigned ? .text : .notFinite
        default: break
        }
        // `Double` also reads hexadecimal numbers.
        guard digits.allSatisfy({ $0.isDigit || ".eE+-".utf8.contains($0) }),
            let number = Double(String(decoding: bytes, as: UTF8.self))
        else { return .text }
        return number.isFinite ? .number(number) : .tooLarge
    }
}

// Further classes of ASCII characters.
extension UInt8 {
    var isOctalDigit: Bool { (0x30...0x37).contains(self) }
    static var space: UInt8 { 0x20 }
    /// Whether the byte opens a collection of YAML.
    var isOpening: Bool { self == UInt8(ascii: "{") || self == UInt8(ascii: "[") }
    var isClosing: Bool { self == UInt8(ascii: "}") || self == UInt8(ascii: "]") }
    /// Whether the byte is a space or a tab.
    var isBlank: Bool { self == 0x20 || self == 0x09 }
}
