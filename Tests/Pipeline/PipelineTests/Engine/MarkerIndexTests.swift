import Engine
import Rules
import Running
import System
import Testing

struct MarkerIndexTests {
    private static func rule(_ name: String, _ globs: [PathBytes], waitsFor text: String?) throws -> Rule {
        let template = try text.map { try #require(Template($0)) }
        return Rule.sample(name, globs).with { rule in
            rule.ready = Readiness()
            rule.ready?.doneFile = template
        }
    }

    @Test func `a file that a rule may wait for is found only inside its roots`() throws {
        let index = MarkerIndex([
            try Self.rule("a", ["/in/a/*.txt", "/srv/**/*.pdf"], waitsFor: "${name}.done"),
            try Self.rule("b", ["/in/b/*"], waitsFor: "_SUCCESS"), try Self.rule("c", ["/in/c/*"], waitsFor: nil),
            Rule.sample("d", ["/in/**"]),
        ])
        for (path, isHeld): (PathBytes, Bool) in [
            ("/in/a/x.txt.done", true), ("/in/a/deep/x.done", true), ("/in/a", false), ("/srv/x.done", true),
            ("/in/a/_SUCCESS", false), ("/in/b/_SUCCESS", true), ("/in/b/x.done", false), ("/in/c/x.done", false),
            ("/in/x.done", false), ("/in/ab/x.done", false), ("/", false),
        ] { #expect(index.mayHold(path) == isHeld, "\(path)") }
    }

    @Test func `few of ten thousand rules are checked`() throws {
        let rules = try (0..<10_000).map { number in
            try Self.rule("r\(number)", [PathBytes("/in/\(number)/*.txt")], waitsFor: "${name}.done")
        }
        let index = MarkerIndex(rules + [try Self.rule("wide", ["/in/**"], waitsFor: "_DONE")])
        #expect(index.candidates(for: "/in/4711/a.txt.done").count == 2)
        #expect(index.candidates(for: "/in/other/a.txt").count == 1)
        #expect(index.candidates(for: "/out/a.txt").isEmpty)
        let alike = try (0..<10_000).map {
            try Self.rule("r\($0)", [PathBytes("/in/*.e\($0)")], waitsFor: "${name}.done")
        }
        #expect(MarkerIndex(alike).candidates(for: "/in/a.e7").count == 1)
    }
}
