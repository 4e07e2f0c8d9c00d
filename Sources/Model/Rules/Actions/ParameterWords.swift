package import JSON
import PluginProtocol

/// The words of the messages about parameters.
enum ParameterWords {
    private static let nouns = [
        "integer": "a whole number", "number": "a number", "boolean": "true or false", "string": "a string",
        "array": "a list", "object": "a mapping", "null": "null",
    ]

    static func noun(for type: String) -> String { nouns[type] ?? "of the type '\(type)'" }

    static func shown(_ value: ParameterTemplate, _ schema: ParameterSchema) -> String {
        switch value {
        case .array: return "a list"
        case .object: return "a mapping"
        case .value(.null): return "null"
        case .value, .text:
            guard schema.writeOnly != true, let constant = value.constant else { return "a string" }
            guard case .string(let text) = constant else { return constant.shown }
            return "'\(text)'"
        }
    }

    static func shown(_ number: Double) -> String { JSONValue.number(number).shown }

    static func range(_ noun: String, from minimum: Double?, to maximum: Double?) -> String? {
        switch (minimum, maximum) {
        case (let minimum?, let maximum?): "write \(noun) from \(shown(minimum)) to \(shown(maximum))"
        case (let minimum?, nil): "write \(noun) of at least \(shown(minimum))"
        case (nil, let maximum?): "write \(noun) of at most \(shown(maximum))"
        case (nil, nil): nil
        }
    }

    static func name(of path: [ParameterProblem.Step]) -> String { path.isEmpty ? "'with'" : "'\(self.path(path))'" }

    /// `sizes[0].width`.
    static func path(_ steps: [ParameterProblem.Step]) -> String {
        var text = ""
        for step in steps {
            switch step {
            case .key(let key): text += text.isEmpty ? key : ".\(key)"
            case .index(let index): text += "[\(index)]"
            }
        }
        return text
    }
}

extension JSONValue {
    /// The value for messages; whole numbers have no decimal point.
    package var shown: String {
        switch self {
        case .null: "null"
        case .bool(let isTrue): isTrue ? "true" : "false"
        case .integer(let integer): String(integer)
        case .number(let number): Int64(exactly: number).map(String.init) ?? String(number)
        case .string(let text): text
        case .array(let elements): "[\(elements.map(\.shown).joined(separator: ", "))]"
        case .object(let members):
            "{\(members.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value.shown)" }.joined(separator: ", "))}"
        }
    }
}
