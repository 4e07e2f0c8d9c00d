import Rules

/// Gathers what is wrong with one file.
///
/// Reading goes on after an error, so that all are told at once. The same
/// problem is kept once: a value that several aliases name is read several times.
final class DiagnosticCollector {
    /// More than anybody mends at once.
    static let shownLimit = 100
    /// As many as are worth the memory; the rest is only counted.
    private static let keptLimit = 20_000

    private struct Finding: Hashable {
        var range: Range<Int>
        var severity: Diagnostic.Severity
        var message: String
        var help: String?
    }

    private let source: SourceText
    private var findings: [Finding] = []
    private var known: Set<Finding> = []
    private var dropped = 0
    /// Where secrets stand, which no line that is shown may hold.
    private var secrets: [Range<Int>] = []
    private(set) var errorCount = 0

    init(_ source: SourceText) { self.source = source }

    /// Adds an error; the help is asked for only while it has a chance to be shown.
    ///
    /// With the severity of a warning it still refuses the rule that it is found in.
    func error(
        _ message: String, at range: Range<Int>, help: @autoclosure () -> String? = nil,
        severity: Diagnostic.Severity = .error
    ) {
        errorCount += 1
        add(Finding(range: range, severity: severity, message: message, help: isCrowded ? nil : help()))
    }

    func warning(_ message: String, at range: Range<Int>, help: @autoclosure () -> String? = nil) {
        add(Finding(range: range, severity: .warning, message: message, help: isCrowded ? nil : help()))
    }

    /// Has what stands there shown as asterisks.
    func hide(_ range: Range<Int>) { secrets.append(range) }

    /// Whether there are far more problems than are shown; looking for words that were meant takes its time.
    private var isCrowded: Bool { findings.count > 10 * Self.shownLimit }

    private func add(_ finding: Finding) {
        if findings.count >= Self.keptLimit {
            dropped += 1
        } else if known.insert(finding).inserted {
            findings.append(finding)
        }
    }

    /// All in the order of the file; beyond the limit only how many more there are.
    func sorted() -> [Diagnostic] {
        let sorted = findings.enumerated().sorted { left, right in
            (left.element.range.lowerBound, left.offset) < (right.element.range.lowerBound, right.offset)
        }.map(\.element)
        let source = source.hiding(secrets)
        let shown = sorted.prefix(Self.shownLimit).map { finding in
            Diagnostic(
                finding.severity, in: source, at: finding.range, message: finding.message, help: finding.help)
        }
        let rest = sorted.count - shown.count + dropped
        guard rest > 0 else { return shown }
        let note = Diagnostic(
            errorCount > 0 ? .error : .warning, file: source.file,
            message: "\(rest) more \(rest == 1 ? "problem is" : "problems are") not shown",
            help: "fix those above first")
        return shown + [note]
    }
}
