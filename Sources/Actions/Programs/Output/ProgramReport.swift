package import Logging
import PluginProtocol

/// What a program says while it runs.
package enum ProgramReport: Sendable, Hashable {
    /// A line for the log, without its line end; at most 8 KiB.
    case line(Logger.Level, String)
    /// How far it is, 0 to 1, with a line for people.
    case progress(Double, String?)

    /// Reads one line as the protocol has it: `<0>` to `<7>` in front give the level, `{"progress":…}` is a report.
    package init(line: ArraySlice<UInt8>) {
        if line.first == UInt8(ascii: "{"),
            let object = JSONValue(json: line)?.object,
            let fraction = object["progress"]?.double
        {
            let message = object["message"]?.string.map { Self.cleaned(Array($0.utf8)[...]) }
            self = .progress(min(max(fraction, 0), 1), message)
            return
        }
        let prefix = Array(line.prefix(3))
        if prefix.count == 3, prefix[0] == UInt8(ascii: "<"), prefix[2] == UInt8(ascii: ">"),
            let level = Self.level(of: prefix[1])
        {
            self = .line(level, Self.cleaned(line.dropFirst(3)))
        } else {
            self = .line(.info, Self.cleaned(line))
        }
    }

    /// Whether a line reports progress.
    static func isProgress(_ line: ArraySlice<UInt8>) -> Bool {
        guard line.first == UInt8(ascii: "{"), case .progress = ProgramReport(line: line) else { return false }
        return true
    }

    /// The levels of sd-daemon(3).
    private static func level(of digit: UInt8) -> Logger.Level? {
        switch digit {
        case UInt8(ascii: "0"), UInt8(ascii: "1"), UInt8(ascii: "2"): .critical
        case UInt8(ascii: "3"): .error
        case UInt8(ascii: "4"): .warning
        case UInt8(ascii: "5"): .notice
        case UInt8(ascii: "6"): .info
        case UInt8(ascii: "7"): .debug
        default: nil
        }
    }

    /// The text with U+FFFD for what is not UTF-8 and for control characters, which could drive a terminal.
    static func cleaned(_ bytes: ArraySlice<UInt8>) -> String {
        var text = ""
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
            let isControl = scalar.properties.generalCategory == .control && scalar != "\t"
            text.unicodeScalars.append(isControl ? "\u{FFFD}" : scalar)
        }
        return text
    }
}
