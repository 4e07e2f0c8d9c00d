import Globbing
import Testing

struct GlobSetTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let globs: [String]
        let path: String
        let covering: String?
        let matching: String?

        init(_ globs: [String], _ path: String, covering: String?, matching: String?) {
            self.globs = globs
            self.path = path
            self.covering = covering
            self.matching = matching
        }

        var testDescription: String { "\(globs) \(covering == nil ? "leave" : "cover") \(path)" }
    }

    static let cases = [
        Case([], "a", covering: nil, matching: nil),
        Case(["Inbox"], "Inbox", covering: "Inbox", matching: "Inbox"),
        Case(["Inbox"], "Inbox/a", covering: "Inbox", matching: nil),
        Case(["Inbox"], "Inbox/a/b/c", covering: "Inbox", matching: nil),
        Case(["Inbox"], "Inbox2/a", covering: nil, matching: nil),
        Case(["Inbox"], "a/Inbox", covering: nil, matching: nil),
        Case(["**/node_modules"], "node_modules", covering: "**/node_modules", matching: "**/node_modules"),
        Case(["**/node_modules"], "a/b/node_modules/c/d.js", covering: "**/node_modules", matching: nil),
        Case(["**/node_modules"], "a/node_module", covering: nil, matching: nil),
        Case(["cache/**"], "cache", covering: nil, matching: nil),
        Case(["cache/**"], "cache/a", covering: "cache/**", matching: "cache/**"),
        Case(["cache/**"], "cache/a/b", covering: "cache/**", matching: "cache/**"),
        Case(["**/.cache/**"], "x/.cache/a/b", covering: "**/.cache/**", matching: "**/.cache/**"),
        Case(["*.tmp", "a/*"], "a/b", covering: "a/*", matching: "a/*"),
        Case(["*.tmp", "a/*"], "b.tmp", covering: "*.tmp", matching: "*.tmp"),
        Case(["*.tmp", "a/*"], "b.TMP/c", covering: "*.tmp", matching: nil),
        Case(["*.tmp", "a/*"], "a", covering: nil, matching: nil),
        Case(["a/b/c", "a"], "a/b/c", covering: "a/b/c", matching: "a/b/c"),
        Case(["a/b/c", "a"], "a/b/d", covering: "a", matching: nil),
        Case(["a/*/c"], "a/b/c/d", covering: "a/*/c", matching: nil),
        Case(["a/*/c"], "a/b", covering: nil, matching: nil),
        Case(["*"], ".git/config", covering: nil, matching: nil),
        Case([".git"], ".git/config", covering: ".git", matching: nil),
        Case(["{a,b}/x"], "b/x/y", covering: "{a,b}/x", matching: nil),
    ]

    /// Returns the first glob, in order, that matches the path or a directory above it, without the index of the set.
    private static func firstCover(_ path: [UInt8], in set: GlobSet) -> Glob? {
        let ends = path.indices.filter { path[$0] == UInt8(ascii: "/") && $0 > 0 } + [path.count]
        return set.globs.first { glob in ends.contains { glob.matches(path[..<$0]) } }
    }

    @Test(arguments: cases)
    func `an excluded directory excludes everything below`(_ example: Case) throws {
        let set = GlobSet(try example.globs.map { try Glob($0) })
        let path = Array(example.path.utf8)
        #expect(set.isEmpty == example.globs.isEmpty)
        #expect(set.covers(path) == (example.covering != nil))
        #expect(set.covers(path[...]) == (example.covering != nil))
        #expect(set.covers(path.lazy.map { $0 }) == (example.covering != nil))
        #expect(Self.firstCover(path, in: set)?.description == example.covering)
        #expect(set.firstMatch(path)?.description == example.matching)
    }

    /// Patterns of all kinds: some that the set indexes by name, and some that it does not.
    static let mixed = [
        "**/*~", "**/#*#", "**/.*.sw[a-px]", "**/*.{tmp,Temp}", "**/{.git,CVS}", "**/?x?", "**/*", "**/[a-c]*z",
        "**/.#*", "**/é*", "**/*é", "a/**", "**/b/**", "**/x/y", "*", "*.TMP", "{**/q,r/s}", "**", ".git/**",
        "**/a[!b]",
    ]

    static let paths: [[UInt8]] =
        [
            "a", "a~", "a~/b", "x/#y#", "x/.f.swp", "x/.f.swq/z", "b.tmp", "b.TMP/c", "b.temp", ".git/config",
            "x/.git", "x/cvs", "CVS", "axb", "x/axb/c", "bz", ".bz", ".h/bz", ".h/.bz", "h/.#l", "éa", "aé", ".h/éa",
            "x/y", "w/x/y", "q", "r/s", "r/q", "", "/", "/a~", "a//b~", "a/", ".", "a/.hidden/b~", "ab", "ac",
        ].map { Array($0.utf8) } + [[0xE9, 0x7E], [0x61, 0x2F, 0xC3], [0xA9], [0xC3, 0xA9, 0xA9]]

    @Test(arguments: mixed, [true, false])
    func `a set covers the paths that its globs cover`(_ pattern: String, matchesHidden: Bool) throws {
        let options = Glob.Options(matchesHidden: matchesHidden)
        let set = GlobSet([try Glob("no/such/thing"), try Glob(pattern, options: options)])
        for path in Self.paths {
            #expect(
                set.covers(path) == (Self.firstCover(path, in: set) != nil),
                "\(pattern) and \(String(decoding: path, as: UTF8.self))")
        }
    }

    @Test func `equal patterns with equal options are equal`() throws {
        #expect(try Glob("a/*") == Glob("a/*"))
        #expect(try Glob("a/*") != Glob("a//*"))
        #expect(try Glob("a/*") != Glob("a/*", options: Glob.Options(matchesHidden: true)))
        #expect(try Set([Glob("a"), Glob("a"), Glob("b")]).count == 2)
        #expect(try GlobSet([Glob("a")]) == GlobSet([Glob("a")]))
    }
}
