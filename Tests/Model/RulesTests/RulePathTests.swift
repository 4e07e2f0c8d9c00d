import Globbing
import Rules
import System
import Testing
import TestKit

/// The paths that a rule matches, and the directories that must be watched for them.
struct RulePathTests {
    static func rule(
        _ globs: [String], exclude: [String] = [], ignores: Bool = false, depth: Int? = nil, hidden: Bool = false
    ) throws -> Rule {
        let options = Glob.Options(matchesHidden: hidden)
        return Rule(
            name: "r", location: SourcePosition(file: "rules.yaml", line: 1, column: 1),
            filter: PathFilter(
                globs: try globs.map { try Glob($0, options: options) },
                exclude: GlobSet(try exclude.map { try Glob($0, options: Glob.Options(matchesHidden: true)) }),
                ignores: ignores ? DefaultIgnores.globs : GlobSet([]), depth: depth),
            actions: [])
    }

    struct Case: Sendable, CustomTestStringConvertible {
        var globs: [String]
        var exclude: [String] = []
        var ignores = false
        var depth: Int?
        var hidden = false
        var path: PathBytes
        /// The root that matches; nil if the rule does not match the path.
        var root: PathBytes?
        var testDescription: String { "\(globs) \(root == nil ? "leaves" : "takes") \(path)" }
    }

    static let matching = [
        Case(globs: ["/in/*"], path: "/in/a", root: "/in"),
        Case(globs: ["/in/*"], path: "/in/s/a"),
        Case(globs: ["/in/*"], path: "/in"),
        Case(globs: ["/in/**"], path: "/in"),
        Case(globs: ["/in/**"], path: "/in/s/t/a", root: "/in"),
        Case(globs: ["/in/**"], path: "/inside/a"),
        Case(globs: ["/in/a.txt"], path: "/in/a.txt", root: "/in"),
        Case(globs: ["/in/a.txt"], path: "/in/b.txt"),
        Case(globs: ["/*"], path: "/a", root: "/"),
        Case(globs: ["/**"], exclude: ["proc"], path: "/proc/1/stat"),
        Case(globs: ["/**"], exclude: ["proc"], path: "/srv/1/stat", root: "/"),
        // Excludes are relative to the root, and an excluded directory excludes everything below it.
        Case(globs: ["/in/**"], exclude: ["cache"], path: "/in/cache/deep/a"),
        Case(globs: ["/in/**"], exclude: ["cache"], path: "/in/s/cache/a", root: "/in"),
        Case(globs: ["/in/**"], exclude: ["**/cache"], path: "/in/s/cache/a"),
        Case(globs: ["/in/**"], exclude: ["*.bak"], path: "/in/a.bak"),
        Case(globs: ["/in/**"], exclude: ["*.bak"], path: "/in/s/a.bak", root: "/in"),
        Case(globs: ["/in/cache/*"], exclude: ["cache"], path: "/in/cache/a", root: "/in/cache"),
        Case(globs: ["/in/**"], ignores: true, path: "/in/.git/config"),
        Case(globs: ["/in/**"], ignores: true, hidden: true, path: "/in/.git/config"),
        Case(globs: ["/in/**"], ignores: true, path: "/in/a.part"),
        Case(globs: ["/in/**"], path: "/in/a.part", root: "/in"),
        // Default ignores do not apply above the root, which the user named.
        Case(globs: ["/x/.git/hooks/*"], ignores: true, path: "/x/.git/hooks/a", root: "/x/.git/hooks"),
        Case(globs: ["/in/**"], depth: 0, path: "/in/a", root: "/in"),
        Case(globs: ["/in/**"], depth: 0, path: "/in/s/a"),
        Case(globs: ["/in/**"], depth: 2, path: "/in/s/t/a", root: "/in"),
        Case(globs: ["/in/**"], depth: 2, path: "/in/s/t/u/a"),
        Case(globs: ["/**"], depth: 1, path: "/s/a", root: "/"),
        Case(globs: ["/**"], depth: 1, path: "/s/t/a"),
        Case(globs: ["/in/**"], path: "/in/.hidden"),
        Case(globs: ["/in/**"], hidden: true, path: "/in/.hidden/.a", root: "/in"),
        // The first glob that matches determines the root. A glob whose excludes match does not end the search.
        Case(globs: ["/in/*", "/**"], path: "/in/a", root: "/in"),
        Case(globs: ["/**", "/in/*"], path: "/in/a", root: "/"),
        Case(globs: ["/in/**", "/in/s/**"], exclude: ["s"], path: "/in/s/a", root: "/in/s"),
        Case(globs: ["/in/**", "/in/s/**"], depth: 0, path: "/in/s/a", root: "/in/s"),
        Case(globs: ["/{a,b}/*.txt"], path: "/b/x.txt", root: "/"),
        Case(globs: ["/in/*.{jpg,png}"], path: "/in/x.PNG", root: "/in"),
        Case(globs: ["/in/*"], path: PathBytes("/in/".utf8 + [0xff, 0x0a]), root: "/in"),
    ]

    @Test(arguments: matching)
    func `a rule matches a path by name`(_ example: Case) throws {
        let rule = try Self.rule(
            example.globs, exclude: example.exclude, ignores: example.ignores, depth: example.depth,
            hidden: example.hidden)
        #expect(rule.root(matching: example.path) == example.root)
    }

    struct Reach: Sendable, CustomTestStringConvertible {
        var globs: [String]
        var exclude: [String] = []
        var ignores = false
        var depth: Int?
        var hidden = false
        var directory: PathBytes
        var isReached: Bool
        var testDescription: String { "\(globs) \(isReached ? "reaches" : "does not reach") below \(directory)" }
    }

