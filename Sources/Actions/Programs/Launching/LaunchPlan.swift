import ActionAPI
import FileEvents
import Glibc
import Rules
import System

/// The plan of a program, which `alight-launch` reads; its C source describes the format.
package struct LaunchPlan {
    private struct Flags: OptionSet {
        let rawValue: UInt32

        static let showsClosing = Flags(rawValue: 1)
        static let nice = Flags(rawValue: 2)
        static let user = Flags(rawValue: 4)
        static let files = Flags(rawValue: 8)
        static let noNetwork = Flags(rawValue: 16)
        static let ifPossible = Flags(rawValue: 32)
    }

    package let bytes: [UInt8]
    /// The maximum size that the launcher accepts, in bytes; the kernel accepts less for arguments and environment.
    static let most = 16 << 20

    /// Encodes the plan; nil when a string contains a NUL, which no program can be given.
    ///
    /// - Parameters:
    ///   - command: The program to run.
    ///   - descriptorLimit: The soft limit of descriptors; 0 leaves it unchanged.
    ///   - showsClosing: Whether the output pipes reach end-of-file as soon as all writers have closed them.
    ///   - hasRuleset: Whether the ruleset of a sandbox is sent with the plan.
    package init?(_ command: Command, descriptorLimit: UInt64, showsClosing: Bool = false, hasRuleset: Bool = false) {
        var writer = Writer()
        writer.bytes.reserveCapacity(2048)
        writer.bytes += "ALIGHTL5".utf8
        let start = writer.bytes.count
        writer.add(UInt32(0))
        let confinement = command.confinement
        var flags = Self.flags(of: confinement)
        if showsClosing { flags.insert(.showsClosing) }
        if hasRuleset { flags.insert(.files) }
        writer.add(flags.rawValue)
        writer.add(Self.milliseconds(command.grace))
        writer.add(Self.milliseconds(command.linger))
        writer.add(descriptorLimit)
        writer.add(confinement.umask)
        writer.add(Int32(confinement.nice ?? 0))
        writer.add(confinement.ioPriority?.number ?? 0)
        for limit in Self.numbers(of: confinement.limits) { writer.add(limit ?? .max) }
        writer.add(confinement.user?.uid ?? 0)
        writer.add(confinement.user?.gid ?? 0)
        writer.add((confinement.user?.text ?? "").utf8)
        let groups = confinement.user?.groups ?? []
        writer.add(UInt32(groups.count))
        for group in groups { writer.add(group) }
        writer.add(command.directory.path.bytes)
        writer.add(command.executable.bytes)
        writer.add(UInt32(command.arguments.count + 1))
        writer.add(command.executable.bytes)
        for argument in command.arguments { writer.add(argument) }
        writer.add(UInt32(command.environment.count))
        for (name, value) in command.environment { writer.add(name: name, value: value) }
        guard !writer.holdsNUL else { return nil }
        writer.set(UInt32(writer.bytes.count - start - 4), at: start)
        bytes = writer.bytes
    }

    private static func flags(of confinement: ProgramConfinement) -> Flags {
        var flags: Flags = []
        if confinement.nice != nil { flags.insert(.nice) }
        if confinement.user != nil { flags.insert(.user) }
        if !confinement.allowsNetwork { flags.insert(.noNetwork) }
        if !confinement.isRequired { flags.insert(.ifPossible) }
        return flags
    }

    private static func numbers(of limits: ResourceLimits) -> [UInt64?] {
        // The kernel only counts whole seconds.
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

        mutating func add(_ number: some FixedWidthInteger) { withUnsafeBytes(of: number) { bytes += $0 } }

        mutating func add(_ string: some Collection<UInt8>) {
            add(UInt32(string.count))
            finish(from: bytes.count) { $0 += string }
        }

        mutating func add(name: String, value: [UInt8]) {
            add(UInt32(name.utf8.count + 1 + value.count))
            finish(from: bytes.count) {
                $0 += name.utf8
                $0.append(UInt8(ascii: "="))
                $0 += value
            }
        }

        mutating func set(_ number: UInt32, at location: Int) {
            bytes.withUnsafeMutableBytes { $0.storeBytes(of: number, toByteOffset: location, as: UInt32.self) }
        }

        private mutating func finish(from start: Int, _ write: (inout [UInt8]) -> Void) {
            write(&bytes)
            let hasNUL = bytes.withUnsafeBytes { bytes in
                bytes.baseAddress.map { memchr($0 + start, 0, bytes.count - start) != nil } ?? false
            }
            if hasNUL { holdsNUL = true }
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
