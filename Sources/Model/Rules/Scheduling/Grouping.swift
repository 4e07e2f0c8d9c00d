import FileEvents
package import Globbing
package import System

/// Files that are handled together, when all that belong together are there.
package struct Grouping: Sendable, Hashable {
    /// A kind of file that has to be there.
    package struct Kind: Sendable, Hashable {
        /// An extension or a glob, as it is written.
        package var text: String
        /// Matches the names of such files.
        package var glob: Glob

        package init(text: String, glob: Glob) {
            self.text = text
            self.glob = glob
        }
    }

    /// Equal for the files of one folder that belong together.
    package var key: Template
    package var required: [Kind]

    package init(key: Template, required: [Kind]) {
        self.key = key
        self.required = required
    }

    package func key(of path: PathBytes) -> [UInt8] { key.expanded(with: PlaceholderFacts(name: path)) }

    /// Whether a name could have the key: a quick look, since a folder may hold very many.
    package func mayBelong(_ name: PathBytes, to key: [UInt8]) -> Bool {
        guard case .placeholder(let first) = self.key.parts.first, first == .stem || first == .name,
            self.key.parts.count == 1
        else { return true }
        return name.bytes.starts(with: key)
    }

    /// The place of the first kind that the name is of; those of no kind come last.
    package func rank(of path: PathBytes) -> Int {
        let name = Array(path.lastComponent)
        return required.firstIndex { $0.glob.matches(name) } ?? required.count
    }

    /// The kinds that none of the paths is of, as they are written.
    package func missing(in paths: [PathBytes]) -> [String] {
        required.filter { kind in !paths.contains { kind.glob.matches(Array($0.lastComponent)) } }.map(\.text)
    }

    /// The paths in the order in which they are told: those of the first kind first, then by name.
    package func sorted(_ paths: some Sequence<PathBytes>) -> [PathBytes] {
        paths.map { (rank(of: $0), $0) }.sorted { ($0.0, $0.1) < ($1.0, $1.1) }.map(\.1)
    }
}
