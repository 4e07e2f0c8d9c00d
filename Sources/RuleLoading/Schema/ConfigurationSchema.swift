package import PluginProtocol

/// The JSON Schema of the configuration's file, for editors.
///
/// The loader is the judge, as it is for ``RuleSchema``.
package enum ConfigurationSchema {
    /// The schema, of draft 2020-12.
    package static var document: JSONValue {
        [
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "urn:alight:configuration",
            "title": "Alight configuration",
            "description": "What is set of Alight that is no rule.",
            "type": ["object", "null"],
            "properties": .object(members(keys)),
            "additionalProperties": false,
            "examples": [["rules": ["rules"], "retention": "90d", "log": ["level": "warning"]]],
        ]
    }

    private static func members(_ keys: [SchemaKey]) -> [String: JSONValue] {
        Dictionary(keys.map { ($0.name, $0.schema) }) { first, _ in first }
    }

    private static let path = SchemaForm.text(minimum: 1, pattern: SchemaForm.pathPattern)
    private static let period = SchemaForm.duration(allowsZero: true)

    static let retentionKeys = [
        SchemaKey("period", "How long they are kept.", period, standard: "30d"),
        SchemaKey(
            "jobs", "How many are kept at most.", SchemaForm.integer(Configuration.retentionJobsRange),
            standard: 100_000),
        SchemaKey(
            "size", "How much room what they were told and said may take.",
            SchemaForm.size(atLeast: Configuration.leastRetentionSize), standard: "256 MiB"),
    ]

    static let jobsKeys = [
        SchemaKey(
            "limit", "The number of slots: actions that may run programs at once, over all rules.",
            SchemaForm.integer(Configuration.jobsRange)),
        SchemaKey(
            "extra", "The number of slots beyond that, for rules that have waited for one; by default 'limit'.",
            SchemaForm.integer(Configuration.extraJobsRange)),
    ]

    static let logKeys = [
        SchemaKey(
            "format", "Lines for people, JSON objects, or lines with their priority for the journal of systemd.",
            SchemaForm.choice(LogFormat.self), standard: "text"),
        SchemaKey(
            "level", "From which weight on something is told.", SchemaForm.choice(LogLevel.self), standard: "info"),
    ]

    static let keys = [
        SchemaKey("journal", "The journal's file, or ':memory:'.", path, examples: ["/var/lib/alight/journal.db"]),
        SchemaKey(
            "retention", "How long jobs that have succeeded or were skipped are kept, or how much of them.",
            ["anyOf": [period, SchemaForm.object(members(retentionKeys), isNonEmpty: true)]], standard: "30d"),
        SchemaKey(
            "listen", "The address and port where the control interface listens besides its socket; false for none.",
            SchemaForm.orFalse(["type": "string", "pattern": #"^(\[[^\]]+\]|[^:\[\]/ ]*):[0-9]{1,5}$"#]),
            standard: false, examples: ["127.0.0.1:8080"]),
        SchemaKey(
            "external_url", "Where a proxy in front of the control interface is reached, as a browser shows it.",
            SchemaForm.oneOrMore([
                "type": "string",
                "pattern": #"^[Hh][Tt][Tt][Pp][Ss]?://(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)(:[0-9]{1,5})?/?$"#,
            ]),
            examples: ["https://alight.example.org"]),
        SchemaKey(
            "control", "The control socket; false for none.", SchemaForm.orFalse(path),
            examples: ["/run/alight/control.sock"]),
        SchemaKey(
            "jobs", "The number of slots: actions that may run programs at once, over all rules.",
            [
                "anyOf": [
                    SchemaForm.integer(Configuration.jobsRange),
                    SchemaForm.object(members(jobsKeys), isNonEmpty: true),
                ]
            ], examples: [4, ["limit": 4, "extra": 0]]),
        SchemaKey(
            "log", "How Alight tells what happens.", SchemaForm.object(members(logKeys), isNonEmpty: true),
            examples: [["format": "journal", "level": "warning"]]),
        SchemaKey(
            "plugins", "Folders of plugins that are searched before the usual ones.", SchemaForm.oneOrMore(path),
            examples: [["~/plugins"]]),
        SchemaKey(
            "rules", "Rules files, and folders of them, for commands that name none.", SchemaForm.oneOrMore(path),
            examples: [["rules"]]),
    ]
}
