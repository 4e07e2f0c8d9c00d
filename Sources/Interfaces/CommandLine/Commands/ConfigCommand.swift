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
    private struct Row {
        var name: String
        var value: JSONValue
        /// The value as text.
        var text: String
        var origin: SettingOrigin
    }

    private let file: PathBytes?
    private var rows: [Row] = []

    init(_ found: LoadedConfiguration) {
        file = found.file
        let settings = found.settings
        add("journal", settings.journal) { location in
            switch location {
            case .memory: return Self.word(":memory:")
            case .file(let path): return Self.path(path)
            }
        }
        add("retention.period", settings.retentionPeriod) { Self.word($0 == .zero ? "0" : DurationText.shown($0)) }
        add("retention.jobs", settings.retentionJobs, Self.number)
        add("retention.size", settings.retentionSize) { (.integer(Int64($0)), SizeText.binary(UInt64($0))) }
        add("listen", settings.listen) { $0.map(Self.word) ?? Self.nothing }
        add("external_url", settings.externalURLs) { urls in
            (urls.member, urls.isEmpty ? "-" : urls.joined(separator: ", "))
        }
        add("control", settings.control) { $0.map(Self.path) ?? Self.nothing }
        add("jobs.limit", settings.jobs, Self.number)
        add("jobs.extra", settings.extraJobs ?? Setting(settings.extraActions, from: .standard), Self.number)
        add("log.format", settings.logFormat) { Self.word($0.rawValue) }
        add("log.level", settings.logLevel) { Self.word($0.rawValue) }
        add("plugins", settings.plugins, Self.paths)
        add("rules", settings.rules, Self.paths)
    }

    private mutating func add<Value>(_ name: String, _ setting: Setting<Value>?, _ shown: (Value) -> Shown) {
        guard let setting else {
            rows.append(Row(name: name, value: .null, text: "-", origin: .standard))
            return
        }
        let (value, text) = shown(setting.value)
        rows.append(Row(name: name, value: value, text: Display.text(text), origin: setting.origin))
    }

    /// A value as JSON and as text.
    private typealias Shown = (value: JSONValue, text: String)

    private static let nothing: Shown = (.bool(false), "false")

    private static func word(_ text: String) -> Shown { (.string(text), text) }

    private static func number(_ number: Int) -> Shown { (number.member, "\(number)") }

    private static func path(_ path: PathBytes) -> Shown {
        if let text = path.text { return (.string(text), text) }
        var object: [String: JSONValue] = [:]
        object.add("path", path)
        return (.object(object), path.description)
    }

    private static func paths(_ paths: [PathBytes]) -> Shown {
        let shown = paths.map(path)
        return (.array(shown.map(\.value)), shown.isEmpty ? "-" : shown.map(\.text).joined(separator: ":"))
    }

    /// The file, followed by a table of all settings.
    var lines: [String] {
        var table = TextTable(["KEY", "VALUE", "FROM"])
        for row in rows { table.add([row.name, row.text, Display.text(row.origin.word)]) }
        return [file.map { "file: \(Display.path($0))" } ?? "file: none"] + table.lines(width: nil)
    }

    var object: [String: JSONValue] {
        let members = rows.map { row in
            (row.name, JSONValue.members(["value": row.value, "origin": row.origin.object]))
        }
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
