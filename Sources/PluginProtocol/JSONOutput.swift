import FoundationEssentials

/// JSON that is written by appending, for what is written for every job.
package struct JSONOutput {
    package private(set) var bytes: [UInt8] = []
    private var isFirst = true
    /// Whether a number without a fraction is written without a point: it is an integer for who reads it.
    private let shortensNumbers: Bool

    package init(capacity: Int = 0, shorteningNumbers: Bool = false) {
        shortensNumbers = shorteningNumbers
        bytes.reserveCapacity(capacity)
    }

    // MARK: Structure

    /// Writes an object whose members the closure writes.
    package mutating func object(_ body: (inout JSONOutput) -> Void) { nest("{", "}", body) }

    /// Writes an array whose elements the closure writes, each after ``element()``.
    package mutating func array(_ body: (inout JSONOutput) -> Void) { nest("[", "]", body) }

    private mutating func nest(_ open: Unicode.Scalar, _ close: Unicode.Scalar, _ body: (inout JSONOutput) -> Void) {
        bytes.append(UInt8(ascii: open))
        isFirst = true
        body(&self)
        bytes.append(UInt8(ascii: close))
        isFirst = false
    }

    /// Begins a member of an object; its value is what is written next.
    ///
    /// - Parameter name: Needs no escapes.
    package mutating func key(_ name: StaticString) {
        element()
        bytes.append(UInt8(ascii: "\""))
        name.withUTF8Buffer { bytes.append(contentsOf: $0) }
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
    }

    /// Begins an element of an array.
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

    /// Writes text that is known to be UTF-8.
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
        switch byte {
        case UInt8(ascii: "\n"): raw("\\n")
        case 0..<0x20:
            raw("\\u00")
            bytes.append(Self.hexadecimal(byte >> 4))
            bytes.append(Self.hexadecimal(byte & 15))
        default:
            bytes.append(UInt8(ascii: "\\"))
            bytes.append(byte)
        }
    }

    /// Writes text, or bytes that are not UTF-8 as `{"base64":"…"}`.
    package mutating func text(_ content: [UInt8]) {
        content.withUnsafeBufferPointer { buffer in
            if buffer.allSatisfy({ $0 < 0x80 }) || String(validating: buffer, as: UTF8.self) != nil {
                string(utf8: buffer)
            } else {
                object { json in
                    json.key("base64")
                    json.base64(content)
                }
            }
        }
    }

    /// Writes bytes as text in base64.
    package mutating func base64(_ content: [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: Data(content).base64EncodedString().utf8)
        bytes.append(UInt8(ascii: "\""))
    }

    package mutating func value(_ value: JSONValue) {
        switch value {
        case .null: raw("null")
        case .bool(let bool): if bool { raw("true") } else { raw("false") }
        case .integer(let integer): number(integer)
        case .number(let number):
            // JSON has no word for what is no number.
            guard number.isFinite else { return raw("null") }
            let text = "\(number)"
            let isWhole = shortensNumbers && text.hasSuffix(".0")
            bytes.append(contentsOf: isWhole ? text.utf8.dropLast(2) : text.utf8[...])
        case .string(let text): string(text)
        case .array(let elements):
            array { json in
                for each in elements {
                    json.element()
                    json.value(each)
                }
            }
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

    private static func hexadecimal(_ digit: UInt8) -> UInt8 {
        digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
    }
}
