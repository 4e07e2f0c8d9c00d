import ArgumentParser
import Configuration
import JSON
import Rules
import System

/// `alight config`: prints the configuration in effect, and the origin of each value.
struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "config", "Show the configuration in effect, and the origin of each value.",
        exits: [.done, .usage, .rulesInvalid],
        discussion: """
            Accepts the options of 'alight run' that set a value. Precedence: option, environment variable (such as \
            ALIGHT_JOBS), file, default.
            """)

    @OptionGroup var journal: JournalOptions

    @OptionGroup var running: RunningOptions

    @OptionGroup var control: ControlOptions

    @Flag(help: "Print one JSON object.")
    var json = false

    func run() throws {
        let text = ConfigurationText(try journal.load(running, control))
        Output.standard.write(json ? text.object.line : text.lines.joined(separator: "\n"))
    }
}

/// The configuration as text and as JSON.
struct ConfigurationText {
    private let file: PathBytes?
    /// The settings, each with its value as JSON and as text.
    private var rows: [(name: String, value: JSONValue, text: String, origin: SettingOrigin)] = []

    init(_ found: LoadedConfiguration) {
        file = found.file
        let settings = found.settings
        add("journal", settings.journal) { location in
            switch location {
            case .memory: ":memory:"
            case .file(let path): Self.path(path)
            }
        }
        add("retention.period", settings.retentionPeriod) { .string($0 == .zero ? "0" : DurationText.shown($0)) }
        add("retention.jobs", settings.retentionJobs, \.member)
        add("retention.size", settings.retentionSize, text: { SizeText.binary(UInt64($0)) }, \.member)
        add("listen", settings.listen) { $0?.member ?? false }
        add("external_url", settings.externalURLs, text: { $0.joined(separator: ", ") }, \.member)
        add("control", settings.control) { $0.map(Self.path) ?? false }
        add("jobs.limit", settings.jobs, \.member)
        add("jobs.extra", settings.extraJobs ?? Setting(settings.extraActions, from: .standard), \.member)
        add("log.format", settings.logFormat) { .string($0.rawValue) }
        add("log.level", settings.logLevel) { .string($0.rawValue) }
        add("plugins", settings.plugins, text: Self.text) { .array($0.map(Self.path)) }
        add("rules", settings.rules, text: Self.text) { .array($0.map(Self.path)) }
    }

    /// Adds a setting; its text is that of the JSON value, unless another one is given.
    private mutating func add<Value>(
        _ name: String, _ setting: Setting<Value>?, text: ((Value) -> String)? = nil, _ json: (Value) -> JSONValue
    ) {
        let value = setting.map { json($0.value) } ?? .null
        let shown = setting.map { text?($0.value) ?? value.path?.description ?? value.string ?? value.line } ?? ""
        rows.append((name, value, shown.isEmpty ? "-" : Display.text(shown), setting?.origin ?? .standard))
    }

    /// Returns a string, or an object with the exact bytes of a path that is not UTF-8.
    private static func path(_ path: PathBytes) -> JSONValue {
        path.text.map { .string($0) } ?? .members(["path": path])
    }

    private static func text(_ paths: [PathBytes]) -> String { paths.map(\.description).joined(separator: ":") }

    /// The file, followed by a table of all settings.
    var lines: [String] {
        let cells = rows.map { [$0.name, $0.text, Display.text($0.origin.word)] }
        return ["file: \(file.map(Display.path) ?? "none")"] + TextTable.lines([["KEY", "VALUE", "FROM"]] + cells)
    }

    var object: [String: JSONValue] {
        let members = rows.map { ($0.name, JSONValue.members(["value": $0.value, "origin": $0.origin.object])) }
        return .init([
            "file": JSONValue.text(file?.description), "settings": Dictionary(members) { first, _ in first },
        ])
    }
}

extension SettingOrigin {
    /// The origin as text: `--jobs`, `ALIGHT_JOBS`, `config.yaml:3` or `default`.
    var word: String {
        switch self {
        case .flag(let name), .variable(let name): name
        case .file(let location): "\(location.file):\(location.line)"
        case .standard: "default"
        }
    }

    fileprivate var object: JSONValue {
        switch self {
        case .flag(let name): .members(["kind": "flag", "name": name])
        case .variable(let name): .members(["kind": "environment", "name": name])
        case .file(let location):
            .members(["kind": "file", "file": location.file, "line": location.line, "column": location.column])
        case .standard: ["kind": "default"]
        }
    }
}
