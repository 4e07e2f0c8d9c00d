/// Writes and reads JSON objects; a single list of members serves both, see ``JSONRecord``.
///
/// Foundation's encoder takes several times as long, and some of these objects are written for every job.
package struct JSONCoder {
    /// The output.
    package private(set) var bytes: [UInt8] = []
    private var isFirst = true
    /// Whether a whole `Double` is written with its point (`1.0`); otherwise it becomes an integer when it is read.
    private let keepsPoints: Bool
    /// The members of the object to read; nil while writing.
    private let members: [String: JSONValue]?
    /// Whether null was written for an infinite number or NaN.
    package private(set) var isLossy = false
    /// The first member that is missing or has another type.
    fileprivate private(set) var misfit: String?

    /// Creates a coder for writing.
    package init(capacity: Int = 0, keepingPoints: Bool = false) {
        keepsPoints = keepingPoints
        members = nil
        bytes.reserveCapacity(capacity)
    }

    fileprivate init(reading members: [String: JSONValue]) {
        keepsPoints = false
        self.members = members
    }

    // MARK: Members

    /// Writes or reads a required member.
    package mutating func member<Value: JSONForm>(_ name: String, _ value: inout Value) {
        guard members == nil else { return read(name, &value) }
        key(name)
        value.write(to: &self)
    }

    /// Writes or reads a member that is omitted when it is nil.
    package mutating func member<Value: JSONForm>(_ name: String, _ value: inout Value?) {
        guard members == nil else { return readIfPresent(name, &value) }
        value?.write(as: name, to: &self)
    }

    // Separate from writing, which would otherwise look up the metadata of optional values each time.
    @inline(never) private mutating func read<Value: JSONForm>(_ name: String, _ value: inout Value) {
        if let read = members?[name].flatMap({ Value(value: $0) }) { value = read } else { record(name) }
    }

    @inline(never) private mutating func readIfPresent<Value: JSONForm>(_ name: String, _ value: inout Value?) {
        guard let member = members?[name] else { return }
        if case .null = member { return }
        value = Value(value: member)
        if value == nil { record(name) }
    }

    /// Writes or reads a member that is null when it is nil.
    package mutating func member(nullable name: String, _ value: inout (some JSONForm)?) {
        guard members == nil, value == nil else { return member(name, &value) }
        key(name)
        raw("null")
    }

    /// Writes or reads a member that is omitted when it is false.
    package mutating func member(flag name: String, _ value: inout Bool) { member(name, &value, omitting: false) }

    /// Writes or reads a member that is omitted when it has this value.
    package mutating func member<Value: JSONForm & Equatable>(
        _ name: String, _ value: inout Value, omitting omitted: Value
    ) {
        guard members != nil || value != omitted else { return }
        var present: Value? = value
        member(name, &present)
        value = present ?? omitted
    }

    /// Writes or reads a member that is omitted when it has no elements.
    package mutating func member<Element: JSONForm>(list name: String, _ elements: inout [Element]) {
        if members?[name] != nil || !elements.isEmpty { member(name, &elements) }
    }

    private mutating func record(_ name: String) { if misfit == nil { misfit = name } }

    // MARK: Structure

    /// Writes an object; the closure writes its members.
    package mutating func object(_ body: (inout JSONCoder) -> Void) { nest("{", "}", body) }

    /// Writes an array; the closure writes its elements, each after ``element()``.
    package mutating func array(_ body: (inout JSONCoder) -> Void) { nest("[", "]", body) }

    private mutating func nest(_ open: Unicode.Scalar, _ close: Unicode.Scalar, _ body: (inout JSONCoder) -> Void) {
        bytes.append(UInt8(ascii: open))
        isFirst = true
        body(&self)
        bytes.append(UInt8(ascii: close))
        isFirst = false
    }

    /// Starts a member of an object; its value is written next.
    ///
    /// - Parameter name: A name that needs no escapes.
    fileprivate mutating func key(_ name: String) {
        element()
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: name.utf8)
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
    }

    /// Starts an element of an array.
    package mutating func element() {
        if !isFirst { bytes.append(UInt8(ascii: ",")) }
        isFirst = false
    }

    // MARK: Values

    package mutating func raw(_ text: StaticString) { text.withUTF8Buffer { bytes.append(contentsOf: $0) } }

    package mutating func number(_ number: Int64) {
        // The longest is -9223372036854775808.
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var rest = number.magnitude
            var start = digits.count
            repeat {
                start -= 1
                digits[start] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            } while rest > 0
            if number < 0 {
                start -= 1
                digits[start] = UInt8(ascii: "-")
            }
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: digits[start...]))
        }
    }

    package mutating func string(_ text: String) {
        var text = text
        text.withUTF8 { string(utf8: $0) }
    }

    /// Writes a string that is known to be UTF-8.
    private mutating func string(utf8: UnsafeBufferPointer<UInt8>) {
        bytes.append(UInt8(ascii: "\""))
        var rest = utf8[...]
        while let index = rest.firstIndex(where: Self.isEscaped) {
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: rest[..<index]))
            escape(rest[index])
            rest = rest[(index + 1)...]
        }
        bytes.append(contentsOf: UnsafeBufferPointer(rebasing: rest))
        bytes.append(UInt8(ascii: "\""))
    }

    private static func isEscaped(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    private mutating func escape(_ byte: UInt8) {
        if let index = JSONEscapes.bytes.firstIndex(of: byte) {
            bytes.append(UInt8(ascii: "\\"))
            bytes.append(JSONEscapes.letters[index])
        } else {
            raw(byte < 0x10 ? "\\u000" : "\\u00")
            bytes.append(contentsOf: String(byte, radix: 16).utf8)
        }
    }

    /// Writes a string, or bytes that are not UTF-8 as `{"base64":"…"}`.
    package mutating func text(_ content: [UInt8]) {
        content.withUnsafeBufferPointer { buffer in
            if buffer.allSatisfy({ $0 < 0x80 }) || String(validating: buffer, as: UTF8.self) != nil {
                string(utf8: buffer)
            } else {
                value(JSONValue(bytes: content))
            }
        }
    }

    package mutating func value(_ value: JSONValue) {
        switch value {
        case .null: raw("null")
        case .bool(let bool): if bool { raw("true") } else { raw("false") }
        case .integer(let integer): number(integer)
        case .number(let number):
            // JSON can't represent NaN and infinity.
            guard number.isFinite else {
                isLossy = true
                return raw("null")
            }
            let text = "\(number)"
            let isWhole = !keepsPoints && text.hasSuffix(".0")
            bytes.append(contentsOf: isWhole ? text.utf8.dropLast(2) : text.utf8[...])
        case .string(let text): string(text)
        case .array(let elements): elements.write(to: &self)
        case .object(let members):
            object { json in
                for (name, each) in members.sorted(by: { $0.key < $1.key }) {
                    json.element()
                    json.string(name)
                    json.bytes.append(UInt8(ascii: ":"))
                    json.value(each)
                }
            }
        }
    }
}

