import FileEvents
import Glibc

/// The first line of a script.
enum ScriptLine {
    /// The interpreter that a file names by `#!`; nil when it names none.
    static func interpreter(of file: PathBytes) -> PathBytes? {
        // Something else than a regular file could have us wait.
        let descriptor = file.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        // As much of it as the kernel looks at.
        var line = [UInt8](repeating: 0, count: 256)
        let count = read(descriptor, &line, line.count)
        guard count > 2, line.starts(with: Array("#!".utf8)) else { return nil }
        let blanks = Array(" \t".utf8)
        let rest = line[2..<count].drop { blanks.contains($0) }
        let path = rest.prefix { !blanks.contains($0) && $0 != UInt8(ascii: "\n") && $0 != 0 }
        return path.first == .slash ? PathBytes(Array(path)) : nil
    }
}
