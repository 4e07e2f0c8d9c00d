import ControlAPI
import Glibc
import JSON
import System
import Testing
import TestKit

@testable import Dashboard

/// The content of the pages, and their resistance to hostile external text.
struct PageTests {
    private static let golden = PathBytes(#filePath).parent.parent.appending("Golden")

    static let situations: [(name: String, pages: SamplePages)] = [
        ("", SamplePages()), ("-bad", SamplePages(isDegraded: true, isPaused: true)),
        ("-empty", SamplePages(isEmpty: true)),
    ]

    @Test(arguments: SamplePages.names)
    func `a page matches the recorded one`(name: String) {
        for situation in Self.situations {
            let text = situation.pages.page(name).text
            let file = Self.golden.appending("\(name)\(situation.name).html")
            if getenv("RECORD") != nil { TestFile.write(file, text) }
            #expect(TestFile.text(file) == text)
        }
    }

    static let hostile = [
        "<img src=x onerror=alert(1)>", "\"><script>alert(1)</script>", "' onmouseover='alert(1)",
        "</bdi></a></li><h1>",
        "-->&lt;<!--", "]]>", "\u{202e}\u{2066}gpj.exe", "two\nlines\r\n\t", "\u{1b}[2J\u{0}", "caf\u{fffd}",
        "javascript:alert(1)",
        "{{7*7}}${7*7}", "%3Cimg%3E", "</textarea></pre></style></template>",
    ]

    /// Compares the tags with those of the same page with harmless words, which detects any failure of escaping.
    @Test(arguments: SamplePages.names)
    func `hostile words change no tag and no attribute of a page`(name: String) {
        for bad in Self.hostile {
            let (expected, _) = Self.tags(of: SamplePages(isDegraded: true, isPaused: true).page(name).text)
            let (tags, isBalanced) = Self.tags(
                of: SamplePages(words: bad, isDegraded: true, isPaused: true).page(name).text)
            #expect(tags == expected, "'\(bad)'")
            #expect(isBalanced, "'\(bad)'")
        }
    }

    @Test(arguments: SamplePages.names)
    func `a page loads nothing from other hosts and has no inline script or style`(name: String) {
        for situation in Self.situations {
            let text = situation.pages.page(name).text
            #expect(!text.contains("style=") && !text.contains("<style") && !text.contains("://"))
            #expect(!text.contains(#/\son[a-z]+="/#) && !text.contains("javascript:"))
            #expect(text.ranges(of: "<script").count == 1)
            #expect(text.contains("<script src=\"/assets/dashboard.js\" defer></script>"))
        }
    }

    @Test(arguments: SamplePages.names)
    func `a page has one heading, landmarks and unique IDs`(name: String) {
        for situation in Self.situations {
            let text = situation.pages.page(name).text
            for element in [
                "<h1", "<main", "<nav aria-label=\"Pages\"", "<header class=\"bar\"", "<footer", "lang=\"en\"",
            ] {
                #expect(text.ranges(of: element).count == 1, "\(element)")
            }
            let ids = text.matches(of: #/\sid="([^"]*)"/#).map { String($0.output.1) }
            #expect(Set(ids).count == ids.count)
        }
    }

    @Test func `objects without any members still produce pages`() {
        let overview = OverviewPage(status: .null, rules: .null, history: .null, jobs: .null, now: "").html.text
        #expect(overview.contains("No job yet"))
        #expect(JobPage(status: [:], job: [:], now: "").html.text.contains("There are no attempts yet"))
        #expect(RulesPage(status: [], rules: 3, now: "").html.text.contains("There are no rules"))
    }

    @Test func `a search error is shown beside the form, which keeps its values`() {
        let page = JobsPage(
            status: SamplePages().status, rules: SamplePages().rules,
            jobs: ["error": ["message": "invalid time 'x'", "help": "write 2h"]],
            query: JobsQuery(states: [], since: "x", limit: 1), now: ""
        ).html.text
        #expect(page.contains("role=\"alert\">invalid time &#39;x&#39;</p>"))
        #expect(page.contains("name=\"since\" value=\"x\""))
    }

    @Test func `links to older jobs keep the search`() {
        let page = SamplePages(words: "a&b").page("jobs").text
        #expect(page.contains("href=\"/jobs?state=failed&amp;rule=a%26b&amp;path=a%26b&amp;before=01A\">Older</a>"))
    }

    // MARK: Tags

    /// Returns the names of a page's tags with their attributes, and whether all tags are closed.
    private static func tags(of page: String) -> (tags: [String], isBalanced: Bool) {
        let void: Set = ["meta", "link", "img", "input", "path", "!doctype"]
        var tags: [String] = []
        var open: [String] = []
        var isBalanced = true
        for match in page.matches(of: #/<(/?)([!a-z][a-z0-9]*)([^>]*)>/#) {
            let name = String(match.output.2)
            let attributes = match.output.3.matches(of: #/\s([a-z-]+)(="[^"]*")?/#).map { String($0.output.1) }
            tags.append("\(match.output.1)\(name) \(attributes.joined(separator: " "))")
            if void.contains(name) { continue }
            if match.output.1.isEmpty { open.append(name) } else { isBalanced = isBalanced && open.popLast() == name }
        }
        return (tags, isBalanced && open.isEmpty)
    }
}
