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
        throw Exit(status.object?["degraded"]?.bool == true ? .degraded : .done)
    }
}

/// The text output of `alight status`.
struct StatusReport {
    let status: PeerObject
    let hasColor: Bool
    private let now = DiskProbe.now()

    var lines: [String] { head + queue + watching + roots + held + waits + slots + running + failures }

    // MARK: Parts

    private var head: [String] {
        let isRunning = status.text("state") == "running"
        let state = isRunning && !status.isTrue("ready") ? "starting" : status.shown("state")
        let isDegraded = status.isTrue("degraded")
        let word = isDegraded ? painted("degraded", "31") : painted(state, "32")
        let uptime = Reporter.seconds(.seconds(Int(PeerObject.bounded((status["uptime"]?.double ?? 0).rounded()))))
        var lines = ["alight \(status.shown("version")): \(word), process \(status.count("pid")), up \(uptime)"]
        if isDegraded, state != "running" { lines[0] += ", \(state)" }
        lines += (status["reasons"]?.array ?? []).map {
            "  \(painted("problem", "31")): \(Display.text($0.string ?? ""))"
        }
        let names = status.isTrue("paused") ? "all rules" : Display.list(status.strings("paused_rules"))
        if !names.isEmpty { lines.append("  \(painted("paused", "33")): \(names); resume with 'alight resume'") }
        let off = Display.list(status.strings("disabled_rules"))
        if !off.isEmpty { lines.append("  disabled: \(off), by 'enabled: false'") }
        return lines
    }

    private var queue: [String] {
        let (queue, counts, minute) = (status.object("queue"), status.object("counts"), status.object("last_minute"))
        let journal = status.object("journal")
        let location = journal.path.map { "\(Display.path($0)), \(Self.size(journal["size"]?.double ?? 0))" }
        return [
            "queue: \(queue.count("settling")) settling, \(queue.count("pending")) pending, "
                + "\(queue.count("running")) running, \(queue.count("failed")) failed",
            "since the start: \(counts.count("events")) events; jobs: \(counts.count("succeeded")) succeeded, "
                + "\(counts.count("skipped")) skipped, \(counts.count("failed")) failed; "
                + "\(counts.count("attempts")) attempts, \(counts.count("failed_attempts")) failed",
            "last minute: \(minute.count("events")) events, \(minute.count("jobs")) finished jobs",
            "journal: \(location ?? "in memory")",
        ]
    }

    private var watching: [String] {
        let watches = status.object("watches")
        let line =
            "watches: \(watches.count("used")) of \(watches.count("limit")); "
            + "kernel queue overflows: \(status.count("overflows"))"
        let rescan = status.object("last_rescan")
        guard let at = rescan.time("at") else { return [line] }
        let cause = rescan.text("why") == "overflow" ? "after an overflow" : "on request"
        return [
            line,
            "last rescan: \(TimeText.short(at, now: now)), \(cause); "
                + "found \(Reporter.count(rescan.count("found"), "change")) that no event had reported",
        ]
    }

    private var roots: [String] {
        status.objects("roots").map { root in
            let backend = root.text("backend")
            let polled = root.count("polled")
            var line = "root \(root.shownPath): \(painted(backend, backend == "inotify" ? "32" : "33"))"
            if backend != "missing" { line += ", \(Reporter.count(root.count("directories"), "directory"))" }
            if polled > 0 { line += ", \(polled) of them polled" }
            if let reason = root["reason"]?.string { line += ": \(Display.text(reason))" }
            return line
        }
    }

    private var held: [String] {
        status.objects("held").map { file in
            let processes = file.objects("processes").map { "\($0.shown("name")) (process \($0.count("pid")))" }
            let time = Reporter.seconds(file.elapsed(since: "since"))
            return "\(painted("held open", "33")): \(file.shownPath), for \(time)"
                + (processes.isEmpty ? "" : ", by \(processes.joined(separator: ", "))")
        }
    }

    private var waits: [String] {
        status.objects("waits").map { job in
            "\(painted("waiting", "33")): \(job.shown("rule")): \(job.shownPath), for "
                + "\(Reporter.seconds(job.elapsed(since: "since"))): \(job.shown("message"))"
        }
    }

    private var slots: [String] {
        let slots = status.object("slots")
        let (used, limit, extra) = (slots.count("used"), slots.count("limit"), slots.count("extra_used"))
        guard used >= limit else { return [] }
        let waiting = slots.objects("waiting").map { rule in
            "'\(rule.shown("rule"))' for \(Reporter.seconds(rule.elapsed(since: "since")))"
        }
        var line = "\(painted("no slot is free", "33")): \(used) of \(limit) in use"
        if extra > 0 { line += ", and \(extra) of \(slots.count("extra")) extra" }
        if !waiting.isEmpty { line += "; waiting: \(waiting.joined(separator: ", "))" }
        return [line]
    }

    private var running: [String] {
        status.objects("running").map { job in
            let seconds = Reporter.seconds(.seconds(job.elapsed(since: "since").components.seconds))
            return "running: \(job.shown("rule")): \(job.shownPath), \(job.shown("action")), for \(seconds)"
                + (job["slot"]?.bool == false ? ", without a slot" : "")
        }
    }

    private var failures: [String] {
        status.objects("failures").map { job in
            let at = job.time("at").map { TimeText.short($0, now: now) } ?? ""
            let message = job.shown("message")
            return "\(painted("failed", "31")): \(at) \(job.shown("rule")): \(job.shownPath)"
                + (message.isEmpty ? "" : ": \(message)") + " (\(job.shown("job")))"
        }
    }

    // MARK: Values

    private func painted(_ word: String, _ color: String) -> String { Display.painted(word, hasColor ? color : nil) }

    private static func size(_ bytes: Double) -> String {
        let (unit, name) = bytes < 1_048_576 ? (1024.0, "KiB") : (1_048_576, "MiB")
        return "\(Int(PeerObject.bounded(bytes / unit))) \(name)"
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
            do throws(ControlClient.Problem) {
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
        let report = StatusReport(status: PeerObject(status.object), hasColor: Output.standard.hasColor)
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
        let size = terminalSize
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).prefix(max(1, size.rows - 1))
        let body = lines.map { TerminalText.cut(String($0), size.columns) + "\u{1B}[K" }.joined(separator: "\r\n")
        return "\u{1B}[?2026h\u{1B}[H\(body)\u{1B}[0m\r\n\u{1B}[J\u{1B}[?2026l"
    }

    private static var terminalSize: (rows: Int, columns: Int) {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_row > 0, size.ws_col > 0 else {
            return (24, 80)
        }
        return (Int(size.ws_row), Int(size.ws_col))
    }
}
