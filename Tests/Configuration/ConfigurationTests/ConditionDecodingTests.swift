import Configuration
import Globbing
import RegularExpressions
import Rules
import Testing

/// Decoding of `where:`.
///
/// Its errors are in Tests/Fixtures/rules/where.
struct ConditionDecodingTests {
    private static func condition(_ yaml: String) throws -> Condition {
        let loaded = load("rules:\n  - path: /in/**\n    action: log\n    where: \(yaml)\n")
        #expect(loaded.diagnostics.isEmpty, "\(DiagnosticText.text(of: loaded.diagnostics))")
        return try #require(loaded.ruleset.rules.first?.condition)
    }

    @Test func `a rule without where has no condition`() throws {
        #expect(load("rules:\n  - { path: /in/*, action: log }\n").ruleset.rules.first?.condition == nil)
    }

    @Test(
        arguments: [
            ("'> 1 KB'", [.init(.more, 1_000)], "> 1 KB"), ("'>= 1MiB'", [.init(.atLeast, 1_048_576)], ">= 1MiB"),
            ("1 KB..5 MB", [.init(.atLeast, 1_000), .init(.atMost, 5_000_000)], "1 KB..5 MB"),
            ("['> 1', '!= 7 B']", [.init(.more, 1), .init(.unequal, 7)], "> 1 and != 7 B"),
            ("= 0", [.init(.equal, 0)], "= 0"),
            ("<512", [.init(.less, 512)], "<512"),
        ] as [(String, [Comparisons<UInt64>.Bound], String)])
    func `sizes are comparisons and ranges`(
        yaml: String, bounds: [Comparisons<UInt64>.Bound], text: String
    ) throws {
        #expect(try Self.condition("{ size: \(yaml) }") == .size(Comparisons(bounds, text: text)))
    }

    @Test func `ages may exceed the limit of other durations, and depths are numbers`() throws {
        #expect(
            try Self.condition("{ age: '> 730d' }")
                == .age(Comparisons([.init(.more, .seconds(730 * 86_400))], text: "> 730d")))
        #expect(
            try Self.condition("{ age: 1h..2d }")
                == .age(
                    Comparisons(
                        [.init(.atLeast, .seconds(3_600)), .init(.atMost, .seconds(2 * 86_400))], text: "1h..2d")))
        #expect(try Self.condition("{ depth: 0 }") == .depth(Comparisons([.init(.equal, 0)], text: "0")))
        #expect(
            try Self.condition("{ depth: 1..3 }")
                == .depth(Comparisons([.init(.atLeast, 1), .init(.atMost, 3)], text: "1..3")))
    }

    @Test func `content types allow a star for either half`() throws {
        #expect(
            try Self.condition("{ mime: [Application/PDF, image/*, '*/*'] }")
                == .mime([
                    .init(type: "application", subtype: "pdf"), .init(type: "image", subtype: nil),
                    .init(type: nil, subtype: nil),
                ]))
        #expect(
            try Self.condition("{ mime: image/svg+xml }") == .mime([.init(type: "image", subtype: "svg+xml")]))
    }

    @Test func `owners are users and groups by name or number`() throws {
        #expect(
            try Self.condition("{ owner: [root, 1000, 'root:root', ':7', '3:4'] }")
                == .owner([
                    .init(uid: 0, gid: nil, text: "root"), .init(uid: 1_000, gid: nil, text: "1000"),
                    .init(uid: 0, gid: 0, text: "root:root"), .init(uid: nil, gid: 7, text: ":7"),
                    .init(uid: 3, gid: 4, text: "3:4"),
                ]))
    }

    @Test func `names and paths are globs that match hidden names, and paths expand home`() throws {
        let hidden = Glob.Options(matchesHidden: true)
        #expect(try Self.condition("{ name: '*.jpg' }") == .name([try Glob("*.jpg", options: hidden)]))
        #expect(
            try Self.condition("{ path: [2026/*, ~/x/*, '${env:INBOX}/*', /a/*] }")
                == .path(
                    try ["2026/*", "/home/ada/x/*", "/srv/in/*", "/a/*"].map { try Glob($0, options: hidden) }))
    }

    @Test func `all conditions of a mapping must match, and groups can be nested`() throws {
        let a = Condition.regex(try RegularExpression("a"))
        let b = Condition.regex(try RegularExpression("b"))
        let small = Condition.size(Comparisons([.init(.less, 1)], text: "< 1"))
        #expect(try Self.condition("{ regex: a }") == a)
        #expect(try Self.condition("{ regex: a, size: < 1 }") == .all([a, small]))
        #expect(
            try Self.condition("{ any: [{ regex: a, size: < 1 }, { regex: b }] }")
                == .any([.all([a, small]), b]))
        #expect(try Self.condition("{ all: [{ regex: a }, { regex: b }] }") == .all([a, b]))
        #expect(try Self.condition("{ not: { regex: a, size: < 1 } }") == .not(.all([a, small])))
        #expect(try Self.condition("{ not: [{ regex: a }, { regex: b }] }") == .not(.any([a, b])))
        #expect(try Self.condition("{ not: { not: [{ regex: a }] } }") == .not(.not(a)))
    }

    @Test func `defaults may set a condition, and the condition of a rule replaces it`() throws {
        let loaded = load(
            """
            defaults:
              where: { regex: '^(a)' }
              on_failure: { use: copy, with: { to: "/q/${1}" } }
            rules:
              - { path: /a/*, action: { use: copy, with: { to: "/o/${1}" } } }
              - { path: /b/*, action: { use: copy, with: { to: "/o/${match.n}" } }, where: { regex: '(?<n>b)' } }
            """)
        #expect(loaded.diagnostics.isEmpty, "\(DiagnosticText.text(of: loaded.diagnostics))")
        #expect(
            loaded.ruleset.rules.map(\.condition) == [
                .regex(try RegularExpression("^(a)")), .regex(try RegularExpression("(?<n>b)")),
            ])
    }

    @Test func `a shell command keeps its own parameters`() {
        let loaded = load(
            """
            rules:
              - { path: /a/*, action: { shell: 'f() { echo "${1}"; }; f x' } }
              - { path: /b/*, action: { shell: 'f() { echo "${2}"; }; f x' }, where: { regex: '(a)' } }
            """)
        #expect(loaded.diagnostics.isEmpty, "\(DiagnosticText.text(of: loaded.diagnostics))")
    }
}
