package import PluginProtocol
package import Rules

extension Parameter {
    /// Returns the value for display, with everything that the schema marks as secret replaced by `***`.
    package func hidingSecrets(_ schema: ParameterSchema?) -> Parameter {
        guard let schema else { return self }
        if schema.writeOnly == true { return .text(Array("***".utf8)) }
        switch self {
        case .value, .text: return self
        case .array(let elements): return .array(elements.map { $0.hidingSecrets(schema.items) })
        case .object(let members):
            return .object(
                Dictionary(
                    uniqueKeysWithValues: members.map { name, member in
                        (name, member.hidingSecrets(schema.properties?[name]))
                    }))
        }
    }
}
