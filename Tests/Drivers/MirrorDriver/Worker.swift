import CTestKit
import Glibc
import System
import TestKit

/// Performs operations below a directory and writes one line per operation to standard output.
struct Worker {
    let tree: PathBytes
    /// The name of the worker in the log.
    let name: String

    func run(_ generator: OperationGenerator, count: Int, without words: Set<String>) {
        // The modes are exactly those of the operations.
        umask(0)
        var generator = generator
        for index in 0..<count {
            let operation = generator.next()
            if words.contains(operation.word) { continue }
            let start = OperationLog.now()
            let error = perform(operation)
            OperationLog.write(
                start: start, worker: "\(name) #\(index)", error: error, operation.summary,
                paths: operation.paths.map(\.shown))
        }
    }

    // MARK: Operations

    /// Performs one operation.
    ///
    /// Returns 0 or the errno.
    private func perform(_ operation: Operation) -> Int32 {
        switch operation {
        case .create(let path, let size): write(path, O_CREAT | O_TRUNC, size)
        case .append(let path, let size): write(path, O_APPEND, size)
        case .truncate(let path, let size): at(path) { truncate($0, off_t(size)) }
        case .rewrite(let path, let size): write(path, 0, size)
        case .map(let path, let closesFirst): map(path, closesFirst: closesFirst)
        case .hold(let path, let size, let pause): hold(path, size, pause)
        case .replace(let path, let size, let other):
            first(write(other, O_CREAT | O_TRUNC, size)) { rename(other, path) }
        case .rename(let path, let other): rename(path, other)
        case .exchange(let path, let other):
            absolute(path).withCString { one in absolute(other).withCString { ctk_exchange(one, $0) } }
        case .link(let path, let other):
            first(at(path) { one in absolute(other).withCString { link(one, $0) } }) { waitUntilNoticed() }
        case .symlink(let target, let path):
            at(path) { name in target.withCString { symlink($0, name) } }
        case .linkUnnamed(let path, let size): linkUnnamed(path, size)
        case .pipe(let path): at(path) { mkfifo($0, 0o644) }
        case .unlink(let path): at(path) { unlink($0) }
        case .recreate(let path, let size):
            first(at(path) { unlink($0) }) { write(path, O_CREAT | O_EXCL, size) }
        case .makeDirectory(let path): at(path) { mkdir($0, 0o755) }
        case .makeTree(let path, let names, let size): makeTree(path, names, size)
        case .removeTree(let path): removeTree(path)
        case .remakeTree(let path, let name, let size):
            first(removeTree(path)) { makeTree(path, [name], size) }
        case .moveAndMake(let path, let other):
            first(rename(path, other)) { at(path) { mkdir($0, 0o755) } }
        case .chmod(let path, let mode): at(path) { chmod($0, mode_t(mode)) }
        case .touch(let path, let time): touch(path, time)
        case .pause(let pause):
            first(0) {
                Deadline.pause(.milliseconds(pause))
                return 0
            }
        }
    }

    private func absolute(_ path: PathBytes) -> PathBytes { tree.appending(path.bytes) }

    private func at(_ path: PathBytes, _ call: (UnsafePointer<CChar>) -> Int32) -> Int32 {
        absolute(path).withCString { call($0) == 0 ? 0 : errno }
    }

    /// Pauses, so that a new name can be noticed.
    ///
    /// Changes made through a name that is removed before any program has seen it are not reported for the other
    /// names of the file, so no program can know them.
    private func waitUntilNoticed() -> Int32 {
        Deadline.pause(.milliseconds(20))
        return 0
    }

    /// Performs the second step if the first one succeeded.
    private func first(_ error: Int32, then: () -> Int32) -> Int32 { error == 0 ? then() : error }

    private func rename(_ path: PathBytes, _ other: PathBytes) -> Int32 {
        at(path) { one in absolute(other).withCString { Glibc.rename(one, $0) } }
    }

    private func open(_ path: PathBytes, _ flags: Int32) -> Int32 {
        // O_NONBLOCK: opening a pipe without a reader must not block the worker.
        absolute(path).withCString { Glibc.open($0, flags | O_CLOEXEC | O_NONBLOCK, 0o644) }
    }

    private func write(_ path: PathBytes, _ flags: Int32, _ size: Int) -> Int32 {
        let descriptor = open(path, O_WRONLY | flags)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        return fill(descriptor, size)
    }

    private func fill(_ descriptor: Int32, _ size: Int) -> Int32 {
        TestFile.tryPut(descriptor, [UInt8](repeating: UInt8(truncatingIfNeeded: size), count: size)[...])
    }

    private func hold(_ path: PathBytes, _ size: Int, _ pause: Int) -> Int32 {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        let error = fill(descriptor, size / 2)
        guard error == 0 else { return error }
        Deadline.pause(.milliseconds(pause))
        return fill(descriptor, size - size / 2)
    }

    private func map(_ path: PathBytes, closesFirst: Bool) -> Int32 {
        let descriptor = open(path, O_RDWR)
        guard descriptor >= 0 else { return errno }
        var isOpen = true
        defer { if isOpen { close(descriptor) } }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return errno }
        // An empty file has nothing to map; only regular files can be mapped.
        guard status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 else { return EINVAL }
        let length = min(Int(status.st_size), 10_000)
        guard let start = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0),
            start != MAP_FAILED
        else { return errno }
        if closesFirst {
            close(descriptor)
            isOpen = false
        }
        // Another worker may truncate the file at any time; accessing the missing page would raise SIGBUS. The kernel
        // performs the write instead and returns EFAULT.
        let zero = Glibc.open("/dev/zero", O_RDONLY | O_CLOEXEC)
        defer { close(zero) }
        let error: Int32 = read(zero, start, min(length, 100)) < 0 ? errno : 0
        munmap(start, length)
        return error
    }

    private func linkUnnamed(_ path: PathBytes, _ size: Int) -> Int32 {
        let descriptor = absolute(path).parent.withCString { ctk_open_unnamed($0, 0o644) }
        guard descriptor >= 0 else { return -descriptor }
        defer { close(descriptor) }
        return first(fill(descriptor, size)) {
            absolute(path).withCString { ctk_link_descriptor(descriptor, $0) }
        }
    }

    private func makeTree(_ path: PathBytes, _ names: [PathBytes], _ size: Int) -> Int32 {
        TestFile.makeDirectory(absolute(path))
        for name in names {
            let error = write(path.appending(name.bytes), O_CREAT, size)
            guard error == 0 else { return error }
        }
        return 0
    }

    private func removeTree(_ path: PathBytes) -> Int32 {
        TestFile.removeTree(absolute(path))
        return at(path) { access($0, F_OK) } == 0 ? ENOTEMPTY : 0
    }

    private func touch(_ path: PathBytes, _ time: Timestamp?) -> Int32 {
        at(path) { name in
            guard let time else { return utimensat(AT_FDCWD, name, nil, AT_SYMLINK_NOFOLLOW) }
            let timestamp = timespec(tv_sec: Int(time.seconds), tv_nsec: Int(time.nanoseconds))
            return [timestamp, timestamp].withUnsafeBufferPointer {
                utimensat(AT_FDCWD, name, $0.baseAddress, AT_SYMLINK_NOFOLLOW)
            }
        }
    }
}
