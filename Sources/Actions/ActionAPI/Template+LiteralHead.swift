import Rules
package import System

extension Template {
    /// Returns the directory named before the first placeholder; nil if the string starts with a path that depends on
    /// the event.
    package func literalHead(in directory: PathBytes) -> PathBytes? {
        guard case .placeholder(let first)? = parts.first else { return literalDirectory(in: directory) ?? directory }
        switch first {
        case .path, .directory, .root, .from, .stepOutput: return nil
        default: return directory
        }
    }
}
