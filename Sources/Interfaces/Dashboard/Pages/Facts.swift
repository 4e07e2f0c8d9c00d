import PluginProtocol

// Pages read the objects of the API. What is missing is read as nothing, so that a page is never refused for it.
extension JSONValue {
    subscript(name: String) -> JSONValue { object?[name] ?? .null }

    var text: String { string ?? "" }
    var elements: [JSONValue] { array ?? [] }
    var count: Int { double.flatMap { Int(exactly: $0.rounded()) } ?? 0 }
    var texts: [String] { elements.compactMap(\.string) }
    var isTrue: Bool { bool ?? false }
    var isNull: Bool { self == .null }

    /// Whether the jobs of a status object's journal can be listed: those of one in memory can't.
    var hasJobs: Bool { !self["journal"]["path"].isNull }
}

/// Numbers and moments as people read them.
package enum Wording {
    /// `1,204`.
    package static func number(_ number: Int) -> String {
        let digits = Array(String(number.magnitude))
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 { text.append(",") }
            text.append(digit)
        }
        return number < 0 ? "-" + text : text
    }

    /// `0`, `0.4`, `12`, `1,204`: a decimal where it says something.
    package static func rate(_ rate: Double) -> String {
        guard rate.isFinite, rate.magnitude < 1e15 else { return "–" }
        if rate >= 10 || rate == rate.rounded() { return number(Int(rate.rounded())) }
        let tenths = Int((rate * 10).rounded())
        if tenths == 0 { return rate > 0 ? "<0.1" : "0" }
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    }

    /// `3 ms`, `1.4 s`, `12 s`, `3 min`, `2 h 5 min`, `4 d`.
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

    /// `300 B`, `1.5 KB`, `12 MB`.
    package static func size(_ bytes: Double) -> String {
        var value = bytes
        for unit in ["B", "KB", "MB", "GB"] {
            if value < 999.5 { return "\(rate(value)) \(unit)" }
            value /= 1_000
        }
        return "\(rate(value)) TB"
    }

    /// `1 job`, `2 jobs`.
    package static func count(_ count: Int, _ noun: String) -> String {
        "\(number(count)) \(noun)\(count == 1 ? "" : "s")"
    }
}

extension HTML {
    /// A moment: the time of day in UTC, with its date unless that is the day of `now`; the script makes it local.
    static func time(_ moment: String, now: String = "") -> HTML {
        guard moment.utf8.count >= 20 else { return "–" }
        let day = moment.prefix(10)
        let clock = moment.dropFirst(11).prefix(8)
        let shown = now.hasPrefix(day) ? "\(clock)" : "\(day) \(clock)"
        return "<time datetime=\"\(moment)\" title=\"\(moment)\">\(shown)</time>"
    }

    /// A path, its folder paler than its name.
    static func path(_ path: String) -> HTML {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard let name = parts.last, parts.count > 1, !name.isEmpty else {
            return "<bdi class=\"path\"><b>\(path)</b></bdi>"
        }
        let folder = parts.dropLast().joined(separator: "/") + "/"
        return "<bdi class=\"path\"><span>\(folder)</span><b>\(String(name))</b></bdi>"
    }

    /// Leads to the jobs that a query finds, where the journal of the status object has a list of them.
    static func jobs(_ query: String, _ content: HTML, _ status: JSONValue) -> HTML {
        status.hasJobs ? "<a href=\"/jobs?\(query)\">\(content)</a>" : content
    }

    /// Leads to the page of a job; nil is one that has none.
    static func job(_ id: String?, _ content: HTML) -> HTML {
        id.map { "<a href=\"/jobs/\(urlPart($0))\">\(content)</a>" } ?? content
    }

    /// What a job's state looks like: a word, with a colour that doesn't stand alone.
    static func badge(_ word: String, _ kind: String) -> HTML { "<span class=\"badge \(kind)\">\(word)</span>" }

    /// The badge of a job's state, or of how an attempt ended.
    static func state(_ word: String) -> HTML {
        let kind =
            switch word {
            case "succeeded": "ok"
            case "dead", "failed": "bad"
            case "running": "live"
            case "retry", "not_ready": "warn"
            default: "calm"
            }
        return badge(word == "not_ready" ? "not ready" : word, kind)
    }

    /// The badge of a job's object, which says instead of its state that what it did was taken back.
    static func state(of job: JSONValue) -> HTML {
        switch job["undone"].text {
        case "all": badge("undone", "calm")
        case "part": "\(state(job["state"].text)) \(badge("partly undone", "warn"))"
        default: state(job["state"].text)
        }
    }

    /// A button that does something: a form, so that it works without script too.
    ///
    /// - Parameters:
    ///   - label: What the button says.
    ///   - action: Where the form goes; the script asks the API below `/v1` for the same.
    ///   - about: What it is done to, for those who hear the button and don't see its row.
    ///   - rule: The rule that it is done to.
    ///   - style: The button's class.
    ///   - confirms: Whether the script asks once more.
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
