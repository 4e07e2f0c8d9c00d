import PluginProtocol
import Rules

/// Writes texts as YAML, for rules that a program makes.
package enum YAMLText {
    private static let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./".unicodeScalars)

    /// A scalar that is read as exactly this text, in a list between brackets too; quoted only where it has to be.
    package static func scalar(_ text: String) -> String {
        let isPlain = text.unicodeScalars.allSatisfy { plain.contains($0) } && !text.hasPrefix("-")
        // `yes` is a text in YAML 1.2, but no longer when somebody else reads the file.
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
                    let digits = String(scalar.value, radix: 16, uppercase: true)
                    quoted += "\\U" + String(repeating: "0", count: 8 - digits.count) + digits
                default: quoted.unicodeScalars.append(scalar)
                }
            }
        }
        return quoted + "\""
    }

    /// A list between brackets.
    package static func list(_ texts: [String]) -> String { "[\(texts.map(scalar).joined(separator: ", "))]" }

    /// A value on one line.
    static func flow(_ value: JSONValue) -> String {
        switch value {
        case .string(let text): scalar(text)
        case .array(let elements): "[\(elements.map(flow).joined(separator: ", "))]"
        case .object(let members):
            "{\(members.sorted { $0.key < $1.key }.map { "\(scalar($0.key)): \(flow($0.value))" }.joined(separator: ", "))}"
        case .null, .bool, .integer, .number: value.shown
        }
    }

    /// A text as one line of a comment, without the mark in front.
    package static func comment(_ text: String) -> String { escaped(text, limit: 400) }

    /// Literal text of a path or an argument, in which nothing is a placeholder.
    package static func literal(_ text: String) -> String { text.replacing("${", with: "$${") }

    /// A glob that matches exactly these bytes; one that is no character is matched by `?`, since YAML can't hold it.
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
