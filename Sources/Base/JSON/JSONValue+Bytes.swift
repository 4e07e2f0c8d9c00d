// A file name on Linux is bytes: a JSON string, or base64 where it is not UTF-8.
extension JSONValue {
    /// Creates a string from bytes, or `{"base64": …}` if they are not UTF-8.
    package init(bytes: [UInt8]) {
        let text = String(validating: bytes, as: UTF8.self)
        self = text.map { .string($0) } ?? ["base64": .string(Base64.encoded(bytes))]
    }

    /// The bytes of a string, or of `{"base64": …}` for one that isn't UTF-8.
    public var bytes: [UInt8]? { string.map { Array($0.utf8) } ?? Base64.decoded(object?["base64"]?.string) }
}

extension [String: JSONValue] {
    /// Adds a name as a string, and its exact bytes in a second member if it is not UTF-8.
    package mutating func add(_ name: String, bytes: [UInt8]) {
        self[name] = .string(String(decoding: bytes, as: UTF8.self))
        self["\(name)_base64"] = Base64.ofName(bytes).map { .string($0) }
    }

    /// Returns the exact bytes of a name that was added, or of another string.
    package func bytes(_ name: String) -> [UInt8]? {
        Base64.decoded(self["\(name)_base64"]?.string) ?? self[name]?.bytes
    }
}

/// Base64 with the alphabet of RFC 4648, with padding.
package enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let padding = UInt8(ascii: "=")

    /// Encodes the bytes.
    package static func encoded(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for location in 0..<4 {
                text.append(location <= group.count ? alphabet[bits >> (18 - 6 * location) & 63] : padding)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Encodes the bytes of a name; nil if it is UTF-8, which needs no encoding.
    package static func ofName(_ bytes: [UInt8]) -> String? {
        String(validating: bytes, as: UTF8.self) == nil ? encoded(bytes) : nil
    }

    /// Decodes the string; nil when it is not base64.
    package static func decoded(_ text: String?) -> [UInt8]? {
        guard let text, text.utf8.count % 4 == 0 else { return nil }
        let digits = text.utf8.prefix { $0 != padding }
        let padded = text.utf8.count - digits.count
        guard padded <= 2, text.utf8.suffix(padded).allSatisfy({ $0 == padding }) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count / 4 * 3)
        var bits: UInt32 = 0
        for (index, digit) in digits.enumerated() {
            guard let value = alphabet.firstIndex(of: digit) else { return nil }
            bits = bits << 6 | UInt32(value)
            // The first digit of a group completes no byte, each later one completes one.
            if index % 4 > 0 { bytes.append(UInt8(truncatingIfNeeded: bits >> (6 - 2 * UInt32(index % 4)))) }
        }
        return bytes
    }
}
