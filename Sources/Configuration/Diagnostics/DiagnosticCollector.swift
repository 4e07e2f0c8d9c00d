import Rules

/// Collects the diagnostics of one file.
///
/// Reading continues after an error, so that all errors are reported at once. The same problem is stored once,
/// because a value with several aliases is read several times.
final class DiagnosticCollector {
    /// More than a user fixes at once.
    static let shownLimit = 100
    /// The number of findings worth the memory; the rest is only counted.
    private static let storedLimit = 20_000

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
    /// The errors in other files.
    private var elsewhere: [Diagnostic] = []
    /// The ranges of secrets, which no displayed line may contain.
    private var secrets: [Range<Int>] = []
    private(set) var errorCount = 0

    init(_ source: SourceText) { self.source = source }

    /// Adds an error; the help is evaluated only while the error may be shown.
    ///
    /// An error with the severity of a warning still rejects the rule that contains it.
    func error(
        _ message: String, at range: Range<Int>, help: @autoclosure () -> String? = nil,
        severity: Diagnostic.Severity = .error
    ) {
        errorCount += 1
        add(Finding(range: range, severity: severity, message: message, help: isCrowded ? nil : help()))
    }

    /// Adds an error in another file that the rules need, such as a plugin's description.
    func error(_ message: String, in position: SourcePosition, help: String?) {
        errorCount += 1
        var diagnostic = Diagnostic(.error, file: position.file, message: message, help: help)
        diagnostic.location = position
        if !elsewhere.contains(diagnostic) { elsewhere.append(diagnostic) }
    }

    func warning(_ message: String, at range: Range<Int>, help: @autoclosure () -> String? = nil) {
        add(Finding(range: range, severity: .warning, message: message, help: isCrowded ? nil : help()))
    }

    /// Displays the range as asterisks.
    func hide(_ range: Range<Int>) { secrets.append(range) }

    /// Whether there are far more problems than are shown; a search for similar names is then not worth its time.
    private var isCrowded: Bool { findings.count > 10 * Self.shownLimit }

    private func add(_ finding: Finding) {
        if findings.count >= Self.storedLimit {
            dropped += 1
        } else if known.insert(finding).inserted {
            findings.append(finding)
        }
    }

    /// Returns all diagnostics in file order; beyond the limit, only the number of the remaining ones.
    func sorted() -> [Diagnostic] {
        let sorted = findings.sorted { $0.range.lowerBound < $1.range.lowerBound }
        let source = source.hiding(secrets)
        let shown = sorted.prefix(Self.shownLimit).map { finding in
            Diagnostic(finding.severity, in: source, at: finding.range, message: finding.message, help: finding.help)
        }
        let rest = sorted.count - shown.count + dropped
        guard rest > 0 else { return shown + elsewhere }
        let remainder = Diagnostic(
            errorCount > 0 ? .error : .warning, file: source.file,
            message: "\(rest) more \(rest == 1 ? "problem is" : "problems are") not shown",
            help: "fix those above first")
        return shown + elsewhere + [remainder]
    }
}
