import CTestKit
import Glibc
import Simulation
import System
import TestKit

/// Applies operations of a simulated world to real files.
struct RealFiles: ~Copyable {
    let base: PathBytes
    private var descriptors: [(path: PathBytes, descriptor: Int32)] = []
    private var count = 0

    init(base: PathBytes) {
        self.base = base
        // Other directories on the same file system, which are not watched.
        TestFile.makeDirectory(beside)
    }

    private var beside: PathBytes { base.parent.appending("beside") }

    deinit { for opened in descriptors { Glibc.close(opened.descriptor) } }

    private func full(_ path: PathBytes) -> PathBytes {
        base.appending(path.bytes.last == .slash ? Array(path.bytes.dropLast()) : path.bytes)
    }

    private func put(_ path: PathBytes, _ flags: Int32) -> Int32 {
        let descriptor = path.withCString { Glibc.open($0, O_WRONLY | O_CLOEXEC | flags, 0o644) }
        precondition(descriptor >= 0, "cannot open \(path): errno \(errno)")
        let bytes = Array("content \(count)".utf8)
        precondition(bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) } == bytes.count)
        return descriptor
    }

    private func renamed(_ from: PathBytes, _ to: PathBytes) -> Bool {
        from.withCString { from in to.withCString { rename(from, $0) == 0 } }
    }

    /// Returns the index of the descriptor to close for a path: one that was opened by that name, or is of that file,
    /// or of the last file of that name.
    private func opened(_ path: PathBytes) -> Int? {
        func name(_ descriptor: Int32) -> PathBytes {
            var buffer = [CChar](repeating: 0, count: 4096)
            let count = readlink("/proc/self/fd/\(descriptor)", &buffer, buffer.count)
            return PathBytes(buffer[..<max(0, count)].map { UInt8(bitPattern: $0) })
        }
        var status = Glibc.stat()
        let isThere = path.withCString { lstat($0, &status) } == 0
        let names = descriptors.map { name($0.descriptor) }
        if let index = names.firstIndex(of: path) { return index }
        let same = descriptors.firstIndex { opened in
            var other = Glibc.stat()
            return isThere && fstat(opened.descriptor, &other) == 0 && other.st_ino == status.st_ino
        }
        return same ?? names.firstIndex(of: PathBytes("\(path) (deleted)"))
    }

    /// Removes a directory and everything below it, as rm(1) does.
    private func remove(_ directory: PathBytes) -> Bool {
        for name in (try? KernelFileSystem().names(in: directory)) ?? [] {
            let path = directory.appending(name.bytes)
            var status = Glibc.stat()
            guard path.withCString({ lstat($0, &status) }) == 0 else { return false }
            if status.st_mode & S_IFMT == S_IFDIR {
                guard remove(path) else { return false }
            } else {
                guard path.withCString({ unlink($0) }) == 0 else { return false }
            }
        }
        return directory.withCString { Glibc.rmdir($0) } == 0
    }

    /// Applies an operation; the world has determined before whether it is possible.
    mutating func apply(_ operation: Operation) -> Bool {
        count += 1
        let path = full(operation.paths[0])
        switch operation {
        case .create: Glibc.close(put(path, O_CREAT | O_EXCL))
        case .write: Glibc.close(put(path, 0))
        case .append: Glibc.close(put(path, O_APPEND))
        case .open: descriptors.append((path, put(path, 0)))
        case .close:
            guard let index = opened(path) else { return false }
            Glibc.close(descriptors.remove(at: index).descriptor)
        case .read: return TestFile.read(path) != nil
        case .replace:
            let new = beside.appending("new")
            Glibc.close(put(new, O_CREAT))
            return renamed(new, path)
        case .delete: return path.withCString { unlink($0) } == 0
        case .rename(_, let to), .directory(_, let to): return renamed(path, full(to))
        case .swap(_, let to):
            return path.withCString { one in full(to).withCString { ctk_exchange(one, $0) == 0 } }
        case .link(_, let to): return path.withCString { from in full(to).withCString { Glibc.link(from, $0) == 0 } }
        case .symlink(_, let target): return target.withCString { to in path.withCString { symlink(to, $0) == 0 } }
        case .mkdir: return path.withCString { mkdir($0, 0o755) } == 0
        case .rmdir: return remove(path)
        case .touch: return path.withCString { utimensat(AT_FDCWD, $0, nil, AT_SYMLINK_NOFOLLOW) } == 0
        case .chmod:
            var status = Glibc.stat()
            guard path.withCString({ lstat($0, &status) }) == 0 else { return false }
            let isDirectory = status.st_mode & S_IFMT == S_IFDIR
            let modes: (mode_t, mode_t) = isDirectory ? (0o755, 0o700) : (0o644, 0o600)
            let mode = status.st_mode & 0o7777 == modes.0 ? modes.1 : modes.0
            return path.withCString { Glibc.chmod($0, mode) } == 0
        case .mount, .umount, .hide, .show: return false
        }
        return true
    }
}
