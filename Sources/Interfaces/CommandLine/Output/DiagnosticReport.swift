import ArgumentParser
import PluginProtocol
import RuleLoading
import Rules

/// How what is wrong with rules files is told.
enum DiagnosticFormat: String, ExpressibleByArgument, CaseIterable {
    case text, json
}

extension Diagnostic {
    /// As one JSON object; a file as a whole has no line.
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

    /// Tells people on standard error, in colour on a terminal, or programs on standard output, one object a line.
    func tell(as format: DiagnosticFormat) {
        switch format {
        case .text: Output.error.write(DiagnosticText.text(of: self, isColored: Output.error.hasColor))
        case .json: Output.standard.write(object.line)
        }
    }
}
