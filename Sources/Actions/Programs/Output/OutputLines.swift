/// The lines that a program writes to one stream, up to a limit; after that, only the last line is read.
///
/// Output beyond the limit is never logged, and a program may write gigabytes of it.
package struct OutputLines {
    /// The maximum number of bytes that are split into lines: more than ``ProgramLog`` logs, whatever their levels.
    package static let limit = 640 << 10
    /// Two lines of the maximum length.
    private static let endLimit = 16 << 10

    private var lines = LineSplitter()
    private var last: ArraySlice<UInt8> = []
    /// The latest bytes that are not split into lines.
    private var end: [UInt8] = []
    /// The number of bytes that were split into lines.
    package private(set) var examined = 0
    /// The number of bytes that were not.
    package private(set) var skipped = 0

    package init() {}

    /// Adds bytes, and calls the closure with each line that they complete; blank lines are left out.
    package mutating func add(_ bytes: ArraySlice<UInt8>, _ body: (ArraySlice<UInt8>) -> Void) {
        let examinedBytes = bytes.prefix(Self.limit - examined)
        let skippedBytes = bytes.dropFirst(examinedBytes.count)
        examined += examinedBytes.count
        skipped += skippedBytes.count
        for line in lines.add(examinedBytes) { take(line, body) }
        if !skippedBytes.isEmpty {
            // As a slice: the method of that name in Sequence goes from byte to byte.
            let newest: ArraySlice<UInt8> = skippedBytes.suffix(Self.endLimit)
            end += newest
            if end.count > Self.endLimit { end.removeFirst(end.count - Self.endLimit) }
        }
    }

    /// Calls the closure with the bytes after the last newline, and determines the last line.
    package mutating func finish(_ body: (ArraySlice<UInt8>) -> Void) {
        if let line = lines.finish() { take(line, body) }
        var rest = LineSplitter()
        for line in rest.add(end[...]) { take(line) { _ in } }
        if let line = rest.finish() { take(line) { _ in } }
    }

    /// The last line that is neither blank nor a progress report, once all bytes have been added.
    package var lastLine: String? {
        guard case .line(_, let text) = ProgramReport(line: last), text.contains(where: { !$0.isWhitespace })
        else { return nil }
        return text
    }

    private mutating func take(_ line: ArraySlice<UInt8>, _ body: (ArraySlice<UInt8>) -> Void) {
        guard line.contains(where: { $0 > UInt8(ascii: " ") }) else { return }
        if !ProgramReport.isProgress(line) { last = line }
        body(line)
    }
}
