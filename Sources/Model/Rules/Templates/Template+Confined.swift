import FileEvents
package import System

extension Template {
    /// The folder that is written out before the first placeholder; nil when a placeholder is the first of all.
    package func literalFolder(in folder: PathBytes) -> PathBytes? {
        guard case .literal(let start)? = parts.first else { return nil }
        let head = start.lastIndex(of: .slash).map { start[...$0] } ?? []
        return folder.resolving(head).normalized
    }

    /// The expanded text as a path for a sandbox; nil when the name of a file would make it a wider one.
    ///
    /// A group of a regular expression may be empty or `..`, and an extension
    /// empty: each would open the folder above. So what a placeholder is part of has to
    /// be a name; whole paths, as `${directory}` is one, are those of the event.
    ///
    /// - Parameters:
    ///   - facts: What placeholders stand for.
    ///   - folder: Where relative paths are meant from.
    /// - Returns: An absolute path.
    package func confinedPath(with facts: PlaceholderFacts, in folder: PathBytes) -> PathBytes? {
        var path: [UInt8] = []
        var name: [UInt8] = []
        var isGiven = false
        func isName(_ name: [UInt8]) -> Bool { !name.isEmpty && name != [.dot] && name != [.dot, .dot] }
        for part in parts {
            let bytes: [UInt8]
            switch part {
            case .literal(let literal): bytes = literal
            case .placeholder(let placeholder):
                bytes = facts.value(of: placeholder)
                guard !bytes.contains(0) else { return nil }
                if bytes.contains(.slash) {
                    path += name + bytes
                    name = []
                    isGiven = false
                    continue
                }
                isGiven = true
            }
            for byte in bytes {
                name.append(byte)
                guard byte == .slash else { continue }
                if isGiven, !isName(name.dropLast()) { return nil }
                path += name
                name = []
                isGiven = false
            }
        }
        if isGiven, !isName(name) { return nil }
        path += name
        guard !path.isEmpty else { return nil }
        return folder.resolving(path).normalized
    }
}
