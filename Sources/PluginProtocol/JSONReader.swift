import FoundationEssentials

/// Reads JSON without Foundation, as far as nobody could read it otherwise.
///
/// Where Foundation has a way of its own (a name that comes twice, a number that is whole but not written so, great
/// depth), or the text is no JSON, it gives up; then Foundation decides.
struct JSONReader {
    private let bytes: UnsafeBufferPointer<UInt8>
    private var place = 0
    private var depth = 0

    private static let deepest = 64

    /// The value that the text is; nil when Foundation has to decide.
    static func value(of text: UnsafeBufferPointer<UInt8>) -> JSONValue? {
        var reader = JSONReader(bytes: text)
        guard let value = reader.value() else { return nil }
        reader.skipSpace()
        // Not by `?:`, where nil would be the JSON null.
        guard reader.place == text.count else { return nil }
        return value
    }

    private init(bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    private var next: UInt8? { place < bytes.count ? bytes[place] : nil }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { place += 1 }
    }

    /// Takes the character if it is the next one behind blanks.
    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        skipSpace()
        guard next == UInt8(ascii: scalar) else { return false }
        place += 1
        return true
    }

    private mutating func take(_ word: StaticString, _ value: JSONValue) -> JSONValue? {
        guard word.withUTF8Buffer({ bytes[place...].starts(with: $0) }) else { return nil }
        place += word.utf8CodeUnitCount
        return value
    }

    private mutating func value() -> JSONValue? {
        skipSpace()
        guard let byte = next, depth < Self.deepest else { return nil }
        depth += 1
        defer { depth -= 1 }
        switch byte {
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
            guard let name = string(), take(":"), let value = value(), members.updateValue(value, forKey: name) == nil
            else { return nil }
        } while take(",")
        guard take("}") else { return nil }
        return .object(members)
    }

    private mutating func array() -> JSONValue? {
        guard take("[") else { return nil }
        var elements: [JSONValue] = []
        if take("]") { return .array(elements) }
        repeat {
            guard let value = value() else { return nil }
            elements.append(value)
        } while take(",")
        guard take("]") else { return nil }
        return .array(elements)
    }

    // MARK: - Numbers

    private mutating func takeDigits() -> Int {
        let start = place
        while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { place += 1 }
        return place - start
    }

    private mutating func number() -> JSONValue? {
        let start = place
        if next == UInt8(ascii: "-") { place += 1 }
        let firstDigit = place
        let digits = takeDigits()
        guard digits > 0, digits == 1 || bytes[firstDigit] != UInt8(ascii: "0") else { return nil }
        let isInteger = next != UInt8(ascii: ".") && next.map { $0 | 0x20 } != UInt8(ascii: "e")
        if isInteger {
            // More could be too large, and of zero there are two.
            guard digits <= 18, firstDigit == start || bytes[firstDigit] != UInt8(ascii: "0") else { return nil }
            let size = bytes[firstDigit..<place].reduce(Int64(0)) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
            return .integer(firstDigit == start ? size : -size)
        }
        if next == UInt8(ascii: ".") {
            place += 1
            guard takeDigits() > 0 else { return nil }
        }
        if next.map({ $0 | 0x20 }) == UInt8(ascii: "e") {
            place += 1
            if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { place += 1 }
            guard takeDigits() > 0 else { return nil }
        }
        let number = Double(String(decoding: bytes[start..<place], as: UTF8.self))
        guard let number, number.isFinite, number != number.rounded(.towardZero) else { return nil }
        return .number(number)
    }

    // MARK: - Texts

    private mutating func string() -> String? {
        guard next == UInt8(ascii: "\"") else { return nil }
        place += 1
        let start = place
        while let byte = next, byte >= 0x20 {
            switch byte {
            case UInt8(ascii: "\""):
                place += 1
                return String(validating: bytes[start..<(place - 1)], as: UTF8.self)
            case UInt8(ascii: "\\"): return escapedString(Array(bytes[start..<place]))
            default: place += 1
            }
        }
        return nil
    }

    /// Goes on with a text that has escapes.
    private mutating func escapedString(_ beginning: [UInt8]) -> String? {
        var text = beginning
        while let byte = next, byte >= 0x20 {
            place += 1
            if byte == UInt8(ascii: "\"") { return String(validating: text, as: UTF8.self) }
            guard byte == UInt8(ascii: "\\") else {
                text.append(byte)
                continue
            }
            guard let escape = next else { return nil }
            place += 1
            switch escape {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(escape)
            case UInt8(ascii: "n"): text.append(0x0A)
            case UInt8(ascii: "t"): text.append(0x09)
            case UInt8(ascii: "r"): text.append(0x0D)
            case UInt8(ascii: "b"): text.append(0x08)
            case UInt8(ascii: "f"): text.append(0x0C)
            case UInt8(ascii: "u"):
                guard let scalar = escapedScalar() else { return nil }
                text += UTF8.encode(scalar).map { Array($0) } ?? []
            default: return nil
            }
        }
        return nil
    }

    private mutating func escapedScalar() -> Unicode.Scalar? {
        guard let first = fourDigits() else { return nil }
        guard (0xD800..<0xDC00).contains(first) else { return Unicode.Scalar(first) }
        guard place + 1 < bytes.count, bytes[place] == UInt8(ascii: "\\"), bytes[place + 1] == UInt8(ascii: "u") else {
            return nil
        }
        place += 2
        guard let second = fourDigits(), (0xDC00..<0xE000).contains(second) else { return nil }
        return Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
    }

    private mutating func fourDigits() -> UInt32? {
        guard place + 4 <= bytes.count else { return nil }
        var number: UInt32 = 0
        for byte in bytes[place..<(place + 4)] {
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
            default: return nil
            }
            number = number << 4 + UInt32(digit)
        }
        place += 4
        return number
    }
}

extension JSONValue {
    /// Reads JSON as most programs write it, without Foundation; nil when that has to decide what the text is.
    package init?(plainJSON bytes: ArraySlice<UInt8>) {
        guard let value = bytes.withUnsafeBufferPointer(JSONReader.value) else { return nil }
        self = value
    }

    /// Reads JSON; nil when it is none.
    package init?(json bytes: ArraySlice<UInt8>) {
        if let value = JSONValue(plainJSON: bytes) {
            self = value
        } else if let value = try? JSONDecoder().decode(JSONValue.self, from: Data(bytes)) {
            self = value
        } else {
            return nil
        }
    }
}
