package import System

/// The resources, files and user of the programs of a rule.
package struct Confinement: Sendable, Hashable {
    /// The mode bits that are cleared in new files of a program; nil for 027.
    package var umask: UInt32?
    /// The niceness, from -20 (highest priority) to 19; nil keeps that of Alight.
    package var nice: Int?
    package var ioPriority: IOPriority?
    package var limits: ResourceLimits?
    /// The user of the programs; nil for the user that Alight runs as.
    package var user: ProgramUser?
    package var sandbox: Sandbox?

    package init() {}

    /// Whether it applies to a process for one run only: limits that accumulate, the file of an event, its directory.
    package var isOfOneRun: Bool { limits != nil || user != nil || sandbox != nil }
}

/// The I/O scheduling priority.
package enum IOPriority: Sendable, Hashable {
    /// Served only if no other process uses the disk.
    case idle
    /// The level, from 0 (highest) to 7; nil for the default of 4.
    case bestEffort(Int?)
    case realtime(Int)

    /// The value as written in a rule: `idle`, `best-effort:7`.
    package var text: String {
        switch self {
        case .idle: "idle"
        case .bestEffort(let level): level.map { "best-effort:\($0)" } ?? "best-effort"
        case .realtime(let level): "realtime:\(level)"
        }
    }

    /// Parses the string; nil if it is invalid.
    package init?(_ text: String) {
        let levels = (0...7).flatMap { [IOPriority.bestEffort($0), .realtime($0)] }
        guard let found = ([.idle, .bestEffort(nil)] + levels).first(where: { $0.text == text }) else { return nil }
        self = found
    }
}

/// The resource limits of a program; nil for no limit.
///
/// All limits except `processes` apply to each process of a program separately.
package struct ResourceLimits: Sendable, Hashable {
    /// Processor time; the kernel counts whole seconds.
    package var cpu: Duration?
    /// Private writable memory in bytes.
    package var memory: Int?
    /// Open descriptors.
    package var files: Int?
    /// Processes and threads of the user in total.
    package var processes: Int?
    /// The size of a written file in bytes.
    package var fileSize: Int?

    package init() {}

    /// The limits that are set, by their keys, in the order of the documentation.
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

/// The user that programs run as, resolved when the rules were loaded.
package struct ProgramUser: Sendable, Hashable {
    /// The user as written in the rule: `www-data`, `1000:1000`.
    package var text: String
    /// The user name; nil for an id without a user.
    package var name: String?
    package var uid: UInt32
    package var gid: UInt32
    /// All group ids, including `gid`.
    package var groups: [UInt32]
    package var home: PathBytes

    package init(text: String, name: String?, uid: UInt32, gid: UInt32, groups: [UInt32], home: PathBytes) {
        (self.text, self.name, self.uid, self.gid) = (text, name, uid, gid)
        (self.groups, self.home) = (groups, home)
    }

    /// Whether the mode bits of a file allow the user to read it; the directories above it are not checked.
    package func canRead(_ file: Snapshot) -> Bool { mayUse(file, 0o4) }

    /// Whether the mode bits of a directory allow the user to create files in it.
    package func canCreateFiles(in directory: Snapshot) -> Bool { mayUse(directory, 0o3) }

    /// Whether the user has all the permissions, given as the lowest three mode bits.
    private func mayUse(_ file: Snapshot, _ permissions: UInt32) -> Bool {
        if uid == 0 { return true }
        let shift: UInt32 = file.uid == uid ? 6 : file.gid == gid || groups.contains(file.gid) ? 3 : 0
        return UInt32(file.mode) >> shift & permissions == permissions
    }
}

/// The files and networks that programs can access.
package struct Sandbox: Sendable, Hashable {
    /// The paths that may be read, with everything below them; nil if neither `read` nor `write` was specified.
    package var read: [Template]?
    /// The paths that may also be written.
    package var write: [Template]?
    package var allowsNetwork = true
    /// Whether a program must not run without the confinement.
    package var isRequired = true

    package init() {}

    /// Whether access is restricted to some files.
    package var confinesFiles: Bool { read != nil || write != nil }
}
