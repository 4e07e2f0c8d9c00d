import JSON

/// The common frame of all pages.
struct Frame {
    /// The pages in the order of the navigation.
    enum Section: String, CaseIterable {
        case overview = "Overview"
        case jobs = "Jobs"
        case rules = "Rules"

        var path: String { self == .overview ? "/" : "/\(rawValue.lowercased())" }
    }

    var title: String
    var section: Section?
    /// The status object of the API.
    var status: JSONValue

    /// Renders the whole page.
    ///
    /// - Parameter main: The contents of its `main`. The script updates elements with `data-live`.
    /// - Returns: The page.
    func page(_ main: HTML) -> HTML {
        """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <meta name="referrer" content="same-origin">
        <title>\(title) · Alight</title>
        <link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
        <link rel="stylesheet" href="/assets/dashboard.css">
        <script src="/assets/dashboard.js" defer></script>
        </head>
        <body>
        <a class="skip" href="#main">Skip to content</a>
        <header class="bar">
        <a class="brand" href="/"><img src="/assets/icon.svg" alt="" width="22" height="22">Alight</a>
        <nav aria-label="Pages"><ul>\(Section.allCases.map(link))</ul></nav>
        <div class="state" id="state" data-live>\(state)</div>
        </header>
        <main id="main" tabindex="-1">
        <div id="notices" data-live>\(notices)</div>
        \(main)
        </main>
        <footer>
        <p id="about" data-live>Alight \(status["version"].text) · process \(status["pid"].count) · up \
        \(Wording.duration(seconds: status["uptime"].double ?? 0))</p>
        <noscript><p>Times are UTC. With JavaScript, this page keeps itself up to date; without, load it again.</p></noscript>
        </footer>
        <p id="toast" role="status" aria-live="polite"></p>
        <p id="announcer" class="unseen" role="status" aria-live="polite"></p>
        </body>
        </html>

        """
    }

    /// Renders a page that reports that there is nothing to show, or that an action failed.
    func message(_ message: String, help: String) -> HTML {
        page(
            """
            <h1>\(title)</h1>
            <section class="card empty"><p>\(message)</p><p class="muted">\(help)</p><p><a class="button" href="/">Go to the overview</a></p></section>
            """)
    }

    private func link(_ other: Section) -> HTML {
        let current: HTML = other == section ? " aria-current=\"page\"" : ""
        return "<li><a href=\"\(other.path)\"\(current)>\(other.rawValue)</a></li>"
    }

    // MARK: Status

    /// The state in one word, and the button that pauses or resumes.
    private var state: HTML {
        let isPaused = status["paused"].isTrue
        let (word, kind) =
            switch status["state"].text {
            case "draining", "ending": ("Stopping", "warn")
            case _ where status["degraded"].isTrue: ("Degraded", "bad")
            case _ where isPaused: ("Paused", "warn")
            case _ where !status["ready"].isTrue: ("Starting", "live")
            default: ("Running", "ok")
            }
        let button: HTML =
            isPaused
            ? .button("Resume", "/resume", about: "all rules", style: "primary")
            : .button("Pause", "/pause", about: "all rules")
        return "<p class=\"pill \(kind)\" id=\"pill\">\(word)</p>\(button)"
    }

    /// The problems, and the paused rules.
    private var notices: HTML {
        var notices: [HTML] = []
        var reasons = status["reasons"].texts
        if let error = status["journal"]["error"].string, !reasons.contains(error) { reasons.append(error) }
        if !reasons.isEmpty {
            let list: HTML = "<ul>\(reasons.map { "<li>\($0)</li>" })</ul>"
            notices.append(Self.notice("bad", "Problems", "Alight is degraded", list))
        }
        let names: [HTML] = status["paused_rules"].texts.map { "<li><b>\($0)</b></li>" }
        if status["paused"].isTrue {
            let text: HTML = "<p>Events are still recorded as pending jobs; no job starts until you resume.</p>"
            notices.append(Self.notice("warn", "Paused", "All rules are paused", text))
        } else if !names.isEmpty {
            notices.append(Self.notice("warn slim", "Paused rules", "Paused", "<ul class=\"words\">\(names)</ul>"))
        }
        return "\(notices)"
    }

    private static func notice(_ style: String, _ label: String, _ title: String, _ content: HTML) -> HTML {
        "<section class=\"notice \(style)\" aria-label=\"\(label)\"><h2>\(title)</h2>\(content)</section>"
    }
}
