import FileEvents
package import FileWatching
package import System

extension HintQueue.Batch {
    /// The same without hints of files that are Alight's own.
    package func leaving(_ files: [PathBytes]) -> Self {
        guard !files.isEmpty else { return self }
        var batch = self
        batch.hints.removeAll { hint in files.contains { hint.path.isPart(of: $0) } }
        return batch
    }
}

extension PathBytes {
    /// Whether this is the file, or one beside it whose name goes on with a hyphen.
    fileprivate func isPart(of file: PathBytes) -> Bool {
        guard bytes.starts(with: file.bytes) else { return false }
        return bytes.count == file.bytes.count || bytes[file.bytes.count] == UInt8(ascii: "-")
    }
}
