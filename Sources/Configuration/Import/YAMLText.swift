import JSON
import Rules
import System

/// Writes strings as YAML, for generated rules.
package enum YAMLText {
    private static let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./".unicodeScalars)

    /// Returns a scalar that is read as exactly this string, also within brackets; quoted only if necessary.
    package static func scalar(_ text: String) -> String {
        let isPlain = text.unicodeScalars.allSatisfy { plain.contains($0) } && !text.hasPrefix("-")
        // `yes` is a string in YAML 1.2, but not for every other reader.
        let isWord = ["yes", "no", "on", "off", "y", "n"].contains(text.lowercased())
        if isPlain, !isWord, PlainScalar(text) == .text { return text }
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case "\t": quoted += "\\t"
            default:
                switch scalar.properties.generalCategory {
                case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned:
                    quoted += "\\U" + String(scalar.value, radix: 16, width: 8)
                default: quoted.unicodeScalars.append(scalar)
                }
            }
        }
        return quoted + "\""
    }

    /// Returns a list in brackets.
    package static func list(_ texts: [String]) -> String { "[\(texts.map(scalar).joined(separator: ", "))]" }

    /// Returns a value on one line.
    static func flow(_ value: JSONValue) -> String {
        switch value {
        case .string(let text): scalar(text)
        case .array(let elements): "[\(elements.map(flow).joined(separator: ", "))]"
        case .object(let members):
            "{\(members.sorted { $0.key < $1.key }.map { "\(scalar($0.key)): \(flow($0.value))" }.joined(separator: ", "))}"
        case .null, .bool, .integer, .number: value.shown
        }
    }

    /// Returns text as one line of a comment, without the comment sign.
    package static func comment(_ text: String) -> String { escaped(text, limit: 400) }

    /// Returns literal text for a path or an argument, with placeholders escaped.
    package static func literal(_ text: String) -> String { text.replacing("${", with: "$${") }

    /// Returns a glob that matches exactly these bytes; `?` matches invalid UTF-8, which YAML can't represent.
    package static func glob(_ bytes: [UInt8]) -> String {
        var glob = ""
        var decoder = UTF8.ForwardParser()
        var iterator = bytes.makeIterator()
        while true {
            switch decoder.parseScalar(from: &iterator) {
            case .valid(let encoded):
                let scalar = UTF8.decode(encoded)
                if "*?[]{},\\".unicodeScalars.contains(scalar) { glob += "\\" }
                glob.unicodeScalars.append(scalar)
            case .error(let length): glob += String(repeating: "?", count: max(1, length))
            case .emptyInput: return glob
            }
        }
    }
}
