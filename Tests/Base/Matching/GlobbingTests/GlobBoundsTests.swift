import Globbing
import Testing

/// Patterns and paths that are constructed to be slow.
///
/// A matcher that backtracks over every star would need exponential time for each. The time limit
/// is generous only because a busy machine is slow.
@Suite(.timeLimit(.minutes(15)))
struct GlobBoundsTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let pattern: String
        let path: [UInt8]
        let isMatch: Bool

        init(_ pattern: String, _ path: String, _ isMatch: Bool) {
            self.pattern = pattern
            self.path = Array(path.utf8)
            self.isMatch = isMatch
        }

        var testDescription: String { "\(pattern.prefix(40)) and \(path.count) bytes" }
    }

    static func times(_ count: Int, _ text: String) -> String { String(repeating: text, count: count) }

    static let cases = [
        Case("*a*a*a*a*b", times(255, "a"), false),
        Case("*a*a*a*a*b*", times(255, "a"), false),
        Case(times(60, "*a") + "*b*", times(4000, "a"), false),
        Case(times(60, "*a"), times(4000, "a"), true),
        Case(times(60, "*?") + "*[b]*", times(4000, "é"), false),
        Case(times(200, "?*"), times(200, "é"), true),
        Case(times(201, "?*"), times(200, "é"), false),
        Case("**/**/**/x", times(2000, "a/") + "y", false),
        Case("**/**/**/x", times(2000, "a/") + "x", true),
        Case(times(30, "**/a/") + "b", times(2000, "a/") + "c", false),
        Case(times(30, "**/a/") + "*/b", times(2000, "a/") + "b", true),
        Case(times(30, "**/*a*/") + "b", times(500, "aaaa/") + "c", false),
        Case(times(30, "**/*a*/") + "c", times(500, "aaaa/") + "c", true),
        Case(times(5, "{*a,*b,*c,*d}") + "x", times(255, "abcd"), false),
        Case("*", times(100_000, "x"), true),
        Case(times(1000, "a/") + "*", times(1000, "a/") + "b", true),
    ]

    @Test(arguments: cases)
    func `no pattern takes exponential time`(_ example: Case) throws {
        let glob = try Glob(example.pattern)
        #expect(glob.matches(example.path) == example.isMatch)
        #expect(!GlobSet([glob]).isEmpty)
    }

    @Test func `checking a directory does not take exponential time`() throws {
        let directory = Array(Self.times(1999, "a/").utf8) + [0x61]
        #expect(try Glob(Self.times(30, "**/a/") + "b").canMatch(below: directory))
        #expect(try !Glob(Self.times(30, "*/a/") + "b").canMatch(below: directory))
    }
}
