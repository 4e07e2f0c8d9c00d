package import PluginProtocol
package import Rules

/// The JSON Schema of rules files, for editors.
///
/// The loader is the judge. The schema says as much of the same as a schema can:
/// it never refuses a file that loads, and what it can't see is said in
/// `Tests/PluginTests/test_schema.py`. Its keys are the loader's, and tests compare
/// both over many files.
package enum RuleSchema {
    /// The schema as one value.
    ///
    /// - Parameter handlers: Those whose parameters are described too; others may be named as well.
    /// - Returns: The schema, of draft 2020-12.
    package static func document(handlers: [HandlerDescription]) -> JSONValue {
        let rule = SchemaForm.object(
            RuleDecoder.keys.schemas, required: ["path", "action"],
            description: "Which files, and what to do with them.")
        let defaults = SchemaForm.object(
            RuleDecoder.sharedKeys.schemas, description: "What the rules of this file share.")
        return [
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "urn:alight:rules",
            "title": "Alight rules",
            "description": "Rules that run when files land.",
            // A file of comments alone is one without rules yet.
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
                "conditions": SchemaForm.object(RuleDecoder.conditions.schemas, isNonEmpty: true),
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
            "description": "Whether it only reads the file, and may run beside other actions that do.",
        ]
        var forms: [JSONValue] = [
            ["type": "string", "minLength": 1, "description": "A handler without parameters."],
            SchemaForm.object(
                ["exec": SchemaForm.command, "shares_file": sharesFile], required: ["exec"],
                description: "A program; each element is one argument, whatever it holds."),
            SchemaForm.object(
                ["shell": SchemaForm.shell, "shares_file": sharesFile], required: ["shell"],
                description: "A line for /bin/sh, with the facts in variables such as ALIGHT_PATH."),
        ]
        var form = SchemaForm.object(use, required: ["use"], description: "A handler and its parameters.").object ?? [:]
        form["allOf"] = .array(handlers.compactMap(parameters))
        forms.insert(.object(form), at: 1)
        return ["anyOf": .array(forms)]
    }

    /// What `with` has to be for one handler; nil when anything goes.
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

    /// A parameter of a handler that isn't known here.
    private static let value: JSONValue = [
        "anyOf": [
            ["type": "string", "pattern": .string(SchemaForm.templatePattern)],
            ["type": ["number", "boolean", "null"]],
            ["type": "array", "items": ["$ref": "#/$defs/value"]],
            ["type": "object", "additionalProperties": ["$ref": "#/$defs/value"]],
        ]
    ]
}
