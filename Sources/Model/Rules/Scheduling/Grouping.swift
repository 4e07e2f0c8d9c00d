package import Globbing
package import System

/// Files that are handled together, once all files of the group exist.
package struct Grouping: Sendable, Hashable {
    /// A kind of file that the group requires.
    package struct Kind: Sendable, Hashable {
        /// The extension or glob as it was written.
        package var text: String
        /// The glob for the names of such files.
        package var glob: Glob

        package init(text: String, glob: Glob) { (self.text, self.glob) = (text, glob) }
    }

    /// The key of the group, equal for all files of a directory that belong together.
    package var key: Template
    package var required: [Kind]

    package init(key: Template, required: [Kind]) { (self.key, self.required) = (key, required) }

    package func key(of path: PathBytes) -> [UInt8] { key.expanded(with: PlaceholderValues(name: path)) }

    /// Whether a name could have the key: a quick test, because a directory may contain very many names.
    package func mayBelong(_ name: PathBytes, to key: [UInt8]) -> Bool {
        guard case .placeholder(let first) = self.key.parts.first, first == .stem || first == .name,
            self.key.parts.count == 1
        else { return true }
        return name.bytes.starts(with: key)
    }

    /// Returns the index of the first kind that matches the name; names that match no kind come last.
    package func rank(of path: PathBytes) -> Int {
        let name = Array(path.lastComponent)
        return required.firstIndex { $0.glob.matches(name) } ?? required.count
    }

    /// Returns the kinds that match none of the paths, as they were written.
    package func missing(in paths: [PathBytes]) -> [String] {
        required.filter { kind in !paths.contains { kind.glob.matches(Array($0.lastComponent)) } }.map(\.text)
    }

    /// Returns the paths in the order in which they are reported: by kind, then by name.
    package func sorted(_ paths: some Sequence<PathBytes>) -> [PathBytes] {
        paths.map { (rank(of: $0), $0) }.sorted { ($0.0, $0.1) < ($1.0, $1.1) }.map(\.1)
    }
}
