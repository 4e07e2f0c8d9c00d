import Glibc
import PluginProtocol
import RuleLoading

/// `alight status --watch`: the status in place, made anew every second.
///
/// On a terminal each line is written over the old one, so that nothing flickers; elsewhere one status follows another.
struct StatusView {
    private let client: ControlClient
    private let isJSON: Bool

    init(_ client: ControlClient, isJSON: Bool) {
        self.client = client
        self.isJSON = isJSON
    }

    /// Goes on until the terminal, the reader or Alight has gone.
    func run() throws -> Never {
        let isLive = !isJSON && isatty(STDOUT_FILENO) == 1
        // A screen of its own, so that what was there before comes back.
        if isLive {
            Self.restoreAtEnd()
            Output.standard.writeRaw("\u{1B}[?1049h\u{1B}[?25l")
        }
        while true {
            let status: JSONValue
            do {
                status = try client.said { () throws(ControlClient.Problem) in try client.ask("GET", "/v1/status") }
            } catch {
                if isLive { Output.standard.writeRaw(Self.ending) }
                throw error
            }
            let text =
                isJSON
                ? Reporter.json(status)
                : StatusReport(status, hasColor: Output.standard.hasColor).lines.joined(separator: "\n")
            let written = isLive ? Output.standard.writeRaw(Self.frame(text)) : Output.standard.write(text)
            if written != .whole { Output.standard.exit(.done) }
            sleep(1)
        }
    }

    private static let ending = "\u{1B}[?25h\u{1B}[?1049l"

    /// Gives the terminal back when a signal ends the program.
    private static func restoreAtEnd() {
        for number in [SIGTERM, SIGINT, SIGHUP] {
            signal(number) { number in
                let text: StaticString = "\u{1B}[?25h\u{1B}[?1049l"
                _ = write(STDOUT_FILENO, text.utf8Start, text.utf8CodeUnitCount)
                _exit(128 + number)
            }
        }
    }

    /// The text as one write: each line over the one that was there, and nothing behind the last.
    static func frame(_ text: String, size: (rows: Int, columns: Int)? = nil) -> String {
        let size = size ?? terminalSize
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).prefix(max(1, size.rows - 1))
        let body = lines.map { cut(String($0), size.columns) + "\u{1B}[K" }.joined(separator: "\r\n")
        return "\u{1B}[?2026h\u{1B}[H\(body)\u{1B}[0m\r\n\u{1B}[J\u{1B}[?2026l"
    }

    private static var terminalSize: (rows: Int, columns: Int) {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_row > 0, size.ws_col > 0 else {
            return (24, 80)
        }
        return (Int(size.ws_row), Int(size.ws_col))
    }

    /// The beginning of a line that fits, its colours not counted.
    private static func cut(_ line: String, _ width: Int) -> String {
        var kept = ""
        var taken = 0
        var isEscape = false
        for scalar in line.unicodeScalars {
            if scalar == "\u{1B}" { isEscape = true }
            if !isEscape {
                taken += DiagnosticText.columns(of: scalar)
                if taken > width { return kept + "\u{1B}[0m" }
            }
            kept.unicodeScalars.append(scalar)
            if isEscape, scalar == "m" { isEscape = false }
        }
        return kept
    }
}
