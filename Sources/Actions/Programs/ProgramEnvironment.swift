import FileEvents
import Rules
package import System

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
    var variables: [(name: String, value: [UInt8])] { variables(for: nil) }

    /// The variables that a program gets which runs as that user; nil for Alight's own.
    func variables(for user: ProgramUser?) -> [(name: String, value: [UInt8])] {
        var variables: [(name: String, value: [UInt8])] = [
            ("PATH", Array(Self.searchPath.utf8)), ("HOME", user?.home.bytes ?? home.bytes),
            ("LANG", Array("C.UTF-8".utf8)),
        ]
        if let name = user?.name {
            variables += [("USER", Array(name.utf8)), ("LOGNAME", Array(name.utf8))]
        }
        if let timeZone { variables.append(("TZ", Array(timeZone.utf8))) }
        return variables
    }
}
