import Programs
import Testing

struct OutputLinesTests {
    /// Adds strings and returns the lines that were read.
    private func read(_ texts: [String], _ lines: inout OutputLines) -> [String] {
        var read: [String] = []
        for text in texts { lines.add(Array(text.utf8)[...]) { read.append(String(decoding: $0, as: UTF8.self)) } }
        lines.finish { read.append(String(decoding: $0, as: UTF8.self)) }
        return read
    }

    @Test func `output beyond the limit is not split into lines, except the last one`() {
        var lines = OutputLines()
        let chunk = String(repeating: "y\n", count: 32 << 10)
        let read = read(Array(repeating: chunk, count: 40) + ["in pieces: the l", "ast\n", "\n  \n"], &lines)
        #expect(lines.examined == OutputLines.limit)
        #expect(lines.skipped == 40 * chunk.utf8.count + 24 - OutputLines.limit)
        #expect(read.count == OutputLines.limit / 2)
        #expect(lines.lastLine == "in pieces: the last")
    }

    @Test func `the limit may fall inside a line`() {
        var lines = OutputLines()
        let text = String(repeating: "x", count: OutputLines.limit - 3)
        let read = read([text + "\n12345\n"], &lines)
        #expect(read.last == "12")
        #expect(read.joined().utf8.count == OutputLines.limit - 1)
        #expect(lines.lastLine == "345")
    }

    @Test(
        arguments: [
            (["one\ntwo\n"], "two"), (["one\n", "<3>two"], "two"), (["one\n\n \t\n"], "one"),
            (["one\n{\"progress\":0.5}\n"], "one"), (["{\"other\":1}"], "{\"other\":1}"), (["<3> \n"], nil),
            (["\u{1b}[0mred\r\n"], "\u{FFFD}[0mred"), ([], nil),
        ] as [([String], String?)])
    func `the last line is neither empty nor a progress report`(texts: [String], last: String?) {
        var lines = OutputLines()
        _ = read(texts, &lines)
        #expect(lines.lastLine == last)
    }

    @Test func `progress reports beyond the limit are skipped too`() {
        var lines = OutputLines()
        _ = read([String(repeating: "y\n", count: 400_000), "why\n{\"progress\":1}\n"], &lines)
        #expect(lines.skipped > 0)
        #expect(lines.lastLine == "why")
    }
}
