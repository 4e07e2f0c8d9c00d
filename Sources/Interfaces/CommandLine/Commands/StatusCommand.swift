import ArgumentParser
import Configuration
import Glibc
import JSON
import System

/// `alight status`: shows the status of the running instance.
struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show the status of the running instance: its roots, queue and failed jobs.",
        discussion: """
            Problems come first; with one, the exit status is 6. For each root, shows whether inotify reports changes \
            or it is polled, and why. For the last rescan, shows how many changes it found that no event had reported.

            \(ExitStatus.table(of: [.done, .runtimeError, .usage, .degraded]))
            """)

    @Flag(help: "Print one JSON object.")
    var json = false

    @Flag(help: "Refresh every second, until Ctrl-C.")
    var watch = false

    @OptionGroup var choice: ControlChoice

    func run() throws {
        Signals.endUsually()
        let client = try choice.client()
        if watch { try StatusView(client, isJSON: json).run() }
        let status = try client.ask("GET", "/v1/status")
        if json {
            Output.standard.write(status.line)
        } else {
            let report = StatusReport(status, hasColor: Output.standard.hasColor)
            Output.standard.write(report.lines.joined(separator: "\n"))
        }
        throw Exit(status.object?["degraded"]?.bool == true ? .degraded : .done)
    }
}

/// The text output of `alight status`.
struct StatusReport {
    private let status: [String: JSONValue]
    private let hasColor: Bool

    init(_ status: JSONValue, hasColor: Bool) {
        self.status = status.object ?? [:]
        self.hasColor = hasColor
    }

    var lines: [String] { head + queue + watching + roots + held + slots + running + failures }

    // MARK: Parts

    private var head: [String] {
        let state = text("state") == "running" && status["ready"]?.bool != true ? "starting" : text("state")
        let isDegraded = status["degraded"]?.bool == true
        let word = isDegraded ? painted("degraded", "31") : painted(state, "32")
        let uptime = Reporter.seconds(.seconds(Self.whole((status["uptime"]?.double ?? 0).rounded())))
        var lines = ["alight \(text("version")): \(word), process \(number(status, "pid")), up \(uptime)"]
        if isDegraded, state != "running" { lines[0] += ", \(state)" }
        for reason in status["reasons"]?.array ?? [] {
            lines.append("  \(painted("problem", "31")): \(Display.text(reason.string ?? ""))")
        }
        let names = (status["paused_rules"]?.array ?? []).compactMap(\.string).map { "'\(Display.text($0))'" }
        if status["paused"]?.bool == true {
            lines.append("  \(painted("paused", "33")): all rules; resume with 'alight resume'")
        } else if !names.isEmpty {
            lines.append("  \(painted("paused", "33")): \(names.joined(separator: ", ")); resume with 'alight resume'")
        }
        let off = (status["disabled_rules"]?.array ?? []).compactMap(\.string).map { "'\(Display.text($0))'" }
        if !off.isEmpty { lines.append("  disabled: \(off.joined(separator: ", ")), by 'enabled: false'") }
        return lines
    }

    private var queue: [String] {
        let queue = object("queue")
        let counts = object("counts")
        let rates = object("rates")
        var lines = [
            "queue: \(number(queue, "settling")) settling, \(number(queue, "pending")) pending, "
                + "\(number(queue, "running")) running, \(number(queue, "failed")) failed",
            "since the start: \(number(counts, "events")) events, \(number(counts, "attempts")) attempts: "
                + "\(number(counts, "succeeded")) succeeded, \(number(counts, "skipped")) skipped, "
                + "\(number(counts, "failed_attempts")) failed",
            "last minute: \(rate(rates, "events_per_second")) events/s, \(rate(rates, "jobs_per_second")) jobs/s",
        ]
        let journal = object("journal")
        if let path = JSONLine.path(journal) {
            lines.append("journal: \(Display.path(path)), \(Self.size(journal["size"]?.double ?? 0))")
        } else {
            lines.append("journal: in memory")
        }
        return lines
    }

    private var watching: [String] {
        let watches = object("watches")
        var line = "watches: \(number(watches, "used")) of \(number(watches, "limit")); "
        line += "kernel queue overflows: \(number(status, "overflows"))"
        var lines = [line]
        if let rescan = status["last_rescan"]?.object, let at = rescan["at"]?.string.flatMap({ JSONLine.time($0) }) {
            let cause = rescan["why"]?.string == "overflow" ? "after an overflow" : "on request"
            let found = Self.whole(rescan["found"]?.double)
            lines.append(
                "last rescan: \(TimeText.short(at, now: DiskProbe.now())), \(cause); "
                    + "found \(Reporter.count(found, "change")) that no event had reported")
        }
        return lines
    }

