package import FileEvents
package import System

/// A due path as it is stored.
package struct StoredDuePath: Sendable, Hashable {
    package var path: PathBytes
    /// The process that made it due; nil if it is not known yet, or not requested.
    package var writer: Writer?

    package init(path: PathBytes, writer: Writer? = nil) { (self.path, self.writer) = (path, writer) }
}

/// The change of the stored row of a due path.
package enum DueChange: Sendable, Hashable {
    case stored(Writer?), deleted
}
