package import FileEvents
package import JSON
package import System

// The forms of values in the JSON of the journal.
extension EventKind: JSONForm {}
extension EventOrigin: JSONForm {}
extension FileType: JSONForm {}

extension PathBytes: JSONForm {
    package func write(to json: inout JSONCoder) { json.text(bytes) }
    package init?(value: JSONValue) {
        guard let bytes = value.bytes else { return nil }
        self.init(bytes)
    }
}

extension Timestamp: JSONForm {
    /// Writes the seconds since 1970 and the nanoseconds after them.
    package func write(to json: inout JSONCoder) { json.pair(seconds, Int64(nanoseconds)) }
    package init?(value: JSONValue) {
        guard let (seconds, rest) = value.pair, let nanoseconds = UInt32(exactly: rest) else { return nil }
        self.init(seconds: seconds, nanoseconds: nanoseconds)
    }
}

extension Duration: JSONForm {
    /// Writes the seconds and the attoseconds after them.
    package func write(to json: inout JSONCoder) { json.pair(components.seconds, components.attoseconds) }
    package init?(value: JSONValue) {
        guard let (seconds, attoseconds) = value.pair else { return nil }
        self.init(secondsComponent: seconds, attosecondsComponent: attoseconds)
    }
}

extension JSONCoder {
    fileprivate mutating func pair(_ first: Int64, _ second: Int64) {
        array { json in
            json.element()
            json.number(first)
            json.element()
            json.number(second)
        }
    }
}

extension JSONValue {
    fileprivate var pair: (Int64, Int64)? {
        guard let parts = array, parts.count == 2, case .integer(let first) = parts[0],
            case .integer(let second) = parts[1]
        else { return nil }
        return (first, second)
    }
}

extension Box: JSONForm where Value: JSONForm {
    package func write(to json: inout JSONCoder) { value.write(to: &json) }
    package convenience init?(value: JSONValue) {
        guard let value = Value(value: value) else { return nil }
        self.init(value)
    }
}

/// Bytes encoded in base64.
struct BinaryText: JSONForm {
    var bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    func write(to json: inout JSONCoder) { json.string(Base64.encoded(bytes)) }
    init?(value: JSONValue) {
        guard let bytes = Base64.decoded(value.string) else { return nil }
        self.bytes = bytes
    }
}
