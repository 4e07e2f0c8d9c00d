import JSON

/// The overview: what is watched, what is running, and the last half hour.
struct OverviewPage {
    var status: JSONValue
    /// The object with all rules.
    var rules: JSONValue
    var history: JSONValue
    /// The object with the latest jobs, or one with `error` if they are not available.
    var jobs: JSONValue
    /// The current time, in the format of the API.
    var now: String

    var html: HTML {
        Frame(title: "Overview", section: .overview, status: status).page(
            """
            <h1 class="unseen">Overview</h1>
            <section aria-labelledby="h-now"><h2 id="h-now" class="unseen">Now</h2>
            <ul class="tiles" id="tiles" data-live>\(tiles)</ul></section>
            <section aria-labelledby="h-plots"><h2 id="h-plots" class="unseen">The last half hour</h2>
            <div class="plots" id="plots" data-live>\(HistoryPlots(history).figures)</div></section>
            <div class="columns">
            \(activity)
            <div class="stack">\(running)\(failures)</div>
            </div>
            \(ruleTable)
            \(directories)
            \(totals)
            """)
    }

    // MARK: Numbers

    private var tiles: [HTML] {
        let queue = status["queue"]
        let minute = status["last_minute"]
        func tile(_ label: String, _ value: String, state: String? = nil, _ kind: String = "") -> HTML {
            let inside: HTML = "<span class=\"value\">\(value)</span><span class=\"label\">\(label)</span>"
            let linked: HTML =
                state.flatMap { status.hasJobs ? .jobs("state=\($0)", inside, status) : nil } ?? "<div>\(inside)</div>"
            return "<li class=\"tile \(kind)\" data-key=\"\(label)\">\(linked)</li>"
        }
        let failed = queue["failed"].count
        let running = queue["running"].count
        return [
            tile("Settling", Wording.number(queue["settling"].count)),
            tile("Pending", Wording.number(queue["pending"].count), state: "pending"),
            tile("Running", Wording.number(running), state: "running", running > 0 ? "live" : ""),
            tile("Failed jobs", Wording.number(failed), state: "failed", failed > 0 ? "bad" : ""),
            tile("Events, last minute", Wording.number(minute["events"].count)),
            tile("Finished jobs, last minute", Wording.number(minute["jobs"].count)),
        ]
    }

    private var totals: HTML {
        let counts = status["counts"]
        let words = [
            ("hints", "Kernel hints"), ("events", "Events"), ("attempts", "Attempts"), ("succeeded", "Succeeded"),
            ("skipped", "Skipped"), ("failed_attempts", "Failed attempts"), ("failed", "Failed jobs"),
        ]
        var rows: [HTML] = words.map { name, label in
            "<div><dt>\(label)</dt><dd>\(Wording.number(counts[name].count))</dd></div>"
        }
        let journal = status["journal"]
        let path: HTML = journal["path"].string.map { .path($0) } ?? "in memory"
        let size = journal["path"].isNull ? "" : " (\(Wording.size(journal["size"].double ?? 0)))"
        rows.append("<div class=\"wide\"><dt>Journal</dt><dd>\(path)\(size)</dd></div>")
        return """
            <section class="card" aria-labelledby="h-totals"><h2 id="h-totals">Since the start</h2>
            <dl class="totals" id="totals" data-live>\(rows)</dl></section>
            """
    }

    // MARK: Activity

    /// The latest jobs; the script inserts new events and attempts above them.
    private var activity: HTML {
        let lines: [HTML] = jobs["jobs"].elements.filter { !$0["id"].isNull }.map { job in
            """
            <li class="line"><a href="/jobs/\(HTML.urlPart(job["id"].text))">\(.time(job["ended"].string ?? job["created"].text, now: now))\
            \(.state(of: job))<span class="what">\(.path(job["path"].text))\
            <span class="message">\(job["message"].text)</span></span><span class="rule">\(job["rule"].text)</span></a></li>
            """
        }
        let why = jobs["error"]["message"].string ?? "No job yet. Put a file into a watched directory."
        let base: HTML = status.hasJobs ? " data-jobs=\"/jobs/\"" : ""
        let empty: HTML = lines.isEmpty ? "<li class=\"empty\">\(why)</li>" : ""
        return """
            <section class="card activity" aria-labelledby="h-activity">
            <div class="head"><h2 id="h-activity">Activity</h2>\
            <button type="button" id="hold" hidden>Hold</button><a href="/jobs">All jobs</a></div>
            <div class="lines" role="log" aria-live="off" tabindex="0" aria-labelledby="h-activity"><ol id="lines">\(lines)\(empty)</ol></div>
            <template id="line"><li class="line"><a\(base)><time></time><span class="badge"></span><span class="what">\
            <bdi class="path"><span></span><b></b></bdi><span class="message"></span></span><span class="rule"></span></a></li></template>
            </section>
            """
    }

