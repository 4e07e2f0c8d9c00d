import FileEvents
import JSON
import RegularExpressions
import Rules
import System
import Testing
import TestKit

@testable import Configuration

/// Random values from typical pieces: parsing terminates, and the schema accepts every value that a parser accepts.
struct ValueFuzzTests {
    /// A type of value: the pieces of its strings, its parser, and its schema.
    struct Grammar: Sendable, CustomTestStringConvertible {
        var name: String
        var pieces: [String]
        var form: JSONValue
        var isTaken: @Sendable (String) -> Bool

        var testDescription: String { name }
    }

    static let grammars: [Grammar] = [
        Grammar(
            name: "duration", pieces: ["0", "1", "30", "1.5", ".", "-", "d", "h", "m", "s", "ms", " ", "min"],
            form: SchemaForm.duration(allowsZero: true)
        ) { (try? DurationText.parse($0)) != nil },
        Grammar(
            name: "duration above 0", pieces: ["0", "0.0", "1", "d", "h", "m", "s", "ms"], form: SchemaForm.duration()
        ) { ((try? DurationText.parse($0)) ?? .zero) > .zero },
        Grammar(
            name: "size", pieces: ["0", "1", "64", ".", "5", " ", "B", "kb", "KB", "MiB", "gIb", "e3", "-"],
            form: SchemaForm.size(atLeast: 0)
        ) { (try? SizeText.parse($0)) != nil },
        Grammar(
            name: "window",
            pieces: [
                "22:00", "06:00", "0:0", "24:00", "-", "-", ",", " ", "Mon", "fri", "SUNDAY", "22:00-06:00", "x",
                "9:30",
            ],
            form: RuleDecoder.keys["window"]?.form() ?? .null
        ) { (try? WindowText.parse($0)) != nil },
        Grammar(
            name: "comparison", pieces: [">", "<", "=", "!", "..", "1", " ", "KB", "64 MB", "\t", "."],
            form: SchemaForm.comparisons(of: .size)
        ) { text in
            (try? ComparisonText.parse(text, noun: "size") { value throws(Problem) in
                try SizeText.parse(value)
            }) != nil
        },
        Grammar(
            name: "template",
            pieces: [
                "$", "{", "}", "$${", "${name}", "${mtime:%Y}", "${now:", "${steps.1.outputs.0}", "${1}", "${99}",
                "${match.a b}", "${env:X}", "name", ":", "é", "\n", "${00}", "${env:}",
            ], form: SchemaForm.template
        ) { text in
            let scan = PlaceholderScan(text)
            return scan.unclosed == nil
                && scan.tokens.allSatisfy { $0.variable != nil || Placeholder(word: $0.word) != nil }
        },
    ]

    /// Returns the patterns of a form.
    ///
    /// A string is valid if one of them matches.
    private static func patterns(_ form: JSONValue) -> [String] {
        if let pattern = form.object?["pattern"]?.string { return [pattern] }
        return form.object?["anyOf"]?.array?.flatMap(patterns) ?? []
    }

    @Test(arguments: grammars) func `accepted values match the schema, and all others are refused in reasonable time`(
        grammar: Grammar
    ) throws {
        let patterns = try Self.patterns(grammar.form).map { try RegularExpression($0) }
        #expect(!patterns.isEmpty)
        var random = SeededGenerator(seed: Fuzzing.seed(UInt64(grammar.name.utf8.count)))
        var taken = 0
        for _ in 0..<Fuzzing.rounds(20_000) {
            let text = (0..<(1 + random.below(6))).map { _ in random.pick(grammar.pieces) }.joined()
            guard grammar.isTaken(text) else { continue }
            taken += 1
            let isFound = patterns.contains { expression in
                if case .found = expression.search(text.utf8) { true } else { false }
            }
            #expect(isFound, "the schema refuses '\(text)'")
        }
        #expect(taken > 50, "almost nothing of what is made up is right")
    }

    @Test func `a valid template expands to a string of bounded length for any name`() {
        var random = SeededGenerator(seed: Fuzzing.seed(1))
        let pieces = Self.grammars.last?.pieces ?? []
        let names: [PathBytes] = ["/a/b.c", "/", "/a/${name}", "/a/\n..", PathBytes([0x2F, 0xFF, 0x2E, 0xC3])]
        for _ in 0..<Fuzzing.rounds(5_000) {
            let text = (0..<(1 + random.below(8))).map { _ in random.pick(pieces) }.joined()
            guard let template = Template(text) else { continue }
            for name in names {
                let values = PlaceholderValues(
                    event: .sample(.created, name, root: "/a"), rule: "r", job: "j", attempt: 1,
                    now: Timestamp(seconds: 0, nanoseconds: 0), stepOutputs: [[], [name]])
                // At most the length of the values of its placeholders. Nothing multiplies them.
                #expect(template.expanded(with: values).count <= text.utf8.count * 64)
            }
        }
    }

    @Test(arguments: UInt64(0)..<8) func `for any conditions, loading terminates`(seed: UInt64) {
        var random = SeededGenerator(seed: Fuzzing.seed(seed))
        func value(_ depth: Int) -> String {
            let scalars = [
                "\"> 1 KB\"", "5", "-1", "\"<= 2\"", "image/*", "'*.jpg'", "'^a(b|c)+$'", "'(?<x>a+)+$'", "root",
                "\":0\"",
                "~", "true", "'['", "'('", "\"\"", "\"1..2\"", "\"> 7d\"", "'**/a'", "{a}", "${name}",
            ]
            switch random.below(depth > 4 ? 1 : 4) {
            case 0: return random.pick(scalars)
            case 1: return "[" + (0..<random.below(4)).map { _ in value(depth + 1) }.joined(separator: ", ") + "]"
            default: return mapping(depth + 1)
            }
        }
        func mapping(_ depth: Int) -> String {
            let entries = (0..<random.below(4)).map { _ in
                "\(random.pick(RuleDecoder.conditionKeys.names + ["nmae", "settle"])): \(value(depth))"
            }
            return "{ " + entries.joined(separator: ", ") + " }"
        }
        withTempTree { tree in
            let loader = makeLoader(in: tree.root)
            for _ in 0..<Fuzzing.rounds(150) {
                let text = "rules:\n  - path: /in/*\n    where: \(mapping(0))\n    action: log\n"
                TestFile.write(tree.path("rules.yaml"), text)
                let loaded = loader.load(["rules.yaml"])
                #expect(loaded.hasErrors || loaded.ruleset.rules.count == 1, "\(text)")
            }
        }
    }
}
