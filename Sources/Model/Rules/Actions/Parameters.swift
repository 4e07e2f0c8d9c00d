package import PluginProtocol

/// The value of `with:` as it stands in a rule: JSON whose texts are templates.
package indirect enum ParameterTemplate: Sendable, Hashable {
    /// Anything but text, arrays and objects.
    case value(JSONValue)
    case text(Template)
    case array([ParameterTemplate])
    case object([String: ParameterTemplate])

    /// The parameters with each placeholder replaced.
    ///
    /// - Parameters:
    ///   - facts: The values of the placeholders.
    ///   - schema: Which texts are URLs, where values are percent-encoded.
    /// - Returns: The parameters of one attempt.
    package func expanded(with facts: PlaceholderFacts, schema: ParameterSchema? = nil) -> Parameter {
        switch self {
        case .value(let value): .value(value)
        case .text(let template):
            .text(
                schema?.role == ParameterSchema.url
                    ? template.expanded(with: facts, encoding: Template.percentEncoded) : template.expanded(with: facts)
            )
        case .array(let elements): .array(elements.map { $0.expanded(with: facts, schema: schema?.items) })
        case .object(let members):
            .object(
                Dictionary(
                    uniqueKeysWithValues: members.map { name, member in
                        (name, member.expanded(with: facts, schema: schema?.properties?[name]))
                    }))
        }
    }
}

/// The value of `with:` for one attempt; texts are bytes, since a placeholder may have brought a name.
package indirect enum Parameter: Sendable, Hashable {
    /// Anything but text, arrays and objects.
    case value(JSONValue)
    case text([UInt8])
    case array([Parameter])
    case object([String: Parameter])

    /// The member of that name, when this is an object.
    package subscript(name: String) -> Parameter? {
        guard case .object(let members) = self else { return nil }
        return members[name]
    }

    /// The parameters with each destination complete: the path of a file that has one of the extensions of the schema.
    ///
    /// - Parameters:
    ///   - schema: Which parameters are destinations, with which extensions.
    ///   - name: The name of the event's file, which a file in a directory gets.
    /// - Returns: The parameters, of which those without extensions are as they were.
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

    /// The bytes, when this is a text.
    package var bytes: [UInt8]? {
        guard case .text(let bytes) = self else { return nil }
        return bytes
    }

    /// The form in a request: a text that is not UTF-8 becomes `{"base64": …}`, as paths in responses do.
    package var json: JSONValue {
        switch self {
        case .value(let value): value
        case .text(let bytes): JSONValue(bytes: bytes)
        case .array(let elements): .array(elements.map(\.json))
        case .object(let members): .object(members.mapValues(\.json))
        }
    }
}
