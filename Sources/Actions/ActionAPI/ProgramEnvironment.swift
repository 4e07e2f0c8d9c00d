import PluginProtocol
package import Rules
package import System

/// The part of Alight's own environment that programs receive; nothing else of it is inherited.
package struct ProgramEnvironment: Sendable {
    package var home: PathBytes
    /// `TZ`; nil when it is not set.
    package var timeZone: String?
    /// Whether Alight runs as root, and so must not run files that other users can change.
    package var isRoot: Bool

    package init(home: PathBytes, timeZone: String?, isRoot: Bool) {
        (self.home, self.timeZone, self.isRoot) = (home, timeZone, isRoot)
    }

    /// The variables that every program gets.
    package var variables: [(name: String, value: [UInt8])] { variables(for: nil) }

    /// Returns the variables of a program.
    ///
    /// - Parameters:
    ///   - user: The user that it runs as; nil for Alight's own user.
    ///   - others: Further variables, which replace those of the same name.
    /// - Returns: The variables, without duplicates if there are none in `others`.
    package func variables(
        for user: ProgramUser?, adding others: [(name: String, value: [UInt8])] = []
    ) -> [(name: String, value: [UInt8])] {
        var variables: [(name: String, value: [UInt8])] = [
            ("PATH", Array(Action.searchPath.utf8)), ("HOME", user?.home.bytes ?? home.bytes),
            ("LANG", Array("C.UTF-8".utf8)),
        ]
        if let name = user?.name { variables += [("USER", Array(name.utf8)), ("LOGNAME", Array(name.utf8))] }
        if let timeZone { variables.append(("TZ", Array(timeZone.utf8))) }
        let given = Set(others.map(\.name))
        return variables.filter { !given.contains($0.name) } + others
    }
}

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
