/// An error in JSON input.
package enum JSONError: Error, Sendable, Hashable {
    /// The input is not JSON, or contains a number or character that can't be represented; with the byte offset at
    /// which parsing stopped.
    case invalid(at: Int)
    /// Arrays and objects are nested deeper than the limit.
    case tooDeep(limit: Int)
    /// An object was expected.
    case noObject
    /// A member is missing, or has another type.
    case misfit(String)

    /// The predicate of a message, after the name of the input: `is not JSON, from byte 12 on`.
    package var clause: String {
        switch self {
        case .invalid(let position): "is not JSON, from byte \(position) on"
        case .tooDeep(let limit): "is nested more than \(limit) levels deep"
        case .noObject: "is not an object"
        case .misfit(let name): "has no valid '\(name)'"
        }
    }
}

/// The escapes of a backslash and a letter.
enum JSONEscapes {
    static let letters = Array(#""\/bfnrt"#.utf8)
    /// The bytes that the letters stand for, in the same order.
    static let bytes = Array("\"\\/\u{8}\u{C}\n\r\t".utf8)
}

/// Parses JSON in one pass, in time and memory linear in the input.
///
/// A number without a fraction becomes an integer, whatever its notation; in a
/// record, one with a point or an exponent does not. Of members with the same name,
/// the first one is used.
struct JSONReader {
    /// The maximum nesting of external input; records contain such input, and may be nested deeper.
    private static let depthLimit = 64

    fileprivate let bytes: UnsafeBufferPointer<UInt8>
    /// Whether this program wrote it, so that it is read back exactly, and may be nested deeper.
    fileprivate let isRecord: Bool
    /// Whether an invalid string, number or word becomes null, as does anything nested too deep.
    fileprivate let isLenient: Bool
    fileprivate var position = 0
    fileprivate var depth = 0

    /// Reads the input, with exactly one value and whitespace.
    ///
    /// - Throws: The first error; if the input is nested too deep, nothing of it is stored.
    mutating func whole() throws(JSONError) -> JSONValue {
        let value = try value()
        skipSpace()
        guard position == bytes.count else { throw invalid }
        return value
    }

    private var invalid: JSONError { .invalid(at: position) }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    /// Consumes whitespace and the character, if it is the next one.
    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        skipSpace()
        guard next == UInt8(ascii: scalar) else { return false }
        position += 1
        return true
    }

    private mutating func expect(_ scalar: Unicode.Scalar) throws(JSONError) {
        guard take(scalar) else { throw invalid }
    }

    private mutating func take(_ word: StaticString, _ value: JSONValue) throws(JSONError) -> JSONValue {
        guard word.withUTF8Buffer({ bytes[position...].starts(with: $0) }) else { throw invalid }
        position += word.utf8CodeUnitCount
        return value
    }

    private mutating func value() throws(JSONError) -> JSONValue {
        skipSpace()
        let start = position
        do throws(JSONError) {
            guard next == UInt8(ascii: "{") || next == UInt8(ascii: "[") else { return try scalar() }
            let limit = isRecord ? 2 * Self.depthLimit : Self.depthLimit
            guard depth < limit else { throw .tooDeep(limit: limit) }
        } catch {
            guard isLenient else { throw error }
            position = start
            try skip()
            return .null
        }
        depth += 1
        defer { depth -= 1 }
        return next == UInt8(ascii: "{") ? try object() : try array()
    }

    private mutating func scalar() throws(JSONError) -> JSONValue {
        switch next {
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try take("true", .bool(true))
        case UInt8(ascii: "f"): return try take("false", .bool(false))
        case UInt8(ascii: "n"): return try take("null", .null)
        default: return try number()
        }
    }

    private mutating func object() throws(JSONError) -> JSONValue {
        try expect("{")
        var members: [String: JSONValue] = [:]
        if take("}") { return .object(members) }
        repeat {
            skipSpace()
            let name = try string()
            try expect(":")
            let value = try value()
            if !members.keys.contains(name) { members[name] = value }
        } while take(",")
        try expect("}")
        return .object(members)
    }

    private mutating func array() throws(JSONError) -> JSONValue {
        try expect("[")
        var elements: [JSONValue] = []
        if take("]") { return .array(elements) }
        repeat { elements.append(try value()) } while take(",")
        try expect("]")
        return .array(elements)
    }

    /// Skips whatever is in place of a value; it is only parsed to find its end.
    private mutating func skip() throws(JSONError) {
        let start = position
        var open = 0
        var isInString = false
        while let byte = next, open > 0 || isInString || byte > 0x20 && !",]}".utf8.contains(byte) {
            switch byte {
            case UInt8(ascii: "\""): isInString.toggle()
            case UInt8(ascii: "\\") where isInString: position += 1
            case UInt8(ascii: "{"), UInt8(ascii: "["): open += isInString ? 0 : 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"): open -= isInString ? 0 : 1
            default: break
            }
            position += 1
        }
        guard open == 0, !isInString, position > start else { throw invalid }
    }

