package import System

/// The kind of file at a path on this machine, since incron treats files and directories differently.
package enum PathNature: Sendable {
    case file, directory, missing

    /// Returns the current kind, following symbolic links.
    package static func now(at path: PathBytes) -> PathNature {
        switch FileReading.kind(of: path) {
        case .directory: .directory
        case .missing: .missing
        case .file, .other: .file
        }
    }
}

/// One line of a table, as a rule.
struct ImportedRule {
    /// The original line, after its number.
    var origin: String
    var name: String
    var path: String
    var isEnabled = true
    var exclude: [String] = []
    var types: [String] = []
    var events: [String] = []
    /// The argument vector, each a template.
    var arguments: [String] = []
    /// Short descriptions of what was preserved.
    var converted: [String] = []
    /// The differences in behavior, with their reasons.
    var changes: [String] = []
    /// A suggested alternative, as lines of YAML.
    var suggestion: [String] = []

    /// Adds a difference once.
    mutating func addChange(_ change: String) { if !changes.contains(change) { changes.append(change) } }
}

/// A line of an imported table.
enum ImportedEntry {
    /// A comment or an empty line of the table.
    case comment(String)
    case rule(ImportedRule)
    /// A line without a corresponding rule.
    case dropped(origin: String, reason: String)
}

/// The rules file of an imported table.
struct ImportedFile {
    /// The origin of the table, and notes that apply to all of its lines.
    var head: [String]
    var entries: [ImportedEntry]

    var text: String {
        var lines = head.map { $0.isEmpty ? "#" : "# \(YAMLText.comment($0))" } + ["", "defaults:"]
        let defaults = [
            ("hidden", "true", "incron reports names with a leading dot"),
            ("ignore_defaults", "false", "and temporary files"),
            ("settle", "0", "immediately, when no process has the file open for writing"),
            ("catch_up", "false", "changes while it did not run are not reported; remove this to report them"),
            ("concurrency", "16", "commands run at the same time"),
            ("timeout", "1d", "incron does not limit the time of a command"),
            ("retry", "false", "nothing is retried; 'alight jobs --state failed' lists what failed"),
        ]
        for (key, value, reason) in defaults {
            let pair = "  \(key): \(value)"
            lines.append(pair + String(repeating: " ", count: max(1, 28 - pair.count)) + "# \(reason)")
        }
        let hasRule = entries.contains { if case .rule = $0 { true } else { false } }
        lines += ["", hasRule ? "rules:" : "rules: []"]
        for entry in entries {
            switch entry {
            case .comment(let text): lines.append(text.isEmpty ? "" : "  # \(YAMLText.comment(text))")
            case .dropped(let origin, let reason):
                lines += ["  # \(YAMLText.comment(origin))", "  # not converted: \(YAMLText.comment(reason))", ""]
            case .rule(let rule): lines += Self.lines(of: rule) + [""]
            }
        }
        while lines.last == "" { lines.removeLast() }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func lines(of rule: ImportedRule) -> [String] {
        var lines = ["# \(YAMLText.comment(rule.origin))"]
        let converted = rule.converted.joined(separator: ", ")
        if !converted.isEmpty { lines.append("# converted: \(YAMLText.comment(converted))") }
        lines += rule.changes.map { "# differs: \(YAMLText.comment($0))" }
        lines.append("- name: \(YAMLText.scalar(rule.name))")
        if !rule.isEnabled { lines.append("  enabled: false") }
        lines.append("  path: \(YAMLText.scalar(rule.path))")
        if !rule.exclude.isEmpty { lines.append("  exclude: \(YAMLText.list(rule.exclude))") }
        if !rule.types.isEmpty, rule.types != ["file"] { lines.append("  types: \(YAMLText.list(rule.types))") }
        lines.append("  events: \(YAMLText.list(rule.events))")
        lines += ["  action:", "    exec: \(YAMLText.list(rule.arguments))"]
        lines += rule.suggestion.map { "  # \(YAMLText.comment($0))" }
        return lines.map { "  " + $0 }
    }
}
