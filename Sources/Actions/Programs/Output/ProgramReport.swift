import JSON
package import Logging
import PluginProtocol
import System

/// A line that a program writes while it runs.
package enum ProgramReport: Sendable, Hashable {
    /// A line for the log, without its line terminator; at most 8 KiB.
    case line(Logger.Level, String)
    /// The progress, 0 to 1, with a message for users.
    case progress(Double, String?)

    /// Reads one line according to the protocol: `<0>` to `<7>` at its start set the level, `{"progress":…}` is a
    /// progress report.
    package init(line: ArraySlice<UInt8>) {
        if line.first == UInt8(ascii: "{"), let object = JSONValue(json: line)?.object,
            let fraction = object["progress"]?.double
        {
            self = .progress(min(max(fraction, 0), 1), object["message"]?.string.map { String(cleaning: $0.utf8) })
            return
        }
        let prefix = Array(line.prefix(3))
        guard prefix.count == 3, prefix[0] == UInt8(ascii: "<"), prefix[2] == UInt8(ascii: ">"),
            case let level = Int(prefix[1]) - 0x30, Self.levels.indices.contains(level)
        else {
            self = .line(.info, String(cleaning: line))
            return
        }
        self = .line(Self.levels[level], String(cleaning: line.dropFirst(3)))
    }

    /// Returns whether a line reports progress.
    static func isProgress(_ line: ArraySlice<UInt8>) -> Bool {
        guard line.first == UInt8(ascii: "{"), case .progress = ProgramReport(line: line) else { return false }
        return true
    }

    /// The levels of sd-daemon(3), 0 to 7.
    private static let levels: [Logger.Level] = [
        .critical, .critical, .critical, .error, .warning, .notice, .info, .debug,
    ]
}
