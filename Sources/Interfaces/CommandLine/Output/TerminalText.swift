import Glibc
import RuleLoading

/// How text fits a terminal.
///
/// It takes text that ``Display`` has made safe.
enum TerminalText {
    /// How wide the terminal of standard output is; nil when that is no terminal.
    static var width: Int? { width(STDOUT_FILENO) }

    /// How wide the terminal of standard error is; nil when that is no terminal.
    static var errorWidth: Int? { width(STDERR_FILENO) }

    private static func width(_ descriptor: Int32) -> Int? {
        guard isatty(descriptor) == 1 else { return nil }
        var size = winsize()
        if ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 { return Int(size.ws_col) }
        return getenv("COLUMNS").flatMap { Int(String(cString: $0)) }.flatMap { $0 > 0 ? $0 : nil } ?? 80
    }

    /// How many columns the text takes.
    static func columns(_ text: String) -> Int {
        text.unicodeScalars.reduce(0) { $0 + DiagnosticText.columns(of: $1) }
    }

    /// The text with blanks behind it, so that it takes so many columns at least.
    static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - columns(text)))
    }

    /// The beginning of the text, if the whole takes more columns than that.
    static func beginning(_ text: String, _ width: Int) -> String {
        guard columns(text) > width else { return text }
        guard width > 0 else { return "" }
        return kept(text.unicodeScalars, width - 1) + "…"
    }

    /// The end of the text, if the whole takes more columns than that; of a path the end says most.
    static func end(_ text: String, _ width: Int) -> String {
        guard columns(text) > width else { return text }
        guard width > 0 else { return "" }
        return "…" + String(kept(text.unicodeScalars.reversed(), width - 1).unicodeScalars.reversed())
    }

    private static func kept(_ scalars: some Sequence<Unicode.Scalar>, _ width: Int) -> String {
        var kept = String.UnicodeScalarView()
        var taken = 0
        for scalar in scalars {
            taken += DiagnosticText.columns(of: scalar)
            if taken > width { break }
            kept.append(scalar)
        }
        return String(kept)
    }
}

extension String {
    fileprivate init(_ reversed: ReversedCollection<String.UnicodeScalarView>) {
        var scalars = String.UnicodeScalarView()
        scalars.append(contentsOf: reversed)
        self.init(scalars)
    }
}
