import ArgumentParser
import Glibc
import JSON
import System

/// `alight status`: shows the status of the running instance.
struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "status", "Show the status of the running instance: its roots, queue and failed jobs.",
        exits: [.done, .runtimeError, .usage, .degraded],
        discussion: """
            Problems come first; with one, the exit status is 6. For each root, shows whether inotify reports changes \
            or it is polled, and why. For the last rescan, shows how many changes it found that no event had reported.
            """)

    @Flag(help: "Print one JSON object.")
    var json = false

    @Flag(help: "Refresh every second, until Ctrl-C.")
    var watch = false

    @OptionGroup var choice: ControlChoice

    func run() throws {
        Signals.useDefaultActions()
        let client = try choice.client()
        if watch { try StatusView(client: client, isJSON: json).run() }
        let status = try client.ask("GET", "/v1/status")
        Output.standard.write(StatusView.text(status, isJSON: json))
        throw Exit(status["degraded"].isTrue ? .degraded : .done)
    }
}

/// The text output of `alight status`.
struct StatusReport {
    let status: JSONValue
    let hasColor: Bool
    private let now = DiskProbe.now()

    var lines: [String] { head + queue + watching + roots + held + waits + slots + running + failures }

    // MARK: Parts

    private var head: [String] {
        let isRunning = status["state"].text == "running"
        let state = isRunning && !status["ready"].isTrue ? "starting" : status["state"].displayed
        let isDegraded = status["degraded"].isTrue
        let word = isDegraded ? painted("degraded", "31") : painted(state, "32")
        let uptime = Reporter.seconds(.seconds(Int(status["uptime"].bounded.rounded())))
        var lines = ["alight \(status["version"].displayed): \(word), process \(status["pid"].count), up \(uptime)"]
        if isDegraded, state != "running" { lines[0] += ", \(state)" }
        lines += status["reasons"].elements.map { "  \(painted("problem", "31")): \($0.displayed)" }
        let names = status["paused"].isTrue ? "all rules" : Display.list(status["paused_rules"].texts)
        if !names.isEmpty { lines.append("  \(painted("paused", "33")): \(names); resume with 'alight resume'") }
        let off = Display.list(status["disabled_rules"].texts)
        if !off.isEmpty { lines.append("  disabled: \(off), by 'enabled: false'") }
        return lines
    }

    private var queue: [String] {
        let (queue, counts, minute) = (status["queue"], status["counts"], status["last_minute"])
        let journal = status["journal"]
        let location = journal.path.map { "\(Display.path($0)), \(Self.size(journal["size"].bounded))" }
        return [
            "queue: \(queue["settling"].count) settling, \(queue["pending"].count) pending, "
                + "\(queue["running"].count) running, \(queue["failed"].count) failed",
            "since the start: \(counts["events"].count) events; jobs: \(counts["succeeded"].count) succeeded, "
                + "\(counts["skipped"].count) skipped, \(counts["failed"].count) failed; "
                + "\(counts["attempts"].count) attempts, \(counts["failed_attempts"].count) failed",
            "last minute: \(minute["events"].count) events, \(minute["jobs"].count) finished jobs",
            "journal: \(location ?? "in memory")",
        ]
    }

    private var watching: [String] {
        let watches = status["watches"]
        let line =
            "watches: \(watches["used"].count) of \(watches["limit"].count); "
            + "kernel queue overflows: \(status["overflows"].count)"
        let rescan = status["last_rescan"]
        guard let at = rescan["at"].time else { return [line] }
        let cause = rescan["why"].text == "overflow" ? "after an overflow" : "on request"
        return [
            line,
            "last rescan: \(TimeText.short(at, now: now)), \(cause); "
                + "found \(Reporter.count(rescan["found"].count, "change")) that no event had reported",
        ]
    }

    private var roots: [String] {
        status["roots"].elements.map { root in
            let backend = root["backend"].text
            let polled = root["polled"].count
            var line = "root \(root.displayedPath): \(painted(backend, backend == "inotify" ? "32" : "33"))"
            if backend != "missing" { line += ", \(Reporter.count(root["directories"].count, "directory"))" }
            if polled > 0 { line += ", \(polled) of them polled" }
            if let reason = root["reason"].string { line += ": \(Display.text(reason))" }
            return line
        }
    }

    private var held: [String] {
        status["held"].elements.map { file in
            let processes = file["processes"].elements.map { "\($0["name"].displayed) (process \($0["pid"].count))" }
            let time = Reporter.seconds(file["since"].elapsed)
            return "\(painted("held open", "33")): \(file.displayedPath), for \(time)"
                + (processes.isEmpty ? "" : ", by \(processes.joined(separator: ", "))")
        }
    }

    private var waits: [String] {
        status["waits"].elements.map { job in
            "\(painted("waiting", "33")): \(job["rule"].displayed): \(job.displayedPath), for "
                + "\(Reporter.seconds(job["since"].elapsed)): \(job["message"].displayed)"
        }
    }

