import PluginProtocol

/// Reads JSON that ``JSONOutput`` wrote, to the last bit of its numbers and bytes of its texts.
struct JSONParser {
    private let bytes: UnsafeBufferPointer<UInt8>
    private var place = 0
    private var depth = 0

    /// The value that the text is; nil when it is none.
    static func value(of text: UnsafeBufferPointer<UInt8>) -> JSONValue? {
        var parser = JSONParser(bytes: text)
        guard let value = parser.value() else { return nil }
        parser.skipSpace()
        // Not by `? :`, where nil would become the null of JSON.
        guard parser.place == text.count else { return nil }
        return value
    }

    static func value(of text: [UInt8]) -> JSONValue? { text.withUnsafeBufferPointer { value(of: $0) } }

    private init(bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    private mutating func skipSpace() {
        while place < bytes.count, [0x20, 0x0a, 0x0d, 0x09].contains(bytes[place]) { place += 1 }
    }

    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        skipSpace()
        guard place < bytes.count, bytes[place] == UInt8(ascii: scalar) else { return false }
        place += 1
        return true
    }

    private mutating func take(_ word: StaticString, _ value: JSONValue) -> JSONValue? {
        let isThere = word.withUTF8Buffer { bytes[place...].starts(with: $0) }
        guard isThere else { return nil }
        place += word.utf8CodeUnitCount
        return value
    }

    /// More than Foundation takes in, by which the responses of plugins are read: what is kept can be read again.
    private static let deepest = 1_000

    private mutating func value() -> JSONValue? {
        skipSpace()
        guard place < bytes.count, depth < Self.deepest else { return nil }
        depth += 1
        defer { depth -= 1 }
        switch bytes[place] {
        case UInt8(ascii: "{"): return object()
        case UInt8(ascii: "["): return array()
        case UInt8(ascii: "\""): return string().map(JSONValue.string)
        case UInt8(ascii: "t"): return take("true", .bool(true))
        case UInt8(ascii: "f"): return take("false", .bool(false))
        case UInt8(ascii: "n"): return take("null", .null)
        default: return number()
        }
    }

    private mutating func object() -> JSONValue? {
        guard take("{") else { return nil }
        var members: [String: JSONValue] = [:]
        if take("}") { return .object(members) }
        repeat {
            skipSpace()
            guard let name = string(), take(":"), let value = value() else { return nil }
            members[name] = value
        } while take(",")
        return take("}") ? .object(members) : nil
    }

    private mutating func array() -> JSONValue? {
        guard take("[") else { return nil }
        var elements: [JSONValue] = []
        if take("]") { return .array(elements) }
        repeat {
            guard let value = value() else { return nil }
            elements.append(value)
        } while take(",")
        return take("]") ? .array(elements) : nil
    }

    private mutating func number() -> JSONValue? {
        let start = place
        var isInteger = true
        while place < bytes.count {
            switch bytes[place] {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): break
            case UInt8(ascii: "+"), UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"): isInteger = false
            default: return Self.number(bytes[start..<place], isInteger)
            }
            place += 1
        }
        return Self.number(bytes[start..<place], isInteger)
    }

    private static func number(_ text: Slice<UnsafeBufferPointer<UInt8>>, _ isInteger: Bool) -> JSONValue? {
        let text = String(decoding: text, as: UTF8.self)
        if isInteger, let integer = Int64(text) { return .integer(integer) }
        return Double(text).map(JSONValue.number)
    }

    private mutating func string() -> String? {
        guard place < bytes.count, bytes[place] == UInt8(ascii: "\"") else { return nil }
        place += 1
        let start = place
        while place < bytes.count, bytes[place] != UInt8(ascii: "\""), bytes[place] != UInt8(ascii: "\\") { place += 1 }
        guard place < bytes.count else { return nil }
        if bytes[place] == UInt8(ascii: "\"") {
            place += 1
            return String(validating: bytes[start..<(place - 1)], as: UTF8.self)
        }
        return escapedString(Array(bytes[start..<place]))
    }

    /// Goes on with a string that has escapes.
    private mutating func escapedString(_ beginning: [UInt8]) -> String? {
        var text = beginning
        while place < bytes.count {
            let byte = bytes[place]
            place += 1
            if byte == UInt8(ascii: "\"") { return String(validating: text, as: UTF8.self) }
            guard byte == UInt8(ascii: "\\") else {
                text.append(byte)
                continue
            }
            guard place < bytes.count else { return nil }
            let escape = bytes[place]
            place += 1
            switch escape {
            case UInt8(ascii: "n"): text.append(0x0a)
            case UInt8(ascii: "t"): text.append(0x09)
            case UInt8(ascii: "r"): text.append(0x0d)
            case UInt8(ascii: "b"): text.append(0x08)
            case UInt8(ascii: "f"): text.append(0x0c)
            case UInt8(ascii: "u"):
                guard let scalar = escapedScalar() else { return nil }
                text.append(contentsOf: Array(String(scalar).utf8))
            default: text.append(escape)
            }
        }
        return nil
    }

    private mutating func escapedScalar() -> Unicode.Scalar? {
        guard let first = fourDigits() else { return nil }
        guard (0xD800..<0xDC00).contains(first) else { return Unicode.Scalar(first) }
        guard take("\\", Unicode.Scalar("u")), let second = fourDigits(), (0xDC00..<0xE000).contains(second) else {
            return nil
        }
        return Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
    }

    private mutating func take(_ first: Unicode.Scalar, _ second: Unicode.Scalar) -> Bool {
        guard place + 1 < bytes.count, bytes[place] == UInt8(ascii: first), bytes[place + 1] == UInt8(ascii: second)
        else { return false }
        place += 2
        return true
    }

    private mutating func fourDigits() -> UInt32? {
        guard place + 4 <= bytes.count else { return nil }
        let digits = String(decoding: bytes[place..<(place + 4)], as: UTF8.self)
        place += 4
        return UInt32(digits, radix: 16)
    }
}
