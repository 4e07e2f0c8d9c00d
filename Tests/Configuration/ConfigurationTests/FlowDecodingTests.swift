import Configuration
import Rules
import System
import Testing

struct FlowDecodingTests {
    @Test func `flow keys are read, and those of a rule replace the defaults`() throws {
        let loaded = load(
            """
            defaults: { window: "22:00-06:00", tags: [night], priority: 3, ready: { min_age: 1s } }
            rules:
              - { name: a, path: /in/*, action: log }
              - { name: b, path: /in/*, window: false, tags: day, priority: -1, ready: false, stop: true, action: log }
            """)
        #expect(loaded.diagnostics.isEmpty)
        let rules = loaded.ruleset.rules
        try #require(rules.count == 2)
        #expect(rules[0].window == RunWindow([RunWindow.Span(start: 22 * 60, end: 6 * 60)]))
        #expect(rules[0].tags == ["night"] && rules[0].priority == 3 && !rules[0].isLast)
        #expect(rules[0].ready?.minimumAge == .seconds(1))
        #expect(rules[1].window == nil && rules[1].ready == nil)
        #expect(rules[1].tags == ["day"] && rules[1].priority == -1 && rules[1].isLast)
    }

    @Test(arguments: [
        ("${name}.done", "/in/a.txt.done"), ("${stem}-ok", "/in/sub/a-ok"), ("done/${name}", "/in/done/a.txt"),
        ("../.marks/${name}", "/in/.marks/a.txt"), ("_SUCCESS", "/in/sub/_SUCCESS"),
    ])
    func `a rule never matches its own marker files`(marker: String, path: String) throws {
        let loaded = load(
            "rules: [{ name: a, path: /in/**, hidden: true, ready: { done_file: \"\(marker)\" }, action: log }]")
        let rule = try #require(loaded.ruleset.rules.first)
        #expect(rule.root(matching: PathBytes(path)) == nil)
        #expect(rule.root(matching: "/in/a.txt") == "/in")
    }

    @Test func `a path can be compared case-sensitively`() throws {
        let loaded = load(
            """
            rules:
              - { name: exact, path: "/in/*.C", case: sensitive, action: log }
              - { name: any, path: "/in/*.C", action: log }
            """)
        let rules = loaded.ruleset.rules
        try #require(rules.count == 2)
        #expect(rules[0].root(matching: "/in/a.C") == "/in" && rules[0].root(matching: "/in/a.c") == nil)
        #expect(rules[1].root(matching: "/in/a.c") == "/in")
    }

    @Test func `a tag filter excludes the rules without the tag`() {
        var loaded = load(
            """
            rules:
              - { name: a, path: /in/*, tags: [x, y], action: log }
              - { name: b, path: /in/*, action: log }
              - { name: c, path: /in/*, tags: [y], enabled: false, action: log }
              - { name: d, path: /in/*, enabled: false, action: log }
            """)
        loaded.keepOnly(tags: ["y", "z"])
        #expect(loaded.ruleset.listed.map(\.name) == ["a", "c"])
        #expect(loaded.ruleset.rules.map(\.name) == ["a"])
        #expect(loaded.untaggedRules.map(\.name) == ["b"])
    }
}
