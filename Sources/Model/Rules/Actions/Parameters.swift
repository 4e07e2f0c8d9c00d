package import JSON
package import PluginProtocol
import System

/// The value of `with:` in a rule: JSON whose strings are templates.
package indirect enum ParameterTemplate: Sendable, Hashable {
    /// Any value other than strings, arrays and objects.
    case value(JSONValue)
    case text(Template)
    case array([ParameterTemplate])
    case object([String: ParameterTemplate])

    /// Returns the parameters with each placeholder replaced.
    ///
    /// - Parameters:
    ///   - values: The values of the placeholders.
    ///   - schema: The schema, which marks the strings that are URLs; values in these are percent-encoded.
    /// - Returns: The parameters of one attempt.
    package func expanded(with values: PlaceholderValues, schema: ParameterSchema? = nil) -> Parameter {
        switch self {
        case .value(let value): .value(value)
        case .text(let template):
            .text(
                schema?.role == ParameterSchema.url
                    ? template.expanded(with: values) { Array(String(percentEncoding: $0).utf8) }
                    : template.expanded(with: values))
        case .array(let elements): .array(elements.map { $0.expanded(with: values, schema: schema?.items) })
        case .object(let members):
            .object(
                Dictionary(
                    uniqueKeysWithValues: members.map { name, member in
                        (name, member.expanded(with: values, schema: schema?.properties?[name]))
                    }))
        }
    }
}

extension ParameterTemplate {
    /// Creates a template from a value, whose strings the closure converts; by default, they are literal.
    package init(_ value: JSONValue, text template: (String) -> Template = { Template(literal: $0) }) {
        switch value {
        case .string(let text): self = .text(template(text))
        case .array(let elements): self = .array(elements.map { ParameterTemplate($0, text: template) })
        case .object(let members): self = .object(members.mapValues { ParameterTemplate($0, text: template) })
        default: self = .value(value)
        }
    }

    /// Creates a template from an example of a schema, whose strings may contain placeholders.
    package init(example value: JSONValue) {
        // A variable that is not set also has no value to check.
        self.init(value) { Template($0) ?? Template(parts: [.placeholder(.path)]) }
    }

    /// The value if it contains no placeholder; nil otherwise.
    package var constant: JSONValue? {
        switch self {
        case .value(let value):
            return value
        case .text(let template):
            return template.literal.map { .string(String(decoding: $0, as: UTF8.self)) }
        case .array(let elements):
            let constants = elements.compactMap(\.constant)
            return constants.count == elements.count ? .array(constants) : nil
        case .object(let members):
            let constants = members.compactMapValues(\.constant)
            return constants.count == members.count ? .object(constants) : nil
        }
    }

    /// All templates in the value, with members sorted by name.
    var templates: [Template] {
        switch self {
        case .value: []
        case .text(let template): [template]
        case .array(let elements): elements.flatMap(\.templates)
        case .object(let members): members.sorted { $0.key < $1.key }.flatMap(\.value.templates)
        }
    }

    /// A string of the values in a fixed order.
    var text: String {
        switch self {
        case .value(let value): "\(value)"
        case .text(let template): "\(template)"
        case .array(let elements): "[\(elements.map(\.text).joined(separator: ","))]"
        case .object(let members):
            "{\(members.sorted { $0.key < $1.key }.map { "\($0.key):\($0.value.text)" }.joined(separator: ","))}"
        }
    }
}

/// The value of `with:` for one attempt.
///
/// Strings are bytes, because a placeholder may insert a file name.
package indirect enum Parameter: Sendable, Hashable {
    /// Any value other than strings, arrays and objects.
    case value(JSONValue)
    case text([UInt8])
    case array([Parameter])
    case object([String: Parameter])

    /// The member with that name, if this is an object.
    package subscript(name: String) -> Parameter? {
        if case .object(let members) = self { members[name] } else { nil }
    }

    /// Returns the parameters with each destination completed to the path of a file with an extension of the schema.
    ///
    /// - Parameters:
    ///   - schema: The schema, which marks the parameters that are destinations, with their extensions.
    ///   - name: The name of the event's file, which is appended to a directory.
    /// - Returns: The parameters; those without extensions are unchanged.
    package func completingDestinations(_ schema: ParameterSchema?, name: some Collection<UInt8>) -> Parameter {
        guard case .object(var members) = self else { return self }
        for (key, property) in schema?.properties ?? [:] {
            guard let choices = property.extensions, var path = members[key]?.bytes else { continue }
            let extensions = choices.list { members[$0]?.bytes.map { String(decoding: $0, as: UTF8.self) } }
            guard let first = extensions.first else { continue }
            if path.last == UInt8(ascii: "/") { path += name }
            if !DestinationExtensions.has(path, extensions) { path += first.utf8 }
            members[key] = .text(path)
        }
        return .object(members)
    }

    /// The bytes, if this is a string.
    package var bytes: [UInt8]? { if case .text(let bytes) = self { bytes } else { nil } }

    /// The value in a request: a string that is not UTF-8 becomes `{"base64": …}`, like paths in responses.
    package var json: JSONValue {
        switch self {
        case .value(let value): value
        case .text(let bytes): JSONValue(bytes: bytes)
        case .array(let elements): .array(elements.map(\.json))
        case .object(let members): .object(members.mapValues(\.json))
        }
    }
}
