import Configuration
import Rules
import Testing

struct YAMLParserTests {
    /// Parses a string and returns its tree, its source for slicing, and its problems.
    private func parse(_ text: String) throws -> (root: YAMLNode, source: SourceText, problems: [TextProblem]) {
        let source = SourceText(file: "x.yaml", bytes: Array(text.utf8))
        let (root, problems) = try YAMLParser.parse(source)
        return (try #require(root), source, problems)
    }

    private func text(of node: YAMLNode?, in source: SourceText) throws -> String {
        source.text(try #require(node).range)
    }

    // MARK: - Locations

    @Test func `the range of a scalar is its own text, including quotes`() throws {
        let (root, source, _) = try parse("a: plain text  # note\nb: \"x\\ty\"\nc: 'it''s'\nd: [p, 'q']\n")
        #expect(try text(of: root.entry("a")?.value, in: source) == "plain text")
        #expect(try text(of: root.entry("b")?.value, in: source) == "\"x\\ty\"")
        #expect(try text(of: root.entry("c")?.value, in: source) == "'it''s'")
        #expect(try text(of: root.entry("d")?.value, in: source) == "[p, 'q']")
        #expect(try text(of: root.entry("d")?.value.elements?.last, in: source) == "'q'")
        #expect(try text(of: root.entry("d")?.key, in: source) == "d")
    }

    @Test func `an anchor and a tag are not part of the range`() throws {
        let (root, source, _) = try parse("a: &x foo\nb: !!str &y 5\nc: &z [1]\nd: &w\n  e: f\n")
        #expect(try text(of: root.entry("a")?.value, in: source) == "foo")
        #expect(try text(of: root.entry("b")?.value, in: source) == "5")
        #expect(try text(of: root.entry("c")?.value, in: source) == "[1]")
        let block = try #require(root.entry("d")?.value)
        #expect(source.location(at: block.range.lowerBound).line == 5)
        #expect(source.location(at: block.range.lowerBound).column == 3)
    }

    @Test func `columns count characters and lines count line ends`() throws {
        let (root, source, _) = try parse("é: 1\r\n日本: {ü: x}\r\n")
        let inner = try #require(root.entry("日本")?.value.entry("ü")?.value)
        #expect(source.location(at: inner.range.lowerBound).description == "x.yaml:2:9")
    }

    @Test func `locations are correct in a long file that is not ASCII`() throws {
        let lines = (0..<3_000).map { "k\($0): äöü\n" }.joined()
        let (root, source, _) = try parse(lines)
        for number in [0, 511, 512, 513, 2_999] {
            let value = try #require(root.entry("k\(number)")?.value)
            #expect(source.location(at: value.range.lowerBound).line == number + 1)
            #expect(source.text(value.range) == "äöü")
        }
    }

    // MARK: - Scalars

    @Test func `styles are retained, and quotes and tags make strings`() throws {
        let (root, _, _) = try parse("[a, 'b', \"c\", 5, '5', !!str 5, ! 5, ~, '~', ]")
        #expect(
            try #require(root.elements).map(\.isPlain) == [true, false, false, true, false, false, false, true, false])
        #expect(
            try #require(root.elements).map(\.isNull) == [false, false, false, false, false, false, false, true, false])
        let block = try parse("a: |\n  x\n  y\n").root.entry("a")?.value
        #expect(block?.text == "x\ny\n")
        #expect(block?.isPlain == false)
    }

    struct Plain: Sendable, CustomTestStringConvertible {
        let text: String
        let meaning: PlainScalar
        var testDescription: String { "\(text) is \(meaning)" }
    }

    static let plain = [
        Plain(text: "", meaning: .null), Plain(text: "~", meaning: .null), Plain(text: "null", meaning: .null),
        Plain(text: "nULL", meaning: .text), Plain(text: "true", meaning: .bool(true)),
        Plain(text: "FALSE", meaning: .bool(false)), Plain(text: "yes", meaning: .text),
        Plain(text: "on", meaning: .text),
        Plain(text: "0", meaning: .integer(0)), Plain(text: "-12", meaning: .integer(-12)),
        Plain(text: "+12", meaning: .integer(12)), Plain(text: "0x1F", meaning: .integer(31)),
        Plain(text: "0o17", meaning: .integer(15)), Plain(text: "0644", meaning: .leadingZero),
        Plain(text: "-01", meaning: .leadingZero), Plain(text: "1_000", meaning: .text),
        Plain(text: "9223372036854775807", meaning: .integer(.max)),
        Plain(text: "9223372036854775808", meaning: .tooLarge),
        Plain(text: "1.5", meaning: .number(1.5)), Plain(text: ".5", meaning: .number(0.5)),
        Plain(text: "5.", meaning: .number(5)), Plain(text: "1e3", meaning: .number(1000)),
        Plain(text: "-1.5E-1", meaning: .number(-0.15)), Plain(text: "1e999", meaning: .tooLarge),
        Plain(text: ".inf", meaning: .notFinite), Plain(text: "-.INF", meaning: .notFinite),
        Plain(text: ".NaN", meaning: .notFinite), Plain(text: "nan", meaning: .text),
        Plain(text: "infinity", meaning: .text),
        Plain(text: "0x", meaning: .text), Plain(text: "0xZ", meaning: .text), Plain(text: "-0x1", meaning: .text),
        Plain(text: "12:30", meaning: .text), Plain(text: "2026-11-21", meaning: .text),
        Plain(text: ".", meaning: .text),
        Plain(text: "1e", meaning: .text), Plain(text: "-", meaning: .text), Plain(text: "1.2.3", meaning: .text),
    ]

    @Test(arguments: plain)
    func `plain scalars have the types of the YAML 1-2 core schema`(example: Plain) {
        #expect(PlainScalar(example.text) == example.meaning)
    }

    // MARK: - Aliases and merge keys

    @Test func `an alias is the node that it names, of any kind`() throws {
        let (root, source, problems) = try parse("a: &s text\nb: &m {x: 1}\nc: &l [1, 2]\nd: [*s, *m, *l]\n*s : key\n")
        let elements = try #require(root.entry("d")?.value.elements)
        #expect(elements[0].text == "text")
        #expect(elements[1].entry("x")?.value.text == "1")
        #expect(elements[2].elements?.count == 2)
        #expect(root.entry("text")?.value.text == "key")
        #expect(source.location(at: elements[0].range.lowerBound).line == 1)
        #expect(problems.isEmpty)
    }

    @Test func `an anchor can be redefined, also inside itself`() throws {
        let (root, _, _) = try parse("- &a 1\n- *a\n- &a 2\n- *a\n- &a [&a 3, *a]\n")
        #expect(try #require(root.elements)[1].text == "1")
        #expect(try #require(root.elements)[3].text == "2")
        #expect(try #require(root.elements)[4].elements?.last?.text == "3")
    }

    @Test func `a merge key adds missing keys only`() throws {
        let (root, _, problems) = try parse(
            "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: *a, x: own}\nd: {<<: [*b, *a]}\ne: {'<<': 5}\n")
        #expect(problems.isEmpty)
        let c = try #require(root.entry("c")?.value)
        #expect(c.entry("x")?.value.text == "own")
        #expect(c.entry("y")?.value.text == "1")
        let d = try #require(root.entry("d")?.value)
        #expect(["x", "y", "z"].map { d.entry($0)?.value.text } == ["1", "2", "2"])
        #expect(root.entry("e")?.value.entry("<<")?.value.text == "5")
    }

    @Test func `an exponential expansion of aliases is refused at once`() throws {
        var text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
        for level in 1...40 {
            text +=
                "a\(level): &a\(level) [" + Array(repeating: "*a\(level - 1)", count: 10).joined(separator: ", ")
                + "]\n"
        }
        let clock = ContinuousClock()
        let start = clock.now
        #expect(throws: TextProblem.self) { try parse(text) }
        #expect(clock.now - start < .seconds(60))
    }

    @Test func `many aliases of a small node are accepted`() throws {
        let (root, _, _) = try parse(
            "a: &a {x: 1}\nb: [" + Array(repeating: "*a", count: 10_000).joined(separator: ", ") + "]\n")
        #expect(root.entry("b")?.value.elements?.count == 10_000)
    }

    // MARK: - Limits

    @Test func `a million brackets are refused at the depth limit`() throws {
        let clock = ContinuousClock()
        let start = clock.now
        for opening in ["[", "{a: ", "- ", "? ", "[{a: ", "!!seq [", "&a [", "- - "] {
            #expect(throws: TextProblem.self) { try parse(String(repeating: opening, count: 1_000_000)) }
        }
        #expect(clock.now - start < .seconds(180))
    }

    @Test func `more values than the limit are refused`() throws {
        let text = "[" + String(repeating: "a,", count: YAMLParser.maximumSize + 1) + "]"
        let error = #expect(throws: TextProblem.self) { try parse(text) }
        #expect(error?.message == "the file contains more than 1000000 values")
    }

    @Test func `a file of comments has no root`() throws {
        for text in ["", "\n", "# a\n", "  # a"] {
            let (root, problems) = try YAMLParser.parse(SourceText(file: "x", bytes: Array(text.utf8)))
            #expect(root == nil)
            #expect(problems.isEmpty)
        }
    }
}
