package import FileEvents

/// What programs are told of the machine; nothing else of Alight's own environment reaches them.
package struct ProgramEnvironment: Sendable {
    /// Where programs are looked for, and their `PATH`.
    package static let searchPath = "/usr/local/bin:/usr/bin:/bin"

    package var home: PathBytes
    /// `TZ`; nil when it is not set.
    package var timeZone: String?
    /// Whether Alight runs as root, and so must not run what others can change.
    package var isRoot: Bool

    package init(home: PathBytes, timeZone: String?, isRoot: Bool) {
        self.home = home
        self.timeZone = timeZone
        self.isRoot = isRoot
    }

    /// The variables that every program gets.
    var variables: [(name: String, value: [UInt8])] {
        var variables: [(name: String, value: [UInt8])] = [
            ("PATH", Array(Self.searchPath.utf8)), ("HOME", home.bytes), ("LANG", Array("C.UTF-8".utf8)),
        ]
        if let timeZone { variables.append(("TZ", Array(timeZone.utf8))) }
        return variables
    }
}
