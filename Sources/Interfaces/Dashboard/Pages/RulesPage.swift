import JSON

/// The page with all rules, their pending jobs and their failures.
struct RulesPage {
    var status: JSONValue
    var rules: JSONValue
    var now: String

    var html: HTML {
        Frame(title: "Rules", section: .rules, status: status).page(
            """
            <div class="title"><h1>Rules</h1>\(.button("Reload the rules", "/reload"))</div>
            <section class="card" aria-label="Rules"><div id="rules" data-live>\
            \(table)</div></section>
            """)
    }

    /// The table of rules, which the overview has too.
    var table: HTML {
        let rules = rules["rules"].elements
        guard !rules.isEmpty else { return "<p class=\"empty\">There are no rules.</p>" }
        return """
            <table class="stacks rules"><thead><tr><th scope="col">Rule</th><th scope="col" class="number">Pending</th>\
            <th scope="col" class="number">Running</th><th scope="col" class="number">Succeeded</th>\
            <th scope="col" class="number">Skipped</th><th scope="col" class="number">Failed</th>\
            <th scope="col">Last job</th>\
            <th scope="col"><span class="unseen">Pause</span></th></tr></thead><tbody>\(rules.map(row))</tbody></table>
            """
    }

    private func row(_ rule: JSONValue) -> HTML {
        let name = rule["name"].text
        let query = "rule=\(HTML.urlPart(name))"
        // Counts since the start link to the jobs since then.
        let since = HTML.urlPart(status["started"].text)
        func number(_ member: String, _ label: String, isSinceStart: Bool = false, kind: String = "") -> HTML {
            let count = rule[member].count
            let query = "state=\(member)&\(query)" + (isSinceStart ? "&since=\(since)" : "")
            let shown: HTML =
                count == 0 ? "<span class=\"none\">0</span>" : .jobs(query, "\(Wording.number(count))", status)
            return "<td class=\"number \(count == 0 ? "" : kind)\" data-label=\"\(label)\">\(shown)</td>"
        }
        var marks: [HTML] = []
        var button: HTML = ""
        if rule["enabled"].bool == false {
            marks.append(.badge("off", "calm"))
        } else if rule["paused"].isTrue {
            marks.append(.badge("paused", "warn"))
            button = .button("Resume", "/resume", about: "rule \(name)", rule: name, style: "primary")
        } else {
            button = .button("Pause", "/pause", about: "rule \(name)", rule: name)
        }
        let tags: [HTML] = rule["tags"].texts.map { "<li>\($0)</li>" }
        let tagList: HTML = tags.isEmpty ? "" : "<ul class=\"words\" aria-label=\"Tags\">\(tags)</ul>"
        return """
            <tr data-key="\(name)"><th scope="row"><div class="name">\(.jobs(query, "\(name)", status))\(marks)\(tagList)</div>\
            <p class="muted"><bdi class="glob">\(rule["path"].text)</bdi> <span class="location">\(rule["location"].text)</span></p></th>\
            \(number("pending", "Pending", kind: "warn"))\(number("running", "Running", kind: "live"))\
            \(number("succeeded", "Succeeded", isSinceStart: true))\(number("skipped", "Skipped", isSinceStart: true))\
            \(number("failed", "Failed", kind: "bad"))<td data-label="Last job" class="last">\(last(rule["last"]))</td>\
            <td class="end">\(button)</td></tr>
            """
    }

    private func last(_ job: JSONValue) -> HTML {
        guard !job.isNull else { return "<span class=\"muted\">none yet</span>" }
        return """
            \(.job(job["job"].string, "\(.state(job["outcome"].text)) \(.time(job["at"].text, now: now))"))\
            <span class="muted message">\(job["message"].text)</span>
            """
    }
}
