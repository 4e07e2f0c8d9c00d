package import Globbing
package import System

extension Rule {
    /// The paths that the rule matches, as a string: equal for two rules only if they match the same paths.
    ///
    /// It contains only the number of built-in ignores, so that another version of the ignores changes the selection
    /// only if their number changes.
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

    /// Returns the filter and the types of another ``selection`` of the rule; invalid lines match nothing.
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
        // Bytes that are not UTF-8 are written as numbers, to keep such patterns distinct.
        let text = String(validating: glob.pattern, as: UTF8.self) ?? "\(glob.pattern)"
        return options.isEmpty ? "\(key) \(text)" : "\(key) (\(options)) \(text)"
    }
}
