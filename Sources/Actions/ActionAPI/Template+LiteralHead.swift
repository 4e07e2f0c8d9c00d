import Rules
package import System

extension Template {
    /// Returns the directory named before the first placeholder; nil if the string starts with a path that depends on
    /// the event.
    package func literalHead(in folder: PathBytes) -> PathBytes? {
        var head: [UInt8] = []
        for (index, part) in parts.enumerated() {
            switch part {
            case .literal(let bytes): head += bytes
            case .placeholder(let placeholder):
                if index == 0 { return placeholder.isWholePath ? nil : folder }
                return Self.folder(head, in: folder)
            }
        }
        return Self.folder(head, in: folder)
    }

    private static func folder(_ head: [UInt8], in folder: PathBytes) -> PathBytes {
        guard let slash = head.lastIndex(of: .slash) else { return folder }
        return folder.resolving(slash == 0 ? head[...0] : head[..<slash]).normalized
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
