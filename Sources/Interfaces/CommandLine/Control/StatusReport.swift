import JSON
import System

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
