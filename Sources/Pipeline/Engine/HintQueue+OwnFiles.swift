import FileEvents
package import System
package import Watching

extension HintQueue.Batch {
    /// Returns the batch without hints for Alight's own files.
    package func leaving(_ files: [PathBytes]) -> Self {
        guard !files.isEmpty else { return self }
        var batch = self
        batch.hints.removeAll { hint in files.contains { hint.path.isPart(of: $0) } }
        return batch
    }
}

extension PathBytes {
    /// Whether this is the file, or a path that continues it with a hyphen.
    fileprivate func isPart(of file: PathBytes) -> Bool {
        guard bytes.starts(with: file.bytes) else { return false }
        return bytes.count == file.bytes.count || bytes[file.bytes.count] == UInt8(ascii: "-")
    }
}
