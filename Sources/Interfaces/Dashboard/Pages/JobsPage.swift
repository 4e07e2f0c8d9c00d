import ControlAPI
import JSON

/// The page with the jobs, newest first, and filters.
struct JobsPage {
    var status: JSONValue
    var rules: JSONValue
    /// The object with the jobs, or one with `error` if the query failed.
    var jobs: JSONValue
    var query: JobsQuery
    var now: String

    var html: HTML {
        Frame(title: "Jobs", section: .jobs, status: status).page(
            """
            <h1>Jobs</h1>
            \(form)
            <section class="card" aria-label="Jobs"><div id="jobs" data-live>\(list)</div></section>
            """)
    }

    // MARK: Filters

    private var form: HTML {
        let states = [
            ("", "any state"), ("pending", "pending"), ("running", "running"), ("succeeded", "succeeded"),
            ("skipped", "skipped"), ("failed", "failed"),
        ]
        var names = rules["rules"].elements.map(\.["name"].text)
        if let rule = query.rule, !names.contains(rule) { names.append(rule) }
        let all: HTML = query.isEmpty ? "" : "<a class=\"button\" href=\"/jobs\">Show all</a>"
        return """
            <form class="filters" method="get" action="/jobs" role="search" aria-label="Jobs">
            <label>State <select name="state">\(states.map { option($0, $1, query.state) })</select></label>
            <label>Rule <select name="rule">\(option("", "any rule", query.rule ?? ""))\(names.map { option($0, $0, query.rule ?? "") })</select></label>
            <label class="grow">Path <input name="path" value="\(query.pathText)" \
            placeholder="/directory, /file or /**/*.glob" \
            autocapitalize="off" autocomplete="off" spellcheck="false"></label>
            <label>Since <input name="since" value="\(query.since ?? "")" placeholder="10m, 2h, 7d" size="10" autocomplete="off"></label>
            <div class="acts"><button class="primary">Show</button>\(all)</div>
            </form>
            """
    }

    private func option(_ value: String, _ label: String, _ chosen: String) -> HTML {
        let selected: HTML = value == chosen ? " selected" : ""
        return "<option value=\"\(value)\"\(selected)>\(label)</option>"
    }

    // MARK: Results

    private var list: HTML {
        let error = jobs["error"]
        if !error.isNull {
            return
                "<p class=\"error\" role=\"alert\">\(error["message"].text)</p><p class=\"muted\">\(error["help"].text)</p>"
        }
        let found = jobs["jobs"].elements
        guard !found.isEmpty else {
            return query.isEmpty
                ? "<p class=\"empty\">No job yet. Put a file into a watched directory.</p>"
                : "<p class=\"empty\">No job matches.</p>"
        }
        return """
            <table class="stacks jobs"><thead><tr><th scope="col">State</th><th scope="col">File</th><th scope="col">Rule</th>\
            <th scope="col">Event</th><th scope="col">When</th><th scope="col" class="number">Attempt</th>\
            <th scope="col"><span class="unseen">Actions</span></th></tr></thead><tbody>\(found.map(row))</tbody></table>\(pages)
            """
    }

    private func row(_ job: JSONValue) -> HTML {
        let id = job["id"].text
        let isFailed = job["state"].text == "failed"
        let message: HTML =
            job["message"].text.isEmpty
            ? "" : "<span class=\"message \(isFailed ? "error" : "muted")\">\(job["message"].text)</span>"
        let actions: HTML = isFailed ? .actions(forJob: id) : ""
        let name: HTML = .job(id.isEmpty ? nil : id, .path(job["path"].text))
        // A due path has no job yet.
        let key = id.isEmpty ? "\(job["rule"].text):\(job["path"].text)" : id
        return """
            <tr data-key="\(key)"><td>\(.state(of: job))</td>\
            <th scope="row">\(name)\(message)</th>\
            <td data-label="Rule">\(job["rule"].text)</td><td data-label="Event">\(job["event"].text)</td>\
            <td data-label="When">\(.time(job["ended"].string ?? job["created"].text, now: now))</td>\
            <td class="number" data-label="Attempt">\(job["attempt"].count)</td><td class="end">\(actions)</td></tr>
            """
    }

    private var pages: HTML {
        let newest: HTML =
            query.before == nil ? "" : "<a class=\"button\" href=\"\(query.address(before: ""))\">Newest</a>"
        let older: HTML =
            jobs["next"].string.map { "<a class=\"button\" href=\"\(query.address(before: $0))\">Older</a>" } ?? ""
        return "<nav class=\"pages\" aria-label=\"More jobs\">\(newest)\(older)</nav>"
    }
}

extension JobsQuery {
    fileprivate var state: String { states.first ?? "" }
    fileprivate var pathText: String { String(decoding: path ?? [], as: UTF8.self) }
    fileprivate var isEmpty: Bool { states.isEmpty && rule == nil && path == nil && since == nil }

    /// Returns the address of the page with these filters, starting at another position.
    fileprivate func address(before: String) -> String {
        let parts = [
            ("state", state), ("rule", rule ?? ""), ("path", pathText), ("since", since ?? ""), ("before", before),
        ]
        let query = parts.filter { !$0.1.isEmpty }.map { "\($0)=\(HTML.urlPart($1))" }.joined(separator: "&")
        return query.isEmpty ? "/jobs" : "/jobs?\(query)"
    }
}
