import Rules
import System
import Testing
import TestKit

@testable import Configuration

/// A rules file below `Tests/Fixtures/rules` and its expected diagnostics.
///
/// The end of the file lists them as comments: `# expect LINE:COLUMN+LENGTH SEVERITY: MESSAGE` for each problem, with
/// `#   help: …` below it. A separate file `CASE.expect` lists them if the file is not text, or if a comment at its
/// end would change the error there. `[unseen]` marks the problems that the JSON Schema cannot detect; see
/// `Tests/PluginTests/test_schema.py`. `RECORD=1 swift test --filter ConfigurationTests` writes the current ones, and
/// keeps the marks of those that have not moved. Read the difference as you would read code.
struct RuleFixture: CustomTestStringConvertible {
    static let directory = Places.checkout.appending("Tests/Fixtures/rules")

    /// The path relative to the directory.
    var name: String
    var path: PathBytes { Self.directory.appending(name) }
    var testDescription: String { name }

    static let all: [RuleFixture] = TestFile.names(in: directory).flatMap { key in
        TestFile.names(in: directory.appending(key)).filter { $0.suffix(5).elementsEqual(".yaml".utf8) }
            .map { RuleFixture(name: String(decoding: key + [.slash] + $0, as: UTF8.self)) }
    }

    private var beside: PathBytes { PathBytes(path.bytes.dropLast(4) + Array("expect".utf8)) }

    /// The bytes of the file, and its own lines without the expected diagnostics.
    private var parts: (bytes: [UInt8], own: [UInt8]) {
        let bytes = TestFile.read(path) ?? []
        let start = bytes.firstRange(of: Array("# expect ".utf8))?.lowerBound
        return (bytes, start.map { Array(bytes[..<$0]) } ?? bytes)
    }

    var bytes: [UInt8] { parts.bytes }

    /// The recorded diagnostics.
    var expected: String { Self.unmarked(recorded) }

    private var recorded: String {
        let (bytes, own) = parts
        return String(decoding: TestFile.read(beside) ?? Array(bytes[own.count...]), as: UTF8.self)
    }

    private static func unmarked(_ text: String) -> String { text.replacing(" [unseen]: ", with: ": ") }

    var found: String { Self.text(of: loaded(path)) }

    func loaded(_ path: PathBytes) -> LoadedRules { makeLoader(in: path.parent).load([PathBytes(path.lastComponent)]) }

    private static func text(of loaded: LoadedRules) -> String {
        loaded.diagnostics.map { diagnostic in
            let location = "\(diagnostic.location.line):\(diagnostic.location.column)+\(diagnostic.length)"
            let help = diagnostic.help.map { "#   help: \($0)\n" } ?? ""
            return "# expect \(location) \(diagnostic.severity): \(diagnostic.message)\n\(help)"
        }.joined()
    }

    /// Records the current diagnostics.
    func record() {
        let own = parts.own
        // The marks of the errors whose location has not changed.
        let marked = recorded.split(separator: "\n").filter { $0.contains(" [unseen]: ") }
            .map { $0.prefix { $0 != "[" } }
        withTempTree { tree in
            let copy = tree.path(name.split(separator: "/").last.map(String.init) ?? "")
            TestFile.write(copy, own)
            var text = Self.text(of: loaded(copy))
            for location in marked { text = text.replacing(location.dropLast() + ":", with: location + "[unseen]:") }
            let whole = own + Array(text.utf8)
            TestFile.write(copy, whole)
            if Self.text(of: loaded(copy)) == Self.unmarked(text), own.isEmpty || own.last == UInt8(ascii: "\n") {
                TestFile.write(path, whole)
            } else {
                TestFile.write(path, own)
                TestFile.write(beside, text)
            }
        }
    }
}

struct RuleFixtureTests {
    @Test(arguments: RuleFixture.all)
    func `a rules file produces the recorded diagnostics`(fixture: RuleFixture) {
        if Golden.isRecording { fixture.record() }
        #expect(fixture.found == fixture.expected)
    }

    @Test(arguments: RuleFixture.all)
    func `carets are inside their line`(fixture: RuleFixture) {
        for diagnostic in fixture.loaded(fixture.path).diagnostics {
            guard let line = diagnostic.sourceLine else { continue }
            #expect(diagnostic.caret <= line.unicodeScalars.count)
            #expect(line.unicodeScalars.count <= 122)
        }
    }

    @Test func `there are enough cases`() { #expect(RuleFixture.all.count >= 250) }
}
