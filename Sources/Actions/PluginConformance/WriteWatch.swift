import Glibc
import System

/// Records which files are written in some directories, including those that are gone again at the end.
///
/// Directories that are created meanwhile are not watched: they appear in the comparison of before and after.
final class WriteWatch {
    private let descriptor = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
    private var directories: [Int32: PathBytes] = [:]

    init(_ watched: [PathBytes]) {
        let mask = UInt32(IN_CREATE) | UInt32(IN_MOVED_TO) | UInt32(IN_MODIFY) | UInt32(IN_ONLYDIR)
        for directory in watched {
            let number = directory.withCString { inotify_add_watch(descriptor, $0, mask) }
            if number >= 0 { directories[number] = directory }
        }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Returns the paths that were written to since the last call.
    func written() -> Set<PathBytes> {
        var paths: Set<PathBytes> = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { return paths }
            buffer.withUnsafeBytes { bytes in
                var offset = 0
                let header = MemoryLayout<inotify_event>.size
                while offset + header <= count {
                    let event = bytes.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
                    let name = bytes[(offset + header)..<(offset + header + Int(event.len))].prefix { $0 != 0 }
                    if let directory = directories[event.wd], !name.isEmpty {
                        paths.insert(directory.appending(Array(name)))
                    }
                    offset += header + Int(event.len)
                }
            }
        }
    }
}
