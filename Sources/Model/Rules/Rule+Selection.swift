import FileEvents
package import Globbing
package import System

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

    /// The filter and the types of another ``selection`` of the rule; lines that cannot be read match nothing.
    package func matching(_ selection: String) -> (filter: PathFilter, types: Set<FileType>) {
        var globs: [String: [Glob]] = [:]
        var former = PathFilter(globs: [], ignores: filter.ignores)
        var types: Set<FileType> = []
        for line in selection.split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 1)
            let value = parts.count > 1 ? parts[1] : ""
            switch parts[0] {
            case "depth": former.depth = Int(value)
            case "tree": former.isTree = true
            case "types": types = Set(value.split(separator: " ").compactMap { FileType(rawValue: String($0)) })
            default: if let glob = Self.glob(value) { globs[String(parts[0]), default: []].append(glob) }
            }
        }
        former.globs = globs["path"] ?? []
        former.exclude = GlobSet(globs["exclude"] ?? [])
        former.outputs = GlobSet(globs["outputs"] ?? [])
        return (former, types)
    }

    private static func glob(_ text: Substring) -> Glob? {
        var text = text
        var options = Glob.Options()
        if text.hasPrefix("("), let end = text.firstIndex(of: ")") {
            options.matchesHidden = text[..<end].contains("h")
            options.isCaseSensitive = text[..<end].contains("c")
            text = text[end...].dropFirst(2)
        }
        return try? Glob(text.utf8, options: options)
    }

    private static func line(_ key: String, _ glob: Glob) -> String {
        let options = (glob.options.matchesHidden ? "h" : "") + (glob.options.isCaseSensitive ? "c" : "")
        // Bytes that are not UTF-8 are told apart by their numbers.
        let text = String(validating: glob.pattern, as: UTF8.self) ?? "\(glob.pattern)"
        return options.isEmpty ? "\(key) \(text)" : "\(key) (\(options)) \(text)"
    }
}
