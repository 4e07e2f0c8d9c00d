package import JSON

/// The description of a plugin, from `plugin.yaml` or the verb `describe`.
public struct PluginDescription: Sendable, Hashable {
    public var name: String
    public var version: String
    /// The supported versions of the protocol.
    public var `protocol`: [Int]
    public var summary: String?
    /// The command, relative to `plugin.yaml`; nil for a description from the executable.
    public var run: [String]?
    /// `run`, `serve`; nil is `[run]`.
    public var modes: [String]?
    /// The maximum number of events in one request; nil is 1.
    public var batch: Int?
    public var concurrent: Int?
    /// The maximum number of processes of this plugin at once, over all rules.
    public var parallel: Int?
    /// Whether a second run of the same job is harmless; nil is true.
    public var idempotent: Bool?
    /// Whether it accepts names that are not UTF-8; nil is false.
    public var rawPaths: Bool?
    /// Whether it only reads the file, and may run at the same time as other actions that do; nil is false.
    public var sharesFile: Bool?
    /// The programs that it needs, `vipsthumbnail` or `vipsthumbnail (libvips-tools)`.
    public var requires: [String]?
    /// The events that it accepts; nil is all.
    public var events: [String]?
    /// The types of file that it accepts; nil is all.
    public var types: [String]?
    /// A duration as in rules; the default for rules that set none.
    public var timeout: String?
    /// The JSON Schema of the parameters.
    public var parameters: ParameterSchema?

    public init(name: String, version: String, parameters: ParameterSchema?) {
        (self.name, self.version) = (name, version)
        self.protocol = [ProtocolVersion.current]
        self.parameters = parameters
    }

    /// The keys of `plugin.yaml`, for messages about unknown ones.
    public static let keys = PluginDescription(name: "", version: "", parameters: nil).members.map(\.key)

    /// The description as printed by `describe`.
    package var json: JSONValue { JSONValue(members: members) }

    /// All keys, each with its value.
    private var members: KeyValuePairs<String, (any JSONForm)?> {
        [
            "name": name, "version": version, "protocol": `protocol`, "summary": summary, "run": run, "modes": modes,
            "batch": batch, "concurrent": concurrent, "parallel": parallel, "idempotent": idempotent,
            "raw_paths": rawPaths, "shares_file": sharesFile, "requires": requires, "events": events, "types": types,
            "timeout": timeout, "parameters": parameters?.json,
        ]
    }
}
