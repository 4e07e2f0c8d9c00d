import Testing

@testable import Globbing

/// Invalid patterns.
struct GlobErrorTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let pattern: String
        let offset: Int
        let message: String
        let help: String

        init(_ pattern: String, at offset: Int, _ message: String, help: String) {
            self.pattern = pattern
            self.offset = offset
            self.message = message
            self.help = help
        }

        var testDescription: String { message }
    }

    static let closeBrace = "add '}', or write '[{]' to match a brace"
    static let closeBracket = "add ']', or write '[[]' to match a bracket"
    static let noSlash = "add '*' for the files in the directory, or remove the slash for the directory itself"
    static let noParent = "write the directory itself; a glob only compares names"
    static let noRange = "write every alternative, as in '{1,2,3}', or a class, as in '[1-3]'"
    static let names = "write '*' for the files of the directory, or '**' for all below it"
    static let classNames =
        "the classes are alnum, alpha, blank, cntrl, digit, graph, lower, print, punct, space, upper, xdigit"

    static let cases = [
        Case("", at: 0, "the glob is empty", help: "write a path, such as 'in/*.jpg'"),
        Case("a\0b", at: 1, #"glob 'a\0b' contains a NUL byte, which no path can"#, help: "remove the byte"),
        Case(
            #"a\"#, at: 1, #"glob 'a\' ends with '\', which escapes nothing"#,
            help: #"write '\\' to match a backslash"#),
        Case(
            #"{a,b\"#, at: 4, #"glob '{a,b\' ends with '\', which escapes nothing"#,
            help: #"write '\\' to match a backslash"#),
        Case("in/{a,b", at: 3, "glob 'in/{a,b' has no closing '}'", help: closeBrace),
        Case("{", at: 0, "glob '{' has no closing '}'", help: closeBrace),
        Case("{a,{b}", at: 0, "glob '{a,{b}' has no closing '}'", help: closeBrace),
        Case("{a,{b", at: 3, "glob '{a,{b' has no closing '}'", help: closeBrace),
        Case(#"{a,b\}"#, at: 0, #"glob '{a,b\}' has no closing '}'"#, help: closeBrace),
        Case("in/[ab", at: 3, "glob 'in/[ab' has no closing ']'", help: closeBracket),
        Case("[]", at: 0, "glob '[]' has no closing ']'", help: closeBracket),
        Case("[!]", at: 0, "glob '[!]' has no closing ']'", help: closeBracket),
        Case("[a-", at: 0, "glob '[a-' has no closing ']'", help: closeBracket),
        Case(#"[a\"#, at: 0, #"glob '[a\' has no closing ']'"#, help: closeBracket),
        Case(#"[a\]"#, at: 0, #"glob '[a\]' has no closing ']'"#, help: closeBracket),
        Case("{[a,b}", at: 1, "glob '{[a,b}' has no closing ']'", help: closeBracket),
        Case("in[1/a", at: 2, "glob 'in[1/a' has no closing ']'", help: closeBracket),
        Case(
            "in/[a/b]", at: 5, "glob 'in/[a/b]' contains '/' between '[' and ']', which match within one name",
            help: "write '{a/b,c}' for alternatives that contain '/'"),
        Case("x[z-a]", at: 2, "glob 'x[z-a]' contains the range 'z-a', which is out of order", help: "write 'a-z'"),
        Case("[0-9ω-α]", at: 4, "glob '[0-9ω-α]' contains the range 'ω-α', which is out of order", help: "write 'α-ω'"),
        Case("[[:foo:]]", at: 1, "glob '[[:foo:]]' contains the unknown class '[:foo:]'", help: classNames),
        Case(
            "a[:digit:]", at: 1, "glob 'a[:digit:]' contains '[:digit:]' outside of '[' and ']'",
            help: "write '[[:digit:]]'"),
        Case(
            "[+-[:digit:]]", at: 3, "glob '[+-[:digit:]]' contains a range that ends with '[:digit:]'",
            help: #"end the range with one character, or write '\-' to match a hyphen"#),
        Case("in/", at: 2, "glob 'in/' ends with '/'", help: noSlash),
        Case("/", at: 0, "glob '/' ends with '/'", help: noSlash),
        Case("in/**/", at: 5, "glob 'in/**/' ends with '/'", help: noSlash),
        Case(#"in\/"#, at: 3, #"glob 'in\/' ends with '/'"#, help: noSlash),
        Case("in/{,a}", at: 2, "an alternative of glob 'in/{,a}' ends with '/'", help: noSlash),
        Case("{a/,b}", at: 2, "an alternative of glob '{a/,b}' ends with '/'", help: noSlash),
        Case("../a", at: 0, "glob '../a' contains '..'", help: noParent),
        Case("a/../b", at: 2, "glob 'a/../b' contains '..'", help: noParent),
        Case("a/..", at: 2, "glob 'a/..' contains '..'", help: noParent),
        Case("a/{b,.}./c", at: 5, "glob 'a/{b,.}./c' contains '..'", help: noParent),
        Case(".", at: 0, "glob '.' matches no file", help: names),
        Case("/.", at: 0, "glob '/.' matches no file", help: names),
        Case("{a,.}", at: 3, "glob '{a,.}' matches no file", help: names),
        Case(
            "{,a}", at: 0, "glob '{,a}' has an alternative that is empty",
            help: "write at least one name in every alternative"),
        Case(
            "{/a,b}", at: 0, "glob '{/a,b}' is absolute in one alternative and relative in another",
            help: "write two globs"),
        Case("a{1..3}", at: 1, "glob 'a{1..3}' contains the range '{1..3}', which globs do not expand", help: noRange),
        Case(
            "{-1..10..2}", at: 0, "glob '{-1..10..2}' contains the range '{-1..10..2}', which globs do not expand",
            help: noRange),
        Case(
            "{x,{a..e}}", at: 3, "glob '{x,{a..e}}' contains the range '{a..e}', which globs do not expand",
            help: noRange),
    ]

    @Test(arguments: cases)
    func `an error has the offset, the message and the help`(_ example: Case) {
        let expected = GlobError(offset: example.offset, message: example.message, help: example.help)
        #expect(throws: expected) { try Glob(example.pattern) }
    }

    static let full = String(repeating: "{a,b}", count: 10)

    @Test func `a pattern may expand to 1024 alternatives`() throws {
        let glob = try Glob(Self.full)
        #expect(glob.matches(Array("abababbbba".utf8)))
        let error = #expect(throws: GlobError.self) { try Glob(Self.full + "{,x}") }
        #expect(error?.offset == 50)
        #expect(error?.message == "glob '\(Self.full){,x}' expands to more than 1024 alternatives")
        #expect(error?.help == "use '*' or write several globs")
    }

    @Test func `the limit also applies to a single group`() throws {
        let many = "{" + (0..<1025).map { "\($0)" }.joined(separator: ",") + "}"
        let error = #expect(throws: GlobError.self) { try Glob(many) }
        #expect(error?.message.hasSuffix("…' expands to more than 1024 alternatives") == true)
    }

    @Test(.timeLimit(.minutes(15)))
    func `braces that expand exponentially are refused at once`() {
        #expect(throws: GlobError.self) { try Glob(String(repeating: "{a,b}", count: 1000)) }
        #expect(throws: GlobError.self) { try Glob(String(repeating: "{,}", count: 1000)) }
    }

    @Test func `an expanded pattern may have up to 64 KiB`() throws {
        let name = String(repeating: "x", count: 30_000)
        #expect(try Glob(name + "{a,b}").matches(Array((name + "b").utf8)))
        let error = #expect(throws: GlobError.self) { try Glob(name + "{a,b,c}") }
        #expect(error?.offset == 30_000)
        #expect(error?.message.hasSuffix("…' is longer than 65536 bytes when its braces are expanded") == true)
        #expect(throws: GlobError.self) { try Glob(String(repeating: "x", count: 70_000)) }
    }

    @Test func `braces may nest up to 32 levels deep`() throws {
        let opening = String(repeating: "{a,", count: 32)
        let closing = String(repeating: "}", count: 32)
        #expect(try Glob(opening + "b" + closing).matches(Array("b".utf8)))
        let error = #expect(throws: GlobError.self) { try Glob("{a," + opening + "b" + closing + "}") }
        #expect(error?.offset == 96)
        #expect(error?.message.contains("nests braces more than 32 deep") == true)
        #expect(throws: GlobError.self) { try Glob(String(repeating: "{", count: 60_000)) }
    }

    @Test func `bytes that are not valid UTF-8 are shown as replacement characters`() {
        let expected = GlobError(offset: 1, message: "glob '\u{FFFD}[a' has no closing ']'", help: Self.closeBracket)
        #expect(throws: expected) { try Glob([0xFF] + Array("[a".utf8)) }
    }
}
