package import System

extension Template {
    /// Returns the literal directory before the first placeholder; nil if the template starts with a placeholder.
    package func literalDirectory(in directory: PathBytes) -> PathBytes? {
        guard case .literal(let start)? = parts.first else { return nil }
        let head = start.lastIndex(of: .slash).map { start[...$0] } ?? []
        return directory.resolving(head).normalized
    }

    /// Returns the directory named before the first placeholder; nil if the string starts with a path that depends on
    /// the event.
    package func literalHead(in directory: PathBytes) -> PathBytes? {
        guard case .placeholder(let first)? = parts.first else { return literalDirectory(in: directory) ?? directory }
        switch first {
        case .path, .directory, .root, .from, .stepOutput: return nil
        default: return directory
        }
    }

    /// Returns the expanded path for a sandbox; nil if a file name would make it wider.
    ///
    /// A group of a regular expression may be empty or `..`, and an extension may be empty: each would grant access to
    /// the parent directory. So a component with a placeholder must be a name. Values that are whole paths, such as
    /// `${directory}`, are paths of the event.
    ///
    /// - Parameters:
    ///   - facts: The values of the placeholders.
    ///   - directory: The directory that relative paths are relative to.
    /// - Returns: An absolute path.
    package func confinedPath(with facts: PlaceholderValues, in directory: PathBytes) -> PathBytes? {
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
        return directory.resolving(path).normalized
    }
}
