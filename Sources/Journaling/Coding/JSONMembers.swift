import FileEvents
import PluginProtocol

extension JSONOutput {
    /// Writes a member that is true, and nothing otherwise.
    mutating func flag(_ name: StaticString, _ isSet: Bool) {
        guard isSet else { return }
        key(name)
        raw("true")
    }
}

// The members of an object, by the forms in which the journal writes them.
extension JSONValue {
    subscript(_ name: String) -> JSONValue? { object?[name] }

    func text(_ name: String) -> String? { self[name]?.string }

    func integer(_ name: String) -> Int64? {
        guard case .integer(let integer) = self[name] else { return nil }
        return integer
    }

    /// A number of 64 bits without a sign, written as if it had one.
    func unsigned(_ name: String) -> UInt64? { integer(name).map { UInt64(bitPattern: $0) } }

    func unsigned32(_ name: String) -> UInt32? { integer(name).flatMap { UInt32(exactly: $0) } }

    func isSet(_ name: String) -> Bool { self[name]?.bool ?? false }

    /// Text, or `{"base64":"…"}`.
    var bytes: [UInt8]? { string.map { Array($0.utf8) } ?? text("base64").flatMap { Base64.decoded($0.utf8) } }

    func path(_ name: String) -> PathBytes? { self[name]?.bytes.map(PathBytes.init) }

    func time(_ name: String) -> Timestamp? {
        guard let parts = self[name]?.array, parts.count == 2, case .integer(let seconds) = parts[0],
            case .integer(let nanoseconds) = parts[1], let nanoseconds = UInt32(exactly: nanoseconds)
        else { return nil }
        return Timestamp(seconds: seconds, nanoseconds: nanoseconds)
    }
}
