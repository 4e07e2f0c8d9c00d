import FileEvents
import Glibc

/// What `alight-launch` reads before the program's own standard input; the C source describes the form.
struct LaunchHeader {
    private static let noNewPrivileges: UInt32 = 1

    let bytes: [UInt8]

    /// Writes the header; nil when a string holds a NUL, which no program can be given.
    init?(_ command: Command, descriptorLimit: UInt64) {
        var writer = Writer()
        writer.add(Self.noNewPrivileges)
        writer.add(UInt32(bitPattern: getpid()))
        writer.add(Self.milliseconds(command.grace))
        writer.add(Self.milliseconds(command.linger))
        writer.add(descriptorLimit)
        writer.add(command.directory.bytes)
        writer.add(command.executable.bytes)
        writer.add(strings: [command.executable.bytes] + command.arguments)
        writer.add(strings: command.environment.map { Array($0.name.utf8) + [UInt8(ascii: "=")] + $0.value })
        guard !writer.holdsNUL else { return nil }
        var start = Writer()
        start.bytes = Array("ALIGHTL1".utf8)
        start.add(UInt32(writer.bytes.count))
        bytes = start.bytes + writer.bytes
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