    private var roots: [String] {
        let roots = (status["roots"]?.array ?? []).compactMap(\.object)
        return roots.map { root in
            let path = JSONLine.path(root).map { Display.path($0) } ?? ""
            let backend = root["backend"]?.string ?? ""
            var line = "root \(path): \(painted(backend, backend == "inotify" ? "32" : "33"))"
            let folders = Self.whole(root["folders"]?.double)
            let polled = Self.whole(root["polled"]?.double)
            if backend != "missing" { line += ", \(Reporter.count(folders, "directory"))" }
            if polled > 0 { line += ", \(polled) of them polled" }
            if let reason = root["reason"]?.string { line += ": \(Display.text(reason))" }
            return line
        }
    }

    private var held: [String] {
        let now = DiskProbe.now()
        return (status["held"]?.array ?? []).compactMap(\.object).map { file in
            let path = JSONLine.path(file).map { Display.path($0) } ?? ""
            let since = file["since"]?.string.flatMap { JSONLine.time($0) }.map { now.since($0) } ?? .zero
            let processes = (file["processes"]?.array ?? []).compactMap(\.object).map { process in
                "\(Display.text(process["name"]?.string ?? "")) (process \(number(process, "pid")))"
            }
            let line = "\(painted("held open", "33")): \(path), for \(Reporter.seconds(max(.zero, since)))"
            return line + (processes.isEmpty ? "" : ", by \(processes.joined(separator: ", "))")
        }
    }

    private var slots: [String] {
        let slots = object("slots")
        guard number(slots, "used") >= number(slots, "limit") else { return [] }
        let now = DiskProbe.now()
        let waiting = (slots["waiting"]?.array ?? []).compactMap(\.object).map { rule in
            let since = rule["since"]?.string.flatMap { JSONLine.time($0) }.map { now.since($0) } ?? .zero
            return "'\(Display.text(rule["rule"]?.string ?? ""))' for \(Reporter.seconds(max(.zero, since)))"
        }
        let extra = number(slots, "extra_used")
        var line = "\(painted("no slot is free", "33")): \(number(slots, "used")) of \(number(slots, "limit")) in use"
        if extra > 0 { line += ", and \(extra) of \(number(slots, "extra")) extra" }
        if !waiting.isEmpty { line += "; waiting: \(waiting.joined(separator: ", "))" }
        return [line]
    }

    private var running: [String] {
        let now = DiskProbe.now()
        return (status["running"]?.array ?? []).compactMap(\.object).map { job in
            let path = JSONLine.path(job).map { Display.path($0) } ?? ""
            let since = job["since"]?.string.flatMap { JSONLine.time($0) }.map { now.since($0) } ?? .zero
            let seconds = Reporter.seconds(.seconds(max(0, since.components.seconds)))
            return "running: \(Display.text(job["rule"]?.string ?? "")): \(path), "
                + "\(Display.text(job["action"]?.string ?? "")), for \(seconds)"
                + (job["slot"]?.bool == false ? ", without a slot" : "")
        }
    }

    private var failures: [String] {
        let now = DiskProbe.now()
        return (status["failures"]?.array ?? []).compactMap(\.object).map { job in
            let path = JSONLine.path(job).map { Display.path($0) } ?? ""
            let at = job["at"]?.string.flatMap { JSONLine.time($0) }.map { TimeText.short($0, now: now) } ?? ""
            let message = Display.text(job["message"]?.string ?? "")
            return "\(painted("failed", "31")): \(at) \(Display.text(job["rule"]?.string ?? "")): \(path)"
                + (message.isEmpty ? "" : ": \(message)") + " (\(Display.text(job["job"]?.string ?? "")))"
        }
    }

    // MARK: Values

    private func object(_ name: String) -> [String: JSONValue] { status[name]?.object ?? [:] }

    private func text(_ name: String) -> String { Display.text(status[name]?.string ?? "") }

    private func number(_ object: [String: JSONValue], _ name: String) -> Int { Self.whole(object[name]?.double) }

    private func rate(_ object: [String: JSONValue], _ name: String) -> String {
        let tenths = Self.whole(((object[name]?.double ?? 0) * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    private func painted(_ word: String, _ color: String) -> String {
        hasColor ? "\u{1B}[\(color)m\(word)\u{1B}[0m" : word
    }

    private static func size(_ bytes: Double) -> String {
        bytes < 1_048_576 ? "\(whole(bytes / 1024)) KiB" : "\(whole(bytes / 1_048_576)) MiB"
    }

    /// Returns the number without its fraction.
    private static func whole(_ number: Double?) -> Int { Int(JSONLine.bounded(number)) }
}

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
