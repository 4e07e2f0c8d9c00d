import Globbing
import Testing

/// The directories that must be watched for a glob.
struct GlobRootTests {
    struct Root: Sendable, CustomTestStringConvertible {
        let pattern: String
        let root: String
        let depth: Int?

        var testDescription: String { "\(pattern) is looked for in \(root)" }
    }

    static let roots = [
        Root(pattern: "/in/*", root: "/in", depth: 0),
        Root(pattern: "/in/*/a.txt", root: "/in", depth: 1),
        Root(pattern: "/in/*/*/*", root: "/in", depth: 2),
        Root(pattern: "/in/**", root: "/in", depth: nil),
        Root(pattern: "/in/**/*.jpg", root: "/in", depth: nil),
        Root(pattern: "/in/a.txt", root: "/in", depth: 0),
        Root(pattern: "/a.txt", root: "/", depth: 0),
        Root(pattern: "/*", root: "/", depth: 0),
        Root(pattern: "/**", root: "/", depth: nil),
        Root(pattern: "/*/b", root: "/", depth: 1),
        Root(pattern: "*", root: ".", depth: 0),
        Root(pattern: "a", root: ".", depth: 0),
        Root(pattern: "a/b", root: "a", depth: 0),
        Root(pattern: "a/b/c/*", root: "a/b/c", depth: 0),
        Root(pattern: "**/x", root: ".", depth: nil),
        Root(pattern: "/in/x?/y", root: "/in", depth: 1),
        Root(pattern: "/in/[x]/y", root: "/in", depth: 1),
        Root(pattern: "/in/{a,b}.txt", root: "/in", depth: 0),
        Root(pattern: "/in/x{a,b}/c", root: "/in", depth: 1),
        Root(pattern: "/in/{a/b,c}/d", root: "/in", depth: 2),
        Root(pattern: "/in/{a,b/**}/d", root: "/in", depth: nil),
        Root(pattern: "{/a,/b}/c", root: "/", depth: 1),
        Root(pattern: "{a,b}", root: ".", depth: 0),
        Root(pattern: "/in/{x}/y/*", root: "/in/{x}/y", depth: 0),
        Root(pattern: "/in/{*}/y", root: "/in", depth: 1),
        Root(pattern: "//in//./x//*", root: "/in/x", depth: 0),
        Root(pattern: "./*", root: ".", depth: 0),
        Root(pattern: "./a/b", root: "a", depth: 0),
        Root(pattern: "a/b/.", root: "a", depth: 0),
        Root(pattern: "/in/./*", root: "/in", depth: 0),
        Root(pattern: #"/in/\*/\[x\]/a*"#, root: "/in/*/[x]", depth: 0),
        Root(pattern: #"/in/a\ b/*"#, root: "/in/a b", depth: 0),
        Root(pattern: "/in/.git/**", root: "/in/.git", depth: nil),
        Root(pattern: "/in/a**b/c", root: "/in", depth: 1),
        Root(pattern: "/ü/☃/*", root: "/ü/☃", depth: 0),
        Root(pattern: "a/{,b}/c", root: "a", depth: 1),
        Root(pattern: "in/{.,b}/*", root: "in", depth: 1),
        Root(pattern: "/in/{.,b}", root: "/", depth: 1),
        Root(pattern: "in/x/{.,.}", root: "in", depth: 0),
    ]

    @Test(arguments: roots)
    func `the root is the literal directory before the first wildcard`(_ example: Root) throws {
        let glob = try Glob(example.pattern)
        #expect(glob.root == Array(example.root.utf8))
        #expect(glob.depth == example.depth)
    }

    @Test func `a root that is not valid UTF-8 keeps its bytes`() throws {
        let glob = try Glob([0x2F, 0xFF, 0x2F, 0x2A])
        #expect(glob.root == [0x2F, 0xFF])
    }

    struct Below: Sendable, CustomTestStringConvertible {
        let pattern: String
        let directory: String
        let canMatch: Bool
        var matchesHidden = false

        var testDescription: String { "\(pattern) \(canMatch ? "may" : "cannot") match below \(directory)" }
    }

    static func may(_ pattern: String, _ directories: String..., matchesHidden: Bool = false) -> [Below] {
        directories.map { Below(pattern: pattern, directory: $0, canMatch: true, matchesHidden: matchesHidden) }
    }

    static func cannot(_ pattern: String, _ directories: String..., matchesHidden: Bool = false) -> [Below] {
        directories.map { Below(pattern: pattern, directory: $0, canMatch: false, matchesHidden: matchesHidden) }
    }

    static let directories: [[Below]] = [
        may("/in/*", "/in", "/"),
        cannot("/in/*", "/in/a", "/i", "/inn", "/out", "in", ".", ""),
        may("/in/*/a.txt", "/", "/in", "/in/x"),
        cannot("/in/*/a.txt", "/in/x/y", "/in/.x", "/in/x/a.txt"),
        may("/in/**", "/in", "/in/a", "/in/a/b"),
        cannot("/in/**", "/in/.a", "/in/a/.b", "/out/a"),
        may("/in/**", "/in/.a", "/in/a/.b/c", matchesHidden: true),
        may("/a/b/c.txt", "/", "/a", "/a/b"),
        cannot("/a/b/c.txt", "/a/b/c.txt", "/a/c", "/b", "/a/bb"),
        may("/*", "/"),
        cannot("/*", "/a"),
        may("/**", "/", "/a/b/c"),
        may("/in/**/x/*.jpg", "/in", "/in/a", "/in/x", "/in/x/x", "/in/a/b/c"),
        cannot("/in/**/x/*.jpg", "/in/.a", "/in/a/.x"),
        may("/in/**/.git/*", "/in/.git", "/in/a/.git", "/in/a"),
        cannot("/in/**/.git/*", "/in/.git/x", "/in/.x"),
        may("/in/.git/**", "/in", "/in/.git", "/in/.git/a"),
        cannot("/in/.git/**", "/in/git", "/in/.git/.a"),
        may("/in/{a,b/c}/*", "/in/a", "/in/b", "/in/b/c", "/in"),
        cannot("/in/{a,b/c}/*", "/in/c", "/in/b/x", "/in/a/x"),
        may("/in{,2}/*", "/", "/in", "/in2"),
        cannot("/in{,2}/*", "/in3", "/in/a"),
        may("*", ".", ""),
        cannot("*", "a", "/", "/a"),
        may("**/x", ".", "a", "a/b"),
        cannot("**/x", ".a", "/a"),
        may("a/b/*", "a", "a/b", "."),
        cannot("a/b/*", "b", "a/bb", "a/b/c", "/a"),
        may("/in/{.,b}", "/", "/in"),
        cannot("/in/{.,b}", "/in/b", "/x"),
        may("/in/[ab]?/c/*", "/in/ax", "/in/bx/c"),
        cannot("/in/[ab]?/c/*", "/in/cx", "/in/ax/d"),
    ]

    @Test(arguments: directories.flatMap { $0 })
    func `a directory is watched if the glob can match something below it`(_ example: Below) throws {
        let glob = try Glob(example.pattern, options: Glob.Options(matchesHidden: example.matchesHidden))
        #expect(glob.canMatch(below: Array(example.directory.utf8)) == example.canMatch)
        #expect(glob.canMatch(below: example.directory.utf8) == example.canMatch)
    }

    static let holders: [[Below]] = [
        may("/in/*", "/in"),
        cannot("/in/*", "/", "/in/a", ".", ""),
        may("/in/*/a.txt", "/in/x"),
        cannot("/in/*/a.txt", "/", "/in", "/in/.x", "/in/x/y"),
        may("/in/**", "/in", "/in/a", "/in/a/b"),
        cannot("/in/**", "/", "/in/.a"),
        may("/in/**/x/*.jpg", "/in/x", "/in/a/x", "/in/x/x"),
        cannot("/in/**/x/*.jpg", "/in", "/in/a", "/in/x/a"),
        may("/in/{a,b/c}/*", "/in/a", "/in/b/c"),
        cannot("/in/{a,b/c}/*", "/in", "/in/b"),
        may("/*", "/"),
        may("**/x", ".", "", "a", "a/b"),
        may("a/b/*", "a/b"),
        cannot("a/b/*", "a", ".", ""),
    ]

    @Test(arguments: holders.flatMap { $0 })
    func `writes in a directory matter if the glob can match one of its entries`(_ example: Below) throws {
        let glob = try Glob(example.pattern, options: Glob.Options(matchesHidden: example.matchesHidden))
        #expect(glob.canMatch(in: Array(example.directory.utf8)) == example.canMatch)
    }
}
