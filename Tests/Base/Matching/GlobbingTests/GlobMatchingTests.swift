import Globbing
import Testing

/// Tables of patterns and paths, by subject.
struct GlobMatchingTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let pattern: [UInt8]
        let path: [UInt8]
        let isMatch: Bool
        let options: Glob.Options

        var testDescription: String {
            let verb = isMatch ? "takes" : "leaves"
            return "\(String(decoding: pattern, as: UTF8.self)) \(verb) \(String(decoding: path, as: UTF8.self))"
        }
    }

    static func takes(_ pattern: String, _ paths: String..., options: Glob.Options = Glob.Options()) -> [Case] {
        paths.map { Case(pattern: Array(pattern.utf8), path: Array($0.utf8), isMatch: true, options: options) }
    }

    static func leaves(_ pattern: String, _ paths: String..., options: Glob.Options = Glob.Options()) -> [Case] {
        paths.map { Case(pattern: Array(pattern.utf8), path: Array($0.utf8), isMatch: false, options: options) }
    }

    static func takes(_ pattern: String, bytes: [UInt8]) -> [Case] {
        [Case(pattern: Array(pattern.utf8), path: bytes, isMatch: true, options: Glob.Options())]
    }

    static func leaves(_ pattern: String, bytes: [UInt8]) -> [Case] {
        [Case(pattern: Array(pattern.utf8), path: bytes, isMatch: false, options: Glob.Options())]
    }

    static func check(_ example: Case) throws {
        let glob = try Glob(example.pattern, options: example.options)
        #expect(glob.matches(example.path) == example.isMatch)
        #expect(glob.matches(([0x2F] + example.path)[1...]) == example.isMatch)
        #expect(glob.matches(example.path.lazy.map { $0 }) == example.isMatch)
    }

    static let literals: [[Case]] = [
        takes("/in/a.txt", "/in/a.txt"),
        leaves("/in/a.txt", "/in/b.txt", "/in/a.txt2", "/in/a.tx", "/in", "/", "in/a.txt"),
        leaves("/in/a.txt", "/x/in/a.txt", "/in/a.txt/b"),
        takes("in/a", "in/a"),
        leaves("in/a", "/in/a", "a", "in", "in/A", "IN/a"),
        takes("a", "a"),
        leaves("a", "", "/a", "b", "aa"),
        takes("//in///a", "/in/a"),
        takes("./in/./a", "in/a"),
        takes("/./in/a/.", "/in/a"),
        leaves("in/*", "in/a/", "in//a", "in/", "in"),
        leaves("/*", "/", "//a", "/a/"),
        leaves("**", "", "/a", "a/", "a//b"),
        leaves("/**/x", "/a//x", "//x"),
        takes("a,b}c", "a,b}c"),
        takes("in dir/naïve ☃.txt", "in dir/naïve ☃.txt"),
    ]

    @Test(arguments: literals.flatMap { $0 })
    func `literal names match themselves`(_ example: Case) throws { try Self.check(example) }

    static let wildcards: [[Case]] = [
        takes("*", "a", "abc", "a.b", "ü", "a b"),
        leaves("*", "a/b", "", ".a"),
        takes("/in/*", "/in/a", "/in/a.txt"),
        leaves("/in/*", "/in/a/b", "/in", "/inx/a", "/in/.a"),
        takes("a*", "a", "ab", "a*"),
        leaves("a*", "ba", "b"),
        takes("*a", "a", "ba", "aa", "bababa"),
        leaves("*a", "ab", "b"),
        takes("*a*b*", "ab", "xaxbx", "aab", "abab"),
        leaves("*a*b*", "ba", "a", "b", "bba"),
        takes("a**b", "ab", "axxb"),
        leaves("a**b", "a/b", "ax/b"),
        takes("***", "abc"),
        leaves("***", "a/b"),
        takes("***/x", "a/x"),
        leaves("***/x", "x", "a/b/x"),
        takes("a***", "a", "abc"),
        takes("?", "a", "ü", "☃", "𝄞"),
        leaves("?", "", "ab", "/", ".", "e\u{301}"),
        takes("??", "ab", "e\u{301}", "üö"),
        leaves("??", "ü", "a", "a/"),
        takes("a?c", "abc", "aüc", "a.c"),
        leaves("a?c", "ac", "a/c", "abbc"),
        takes("*?", "a", "ab", "ü"),
        takes("?*?", "ab", "üxü"),
        leaves("?*?", "ü", "a"),
        leaves("*??", "ü"),
        takes("in?/*/c", "in1/b/c"),
        leaves("in?/*/c", "in/b/c", "in1/c", "in1/b/b/c"),
        takes("*/*/*", "a/b/c"),
        leaves("*/*/*", "a/b", "a/b/c/d"),
        takes("*.tar.*", "a.tar.gz", "a.tar."),
        leaves("*.tar.*", "a.tar", "tar.gz"),
        takes("*-*-*.log", "a-b-c.log", "2024-01-02.log"),
        leaves("*-*-*.log", "a-b.log"),
    ]

    @Test(arguments: wildcards.flatMap { $0 })
    func `stars and question marks stay within a name`(_ example: Case) throws { try Self.check(example) }

    static let directories: [[Case]] = [
        takes("a/**/b", "a/b", "a/x/b", "a/x/y/b", "a/b/b"),
        leaves("a/**/b", "a", "b", "a/bb", "ab", "a/b/c", "x/a/b"),
        takes("**/x", "x", "a/x", "a/b/x", "x/x"),
        leaves("**/x", "ax", "a/ax", "x/a", "/x", ""),
        takes("/**/x", "/x", "/a/x"),
        leaves("/**/x", "x", "/a/b"),
        takes("/in/**", "/in/a", "/in/a/b", "/in/a/b/c.d"),
        leaves("/in/**", "/in", "/inn/a", "/in/.a", "/in/a/.b", "/in/.a/b"),
        takes("**", "a", "a/b", "a/b/c"),
        leaves("**", ".a", "a/.b", ".a/b"),
        takes("/**", "/a", "/a/b"),
        leaves("/**", "/", "a"),
        takes("**/**", "a", "a/b"),
        takes("a/**/**", "a/b", "a/b/c"),
        leaves("a/**/**", "a"),
        takes("**/**/x", "x", "a/x", "a/b/c/x"),
        takes("**/*", "a", "a/b/c"),
        takes("**/a/**", "a/b", "x/a/b", "x/a/y/z", "a/a"),
        leaves("**/a/**", "a", "x/a", "b/c"),
        takes("**/a/**/b/**/c", "a/b/c", "x/a/y/b/z/c", "a/a/b/b/c/c"),
        leaves("**/a/**/b/**/c", "a/c/b", "b/a/c", "a/b"),
        takes("**/a/b", "a/a/b", "x/a/a/b"),
        leaves("**/a/b", "a/x/b"),
        takes("a/**/*.jpg", "a/b.jpg", "a/x/b.jpg"),
        leaves("a/**/*.jpg", "a/b.jpgx", "a/b.jpg/c"),
        takes("**/*/x", "a/x", "a/b/x"),
        leaves("**/*/x", "x"),
        takes("*/**", "a/b", "a/b/c"),
        leaves("*/**", "a"),
        takes("**/[ab]/?", "a/x", "q/b/x"),
        leaves("**/[ab]/?", "q/x", "a/xx"),
    ]

    @Test(arguments: directories.flatMap { $0 })
    func `two stars cross directories`(_ example: Case) throws { try Self.check(example) }

    static let hidden: [[Case]] = [
        leaves("*", ".x"),
        leaves("*.jpg", ".jpg"),
        leaves("?x", ".x"),
        leaves("[.]x", ".x"),
        leaves("[!a]x", ".x"),
        leaves("[^a]*", ".x"),
        leaves("*/x", ".a/x"),
        leaves("**/x", ".a/x", "a/.b/x"),
        leaves("{*,a}x", ".x"),
        takes(".*", ".x", ".x.y"),
        leaves(".*", "x", "a.x"),
        takes(".?", ".x"),
        takes(#"\.x"#, ".x"),
        takes(".git/**", ".git/a", ".git/a/b"),
        leaves(".git/**", ".git/.a", ".git"),
        takes("**/.git/**", ".git/a", "a/.git/b", "a/b/.git/c/d"),
        leaves("**/.git/**", ".x/.git/a", "a/.git/.x/b"),
        takes("**/.*", ".a", "x/.a"),
        leaves("**/.*", ".x/.a", "x/a"),
        takes("{.a,b}c", ".ac", "bc"),
        takes("{.,}env", ".env", "env"),
        leaves("{*,}env", ".env"),
        takes("a.*", "a.b", "a."),
        takes("*.b", "a.b", "x..b"),
        takes("**/.a/x/**/y", ".a/x/y", "q/.a/x/r/y"),
        leaves("**/.a/x/**/y", ".a/.a/x/y"),
    ]

    @Test(arguments: hidden.flatMap { $0 })
    func `wildcards do not match hidden names`(_ example: Case) throws { try Self.check(example) }

    static let shown = Glob.Options(matchesHidden: true)
    static let notHidden: [[Case]] = [
        takes("*", ".x", "x", options: shown),
        takes("*.jpg", ".jpg", ".a.jpg", "a.jpg", options: shown),
        takes("?x", ".x", options: shown),
        takes("[.]x", ".x", options: shown),
        takes("[!a]x", ".x", options: shown),
        takes("**", ".a", ".a/.b", "a/.b/c", options: shown),
        takes("**/x", ".a/x", ".a/.b/x", options: shown),
        takes("/in/**", "/in/.a", "/in/.a/b", options: shown),
        leaves("/in/**", "/in", options: shown),
        takes(".*", ".x", options: shown),
        leaves(".*", "x", options: shown),
        takes("*x*", ".x", options: shown),
    ]

    @Test(arguments: notHidden.flatMap { $0 })
    func `wildcards match hidden names if the option is set`(_ example: Case) throws { try Self.check(example) }
}
