package import JSON
import PluginProtocol
package import Rules

/// The JSON Schema of rules files, for editors.
///
/// The loader is authoritative, and the schema is as strict as a schema can be: it never rejects a file that loads,
/// and `Tests/PluginTests/test_schema.py` lists what it can't detect. Its keys are those of the loader, and tests
/// compare the results of both over many files.
package enum RuleSchema {
    /// Returns the schema as one value.
    ///
    /// - Parameter handlers: The handlers whose parameters are described; others are also allowed.
    /// - Returns: The schema, of draft 2020-12.
    package static func document(handlers: [HandlerDescription]) -> JSONValue {
        let rule = SchemaForm.object(
            RuleDecoder.keys.schemas, required: ["path", "action"],
            description: "The files to match, and the action to run.")
        let defaults = SchemaForm.object(
            RuleDecoder.sharedKeys.schemas, description: "The defaults for the rules of this file.")
        return [
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "urn:alight:rules",
            "title": "Alight rules",
            "description": "Rules that run when files land.",
            // A file that contains only comments has no rules yet.
            "type": ["object", "null"],
            "properties": [
                "rules": [
                    "description": "The rules of this file.", "type": ["array", "null"],
                    "items": ["$ref": "#/$defs/rule"],
                ],
                "defaults": ["$ref": "#/$defs/defaults"],
            ],
            "required": ["rules"],
            "additionalProperties": false,
            "examples": [
                ["rules": [["name": "scans", "path": "~/inbox/*.pdf", "action": "log"]]]
            ],
            "$defs": [
                "rule": rule,
                "defaults": ["anyOf": [defaults, ["type": "null"]]],
                "action": action(handlers),
                "actions": [
                    "anyOf": [
                        ["$ref": "#/$defs/action"],
                        ["type": "array", "minItems": 1, "items": ["$ref": "#/$defs/action"]],
                    ]
                ],
                "conditions": SchemaForm.object(RuleDecoder.conditionKeys.schemas, isNonEmpty: true),
                "value": value,
            ],
        ]
    }

    // MARK: - Actions

    private static func action(_ handlers: [HandlerDescription]) -> JSONValue {
        let names = handlers.map(\.reference.name).sorted()
        let use: [String: JSONValue] = [
            "use": [
                "description": "A built-in handler, or a plugin by name or path.",
                "anyOf": [["enum": .array(names.map(JSONValue.string))], ["type": "string", "minLength": 1]],
            ],
            "with": [
                "description": "The handler's parameters.", "anyOf": [["type": "null"], ["$ref": "#/$defs/value"]],
            ],
        ]
        let sharesFile: JSONValue = [
            "type": "boolean",
            "description": "Whether the action only reads the file, and may run at the same time as others that do.",
        ]
        var form = SchemaForm.object(use, required: ["use"], description: "A handler and its parameters.").object ?? [:]
        form["allOf"] = .array(handlers.compactMap(parameters))
        let forms: [JSONValue] = [
            ["type": "string", "minLength": 1, "description": "A handler without parameters."], .object(form),
            SchemaForm.object(
                ["exec": SchemaForm.command, "shares_file": sharesFile], required: ["exec"],
                description: "A program and its arguments; each element is one argument."),
            SchemaForm.object(
                ["shell": SchemaForm.shell, "shares_file": sharesFile], required: ["shell"],
                description: "A command for /bin/sh, with the event in variables such as ALIGHT_PATH."),
        ]
        return ["anyOf": .array(forms)]
    }

    /// Returns the schema of `with` for one handler; nil if any value is allowed.
    private static func parameters(_ handler: HandlerDescription) -> JSONValue? {
        guard let schema = handler.parameters else { return nil }
        let needed = schema.required ?? []
        let with = SchemaForm.parameter(schema)
        return [
            "if": ["properties": ["use": ["const": .string(handler.reference.name)]], "required": ["use"]],
            "then": [
                "properties": ["with": needed.isEmpty ? ["anyOf": [["type": "null"], with]] : with],
                "required": needed.isEmpty ? [] : ["with"],
            ],
        ]
    }

    /// A parameter of an unknown handler.
    private static let value: JSONValue = [
        "anyOf": [
            ["type": "string", "pattern": .string(SchemaForm.templatePattern)],
            ["type": ["number", "boolean", "null"]],
            ["type": "array", "items": ["$ref": "#/$defs/value"]],
            ["type": "object", "additionalProperties": ["$ref": "#/$defs/value"]],
        ]
    ]
}

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
