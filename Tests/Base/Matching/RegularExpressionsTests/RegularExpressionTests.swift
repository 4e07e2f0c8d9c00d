import RegularExpressions
import Testing

struct RegularExpressionTests {
    private static func groups(_ pattern: String, _ name: [UInt8]) throws -> [[UInt8]?]? {
        guard case .found(let groups) = try RegularExpression(pattern).search(name) else { return nil }
        return groups
    }

    private static func groups(_ pattern: String, _ name: String) throws -> [String?]? {
        try groups(pattern, Array(name.utf8))?.map { $0.map { String(decoding: $0, as: UTF8.self) } }
    }

    @Test func `a pattern matches anywhere in the name unless it is anchored`() throws {
        #expect(try Self.groups("b+", "abbc") == ["bb"])
        #expect(try Self.groups("^b", "abbc") == nil)
        #expect(try Self.groups("", "") == [""])
        #expect(try Self.groups("a", "") == nil)
    }

    @Test func `a group has the bytes it matched, and nil if it did not take part`() throws {
        #expect(try Self.groups(#"^(\d{4})-(\d\d)(x)?(y)?"#, "2026-11y") == ["2026-11y", "2026", "11", nil, "y"])
        #expect(try Self.groups("(a)|(b)|(c)", "b") == ["b", nil, "b", nil])
        #expect(try Self.groups(#"(a)\Kb"#, "ab") == ["b", "a"])
    }

    @Test func `named groups are numbered, and several groups may have the same name`() throws {
        let expression = try RegularExpression("(?<year>[0-9]+)(?<month>x)")
        #expect(expression.names == ["year": [1], "month": [2]])
        #expect(expression.groupCount == 2)
        #expect(try RegularExpression("(?J)(?<n>a)|(?<n>b)").names == ["n": [1, 2]])
    }

    @Test func `a dot matches a newline, and a dollar matches only at the end`() throws {
        #expect(try Self.groups("^(.*)\\.jpg$", "a\nb.jpg") == ["a\nb.jpg", "a\nb"])
        #expect(try Self.groups("\\.jpg$", "a.jpg\n") == nil)
    }

    @Test func `names in UTF-8 are matched by characters, other names by bytes`() throws {
        #expect(try Self.groups("^.$", "é") == ["é"])
        #expect(try Self.groups("^.(\\.jpg)$", Array("é.jpg".utf8)) != nil)
        #expect(try Self.groups("^(.+)\\.jpg$", [0x63, 0xE9, 0xFF] + Array(".jpg".utf8))?[1] == [0x63, 0xE9, 0xFF])
        #expect(try Self.groups("^..$", [0xE9, 0xFF]) != nil)
        // Syntax that applies only to valid UTF-8 is matched against the parts of the name that are valid.
        #expect(try Self.groups("\\x{1F600}", Array("\u{1F600}".utf8) + [0xFF]) != nil)
        #expect(try Self.groups("(?i)É", "é") == ["é"])
    }

    @Test(arguments: [
        ("(a", 2), ("*.jpg", 0), ("[a", 2), ("a{2,1}", 5), ("(?<n>a)(?<n>b)", 12), (#"\C"#, 2), ("a\\", 2), ("é(", 3),
    ])
    func `an invalid pattern is reported with its offset`(pattern: String, offset: Int) {
        let error = #expect(throws: RegularExpressionError.self) { try RegularExpression(pattern) }
        #expect(error?.offset == offset)
        #expect(error?.message.isEmpty == false)
    }

    @Test func `a pattern longer than the maximum length is refused`() {
        #expect(throws: RegularExpressionError.self) {
            try RegularExpression(String(repeating: "a", count: RegularExpression.maximumLength + 1))
        }
    }

    /// Without a step limit, each of these searches would take years.
    ///
    /// The test ends only if the limit applies.
    @Test(arguments: [
        "(a+)+$", "^(a+)+$", "(a|aa)+$", "(a|a?)+$", "(.*a){25}$", "([a-z]+)*[^a!]", "((a+)*)*$", "^(?:a?){80}a{200}$",
        "(*LIMIT_MATCH=4000000000)(a+)+$", "(?:(?:(?:a?)*)*)*$", #"^(([a-z])+.)+[A-Z]([a-z])+$"#,
    ])
    func `a search that takes too many steps is aborted`(pattern: String) throws {
        let name = Array(String(repeating: "a", count: 254).utf8) + [0x21]
        #expect(try RegularExpression(pattern).search(name) == .tooComplex)
        #expect(try RegularExpression(pattern).search(name.dropLast() + [0xFF]) != .notFound)
    }

    @Test(arguments: [
        #"^(\d{4})-(\d{2})-(\d{2})_(.+)\.jpe?g$"#, "^(.*)-(.*)-(.*)\\.pdf$", "(?i)invoice.*[0-9]{3,}.*\\.pdf$",
        "^([^_]+)_([^_]+)_([^_]+)_", "a.*b.*c", ".*.*[^a]=",
    ])
    func `common patterns stay below the step limit for the longest names`(pattern: String) throws {
        for unit in ["a", "-", "ab-c_", "2026-", "é", "."] {
            let name = Array(String(repeating: unit, count: 255).utf8.prefix(255))
            #expect(try RegularExpression(pattern).search(name) != .tooComplex)
        }
    }
}