    private var slots: [String] {
        let slots = status["slots"]
        let (used, limit, extra) = (slots["used"].count, slots["limit"].count, slots["extra_used"].count)
        guard used >= limit else { return [] }
        let waiting = slots["waiting"].elements.map { rule in
            "'\(rule["rule"].displayed)' for \(Reporter.seconds(rule["since"].elapsed))"
        }
        var line = "\(painted("no slot is free", "33")): \(used) of \(limit) in use"
        if extra > 0 { line += ", and \(extra) of \(slots["extra"].count) extra" }
        if !waiting.isEmpty { line += "; waiting: \(waiting.joined(separator: ", "))" }
        return [line]
    }

    private var running: [String] {
        status["running"].elements.map { job in
            let seconds = Reporter.seconds(.seconds(job["since"].elapsed.components.seconds))
            return "running: \(job["rule"].displayed): \(job.displayedPath), \(job["action"].displayed), for \(seconds)"
                + (job["slot"].bool == false ? ", without a slot" : "")
        }
    }

    private var failures: [String] {
        status["failures"].elements.map { job in
            let at = job["at"].time.map { TimeText.short($0, now: now) } ?? ""
            let message = job["message"].displayed
            return "\(painted("failed", "31")): \(at) \(job["rule"].displayed): \(job.displayedPath)"
                + (message.isEmpty ? "" : ": \(message)") + " (\(job["job"].displayed))"
        }
    }

    // MARK: Values

    private func painted(_ word: String, _ color: String) -> String { Display.painted(word, hasColor ? color : nil) }

    private static func size(_ bytes: Double) -> String {
        let (unit, name) = bytes < 1_048_576 ? (1024.0, "KiB") : (1_048_576, "MiB")
        return "\(Int(bytes / unit)) \(name)"
    }
}

/// The display of `alight status --watch`, refreshed every second.
///
/// On a terminal, each line overwrites the previous one, which avoids flicker. Elsewhere, one status follows another.
struct StatusView {
    let client: ControlClient
    let isJSON: Bool

    /// Runs until the terminal or the reader is gone, or a request fails.
    func run() throws -> Never {
        let isLive = !isJSON && isatty(STDOUT_FILENO) == 1
        // The alternate screen preserves the previous contents of the terminal.
        if isLive {
            Self.restoreAtEnd()
            Output.standard.writeRaw("\(Self.entering)")
        }
        while true {
            let status: JSONValue
            do {
                status = try client.ask("GET", "/v1/status")
            } catch {
                // A message on the alternate screen would disappear with it.
                if isLive { Output.standard.writeRaw("\(Self.leaving)") }
                throw error
            }
            let text = Self.text(status, isJSON: isJSON)
            let written = isLive ? Output.standard.writeRaw(Self.frame(text)) : Output.standard.write(text)
            if written != .whole { Output.standard.exit(Output.checked(.done)) }
            sleep(1)
        }
    }

    static func text(_ status: JSONValue, isJSON: Bool) -> String {
        if isJSON { return status.line }
        let report = StatusReport(status: status, hasColor: Output.standard.hasColor)
        return report.lines.joined(separator: "\n")
    }

    /// Switches to the alternate screen and hides the cursor.
    ///
    /// Not stored: a signal handler must not initialize it.
    private static var entering: StaticString { "\u{1B}[?1049h\u{1B}[?25l" }
    /// Shows the cursor, and switches back to the normal screen.
    private static var leaving: StaticString { "\u{1B}[?25h\u{1B}[?1049l" }

    /// Writes the text; may be called in a signal handler.
    private static func write(_ text: StaticString) {
        _ = Glibc.write(STDOUT_FILENO, text.utf8Start, text.utf8CodeUnitCount)
    }

    /// Restores the terminal when a signal terminates the program.
    private static func restoreAtEnd() {
        for number in [SIGTERM, SIGINT, SIGHUP] {
            signal(number) { number in
                StatusView.write(StatusView.leaving)
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
        write(leaving)
        signal(number, SIG_DFL)
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, number)
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
        raise(number)
        // The process was continued.
        signal(number) { StatusView.giveBack(by: $0) }
        write(entering)
        errno = error
    }

    /// Returns the text as one write: each line overwrites the previous one, and the rest of the screen is cleared.
    private static func frame(_ text: String) -> String {
        let size = TerminalText.size() ?? (24, 80)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).prefix(max(1, size.rows - 1))
        let body = lines.map { TerminalText.cut(String($0), size.columns) + "\u{1B}[K" }.joined(separator: "\r\n")
        return "\u{1B}[?2026h\u{1B}[H\(body)\u{1B}[0m\r\n\u{1B}[J\u{1B}[?2026l"
    }
}
