import Configuration
import FileEvents
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// A catalog with some handlers, both built-in ones and a plugin.
struct FakeCatalog: HandlerCatalog {
    static let handlers: [HandlerDescription] = [
        HandlerDescription(
            reference: HandlerReference(name: "log"),
            parameters: ParameterSchema(
                type: "object",
                properties: [
                    "message": ParameterSchema(type: "string"),
                    "level": ParameterSchema(type: "string", enum: ["debug", "info", "warning"], default: "info"),
                ], additionalProperties: false)),
        HandlerDescription(reference: HandlerReference(name: "copy"), parameters: nil),
        HandlerDescription(
            reference: HandlerReference(name: "move"),
            parameters: ParameterSchema(
                type: "object",
                properties: [
                    "to": ParameterSchema(
                        type: "string", minLength: 1, description: "The new path.",
                        role: ParameterSchema.destination),
                    "on_conflict": ParameterSchema(
                        type: "string", enum: ["rename", "skip", "replace"], default: "rename"),
                ], required: ["to"], additionalProperties: false),
            events: [.created, .modified, .moved, .attributes], outputTypes: nil, removal: removals["move"]),
        HandlerDescription(
            reference: HandlerReference(name: "thumbnail", location: "/plugins/thumbnail"),
            parameters: ParameterSchema(
                type: "object",
                properties: [
                    "to": ParameterSchema(
                        type: "string", minLength: 1, description: "Where the thumbnail goes.",
                        role: ParameterSchema.destination),
                    "size": ParameterSchema(type: "integer", default: 256, minimum: 16, maximum: 4096),
                    "sharpen": ParameterSchema(type: "boolean"),
                    "formats": ParameterSchema(type: "array", items: ParameterSchema(type: "string")),
                    "border": ParameterSchema(
                        type: "object", properties: ["width": ParameterSchema(type: "integer")], required: ["width"],
                        additionalProperties: false),
                ], required: ["to"], additionalProperties: false),
            events: [.created, .modified], types: [.file]),
        HandlerDescription(reference: HandlerReference(name: "files"), parameters: nil, types: [.file]),
        HandlerDescription(
            reference: HandlerReference(name: "cuts"), parameters: nil, events: [.truncated, .rootGone]),
    ]

    /// The handlers that remove the file, as the built-in ones of the same name do.
    static let removals: [String: InputRemoval] = [
        "delete": InputRemoval("deletes"), "trash": InputRemoval("moves to the trash"),
        "move": InputRemoval("moves", to: .destination),
        "rename": InputRemoval("renames", to: .name(parameter: "name")),
    ]

    /// A handler with a parameter for each keyword of a schema.
    ///
    /// It can be found, but is not listed with the others.
    static let keywords = HandlerDescription(
        reference: HandlerReference(name: "keywords", location: "/plugins/keywords"),
        parameters: ParameterSchema(
            type: "object",
            properties: [
                "array": ParameterSchema(
                    type: "array", items: ParameterSchema(type: "integer", minimum: 1), minItems: 2, maxItems: 3),
                "boolean": ParameterSchema(type: "boolean"),
                "const": ParameterSchema(const: "only this"),
                "enum": ParameterSchema(enum: ["one", 2, true]),
                "free": ParameterSchema(type: "object", additionalProperties: true),
                "integer": ParameterSchema(type: "integer"),
                "length": ParameterSchema(type: "string", minLength: 3, maxLength: 5),
                "null": ParameterSchema(type: "null"),
                "number": ParameterSchema(type: "number", minimum: 0.5, maximum: 1.5),
                "pattern": ParameterSchema(type: "string", pattern: "^[a-z]+$", description: "Small letters."),
                "secret": ParameterSchema(type: "string", minLength: 8, pattern: "^s-", writeOnly: true),
                "strict": ParameterSchema(
                    type: "object", properties: ["a": ParameterSchema(title: "The first.")],
                    additionalProperties: false),
                "string": ParameterSchema(type: "string"),
            ], required: ["string"], additionalProperties: false))

    /// A handler that writes images in some formats.
    ///
    /// It is not listed either.
    static let preview = HandlerDescription(
        reference: HandlerReference(name: "preview", location: "/plugins/preview"),
        parameters: ParameterSchema(
            type: "object",
            properties: [
                "to": ParameterSchema(
                    type: "string", role: ParameterSchema.destination, extensions: .fixed([".webp", ".jpg"]))
            ], required: ["to"], additionalProperties: false))

    func find(_ name: String, from directory: PathBytes) -> Result<HandlerDescription, Problem> {
        if name == "keywords" { return .success(Self.keywords) }
        if name == "preview" { return .success(Self.preview) }
        if let handler = Self.handlers.first(where: { $0.reference.name == name }) { return .success(handler) }
        if let removal = Self.removals[name] {
            return .success(
                HandlerDescription(reference: HandlerReference(name: name), parameters: nil, removal: removal))
        }
        if name == "broken" {
            return .failure(
                Problem(
                    "plugin 'broken' can't be used: plugin.yaml has no 'name'", help: "add 'name: broken'"))
        }
        return .failure(Problem("there is no handler or plugin '\(name)'"))
    }

    func names(from directory: PathBytes) -> [String] { Self.handlers.map(\.reference.name) }
}

/// Creates a loader whose environment is the same on every machine.
func makeLoader(in directory: PathBytes) -> RuleLoader {
    let environment = ["INBOX": "/srv/in", "ODD": "/srv/a*b", "EMPTY": "", "TWICE": "${path}"]
    return RuleLoader(
        catalog: FakeCatalog(),
        hostEnvironment: RuleLoader.Environment(
            home: "/home/ada", environment: { environment[$0] }, currentDirectory: directory))
}

extension DiagnosticText {
    /// Returns all diagnostics, each followed by a newline.
    static func text(of diagnostics: [Diagnostic]) -> String { diagnostics.map { text(of: $0) + "\n" }.joined() }
}

extension RuleLoader {
    /// Loads files and directories by their paths as strings.
    func load(_ paths: [String]) -> LoadedRules { load(paths.map { PathBytes($0) }) }
}

/// Loads rules from a string, written to a separate file.
func load(_ text: String) -> LoadedRules { load(Array(text.utf8)) }

func load(_ bytes: [UInt8]) -> LoadedRules {
    withTempTree { tree in
        TestFile.write(tree.path("rules.yaml"), bytes)
        return makeLoader(in: tree.root).load(["rules.yaml"])
    }
}

/// Returns the only rule of a string that loads without a diagnostic.
func rule(_ text: String) throws -> Rule {
    let loaded = load(text)
    #expect(DiagnosticText.text(of: loaded.diagnostics) == "")
    return try #require(loaded.ruleset.rules.first)
}

/// Golden files, located beside the tests.
///
/// `RECORD=1` rewrites them.
enum Golden {
    static let directory = PathBytes(#filePath).parent.appending("Golden")

    /// Returns the recorded text.
    ///
    /// When recording, this is the new text, so that the comparison succeeds.
    static func text(_ name: String, recording text: String) -> String {
        let path = directory.appending("\(name).txt")
        if isRecording { TestFile.write(path, text) }
        return TestFile.text(path) ?? "(nothing is recorded)\n"
    }
}
