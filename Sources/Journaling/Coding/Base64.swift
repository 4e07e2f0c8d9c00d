/// The alphabet of RFC 4648, with padding.
enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let values: [UInt8: UInt32] = Dictionary(
        uniqueKeysWithValues: alphabet.enumerated().map { ($0.element, UInt32($0.offset)) })

    /// The bytes of the text; nil when it is no base64.
    static func decoded(_ text: some Collection<UInt8>) -> [UInt8]? {
        guard text.count % 4 == 0 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4 * 3)
        var bits: UInt32 = 0
        var digits = 0
        var padding = 0
        for character in text {
            if character == UInt8(ascii: "=") {
                padding += 1
                bits <<= 6
            } else {
                guard padding == 0, let value = values[character] else { return nil }
                bits = bits << 6 | value
            }
            digits += 1
            guard digits % 4 == 0 else { continue }
            for byte in 0..<3 { bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(16 - 8 * byte))) }
            bits = 0
        }
        guard padding <= 2 else { return nil }
        bytes.removeLast(padding)
        return bytes
    }
}
