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

/// Parses JSON in one pass, in time and memory linear in the input.
///
/// A number without a fraction becomes an integer, whatever its notation; in a
/// record, one with a point or an exponent does not. Of members with the same name,
/// the first one is used.
struct JSONReader {
    /// The maximum nesting of external input.
    static let depthLimit = 64
    /// The maximum nesting of records, which contain external input.
    static let recordDepthLimit = 2 * depthLimit

    private let bytes: UnsafeBufferPointer<UInt8>
    private let depthLimit: Int
    private let isRecord: Bool
    private let isLenient: Bool
    private var position = 0
    private var depth = 0

    /// Parses JSON.
    ///
    /// - Parameters:
    ///   - text: The input, with exactly one value and whitespace.
    ///   - isRecord: Whether this program wrote it, so that it is read back exactly, and may be nested deeper.
    ///   - isLenient: Whether an invalid string, number or word becomes null, as does anything nested too deep.
    /// - Returns: The value.
    /// - Throws: The first error; if the input is nested too deep, nothing of it is stored.
    static func value(
        of text: UnsafeBufferPointer<UInt8>, isRecord: Bool, isLenient: Bool
    ) throws(JSONError) -> JSONValue {
        var reader = JSONReader(bytes: text, isRecord: isRecord, isLenient: isLenient)
        let value = try reader.value()
        reader.skipSpace()
        guard reader.position == text.count else { throw reader.invalid }
        return value
    }

    private init(bytes: UnsafeBufferPointer<UInt8>, isRecord: Bool, isLenient: Bool) {
        self.bytes = bytes
        depthLimit = isRecord ? Self.recordDepthLimit : Self.depthLimit
        self.isRecord = isRecord
        self.isLenient = isLenient
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
        switch next {
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            guard depth < depthLimit else {
                guard isLenient else { throw .tooDeep(limit: depthLimit) }
                try skipNested()
                return .null
            }
            depth += 1
            defer { depth -= 1 }
            return next == UInt8(ascii: "{") ? try object() : try array()
        default:
            let start = position
            do throws(JSONError) {
                return try scalar()
            } catch {
                guard isLenient else { throw error }
                position = start
                try skipScalar()
                return .null
            }
        }
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

    /// Skips an array or an object; its content is only parsed to find its end.
    private mutating func skipNested() throws(JSONError) {
        var open = 0
        repeat {
            switch next {
            case UInt8(ascii: "{"), UInt8(ascii: "["): open += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"): open -= 1
            case UInt8(ascii: "\""):
                try skipScalar()
                continue
            case nil: throw invalid
            default: break
            }
            position += 1
        } while open > 0
    }

    /// Skips a string, or whatever is in place of a number or a word.
    private mutating func skipScalar() throws(JSONError) {
        guard next == UInt8(ascii: "\"") else {
            let start = position
            while let byte = next, byte > 0x20, !",]}".utf8.contains(byte) { position += 1 }
            guard position > start else { throw invalid }
            return
        }
        position += 1
        while let byte = next {
            position += byte == UInt8(ascii: "\\") ? 2 : 1
            if byte == UInt8(ascii: "\"") { return }
        }
        throw invalid
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
            switch escape {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): content.append(escape)
            case UInt8(ascii: "n"): content.append(0x0A)
            case UInt8(ascii: "t"): content.append(0x09)
            case UInt8(ascii: "r"): content.append(0x0D)
            case UInt8(ascii: "b"): content.append(0x08)
            case UInt8(ascii: "f"): content.append(0x0C)
            case UInt8(ascii: "u"):
                content += Array(String(try escapedScalar()).utf8)
            default: throw invalid
            }
        }
        throw invalid
    }

    private mutating func escapedScalar() throws(JSONError) -> Unicode.Scalar {
        let first = try fourDigits()
        if let scalar = Unicode.Scalar(first) { return scalar }
        let isHigh = (0xD800..<0xDC00).contains(first)
        if isHigh, position + 1 < bytes.count, bytes[position] == UInt8(ascii: "\\"),
            bytes[position + 1] == UInt8(ascii: "u")
        {
            position += 2
            let second = try fourDigits()
            if (0xDC00..<0xE000).contains(second),
                let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
            {
                return scalar
            }
        }
        // An unpaired surrogate is not a character.
        throw invalid
    }

    private mutating func fourDigits() throws(JSONError) -> UInt32 {
        guard position + 4 <= bytes.count else { throw invalid }
        var number: UInt32 = 0
        for byte in bytes[position..<(position + 4)] {
            guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { throw invalid }
            number = number << 4 + UInt32(digit)
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

    fileprivate static func read(
        _ bytes: some Collection<UInt8>, isRecord: Bool, isLenient: Bool
    ) throws(JSONError) -> JSONValue {
        func value(of text: UnsafeBufferPointer<UInt8>) -> Result<JSONValue, JSONError> {
            Result { () throws(JSONError) in try JSONReader.value(of: text, isRecord: isRecord, isLenient: isLenient) }
        }
        let found =
            bytes.withContiguousStorageIfAvailable { value(of: $0) }
            ?? Array(bytes).withUnsafeBufferPointer { value(of: $0) }
        return try found.get()
    }
}

extension JSONForm {
    /// Reads JSON that this program wrote, which may contain external input; nil when it is invalid.
    package init?(record bytes: some Collection<UInt8>) {
        guard let value = try? JSONValue.read(bytes, isRecord: true, isLenient: false) else { return nil }
        self.init(value: value)
    }
}
