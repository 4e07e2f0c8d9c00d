import FileEvents
package import System

/// What programs of a rule may use and reach, and as whom they run.
package struct Confinement: Sendable, Hashable {
    /// The mode bits that files which a program makes don't have; nil for 027.
    package var umask: UInt32?
    /// From -20, first of all, to 19; nil leaves it as Alight has it.
    package var nice: Int?
    package var ioPriority: IOPriority?
    package var limits: ResourceLimits?
    /// Nil for the user that Alight runs as.
    package var user: ProgramUser?
    package var sandbox: Sandbox?

    package init() {}

    /// Whether it is meant for a process that does one thing: limits that add up, the file of an event, its folder.
    package var isOfOneRun: Bool { limits != nil || user != nil || sandbox != nil }
}

/// Who comes first at a disk.
package enum IOPriority: Sendable, Hashable {
    /// Only when nobody else wants anything of it.
    case idle
    /// 0 comes first, 7 last; nil for the usual 4.
    case bestEffort(Int?)
    case realtime(Int)

    /// `idle`, `best-effort:7`.
    package var text: String {
        switch self {
        case .idle: "idle"
        case .bestEffort(let level): level.map { "best-effort:\($0)" } ?? "best-effort"
        case .realtime(let level): "realtime:\(level)"
        }
    }

    /// Reads the text; nil when it is none.
    package init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        let isDigit = parts.count == 2 && parts[1].utf8.count == 1
        let level = isDigit ? Int(parts[1]).flatMap { (0...7).contains($0) ? $0 : nil } : nil
        switch (parts[0], parts.count, level) {
        case ("idle", 1, _): self = .idle
        case ("best-effort", 1, _): self = .bestEffort(nil)
        case ("best-effort", 2, let level?): self = .bestEffort(level)
        case ("realtime", 2, let level?): self = .realtime(level)
        default: return nil
        }
    }
}

/// Most that a program may use; nil for as much as there is.
///
/// All but `processes` hold for each process of a program by itself.
package struct ResourceLimits: Sendable, Hashable {
    /// Time of a processor; the kernel counts whole seconds.
    package var cpu: Duration?
    /// Bytes that are private and writable.
    package var memory: Int?
    /// Open descriptors.
    package var files: Int?
    /// Processes and threads of the user, all together.
    package var processes: Int?
    /// Bytes of a file that is written.
    package var fileSize: Int?

    package init() {}

    /// The limits that there are, by their words, in the order of the documentation.
    package var shown: [(name: String, value: String)] {
        var shown: [(String, String)] = []
        if let cpu { shown.append(("cpu", DurationText.shown(cpu))) }
        if let memory { shown.append(("memory", SizeText.binary(UInt64(memory)))) }
        if let files { shown.append(("files", "\(files)")) }
        if let processes { shown.append(("processes", "\(processes)")) }
        if let fileSize { shown.append(("file_size", SizeText.binary(UInt64(fileSize)))) }
        return shown
    }
}

/// A user that programs run as, looked up when the rules were loaded.
package struct ProgramUser: Sendable, Hashable {
    /// As the rule has it: `www-data`, `1000:1000`.
    package var text: String
    /// Nil for a number that nobody has.
    package var name: String?
    package var uid: UInt32
    package var gid: UInt32
    /// All groups, the one of `gid` too.
    package var groups: [UInt32]
    package var home: PathBytes

    package init(text: String, name: String?, uid: UInt32, gid: UInt32, groups: [UInt32], home: PathBytes) {
        self.text = text
        self.name = name
        self.uid = uid
        self.gid = gid
        self.groups = groups
        self.home = home
    }

    /// Whether the mode bits of a file let the user read it; folders above it are not looked at.
    package func canRead(_ file: Snapshot) -> Bool {
        if uid == 0 { return true }
        if file.uid == uid { return file.mode & 0o400 != 0 }
        return file.mode & (file.gid == gid || groups.contains(file.gid) ? 0o040 : 0o004) != 0
    }
}

/// What programs can reach.
package struct Sandbox: Sendable, Hashable {
    /// Paths that may be read with all that is below them; nil when neither `read` nor `write` was given.
    package var read: [Template]?
    /// Paths that may be written, too.
    package var write: [Template]?
    package var allowsNetwork = true
    /// Whether a program that can't be confined must not run.
    package var isRequired = true

    package init() {}

    /// Whether only some files can be reached.
    package var confinesFiles: Bool { read != nil || write != nil }
}
