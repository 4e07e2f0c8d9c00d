import Rules
package import System

extension Template {
    /// Returns the directory named before the first placeholder; nil if the string starts with a path that depends on
    /// the event.
    package func literalHead(in directory: PathBytes) -> PathBytes? {
        var head: [UInt8] = []
        for (index, part) in parts.enumerated() {
            switch part {
            case .literal(let bytes): head += bytes
            case .placeholder(let placeholder):
                if index == 0 { return placeholder.isWholePath ? nil : directory }
                return Self.directory(head, in: directory)
            }
        }
        return Self.directory(head, in: directory)
    }

    private static func directory(_ head: [UInt8], in directory: PathBytes) -> PathBytes {
        guard let slash = head.lastIndex(of: .slash) else { return directory }
        return directory.resolving(slash == 0 ? head[...0] : head[..<slash]).normalized
    }
}

extension Placeholder {
    /// Whether the placeholder stands for an absolute path.
    fileprivate var isWholePath: Bool {
        switch self {
        case .path, .directory, .root, .from, .stepOutput: true
        default: false
        }
    }
}
