import Dashboard
import Testing

/// Escaping of external text on a page.
struct HTMLTests {
    @Test(arguments: [
        ("cat.jpg", "cat.jpg"), ("<img src=x onerror=alert(1)>.png", "&lt;img src=x onerror=alert(1)&gt;.png"),
        ("\" onclick='x' & y", "&quot; onclick=&#39;x&#39; &amp; y"), ("two\nlines\tand\r", "two\\nlines\\tand\\r"),
        ("photo\u{202e}gpj.exe", "photo\\u{202e}gpj.exe"), ("\u{1b}[31m", "\\u{1b}[31m"),
        ("a\u{2028}b\u{0}\u{200b}", "a\\u{2028}b\\u{0}\\u{200b}"), ("caf\u{fffd}", "caf\u{fffd}"),
        ("日本語 🌄", "日本語 🌄"), ("&lt;", "&amp;lt;"), ("e\u{301}", "e\u{301}"),
    ])
    func `external text is shown as it is, and can be neither markup nor invisible`(text: String, shown: String) {
        let html: HTML = "<b title=\"\(text)\">\(text)</b>"
        #expect(html.text == "<b title=\"\(shown)\">\(shown)</b>")
    }

    @Test func `a log keeps its line breaks, but no other invisible characters`() {
        let html: HTML = "<pre>\(lines: "a\n\tb\r\n<\u{1b}>\u{202e}")</pre>"
        #expect(html.text == "<pre>a\n\tb\\r\n&lt;\\u{1b}&gt;\\u{202e}</pre>")
    }

    @Test func `existing markup is inserted unchanged`() {
        let inner: HTML = "<i>\("<")</i>"
        #expect(HTML("<b>\(inner)\([inner, inner])\(12)</b>").text == "<b><i>&lt;</i><i>&lt;</i><i>&lt;</i>12</b>")
    }

    @Test(arguments: [("a-b.c_d~1", "a-b.c_d~1"), ("a b/?&\"", "a%20b%2F%3F%26%22"), ("é\n", "%C3%A9%0A")])
    func `a part of a URL has no character with a special meaning`(text: String, part: String) {
        #expect(HTML.urlPart(text) == part)
    }

    @Test(
        arguments: [
            (0, "0"), (7, "7"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567"), (-1_200, "-1,200"),
        ] as [(Int, String)])
    func `numbers are grouped`(number: Int, text: String) { #expect(Wording.number(number) == text) }

    @Test(
        arguments: [
            (0, "0"), (0.04, "<0.1"), (0.4, "0.4"), (2, "2"), (9.96, "10"), (12.4, "12"), (1_204.2, "1,204"),
            (.infinity, "–"), (.nan, "–"), (1e300, "–"),
        ] as [(Double, String)])
    func `rates have a decimal only where it is significant`(rate: Double, text: String) {
        #expect(Wording.rate(rate) == text)
    }

    @Test(
        arguments: [
            (0, "0 ms"), (0.0004, "0.4 ms"), (0.25, "250 ms"), (0.9996, "1 s"), (3.41, "3.4 s"), (59.4, "59 s"),
            (59.6, "1 min"), (125, "2 min 5 s"), (900, "15 min"), (3_600, "1 h"), (7_500, "2 h 5 min"),
            (266_000, "3 d 1 h"), (1e7, "115 d"), (.infinity, "–"), (-1, "–"),
        ] as [(Double, String)])
    func `durations have natural units`(seconds: Double, text: String) {
        #expect(Wording.duration(seconds: seconds) == text)
    }

    @Test(
        arguments: [(0, "0 B"), (999, "999 B"), (1_500, "1.5 KB"), (18_421_000, "18 MB"), (2e13, "20 TB")]
            as [(Double, String)])
    func `sizes are short`(bytes: Double, text: String) { #expect(Wording.size(bytes) == text) }
}
