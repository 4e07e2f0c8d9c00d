import FileEvents
import JSON
import PluginProtocol
import Rules
import System

/// Reads the description of a plugin.
enum DescriptionReader {
    /// Returns the description, and warnings about keys that this version does not know.
    static func read(_ value: JSONValue) throws(Problem) -> (description: PluginDescription, notices: [String]) {
        guard let members = value.object else {
            throw Problem("the description is not a mapping")
        }
        let fields = SchemaFields(members: members, location: "")
        let name = try name(fields)
        let versions = try versions(members["protocol"])
        var parameters: ParameterSchema?
        if let value = members["parameters"], value != .null {
            parameters = try SchemaReader.read(value)
            guard parameters?.type == "object" || parameters?.type == nil else {
                throw Problem("'parameters.type' must be object", key: "parameters.type")
            }
        }
        var description = PluginDescription(name: name, version: "", parameters: parameters)
        // YAML reads the version 1.2 as a number.
        if let version = members["version"] { description.version = version.shown }
        description.protocol = versions
        description.summary = try fields.text("summary")
        description.run = if let word = members["run"]?.string { [word] } else { try fields.texts("run") }
        description.modes = try words(fields, "modes", ["run", "serve"])
        if let modes = description.modes, !modes.contains("run") {
            throw Problem(
                "it can't run once for each event: 'modes' has no 'run'", help: "add 'run' to 'modes'", key: "modes")
        }
        description.batch = try fields.count("batch", atLeast: 1)
        description.concurrent = try fields.count("concurrent", atLeast: 1)
        description.parallel = try fields.count("parallel", atLeast: 1)
        description.idempotent = try fields.bool("idempotent")
        description.rawPaths = try fields.bool("raw_paths")
        description.sharesFile = try fields.bool("shares_file")
        description.requires = try fields.texts("requires")
        description.events = try words(fields, "events", EventMask.words, help: EventSpelling.help)
        description.types = try words(fields, "types", FileType.allCases.map(\.rawValue) + ["any"])
        description.timeout = try fields.text("timeout")
        if let text = description.timeout {
            do throws(Problem) {
                _ = try DurationText.parse(text)
            } catch {
                throw Problem("'timeout': \(error.message)", help: error.help, key: "timeout")
            }
        }
        return (description, notices(members))
    }

    private static func name(_ fields: SchemaFields) throws(Problem) -> String {
        guard let name = try fields.text("name") else {
            throw Problem("the description has no 'name'", help: "add 'name:'")
        }
        guard !name.isEmpty, !name.contains("/"), !name.hasPrefix(".") else {
            throw Problem("'\(name)' can't be the name of a plugin", key: "name")
        }
        return name
    }

    private static func versions(_ value: JSONValue?) throws(Problem) -> [Int] {
        let current = ProtocolVersion.current
        let values = value.map { $0.array ?? [$0] } ?? []
        let versions = values.compactMap { $0.double.flatMap { Int(exactly: $0) } }
        if versions.isEmpty {
            throw Problem("the description has no 'protocol'", help: "add 'protocol: [\(current)]'")
        }
        guard !versions.contains(current) else { return versions }
        let list = versions.map(String.init).joined(separator: ", ")
        throw Problem(
            "it uses version \(list) of the protocol, and this release supports \(current)",
            help: versions.allSatisfy { $0 > current } ? "update Alight, or use an older version of the plugin" : nil,
            key: "protocol")
    }

    private static func words(
        _ fields: SchemaFields, _ key: String, _ known: [String], help: ((String) -> String)? = nil
    ) throws(Problem) -> [String]? {
        let words = try fields.texts(key)
        for word in words ?? [] where !known.contains(word) {
            throw fields.problem(
                key, "has the unknown word '\(word)'",
                help: help?(word) ?? Spelling.help(for: word, candidates: known, noun: key))
        }
        return words
    }

    /// Returns the warnings about unknown keys, which are not errors because version 1 grows by optional members.
    private static func notices(_ members: [String: JSONValue]) -> [String] {
        members.keys.sorted().filter { !PluginDescription.keys.contains($0) }.map { key in
            let near = Spelling.nearest(to: key, in: PluginDescription.keys, except: members.keys)
            return "unknown key '\(key)' in its description" + (near.map { "; did you mean '\($0)'?" } ?? "")
        }
    }
}
