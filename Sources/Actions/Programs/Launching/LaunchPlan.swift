import ActionAPI
import Rules
import System

/// The plan of a program, which `alight-launch` reads; its C source describes the format.
package struct LaunchPlan {
    package let bytes: [UInt8]
    /// The maximum size that the launcher accepts, in bytes; the kernel accepts less for arguments and environment.
    static let most = 16 << 20

    /// Encodes the plan; nil when a string contains a NUL, which no program can be given.
    ///
    /// - Parameters:
    ///   - command: The program to run.
    ///   - descriptorLimit: The soft limit of descriptors; 0 leaves it unchanged.
    ///   - hasRuleset: Whether the ruleset of a sandbox is sent with the plan.
    package init?(_ command: Command, descriptorLimit: UInt64, hasRuleset: Bool = false) {
        var writer = Writer()
        writer.bytes.reserveCapacity(2048)
        writer.bytes += "ALIGHTL6".utf8
        let start = writer.bytes.count
        writer.add(UInt32(0))
        let confinement = command.confinement
        let (limits, user) = (confinement.limits, confinement.user)
        // In the order of their bits in launch.h.
        let flags = [
            confinement.nice != nil, user != nil, hasRuleset, !confinement.allowsNetwork,
            !confinement.isRequired, command.entersDirectoryFirst,
        ]
        writer.add(flags.enumerated().reduce(UInt32(0)) { $1.element ? $0 | 1 << UInt32($1.offset) : $0 })
        writer.add(Self.milliseconds(command.grace))
        writer.add(Self.milliseconds(command.linger))
        writer.add(descriptorLimit)
        writer.add(confinement.umask)
        writer.add(Int32(confinement.nice ?? 0))
        writer.add(confinement.ioPriority?.number ?? 0)
        // The kernel only counts whole seconds.
        writer.add(limits.cpu.map { UInt64(($0 / .seconds(1)).rounded(.up)) } ?? .max)
        for limit in [limits.memory, limits.files, limits.processes, limits.fileSize] {
            writer.add(limit.map { UInt64($0) } ?? .max)
        }
        writer.add(user?.uid ?? 0)
        writer.add(user?.gid ?? 0)
        writer.add((user?.text ?? "").utf8)
        let groups = user?.groups ?? []
        writer.add(UInt32(groups.count))
        for group in groups { writer.add(group) }
        writer.add(command.directory.path.bytes)
        writer.add(command.executable.bytes)
        writer.add(UInt32(command.arguments.count + 1))
        writer.add(command.executable.bytes)
        for argument in command.arguments { writer.add(argument) }
        writer.add(UInt32(command.environment.count))
        for (name, value) in command.environment { writer.add("\(name)=".utf8 + value) }
        guard !writer.containsNUL else { return nil }
        let length = UInt32(writer.bytes.count - start - 4)
        writer.bytes.withUnsafeMutableBytes { $0.storeBytes(of: length, toByteOffset: start, as: UInt32.self) }
        bytes = writer.bytes
    }

    private static func milliseconds(_ duration: Duration) -> UInt32 {
        let milliseconds = max(duration, .zero) / .milliseconds(1)
        return milliseconds < Double(UInt32.max) ? UInt32(milliseconds) : UInt32.max
    }

    private struct Writer {
        var bytes: [UInt8] = []
        var containsNUL = false

        mutating func add(_ number: some FixedWidthInteger) { withUnsafeBytes(of: number) { bytes += $0 } }

        mutating func add(_ string: some Collection<UInt8>) {
            add(UInt32(string.count))
            let start = bytes.count
            bytes += string
            if bytes[start...].firstIndex(ofByte: 0) != nil { containsNUL = true }
            bytes.append(0)
        }
    }
}

extension IOPriority {
    /// The value for ioprio_set(2): the class and the level within it.
    fileprivate var number: UInt32 {
        switch self {
        case .realtime(let level): 1 << 13 | UInt32(level)
        case .bestEffort(let level): 2 << 13 | UInt32(level ?? 4)
        case .idle: 3 << 13
        }
    }
}
