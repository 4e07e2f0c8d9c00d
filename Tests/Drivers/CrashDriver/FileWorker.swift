import Glibc
import System
import TestKit

/// Changes the files of a run and writes one line per operation to standard output.
///
/// Every content is unique, so it identifies the worker and the operation that wrote it.
struct FileWorker {
    let folder: PathBytes
    let seed: UInt64
    let life: Int
    let number: Int

    func run(count: Int) {
        umask(0o022)
        var generator = FileOperationGenerator(seed: seed, life: life, worker: number)
        for index in 0..<count {
            let operation = generator.next()
            let start = Self.now()
            let error = perform(operation, tag: "\(seed).\(life).\(number).\(index) ")
            let paths = operation.paths.map(\.description)
            let result = error == 0 ? "done" : String(cString: strerror(error))
            let who = "life \(life) worker \(number) #\(index)"
            let line = (["\(start)", "\(Self.now())", who, result, operation.summary] + paths).joined(separator: "\t")
            TestFile.put(STDOUT_FILENO, Array((line + "\n").utf8))
        }
    }

    /// Microseconds of the monotonic clock, which all processes share.
    static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    private func place(_ path: PathBytes) -> PathBytes { folder.appending("hot").appending(path.bytes) }

    private var outside: PathBytes { folder.appending("outside").appending("\(number)") }

    /// Performs one operation.
    ///
    /// Returns 0 or the errno.
    private func perform(_ operation: FileOperation, tag: String) -> Int32 {
        switch operation {
        case .write(let path, let size): return write(place(path), content(tag, size), O_CREAT | O_TRUNC)
        case .replace(let path, let size):
            let other = place(path).parent.appending("\(number).tmp")
            return after(write(other, content(tag, size), O_CREAT | O_TRUNC)) { move(other, place(path)) }
        case .writeInParts(let path, let size, let pause):
            return write(place(path), content(tag, size), O_CREAT | O_TRUNC, pause: pause)
        case .append(let path, let size): return write(place(path), content(tag, size), O_APPEND)
        case .link(let path, let size):
            let error = after(write(outside, content(tag, size), O_CREAT | O_TRUNC)) {
                TestFile.makeFolder(place(path).parent)
                return outside.withCString { one in place(path).withCString { result(Glibc.link(one, $0)) } }
            }
            _ = outside.withCString { unlink($0) }
            return error
        case .moveIn(let path, let size):
            return after(write(outside, content(tag, size), O_CREAT | O_TRUNC)) {
                TestFile.makeFolder(place(path).parent)
                return move(outside, place(path))
            }
        case .moveOut(let path): return after(move(place(path), outside)) { outside.withCString { result(unlink($0)) } }
        case .rename(let path, let other):
            TestFile.makeFolder(place(other).parent)
            return move(place(path), place(other))
        case .remove(let path): return place(path).withCString { result(unlink($0)) }
        case .renameFolder(let path, let other): return move(place(path), place(other))
        case .removeFolder(let path):
            TestFile.removeTree(place(path))
            return TestFile.exists(place(path)) ? ENOTEMPTY : 0
        case .pause(let pause):
            Deadline.pause(.milliseconds(pause))
            return 0
        }
    }

    private func result(_ value: Int32) -> Int32 { value == 0 ? 0 : errno }

    private func after(_ error: Int32, _ then: () -> Int32) -> Int32 { error == 0 ? then() : error }

    private func move(_ path: PathBytes, _ other: PathBytes) -> Int32 {
        path.withCString { one in other.withCString { result(rename(one, $0)) } }
    }

    private func content(_ tag: String, _ size: Int) -> [UInt8] {
        guard size > 0 else { return [] }
        // The content always includes the whole tag, so that no two are equal.
        var content = Array(tag.utf8)
        content += [UInt8](repeating: UInt8(ascii: "."), count: max(0, size - content.count))
        return content
    }

    private func write(_ path: PathBytes, _ content: [UInt8], _ flags: Int32, pause: Int? = nil) -> Int32 {
        TestFile.makeFolder(path.parent)
        let descriptor = path.withCString { open($0, O_WRONLY | O_CLOEXEC | flags, 0o644) }
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        guard let pause else { return put(descriptor, content[...]) }
        let error = put(descriptor, content[..<(content.count / 2)])
        Deadline.pause(.milliseconds(pause))
        return after(error) { put(descriptor, content[(content.count / 2)...]) }
    }

    private func put(_ descriptor: Int32, _ content: ArraySlice<UInt8>) -> Int32 {
        var rest = content
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { return errno }
            rest = rest.dropFirst(count)
        }
        return 0
    }
}
