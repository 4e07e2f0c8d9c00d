import Rules

/// Gathers what is wrong with one file.
///
/// Reading goes on after an error, so that all are told at once. The same
/// problem is kept once: a value that several aliases name is read several times.
final class DiagnosticCollector {
    /// More than anybody mends at once.
    static let shownLimit = 100
    /// As many as are worth the memory; the rest is only counted.
    private static let keptLimit = 5_000

    private struct Key: Hashable {
        var offset: Int
        var message: String
    }

    private let source: SourceText
    private var diagnostics: [Diagnostic] = []
    private var known: Set<Key> = []
    private var dropped = 0
    private(set) var errorCount = 0

    init(_ source: SourceText) { self.source = source }

    func error(_ message: String, at range: Range<Int>, help: String? = nil) {
        errorCount += 1
        add(.error, message, at: range, help: help)
    }

    func warning(_ message: String, at range: Range<Int>, help: String? = nil) {
        add(.warning, message, at: range, help: help)
    }

    private func add(_ severity: Diagnostic.Severity, _ message: String, at range: Range<Int>, help: String?) {
        guard diagnostics.count < Self.keptLimit else {
            dropped += 1
            return
        }
        guard known.insert(Key(offset: range.lowerBound, message: message)).inserted else { return }
        diagnostics.append(Diagnostic(severity, in: source, at: range, message: message, help: help))
    }

    /// All in the order of the file; beyond the limit only how many more there are.
    func sorted() -> [Diagnostic] {
        let sorted = diagnostics.enumerated().sorted { left, right in
            let (a, b) = (left.element.place, right.element.place)
            return (a.line, a.column, left.offset) < (b.line, b.column, right.offset)
        }.map(\.element)
        guard sorted.count > Self.shownLimit else { return sorted }
        let rest = sorted.count - Self.shownLimit + dropped
        let isError = errorCount > 0
        let note = Diagnostic(
            isError ? .error : .warning, file: source.file,
            message: "\(rest) more \(rest == 1 ? "problem is" : "problems are") not shown",
            help: "mend those above first")
        return sorted.prefix(Self.shownLimit) + [note]
    }
}
