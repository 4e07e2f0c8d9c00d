import JSON

extension JSONValue {
    var isNull: Bool { self == .null }

    /// Whether the jobs of the journal can be listed, for a status object: those of a journal in memory cannot.
    var hasJobs: Bool { !self["journal"]["path"].isNull }
}

/// Formats numbers and times for users.
package enum Wording {
    /// Formats a number: `1,204`.
    package static func number(_ number: Int) -> String {
        String(number).replacing(/\B(?=(\d{3})+$)/, with: ",")
    }

    /// Formats a rate with a decimal if it is significant: `0`, `0.4`, `12`, `1,204`.
    package static func rate(_ rate: Double) -> String {
        guard rate.isFinite, rate.magnitude < 1e15 else { return "–" }
        if rate >= 10 || rate == rate.rounded() { return number(Int(rate.rounded())) }
        let tenths = Int((rate * 10).rounded())
        if tenths == 0 { return rate > 0 ? "<0.1" : "0" }
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    }

    /// Formats a duration: `3 ms`, `1.4 s`, `12 s`, `3 min`, `2 h 5 min`, `4 d`.
    package static func duration(seconds: Double) -> String {
        guard seconds.isFinite, seconds >= 0, seconds < 1e12 else { return "–" }
        let milliseconds = seconds * 1_000
        if milliseconds < 9.95 { return "\(rate(milliseconds)) ms" }
        if milliseconds < 999.5 { return "\(Int(milliseconds.rounded())) ms" }
        if seconds < 59.5 { return "\(rate(seconds)) s" }
        let whole = Int(seconds.rounded())
        let (minutes, rest) = (whole / 60, whole % 60)
        if minutes < 60 { return minutes < 10 && rest > 0 ? "\(minutes) min \(rest) s" : "\(minutes) min" }
        let hours = minutes / 60
        if hours < 48 { return minutes % 60 == 0 ? "\(hours) h" : "\(hours) h \(minutes % 60) min" }
        return hours % 24 == 0 || hours > 240 ? "\(hours / 24) d" : "\(hours / 24) d \(hours % 24) h"
    }

    /// Formats a size: `300 B`, `1.5 KB`, `12 MB`.
    package static func size(_ bytes: Double) -> String {
        var value = bytes
        for unit in ["B", "KB", "MB", "GB"] {
            if value < 999.5 { return "\(rate(value)) \(unit)" }
            value /= 1_000
        }
        return "\(rate(value)) TB"
    }

    /// Formats a count: `1 job`, `2 jobs`.
    package static func count(_ count: Int, _ noun: String) -> String {
        "\(number(count)) \(noun)\(count == 1 ? "" : "s")"
    }
}

extension HTML {
    /// Returns a timestamp: the time of day in UTC, with its date unless that is the date of `now`.
    ///
    /// The script converts it to local time.
    static func time(_ timestamp: String, now: String = "") -> HTML {
        guard timestamp.utf8.count >= 20 else { return "–" }
        let day = timestamp.prefix(10)
        let clock = timestamp.dropFirst(11).prefix(8)
        let shown = now.hasPrefix(day) ? "\(clock)" : "\(day) \(clock)"
        return "<time datetime=\"\(timestamp)\" title=\"\(timestamp)\">\(shown)</time>"
    }

    /// Returns a path, its directory paler than its name.
    static func path(_ path: String) -> HTML {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard let name = parts.last, parts.count > 1, !name.isEmpty else {
            return "<bdi class=\"path\"><b>\(path)</b></bdi>"
        }
        let directory = parts.dropLast().joined(separator: "/") + "/"
        return "<bdi class=\"path\"><span>\(directory)</span><b>\(String(name))</b></bdi>"
    }

    /// Returns a link to the jobs that a query finds, if the journal of the status object can be listed.
    static func jobs(_ query: String, _ content: HTML, _ status: JSONValue) -> HTML {
        status.hasJobs ? "<a href=\"/jobs?\(query)\">\(content)</a>" : content
    }

    /// Returns a link to the page of a job; without an id, only the content.
    static func job(_ id: String?, _ content: HTML) -> HTML {
        id.map { "<a href=\"/jobs/\(urlPart($0))\">\(content)</a>" } ?? content
    }

    /// Returns a badge: a word with a color that is not the only distinction.
    static func badge(_ word: String, _ kind: String) -> HTML { "<span class=\"badge \(kind)\">\(word)</span>" }

    /// Returns the badge for the state of a job, or for the outcome of an attempt.
    static func state(_ word: String) -> HTML {
        let kind =
            switch word {
            case "succeeded": "ok"
            case "failed": "bad"
            case "running": "live"
            case "retry", "not_ready": "warn"
            default: "calm"
            }
        return badge(word == "not_ready" ? "not ready" : word, kind)
    }

    /// Returns the badge for a job's object, which shows whether the job was undone instead of its state.
    static func state(of job: JSONValue) -> HTML {
        switch job["undone"].text {
        case "all": badge("undone", "calm")
        case "part": "\(state(job["state"].text)) \(badge("partly undone", "warn"))"
        default: state(job["state"].text)
        }
    }

    /// Returns the buttons for a failed job; `isMain` if they are the main actions of the page.
    static func actions(forJob id: String, isMain: Bool = false) -> HTML {
        """
        <div class="acts">\(.button("Retry", "/jobs/\(urlPart(id))/retry", about: "job \(id)", style: isMain ? "primary" : ""))\
        \(.button("Discard", "/jobs/\(urlPart(id))/discard", about: "job \(id)", confirms: true))</div>
        """
    }

    /// Returns a button for an action, as a form that works without the script too.
    ///
    /// - Parameters:
    ///   - label: The label of the button.
    ///   - action: The target of the form; the script calls the same path below `/v1`.
    ///   - about: The object of the action, for screen readers.
    ///   - rule: The rule that the action applies to.
    ///   - style: The class of the button.
    ///   - confirms: Whether the script asks for confirmation.
    /// - Returns: The form.
    static func button(
        _ label: String, _ action: String, about: String = "", rule: String? = nil, style: String = "",
        confirms: Bool = false
    ) -> HTML {
        let field: HTML = rule.map { "<input type=\"hidden\" name=\"rule\" value=\"\($0)\">" } ?? ""
        let about: HTML = about.isEmpty ? "" : "<span class=\"unseen\"> \(about)</span>"
        let confirm: HTML = confirms ? " data-confirm" : ""
        return """
            <form method="post" action="\(action)" class="act">\(field)<button class="\(style)"\(confirm)>\(label)\(about)</button></form>
            """
    }
}