/// A value with a JSON representation.
package protocol JSONForm {
    func write(to json: inout JSONCoder)

    /// Creates the value from the output of ``write(to:)``; nil for any other JSON.
    init?(value: JSONValue)
}

/// A JSON object that is written and read by one list of its members.
package protocol JSONRecord: JSONForm {
    /// An empty value, whose members are replaced by those that are read.
    static var empty: Self { get }

    /// Passes each member to the coder, in the order in which they are written.
    mutating func code(with json: inout JSONCoder)
}

extension JSONRecord {
    package func write(to json: inout JSONCoder) {
        var copy = self
        json.object { copy.code(with: &$0) }
    }

    package init?(value: JSONValue) { if let read = try? Self(reading: value) { self = read } else { return nil } }

    /// Reads an object.
    package init(reading value: JSONValue) throws(JSONError) {
        guard let members = value.object else { throw .noObject }
        var json = JSONCoder(reading: members)
        self = .empty
        code(with: &json)
        if let name = json.misfit { throw .misfit(name) }
    }
}

extension JSONForm {
    fileprivate func write(as name: String, to json: inout JSONCoder) {
        json.key(name)
        write(to: &json)
    }

    /// The JSON in one line; members of a ``JSONValue`` are sorted by name.
    package var line: String { String(decoding: lineBytes, as: UTF8.self) }

    /// The JSON in one line, as UTF-8 bytes.
    package var lineBytes: [UInt8] { bytes(by: JSONCoder(capacity: 512)) }

    /// The JSON in the form that this program stores, from which the same value can be read.
    package var record: [UInt8] { bytes(by: JSONCoder(capacity: 1024, keepingPoints: true)) }

    private func bytes(by json: consuming JSONCoder) -> [UInt8] {
        write(to: &json)
        return json.bytes
    }

    /// Reads JSON that this program wrote, which may contain external input; nil when it is invalid.
    package init?(record bytes: some Collection<UInt8>) {
        guard let value = try? JSONValue.read(bytes, isRecord: true) else { return nil }
        self.init(value: value)
    }

    /// The JSON as a value.
    package var json: JSONValue { JSONValue(record: lineBytes) ?? .null }
}

extension JSONForm where Self: FixedWidthInteger {
    /// Writes the number; one that needs all 64 bits is written as if it were signed.
    package func write(to json: inout JSONCoder) { json.number(Int64(truncatingIfNeeded: self)) }

    package init?(value: JSONValue) {
        guard case .integer(let integer) = value else { return nil }
        if Self.bitWidth < 64 { self.init(exactly: integer) } else { self.init(truncatingIfNeeded: integer) }
    }
}

extension JSONForm where Self: RawRepresentable, RawValue == String {
    package func write(to json: inout JSONCoder) { json.string(rawValue) }
    package init?(value: JSONValue) {
        guard let word = value.string else { return nil }
        self.init(rawValue: word)
    }
}

extension Int: JSONForm {}
extension Int32: JSONForm {}
extension Int64: JSONForm {}
extension UInt16: JSONForm {}
extension UInt32: JSONForm {}
extension UInt64: JSONForm {}

extension Bool: JSONForm {
    package func write(to json: inout JSONCoder) { json.value(.bool(self)) }
    package init?(value: JSONValue) { if let bool = value.bool { self = bool } else { return nil } }
}

extension Double: JSONForm {
    package func write(to json: inout JSONCoder) { json.value(.number(self)) }
    package init?(value: JSONValue) { if let number = value.double { self = number } else { return nil } }
}

extension String: JSONForm {
    package func write(to json: inout JSONCoder) { json.string(self) }
    package init?(value: JSONValue) { if let text = value.string { self = text } else { return nil } }
}

extension JSONValue: JSONForm {
    package func write(to json: inout JSONCoder) { json.value(self) }
    package init?(value: JSONValue) { self = value }
}

extension [String: JSONValue]: JSONForm {
    package func write(to json: inout JSONCoder) { json.value(.object(self)) }
    package init?(value: JSONValue) { if let members = value.object { self = members } else { return nil } }
}

extension Array: JSONForm where Element: JSONForm {
    package func write(to json: inout JSONCoder) {
        json.array { json in
            for each in self {
                json.element()
                each.write(to: &json)
            }
        }
    }

    package init?(value: JSONValue) {
        self = value.array?.compactMap { Element(value: $0) } ?? []
        if count != value.array?.count { return nil }
    }
}
