import FileEvents
import Glibc

extension PathBytes {
    /// The path without symbolic links; nil when there is nothing of that name.
    var resolved: PathBytes? {
        guard let path = withCString({ realpath($0, nil) }) else { return nil }
        defer { free(path) }
        return PathBytes(UnsafeBufferPointer(start: path, count: strlen(path)).map { UInt8(bitPattern: $0) })
    }
}