    // MARK: - Numbers

    private mutating func takeDigits() -> Int {
        let start = position
        while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
        return position - start
    }

    private mutating func number() throws(JSONError) -> JSONValue {
        let start = position
        let isNegative = next == UInt8(ascii: "-")
        if isNegative { position += 1 }
        let firstDigit = position
        let digits = takeDigits()
        guard digits > 0, digits == 1 || bytes[firstDigit] != UInt8(ascii: "0") else { throw invalid }
        var isInteger = true
        if next == UInt8(ascii: ".") {
            isInteger = false
            position += 1
            guard takeDigits() > 0 else { throw invalid }
        }
        if next.map({ $0 | 0x20 }) == UInt8(ascii: "e") {
            isInteger = false
            position += 1
            if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { position += 1 }
            guard takeDigits() > 0 else { throw invalid }
        }
        if isInteger, digits <= 18 {
            let size = bytes[firstDigit..<position].reduce(Int64(0)) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
            return .integer(isNegative ? -size : size)
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isInteger, let integer = Int64(text) { return .integer(integer) }
        guard let number = Double(text), number.isFinite else { throw invalid }
        // An integer that is too large has been rounded.
        return isInteger || isRecord
            ? .number(number) : Int64(exactly: number).map(JSONValue.integer) ?? .number(number)
    }

    // MARK: - Strings

    private mutating func string() throws(JSONError) -> String {
        guard next == UInt8(ascii: "\"") else { throw invalid }
        position += 1
        let start = position
        while let byte = next, byte >= 0x20 {
            switch byte {
            case UInt8(ascii: "\""):
                position += 1
                return try text(bytes[start..<(position - 1)])
            case UInt8(ascii: "\\"): return try escapedString(Array(bytes[start..<position]))
            default: position += 1
            }
        }
        throw invalid
    }

    private func text(_ content: some Collection<UInt8>) throws(JSONError) -> String {
        if let text = String(validating: content, as: UTF8.self) { return text } else { throw invalid }
    }

    /// Continues to parse a string that contains escapes.
    private mutating func escapedString(_ beginning: [UInt8]) throws(JSONError) -> String {
        var content = beginning
        while let byte = next, byte >= 0x20 {
            position += 1
            if byte == UInt8(ascii: "\"") { return try text(content) }
            guard byte == UInt8(ascii: "\\") else {
                content.append(byte)
                continue
            }
            guard let escape = next else { throw invalid }
            position += 1
            if let index = JSONEscapes.letters.firstIndex(of: escape) {
                content.append(JSONEscapes.bytes[index])
            } else if escape == UInt8(ascii: "u") {
                content += Array(try escapedCharacter().utf8)
            } else {
                throw invalid
            }
        }
        throw invalid
    }

    private mutating func escapedCharacter() throws(JSONError) -> String {
        var units = [try fourDigits()]
        if UTF16.isLeadSurrogate(units[0]), bytes[position...].starts(with: #"\u"#.utf8) {
            position += 2
            units.append(try fourDigits())
        }
        // An unpaired surrogate is not a character.
        guard let character = String(validating: units, as: UTF16.self) else { throw invalid }
        return character
    }

    private mutating func fourDigits() throws(JSONError) -> UInt16 {
        guard position + 4 <= bytes.count else { throw invalid }
        var number: UInt16 = 0
        for byte in bytes[position..<(position + 4)] {
            guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { throw invalid }
            number = number << 4 + UInt16(digit)
        }
        position += 4
        return number
    }
}

extension JSONValue {
    /// Parses external JSON; nesting deeper than 64 levels is an error, before anything is stored.
    package init(reading bytes: some Collection<UInt8>, isLenient: Bool = false) throws(JSONError) {
        self = try Self.read(bytes, isRecord: false, isLenient: isLenient)
    }

    /// Parses external JSON; nil when it is invalid.
    package init?(json bytes: some Collection<UInt8>) {
        if let value = try? JSONValue(reading: bytes) { self = value } else { return nil }
    }

    static func read(
        _ bytes: some Collection<UInt8>, isRecord: Bool, isLenient: Bool = false
    ) throws(JSONError) -> JSONValue {
        try Array(bytes).withUnsafeBufferPointer { bytes throws(JSONError) in
            var reader = JSONReader(bytes: bytes, isRecord: isRecord, isLenient: isLenient)
            return try reader.whole()
        }
    }
}