    static let reaching = [
        Reach(globs: ["/in/*"], directory: "/", isReached: true),
        Reach(globs: ["/in/*"], directory: "/in", isReached: true),
        Reach(globs: ["/in/*"], directory: "/in/s", isReached: false),
        Reach(globs: ["/in/*"], directory: "/inside", isReached: false),
        Reach(globs: ["/in/**"], directory: "/in/s/t", isReached: true),
        Reach(globs: ["/in/a.txt"], directory: "/in", isReached: true),
        Reach(globs: ["/in/a.txt"], directory: "/in/a.txt", isReached: false),
        Reach(globs: ["/in/*/b/*"], directory: "/in/x/b", isReached: true),
        Reach(globs: ["/in/*/b/*"], directory: "/in/x/c", isReached: false),
        Reach(globs: ["/in/**"], exclude: ["cache"], directory: "/in/cache", isReached: false),
        Reach(globs: ["/in/**"], exclude: ["cache"], directory: "/in/cache/x", isReached: false),
        Reach(globs: ["/in/**"], exclude: ["cache/**"], directory: "/in/s", isReached: true),
        Reach(globs: ["/in/**", "/in/cache/*"], exclude: ["cache"], directory: "/in/cache", isReached: true),
        Reach(globs: ["/in/**"], ignores: true, hidden: true, directory: "/in/.git", isReached: false),
        Reach(globs: ["/in/**"], directory: "/in/.hidden", isReached: false),
        Reach(globs: ["/in/**"], hidden: true, directory: "/in/.hidden", isReached: true),
        Reach(globs: ["/in/**"], depth: 0, directory: "/in", isReached: true),
        Reach(globs: ["/in/**"], depth: 0, directory: "/in/s", isReached: false),
        Reach(globs: ["/in/**"], depth: 1, directory: "/in/s", isReached: true),
        Reach(globs: ["/in/**"], depth: 1, directory: "/in/s/t", isReached: false),
        Reach(globs: ["/**"], depth: 0, directory: "/", isReached: true),
        Reach(globs: ["/**"], depth: 0, directory: "/s", isReached: false),
        Reach(globs: ["/in/*", "/in/s/t/*"], directory: "/in/s", isReached: true),
    ]

    @Test(arguments: reaching)
    func `a rule reaches the directories that can contain matching files`(_ example: Reach) throws {
        let rule = try Self.rule(
            example.globs, exclude: example.exclude, ignores: example.ignores, depth: example.depth,
            hidden: example.hidden)
        #expect(rule.reaches(below: example.directory) == example.isReached)
    }

    /// A directory on the way to a match that was not reached would have no watch, and its events would be lost.
    @Test func `every directory above a matching path is reached`() throws {
        var generator = SeededGenerator(seed: 42)
        let names = ["a", "b", ".h", "a.txt", "cache", ".git", "x.part"]
        let components = [
            "*", "**", "a", "b", "{a,b}", "?", "*.txt", "cache", ".h", "[ab]*", "a/{b,cache/x}", "{a/**,b}",
        ]
        let excludes = ["a", "b/*", "**/cache", "*.txt", "**/b/**", "cache/**", "{a,b}/b"]
        func pick(_ list: [String], _ counts: ClosedRange<Int>) -> [String] {
            (0..<Int.random(in: counts, using: &generator)).compactMap { _ in list.randomElement(using: &generator) }
        }
        var taken = 0
        for _ in 0..<1_000 {
            let globs = (0..<Int.random(in: 1...3, using: &generator)).map { _ in
                "/" + pick(components, 1...4).joined(separator: "/")
            }
            let rule = try Self.rule(
                globs, exclude: pick(excludes, 0...2), ignores: Bool.random(using: &generator),
                depth: Bool.random(using: &generator) ? Int.random(in: 0...3, using: &generator) : nil,
                hidden: Bool.random(using: &generator))
            for _ in 0..<20 {
                let path = PathBytes("/" + pick(names, 1...5).joined(separator: "/"))
                guard let root = rule.root(matching: path) else { continue }
                taken += 1
                #expect(path.isInside(root) && path != root)
                var directory = path.parent
                while true {
                    if !rule.reaches(below: directory) {
                        Issue.record("\(globs) takes \(path), not reaching \(directory)")
                    }
                    if directory == "/" { break }
                    directory = directory.parent
                }
            }
        }
        #expect(taken > 500)
    }
}

struct RulesetTests {
    static func rule(_ name: String, _ globs: [String]) throws -> Rule {
        var rule = try RulePathTests.rule(globs)
        rule.name = name
        return rule
    }

    @Test func `roots are listed once each, in order`() throws {
        let ruleset = Ruleset([
            try Self.rule("a", ["/srv/b/*", "/srv/a/**/*.txt"]), try Self.rule("b", ["/srv/b/x.txt", "/srv/a/c/*"]),
        ])
        #expect(ruleset.roots == ["/srv/a", "/srv/a/c", "/srv/b"])
    }

    @Test func `a ruleset matches a path if any of its rules does`() throws {
        let ruleset = Ruleset([
            try Self.rule("z", ["/srv/**"]), try Self.rule("m", ["/other/*"]), try Self.rule("a", ["/srv/in/*"]),
        ])
        #expect(ruleset.takes("/other/f"))
        #expect(!ruleset.takes("/elsewhere/f"))
        #expect(ruleset.reaches(below: "/srv/x/y"))
        #expect(!ruleset.reaches(below: "/other/y"))
        #expect(ruleset.rule(named: "m")?.name == "m")
        #expect(ruleset.rule(named: "n") == nil)
    }
}
