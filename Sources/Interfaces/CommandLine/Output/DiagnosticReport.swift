import ArgumentParser
import Configuration
import JSON
import Rules

/// The format of diagnostics about rules files.
enum DiagnosticFormat: String, ExpressibleByArgument, CaseIterable {
    case text, json
}

extension Diagnostic {
    /// The diagnostic as a JSON object.
    ///
    /// A diagnostic about a whole file has no line.
    var object: [String: JSONValue] {
        var object: [String: JSONValue] = [
            "file": .string(place.file), "severity": .string(severity.rawValue), "message": .string(message),
        ]
        if place.line > 0 {
            object["line"] = .integer(Int64(place.line))
            object["column"] = .integer(Int64(place.column))
            object["length"] = .integer(Int64(length))
        }
        object["help"] = help.map { .string($0) }
        return object
    }

    /// Prints the diagnostic: as text on standard error, colored on a terminal, or as one JSON object per line on
    /// standard output.
    func tell(as format: DiagnosticFormat) {
        switch format {
        case .text: Output.error.write(DiagnosticText.text(of: self, isColored: Output.error.hasColor))
        case .json: Output.standard.write(object.line)
        }
    }
}
