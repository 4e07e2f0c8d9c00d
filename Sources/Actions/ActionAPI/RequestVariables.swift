import PluginProtocol

/// The environment variables by which programs receive a request, with exact bytes.
package enum RequestVariables {
    /// The version of the protocol, the only variable that a persistent plugin also gets.
    package static let version = (name: "ALIGHT_PROTOCOL", value: Array("\(ProtocolVersion.current)".utf8))

    /// Returns the variables; those of a value that the event does not have are empty.
    package static func list(
        id: [UInt8], attempt: [UInt8], rule: [UInt8], event: [UInt8], path: [UInt8], from: [UInt8], root: [UInt8],
        relative: [UInt8], reason: [UInt8], scratch: [UInt8]
    ) -> [(name: String, value: [UInt8])] {
        [
            version, ("ALIGHT_ID", id), ("ALIGHT_ATTEMPT", attempt), ("ALIGHT_RULE", rule), ("ALIGHT_EVENT", event),
            ("ALIGHT_PATH", path), ("ALIGHT_FROM", from), ("ALIGHT_ROOT", root), ("ALIGHT_RELATIVE", relative),
            ("ALIGHT_REASON", reason), ("ALIGHT_SCRATCH", scratch),
        ]
    }
}
