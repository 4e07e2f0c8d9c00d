import Configuration
import Rules
import Testing

struct DiagnosticTextTests {
    private func diagnostic(_ text: String, marking part: String, help: String? = nil) throws -> Diagnostic {
        let range = try #require(text.utf8.firstRange(of: part.utf8))
        let start = text.utf8.distance(from: text.startIndex, to: range.lowerBound)
        return Diagnostic(
            .error, in: SourceText(file: "a.yaml", bytes: Array(text.utf8)), at: start..<(start + part.utf8.count),
            message: "wrong", help: help)
    }

    @Test func `a diagnostic has a location, message, line, caret and help`() throws {
        let text = try diagnostic("a: 1\nevents: [change]\n", marking: "change", help: "write 'modified'").description
        #expect(
            text == """
                a.yaml:2:10: error: wrong
                 2 | events: [change]
                   |          ^~~~~~
                    help: write 'modified'
                """)
    }

    @Test func `the margin is as wide as the line number`() throws {
        let text = try diagnostic(String(repeating: "\n", count: 99) + "x y", marking: "y").description
        #expect(text == "a.yaml:100:3: error: wrong\n 100 | x y\n     |   ^")
    }

    @Test func `a diagnostic of a whole file has no line`() {
        let diagnostic = Diagnostic(.warning, file: "a.yaml", message: "odd", help: nil)
        #expect(diagnostic.description == "a.yaml: warning: odd")
    }

    @Test func `control characters of a message are escaped`() {
        let diagnostic = Diagnostic(.error, file: "\u{1B}.yaml", message: "no 'a\nb\u{1B}[31m'", help: "write \u{1B}")
        #expect(diagnostic.description == #"\u{1B}.yaml: error: no 'a\nb\u{1B}[31m'\#n    help: write \u{1B}"#)
    }

    @Test func `tabs are copied, wide characters take two columns and combining marks none`() throws {
        #expect(try diagnostic("\ta\tbc", marking: "bc").description.hasSuffix("   | \t \t^~"))
        #expect(try diagnostic("日本: bc", marking: "bc").description.hasSuffix("   |       ^~"))
        #expect(try diagnostic("x: 日本", marking: "日本").description.hasSuffix("   |    ^~~~"))
        #expect(try diagnostic("cafe\u{301}: b", marking: "b").description.hasSuffix("   |       ^"))
    }

    @Test func `a mark over several lines ends at the end of its first line`() throws {
        let one = try diagnostic("a: 'x\n  y' # z", marking: "'x\n  y'")
        #expect(one.length == 2)
        #expect(one.sourceLine == "a: 'x")
    }

    @Test func `a mark at the end of the file has a caret`() throws {
        let source = SourceText(file: "a.yaml", bytes: Array("a:".utf8))
        let diagnostic = Diagnostic(.error, in: source, at: 2..<2, message: "wrong", help: nil)
        #expect(diagnostic.description == "a.yaml:1:3: error: wrong\n 1 | a:\n   |   ^")
    }

    @Test(arguments: [0, 30, 59, 60, 61, 119, 120, 121, 5_000, 9_879, 9_880, 9_939, 9_998, 9_999])
    func `a long line is truncated around the caret`(location: Int) throws {
        var characters = Array(repeating: Character("é"), count: 10_000)
        characters[location] = "X"
        let diagnostic = try diagnostic(String(characters), marking: "X")
        let line = try #require(diagnostic.sourceLine)
        #expect(line.unicodeScalars.count <= 120)
        #expect(Array(line.unicodeScalars)[diagnostic.caret] == "X")
        #expect(diagnostic.location.column == location + 1)
        #expect(line.hasPrefix("…") == (diagnostic.caret != location))
    }

    @Test func `control characters of a line or a file name are replaced`() throws {
        let text = "a: \u{1B}[31mx\u{202E}"
        let line = try #require(try diagnostic(text, marking: "x").sourceLine)
        #expect(line == "a: \u{FFFD}[31mx\u{FFFD}")
        #expect(!Diagnostic(.error, file: "\u{1B}[31m.yaml", message: "m", help: nil).description.contains("\u{1B}"))
    }
}

struct DiagnosticColorTests {
    @Test func `on a terminal the location is bold, errors are red and the caret is green`() throws {
        let loaded = load("rules:\n  - path: /in/*\n    depth: x\n    action: log\n")
        let diagnostic = try #require(loaded.diagnostics.first)
        let colored = DiagnosticText.text(of: diagnostic, isColored: true)
        #expect(colored.hasPrefix("\u{1B}[1mrules.yaml:3:12:\u{1B}[0m \u{1B}[1;31merror:\u{1B}[0m \u{1B}[1m"))
        #expect(colored.contains("\n   |            \u{1B}[1;32m^\u{1B}[0m"))
        let plain = colored.replacing(#/\u{1B}\[[0-9;]*m/#, with: "")
        #expect(plain == DiagnosticText.text(of: diagnostic))
    }
}
