package import JSON

/// The JSON Schema of the configuration file, for editors.
///
/// The loader is authoritative, as for ``RuleSchema``.
package enum ConfigurationSchema {
    /// The schema, of draft 2020-12.
    package static var document: JSONValue {
        [
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "urn:alight:configuration",
            "title": "Alight configuration",
            "description": "The configuration of Alight, except rules.",
            "type": ["object", "null"],
            "properties": .object(ConfigurationDecoder.keys.schemas),
            "additionalProperties": false,
            "examples": [["rules": ["rules"], "retention": "90d", "log": ["level": "warning"]]],
        ]
    }
}
