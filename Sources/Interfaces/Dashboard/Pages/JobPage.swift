import JSON

/// The page of one job: its file, its event, and each attempt with its output.
struct JobPage {
    var status: JSONValue
    var job: JSONValue
    var now: String

    var html: HTML {
        let path = job["path"].text
        let name = path.split(separator: "/").last.map(String.init) ?? path
        return Frame(title: name, section: .jobs, status: status).page(
            """
            <div id="job" data-live>
            <div class="title"><h1><bdi>\(name)</bdi></h1>\(.state(of: job))\(actions)</div>
            \(outcome)
            <div class="detail">
            <section class="card" aria-labelledby="h-job"><h2 id="h-job">Job</h2><dl class="details">\(details)</dl></section>
            \(preview(path))
            </div>
            <section aria-labelledby="h-attempts"><h2 id="h-attempts">Attempts</h2>\(attempts)</section>
            </div>
            """)
    }

    private var id: String { job["id"].text }

    private var actions: HTML { job["state"].text == "failed" ? .actions(forJob: id, isMain: true) : "" }

    private var outcome: HTML {
        let message = job["message"].text
        guard !message.isEmpty else { return "" }
        let kind = job["state"].text == "failed" ? "bad" : "calm"
        let code: HTML = job["code"].string.map { " <code>\($0)</code>" } ?? ""
        return "<p class=\"notice \(kind)\">\(message)\(code)</p>"
    }

    // MARK: Details

    private var details: [HTML] {
        var details: [HTML] = []
        func add(_ label: String, _ value: HTML?) {
            if let value { details.append("<div><dt>\(label)</dt><dd>\(value)</dd></div>") }
        }
        func timestamp(_ name: String) -> HTML? { job[name].string.map { .time($0, now: now) } }
        add("Path", .path(job["path"].text))
        add("From", job["from"].string.map { .path($0) })
        add("Rule", "<a href=\"/jobs?rule=\(HTML.urlPart(job["rule"].text))\">\(job["rule"].text)</a>")
        add("Event", "\(event)")
        add("Written by", writer)
        add("Size", size)
        add("Created", timestamp("created"))
        add("Due", timestamp("due"))
        add("Finished", timestamp("ended"))
        let outputs: [HTML] = job["outputs"].elements.compactMap { output in
            (output.string ?? output.bytes.map { String(decoding: $0, as: UTF8.self) }).map { "<li>\(.path($0))</li>" }
        }
        add("Outputs", outputs.isEmpty ? nil : "<ul>\(outputs)</ul>")
        if job["interrupted"].isTrue { add("Interrupted", "the last attempt did not finish") }
        add("Id", "<code>\(id)</code>")
        return details
    }

    private var event: String {
        let changed = job["changed"].texts + (job["replaced"].isTrue ? ["replaced"] : [])
        let words = changed.isEmpty ? "" : " (\(changed.joined(separator: ", ")))"
        let origin =
            switch job["origin"].text {
            case "live": ", reported by the kernel"
            case "scan": ", found at startup"
            case "rescan": ", found by a rescan"
            case "poll": ", found by polling"
            case "manual": ", requested by hand"
            case "": ""
            case let word: ", found by \(word)"
            }
        return job["event"].text + words + origin
    }

    private var writer: HTML? {
        let by = job["by"]
        guard by.object != nil else { return nil }
        return "\(by["comm"].text) (process \(by["pid"].count), \(by["exe"].text))"
    }

    private var size: HTML? {
        guard let size = job["size"].double, job["type"].text != "directory" else { return nil }
        let before = job["size_before"].double.map { ", before \(Wording.size($0))" } ?? ""
        return "\(Wording.size(size) + before)"
    }

    /// The current file, if its name has the extension of an image.
    private func preview(_ path: String) -> HTML {
        let ending = path.split(separator: ".").last?.lowercased() ?? ""
        guard path.contains("."), ["png", "jpg", "jpeg", "gif", "webp"].contains(ending), !isMovedAway else {
            return ""
        }
        return """
            <figure class="card preview" id="preview"><img src="/v1/jobs/\(HTML.urlPart(id))/input" alt="The file as it is now">\
            <figcaption class="muted">The file as it is now</figcaption></figure>
            """
    }

    /// Whether the job itself has moved its file to another path, or into the trash.
    private var isMovedAway: Bool {
        job["attempts"].elements.flatMap(\.["changes"].elements).contains { change in
            ["moved", "trashed"].contains(change["did"].text) && change["from"] == job["path"]
                && !change["undone"].isTrue
        }
    }

    // MARK: Attempts

    private var attempts: HTML {
        let attempts = job["attempts"].elements
        guard !attempts.isEmpty else { return "<p class=\"card empty\">There are no attempts yet.</p>" }
        return "\(attempts.reversed().map(attempt))"
    }

    private func attempt(_ attempt: JSONValue) -> HTML {
        let number = attempt["number"].count
        var details: [HTML] = [
            .time(attempt["started"].text, now: now),
            "\(Wording.duration(seconds: (attempt["duration_ms"].double ?? 0) / 1_000))",
        ]
        if let status = attempt["status"].double { details.append("exit status \(Int(exactly: status) ?? 0)") }
        if let signal = attempt["signal"].double { details.append("killed by signal \(Int(exactly: signal) ?? 0)") }
        if let code = attempt["code"].string { details.append("<code>\(code)</code>") }
        let message: HTML = attempt["message"].text.isEmpty ? "" : "<p>\(attempt["message"].text)</p>"
        let changes: [HTML] = attempt["changes"].elements.map(change)
        let did: HTML = changes.isEmpty ? "" : "<h4>Changes</h4><ul class=\"changes\">\(changes)</ul>"
        let log: HTML =
            attempt["log"].string.map {
                """
                <h4 id="h-log-\(number)">Output</h4><pre class="log" tabindex="0" role="region" aria-labelledby="h-log-\(number)">\(lines: $0)</pre>
                """
            } ?? ""
        let request: HTML =
            attempt["request"].isNull
            ? ""
            : """
            <details><summary>Request</summary><pre class="log" tabindex="0" role="region" aria-label="Request">\(lines: attempt["request"].lines())</pre></details>
            """
        return """
            <article class="card attempt" data-key="\(number)"><header><h3>Attempt \(number)</h3>\(.state(attempt["outcome"].text))\
            <ul class="muted inline">\(details.map { "<li>\($0)</li>" })</ul></header>\(message)\(did)\(log)\(request)</article>
            """
    }

    private func change(_ change: JSONValue) -> HTML {
        func path(_ name: String) -> HTML { .path(change[name].text) }
        let words: HTML =
            switch change["did"].text {
            case "moved": "moved \(path("from")) to \(path("to"))"
            case "made": "created \(path("path")) from \(path("source"))"
            case "unpacked": "unpacked \(path("source")) into \(path("path"))"
            case "made_directory": "created the directory \(path("path"))"
            case "trashed": "moved \(path("from")) to the trash as \(path("to"))"
            case "overwritten": "replaced what was at \(path("path"))"
            case "removed": "removed \(path("path")), which had the content of \(path("twin"))"
            case let other: "\(other) \(path("path"))"
            }
        let undone: HTML =
            switch change["undone"].bool {
            case true?: " \(.badge("undone", "calm"))"
            case false?: " <span class=\"error\">not undone: \(change["reason"].text)</span>"
            case nil: ""
            }
        return "<li>\(words)\(undone)</li>"
    }
}
