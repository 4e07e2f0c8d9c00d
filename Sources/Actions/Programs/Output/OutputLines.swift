/// The lines that a program writes to one stream, up to a limit; of what follows, only the last line is read.
///
/// What is beyond the limit is never logged, and a program may write gigabytes of it.
package struct OutputLines {
    /// How many bytes are cut into lines: more than ``ProgramLog`` logs, whatever their levels.
    package static let limit = 640 << 10
    /// Two lines of the greatest length.
    private static let endLimit = 16 << 10

    private var lines = LineSplitter()
    private var last: [UInt8] = []
    /// The end of what is not cut into lines.
    private var end: [UInt8] = []
    /// How many bytes were cut into lines.
    package private(set) var examined = 0
    /// How many bytes were not.
    package private(set) var skipped = 0

    package init() {}

    /// Adds bytes, and calls the closure with each line that they complete; blank lines are left out.
    package mutating func add(_ bytes: ArraySlice<UInt8>, _ body: (ArraySlice<UInt8>) -> Void) {
        let examinedBytes = bytes.prefix(Self.limit - examined)
        let skippedBytes = bytes.dropFirst(examinedBytes.count)
        examined += examinedBytes.count
        skipped += skippedBytes.count
        var last = last
        if !examinedBytes.isEmpty { lines.add(examinedBytes) { Self.take($0, &last, body) } }
        self.last = last
        if !skippedBytes.isEmpty {
            // As a slice: what Sequence has of that name goes from byte to byte.
            let newest: ArraySlice<UInt8> = skippedBytes.suffix(Self.endLimit)
            end += newest
            if end.count > Self.endLimit { end.removeFirst(end.count - Self.endLimit) }
        }
    }

    /// Calls the closure with what follows the last newline, and finds the last line.
    package mutating func finish(_ body: (ArraySlice<UInt8>) -> Void) {
        var last = last
        lines.finish { Self.take($0, &last, body) }
        var rest = LineSplitter()
        rest.add(end[...]) { Self.take($0, &last, { _ in }) }
        rest.finish { Self.take($0, &last, { _ in }) }
        self.last = last
    }

    /// The last line that is neither blank nor a report of progress, once all bytes have been added.
    package var lastLine: String? {
        guard case .line(_, let text) = ProgramReport(line: last[...]), text.contains(where: { !$0.isWhitespace })
        else { return nil }
        return text
    }

    private static func take(
        _ line: ArraySlice<UInt8>, _ last: inout [UInt8], _ body: (ArraySlice<UInt8>) -> Void
    ) {
        guard line.contains(where: { $0 > UInt8(ascii: " ") }) else { return }
        if !ProgramReport.isProgress(line) { last = Array(line) }
        body(line)
    }
}
