import Configuration
import Glibc
import JSON

/// The display of `alight status --watch`, refreshed every second.
///
/// On a terminal, each line overwrites the previous one, which avoids flicker. Elsewhere, one status follows another.
struct StatusView {
    private let client: ControlClient
    private let isJSON: Bool

    init(_ client: ControlClient, isJSON: Bool) {
        self.client = client
        self.isJSON = isJSON
    }

    /// Runs until the terminal or the reader is gone, or a request fails.
    func run() throws -> Never {
        let isLive = !isJSON && isatty(STDOUT_FILENO) == 1
        // The alternate screen preserves the previous contents of the terminal.
        if isLive {
            Self.restoreAtEnd()
            Output.standard.writeRaw("\u{1B}[?1049h\u{1B}[?25l")
        }
        while true {
            let status: JSONValue
            do throws(ControlClient.Problem) {
                status = try client.ask("GET", "/v1/status")
            } catch {
                // A message on the alternate screen would disappear with it.
                if isLive { Output.standard.writeRaw(Self.ending) }
                throw error
            }
            let text =
                isJSON
                ? status.line
                : StatusReport(status, hasColor: Output.standard.hasColor).lines.joined(separator: "\n")
            let written = isLive ? Output.standard.writeRaw(Self.frame(text)) : Output.standard.write(text)
            if written != .whole { Output.standard.exit(Output.checked(.done)) }
            sleep(1)
        }
    }

    private static let ending = "\u{1B}[?25h\u{1B}[?1049l"

    /// Restores the terminal when a signal terminates the program.
    private static func restoreAtEnd() {
        for number in [SIGTERM, SIGINT, SIGHUP] {
            signal(number) { number in
                let text: StaticString = "\u{1B}[?25h\u{1B}[?1049l"
                _ = write(STDOUT_FILENO, text.utf8Start, text.utf8CodeUnitCount)
                _exit(128 + number)
            }
        }
        for number in [SIGTSTP, SIGQUIT] { signal(number) { StatusView.giveBack(by: $0) } }
    }

    /// Restores the terminal before a signal stops or terminates the program.
    ///
    /// Called in the signal handler.
    private static func giveBack(by number: Int32) {
        let error = errno
        let leaving: StaticString = "\u{1B}[?25h\u{1B}[?1049l"
        _ = write(STDOUT_FILENO, leaving.utf8Start, leaving.utf8CodeUnitCount)
        signal(number, SIG_DFL)
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, number)
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
        raise(number)
        // The process was continued.
        signal(number) { StatusView.giveBack(by: $0) }
        let entering: StaticString = "\u{1B}[?1049h\u{1B}[?25l"
        _ = write(STDOUT_FILENO, entering.utf8Start, entering.utf8CodeUnitCount)
        errno = error
    }

    /// Returns the text as one write: each line overwrites the previous one, and the rest of the screen is cleared.
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

    /// Returns the start of a line that fits the width.
    ///
    /// Color sequences do not count.
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
