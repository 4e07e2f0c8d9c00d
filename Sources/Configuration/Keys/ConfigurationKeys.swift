import JSON
import Rules

typealias ConfigurationKey = Key<ConfigurationDecoder, Configuration>

// The keys of the configuration file and their environment variables.
extension ConfigurationDecoder {
    static let keys = KeyTable([
        key(
            "journal", "The journal file, or ':memory:'.", journal, examples: ["/var/lib/alight/journal.db"],
            into: \.journal),
        group(
            "retention", "How long, and how many, succeeded and skipped jobs are kept.",
            [
                key("period", "How long these jobs are kept.", period, standard: "30d", into: \.retentionPeriod),
                key(
                    "jobs", "The maximum number of these jobs.", .integer(Configuration.retentionJobsRange),
                    standard: 100_000, into: \.retentionJobs),
                key(
                    "size", "The maximum total size of their input and output.",
                    Form("size", SchemaForm.size(atLeast: Configuration.leastRetentionSize)) {
                        $0.checked($1, ConfigurationValues.retentionSize)
                    }, standard: "256 MiB", into: \.retentionSize),
            ], expected: "a duration or a mapping"),
        key(
            "listen", "The address and port of the control interface, in addition to its socket; false for none.",
            .orFalse(
                Form("address", ["type": "string", "pattern": #"^(\[[^\]]+\]|[^:\[\]/ ]*):[0-9]{1,5}$"#]) {
                    $0.checked($1, ConfigurationValues.address)
                }.exceptTrue), standard: false, examples: ["127.0.0.1:8080"], into: \.listen),
        key(
            "external_url", "The URL of a proxy in front of the control interface, as a browser shows it.",
            Form(
                "URL or list of URLs",
                SchemaForm.oneOrMore([
                    "type": "string",
                    "pattern": #"^[Hh][Tt][Tt][Pp][Ss]?://(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)(:[0-9]{1,5})?/?$"#,
                ])
            ) { $0.urls($1) }, examples: ["https://alight.example.org"], into: \.externalURLs),
        key(
            "control", "The control socket; false for none.", .orFalse(Form("path", path) { $0.file($1) }.exceptTrue),
            examples: ["/run/alight/control.sock"], into: \.control),
        group(
            "jobs", "The number of slots: actions that may run programs at the same time, across all rules.",
            [
                key(
                    "limit", "The number of slots: actions that may run programs at the same time, across all rules.",
                    .integer(Configuration.jobsRange), into: \.jobs),
                key(
                    "extra", "The number of additional slots, for rules that have waited for one; by default 'limit'.",
                    .integer(Configuration.extraJobsRange), into: \.extraJobs),
            ], examples: [4, ["limit": 4, "extra": 0]]),
        group(
            "log", "The format and level of the log.", log, isAlone: false,
            examples: [["format": "journal", "level": "warning"]]),
        key(
            "plugins", "Plugin directories that are searched before the default ones.",
            Form("path or list of paths", SchemaForm.oneOrMore(path)) { $0.paths($1, noun: "~/plugins") },
            examples: [["~/plugins"]], into: \.plugins),
        key(
            "rules", "Rules files, and directories of them, for commands without file arguments.",
            Form("path or list of paths", SchemaForm.oneOrMore(path)) { $0.rules($1) }, examples: [["rules"]],
            into: \.rules),
    ])

    private static let log: [ConfigurationKey] = [
        key(
            "format", "Plain text, JSON objects, or lines with a priority for the systemd journal.",
            .choice(LogFormat.self), standard: "text", into: \.logFormat),
        key("level", "The lowest level that is logged.", .choice(LogLevel.self), standard: "info", into: \.logLevel),
    ]

    /// The keys by their environment variables: `ALIGHT_` and the key in upper case.
    static let variables: [(name: String, key: ConfigurationKey)] =
        keys.keys.filter { $0.name != "log" }.map { ("ALIGHT_\($0.name.uppercased())", $0) }
        + log.map { ("ALIGHT_LOG_\($0.name.uppercased())", $0) }

    /// The separators of list elements in a variable; `PATH` also uses colons.
    static let separators: [String: Character] = ["external_url": ",", "plugins": ":", "rules": ":"]

    private static let path = SchemaForm.text(minimum: 1, pattern: SchemaForm.pathPattern)
    private static let journal = Form<ConfigurationDecoder, JournalLocation>("path", path) { decoder, entry in
        entry.value.text == ":memory:" ? .memory : decoder.file(entry).map { .file($0) }
    }
    private static let period = Form<ConfigurationDecoder, Duration>(
        "duration", SchemaForm.duration(allowsZero: true)
    ) { $0.checked($1, ConfigurationValues.period) }

    /// Creates a key whose value is stored together with its origin.
    private static func key<Value>(
        _ name: String, _ description: String, _ form: Form<ConfigurationDecoder, Value>, standard: JSONValue? = nil,
        examples: [JSONValue] = [], into property: any WritableKeyPath<Configuration, Setting<Value>?> & Sendable
    ) -> ConfigurationKey {
        let setting = Form<ConfigurationDecoder, Setting<Value>>(form.noun, form.schema()) { decoder, entry in
            form.read(decoder, entry).map { Setting($0, from: decoder.origin(of: entry)) }
        }
        return Key(name, description, setting, standard: standard, examples: examples, into: property)
    }

    /// Creates a key with a mapping of keys, or with the value of the first of them alone.
    private static func group(
        _ name: String, _ description: String, _ keys: [ConfigurationKey], isAlone: Bool = true,
        expected: String = "a mapping", examples: [JSONValue] = []
    ) -> ConfigurationKey {
        let table = KeyTable(keys)
        let read = { @Sendable (decoder: ConfigurationDecoder, entry: YAMLNode.Entry, target: inout Configuration) in
            if isAlone, entry.value.entries == nil { return keys[0].read(decoder, entry, &target) }
            guard let entries = decoder.mapping(entry, expected, keys: table.names) else { return }
            table.read(entries, by: decoder, into: &target)
        }
        let schema = { @Sendable () -> JSONValue in
            let mapping = SchemaForm.object(table.schemas, isNonEmpty: true)
            return isAlone ? ["anyOf": [keys[0].form(), mapping]] : mapping
        }
        return Key(
            name: name, description: description, noun: isAlone ? "\(keys[0].noun) or mapping" : "mapping",
            standard: isAlone ? keys[0].standard : nil, examples: examples, isShared: true, form: schema, read: read)
    }
}

extension Form {
    /// The same form without `true`, which is reported.
    fileprivate var exceptTrue: Form {
        Form(noun, schema()) { reader, entry in
            guard entry.value.isPlain, entry.value.text == "true" else { return read(reader, entry) }
            return reader.mistyped(entry, "false or a value")
        }
    }
}