    private var running: HTML {
        let rows: [HTML] = status["running"].elements.map { job in
            """
            <li data-key="\(job["job"].text)">\(.job(status.hasJobs ? job["job"].text : nil, .path(job["path"].text)))\
            <p class="muted"><b>\(job["rule"].text)</b> · \(job["action"].text) · since \(.time(job["since"].text, now: now))</p></li>
            """
        }
        let list = Self.list(rows, otherwise: "<p class=\"empty\">Nothing is running.</p>")
        return """
            <section class="card" aria-labelledby="h-running"><h2 id="h-running">Running now</h2><div id="running" data-live>\(list)</div></section>
            """
    }

    private var failures: HTML {
        let rows: [HTML] = status["failures"].elements.map { job in
            let id = job["job"].text
            let actions: HTML = status.hasJobs ? .actions(forJob: id) : ""
            return """
                <li data-key="\(id)">\(.job(status.hasJobs ? id : nil, .path(job["path"].text)))\
                <p class="error">\(job["message"].text)</p>\
                <div class="foot"><p class="muted"><b>\(job["rule"].text)</b> · \(.time(job["at"].text, now: now))</p>\(actions)</div></li>
                """
        }
        let list = Self.list(rows, otherwise: "<p class=\"empty good\">No job has failed.</p>")
        return """
            <section class="card" aria-labelledby="h-failures"><div class="head"><h2 id="h-failures">Latest failures</h2>\
            \(.jobs("state=failed", "All failed jobs", status))</div>\
            <div id="failures" data-live>\(list)</div></section>
            """
    }

    private static func list(_ rows: [HTML], otherwise nothing: HTML) -> HTML {
        rows.isEmpty ? nothing : "<ul class=\"items\">\(rows)</ul>"
    }

    private var ruleTable: HTML {
        """
        <section class="card" aria-labelledby="h-rules"><div class="head"><h2 id="h-rules">Rules</h2>\
        \(.button("Reload the rules", "/reload"))</div>
        <div id="rules" data-live>\(RulesPage(status: status, rules: rules, now: now).table)</div></section>
        """
    }

    // MARK: Roots

    private var directories: HTML {
        let rows: [HTML] = status["roots"].elements.map { root in
            let backend = root["backend"].text
            let kind = backend == "inotify" ? "ok" : backend == "missing" ? "bad" : "warn"
            let word = backend == "inotify" ? "kernel" : backend
            let reason: HTML = root["reason"].string.map { "<span class=\"muted\">\($0)</span>" } ?? ""
            let names: [HTML] = root["rules"].texts.map { "<li>\($0)</li>" }
            return """
                <tr data-key="\(root["path"].text)"><th scope="row">\(.path(root["path"].text))</th>\
                <td data-label="How">\(.badge(word, kind)) \(reason)</td>\
                <td class="number" data-label="Directories">\(Wording.number(root["directories"].count))</td>\
                <td class="number" data-label="Polled">\(Wording.number(root["polled"].count))</td>\
                <td data-label="Rules"><ul class="words">\(names)</ul></td></tr>
                """
        }
        let (used, limit) = (status["watches"]["used"].count, status["watches"]["limit"].count)
        let rescan = status["last_rescan"]
        var details: [HTML] = [
            """
            <div><dt><label for="meter">Watches</label></dt><dd>\(Wording.number(used)) of \(Wording.number(limit)) \
            <meter id="meter" min="0" max="\(max(limit, 1))" high="\(max(limit, 1) * 4 / 5)" value="\(used)"></meter></dd></div>
            """,
            "<div><dt>Overflows</dt><dd>\(Wording.number(status["overflows"].count))</dd></div>",
        ]
        if !rescan.isNull {
            details.append(
                """
                <div><dt>Last rescan</dt><dd>\(.time(rescan["at"].text, now: now)), \(rescan["why"].text), \
                found \(Wording.count(rescan["found"].count, "change")) that no event had reported</dd></div>
                """)
        }
        let table: HTML =
            rows.isEmpty
            ? "<p class=\"empty\">Nothing is watched.</p>"
            : """
            <table class="stacks"><thead><tr><th scope="col">Directory</th><th scope="col">How</th>\
            <th scope="col" class="number">Directories</th><th scope="col" class="number">Polled</th>\
            <th scope="col">Rules</th></tr></thead>\
            <tbody>\(rows)</tbody></table>
            """
        return """
            <section class="card" aria-labelledby="h-directories">\
            <div class="head"><h2 id="h-directories">Watched directories</h2>\
            \(.button("Rescan all files", "/rescan"))</div>
            <div id="directories" data-live>\(table)<dl class="totals">\(details)</dl></div></section>
            """
    }
}
