import FileEvents
import Globbing

extension Rule {
    /// Which paths the rule takes, as text: equal for two rules only if they take the same.
    ///
    /// The built-in ignores stand in it by their number alone, so that another
    /// version of them is another selection only when there are more.
    package var selection: String {
        var lines = filter.globs.map { Self.line("path", $0) }
        lines += filter.exclude.globs.map { Self.line("exclude", $0) }
        lines += filter.outputs.globs.map { Self.line("outputs", $0) }
        lines.append("ignores \(filter.ignores.globs.count)")
        if let depth = filter.depth { lines.append("depth \(depth)") }
        lines.append("types \(types.map(\.rawValue).sorted().joined(separator: " "))")
        if filter.isTree { lines.append("tree") }
        return lines.joined(separator: "\n")
    }

    private static func line(_ key: String, _ glob: Glob) -> String {
        let options = (glob.options.matchesHidden ? "h" : "") + (glob.options.isCaseSensitive ? "c" : "")
        // Bytes that are not UTF-8 are told apart by their numbers.
        let text = String(validating: glob.pattern, as: UTF8.self) ?? "\(glob.pattern)"
        return options.isEmpty ? "\(key) \(text)" : "\(key) (\(options)) \(text)"
    }
}
