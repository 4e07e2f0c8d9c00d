import ArgumentParser
import Foundation
import RuleLoading
import Rules

/// How what is wrong with rules files is told.
enum DiagnosticFormat: String, ExpressibleByArgument, CaseIterable {
    case text, json
}

/// A diagnostic as one JSON object; a file as a whole has no line.
struct DiagnosticObject: Encodable {
    var file: String
    var line: Int?
    var column: Int?
    var length: Int?
    var severity: String
    var message: String
    var help: String?

    init(_ diagnostic: Diagnostic) {
        file = diagnostic.place.file
        if diagnostic.place.line > 0 {
            line = diagnostic.place.line
            column = diagnostic.place.column
            length = diagnostic.length
        }
        severity = diagnostic.severity.rawValue
        message = diagnostic.message
        help = diagnostic.help
    }

    /// One line.
    var text: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
    }
}

extension Diagnostic {
    /// Tells people on standard error, in colour on a terminal, or programs on standard output, one object a line.
    func tell(as format: DiagnosticFormat) {
        switch format {
        case .text: Output.error.write(DiagnosticText.text(of: self, isColored: Output.error.hasColor))
        case .json: Output.standard.write(DiagnosticObject(self).text)
        }
    }
}
