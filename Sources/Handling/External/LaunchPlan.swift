import FileEvents
import Rules

/// What `alight-launch` is told of a program that it is to run; the C source describes the form.
struct LaunchPlan {
    private struct Flags: OptionSet {
        let rawValue: UInt32

        static let noNewPrivileges = Flags(rawValue: 1)
        static let nice = Flags(rawValue: 2)
        static let user = Flags(rawValue: 4)
        static let files = Flags(rawValue: 8)
        static let noNetwork = Flags(rawValue: 16)
        static let ifPossible = Flags(rawValue: 32)
    }

    let bytes: [UInt8]
    /// More bytes the launcher doesn't take; the kernel takes less of arguments and environment.
    static let most = 16 << 20

    /// Writes the plan; nil when a string holds a NUL, which no program can be given.
    init?(_ command: Command, descriptorLimit: UInt64) {
        var writer = Writer()
        let confinement = command.confinement
        writer.add(Self.flags(of: confinement).rawValue)
        writer.add(Self.milliseconds(command.grace))
        writer.add(Self.milliseconds(command.linger))
        writer.add(descriptorLimit)
        writer.add(confinement.umask)
        writer.add(Int32(confinement.nice ?? 0))
        writer.add(confinement.ioPriority?.number ?? 0)
        for limit in Self.numbers(of: confinement.limits) { writer.add(limit ?? .max) }
        writer.add(confinement.user?.uid ?? 0)
        writer.add(confinement.user?.gid ?? 0)
        writer.add(Array((confinement.user?.text ?? "").utf8))
        let groups = confinement.user?.groups ?? []
        writer.add(UInt32(groups.count))
        for group in groups { writer.add(group) }
        let grants = confinement.grants ?? []
        writer.add(UInt32(grants.count))
        for grant in grants {
            writer.add(grant.access.rawValue)
            writer.add(grant.path.bytes)
        }
        writer.add(command.directory.bytes)
        writer.add(command.executable.bytes)
        writer.add(strings: [command.executable.bytes] + command.arguments)
        writer.add(strings: command.environment.map { Array($0.name.utf8) + [UInt8(ascii: "=")] + $0.value })
        guard !writer.holdsNUL else { return nil }
        var start = Writer()
        start.bytes = Array("ALIGHTL3".utf8)
        start.add(UInt32(writer.bytes.count))
        bytes = start.bytes + writer.bytes
    }

    private static func flags(of confinement: ProgramConfinement) -> Flags {
        var flags: Flags = .noNewPrivileges
        if confinement.nice != nil { flags.insert(.nice) }
        if confinement.user != nil { flags.insert(.user) }
        if confinement.grants != nil { flags.insert(.files) }
        if !confinement.allowsNetwork { flags.insert(.noNetwork) }
        if !confinement.isRequired { flags.insert(.ifPossible) }
        return flags
    }

    private static func numbers(of limits: ResourceLimits) -> [UInt64?] {
        // A part of a second is none to the kernel.
        let seconds = limits.cpu.map { ($0 / .seconds(1)).rounded(.up) }
        return [
            seconds.map { UInt64($0) }, limits.memory.map { UInt64($0) }, limits.files.map { UInt64($0) },
            limits.processes.map { UInt64($0) }, limits.fileSize.map { UInt64($0) },
        ]
    }

    private static func milliseconds(_ duration: Duration) -> UInt32 {
        let milliseconds = max(duration, .zero) / .milliseconds(1)
        return milliseconds < Double(UInt32.max) ? UInt32(milliseconds) : UInt32.max
    }

    private struct Writer {
        var bytes: [UInt8] = []
        var holdsNUL = false

        mutating func add(_ number: some FixedWidthInteger) {
            withUnsafeBytes(of: number) { bytes += $0 }
        }

        mutating func add(_ string: [UInt8]) {
            if string.contains(0) { holdsNUL = true }
            add(UInt32(string.count))
            bytes += string
            bytes.append(0)
        }

        mutating func add(strings: [[UInt8]]) {
            add(UInt32(strings.count))
            for string in strings { add(string) }
        }
    }
}

extension IOPriority {
    /// As ioprio_set(2) takes it: the class, and in it the level.
    fileprivate var number: UInt32 {
        switch self {
        case .realtime(let level): 1 << 13 | UInt32(level)
        case .bestEffort(let level): 2 << 13 | UInt32(level ?? 4)
        case .idle: 3 << 13
        }
    }
}
