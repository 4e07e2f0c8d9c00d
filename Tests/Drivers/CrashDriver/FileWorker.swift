import Glibc
import System
import TestKit

/// Changes the files of a run and writes one line per operation to standard output.
///
/// Every content is unique, so it identifies the worker and the operation that wrote it.
struct FileWorker {
    let directory: PathBytes
    let seed: UInt64
    let life: Int
    let number: Int

    func run(count: Int) {
        umask(0o022)
        var generator = FileOperationGenerator(seed: seed, life: life, worker: number)
        for index in 0..<count {
            let operation = generator.next()
            let start = OperationLog.now()
            let error = perform(operation, tag: "\(seed).\(life).\(number).\(index) ")
            OperationLog.write(
                start: start, worker: "life \(life) worker \(number) #\(index)", error: error, operation.summary,
                paths: operation.paths.map(\.description))
        }
    }

    private func absolute(_ path: PathBytes) -> PathBytes { directory.appending("hot").appending(path.bytes) }

    private var outside: PathBytes { directory.appending("outside").appending("\(number)") }

    /// Performs one operation.
    ///
    /// Returns 0 or the errno.
    private func perform(_ operation: FileOperation, tag: String) -> Int32 {
        switch operation {
        case .write(let path, let size): return write(absolute(path), content(tag, size), O_CREAT | O_TRUNC)
        case .replace(let path, let size):
            let other = absolute(path).parent.appending("\(number).tmp")
            return after(write(other, content(tag, size), O_CREAT | O_TRUNC)) { move(other, absolute(path)) }
        case .writeInParts(let path, let size, let pause):
            return write(absolute(path), content(tag, size), O_CREAT | O_TRUNC, pause: pause)
        case .append(let path, let size): return write(absolute(path), content(tag, size), O_APPEND)
        case .link(let path, let size):
            let error = after(write(outside, content(tag, size), O_CREAT | O_TRUNC)) {
                TestFile.makeDirectory(absolute(path).parent)
                return outside.withCString { one in absolute(path).withCString { result(Glibc.link(one, $0)) } }
            }
            _ = outside.withCString { unlink($0) }
            return error
        case .moveIn(let path, let size):
            return after(write(outside, content(tag, size), O_CREAT | O_TRUNC)) {
                TestFile.makeDirectory(absolute(path).parent)
                return move(outside, absolute(path))
            }
        case .moveOut(let path):
            return after(move(absolute(path), outside)) { outside.withCString { result(unlink($0)) } }
        case .rename(let path, let other):
            TestFile.makeDirectory(absolute(other).parent)
            return move(absolute(path), absolute(other))
        case .remove(let path): return absolute(path).withCString { result(unlink($0)) }
        case .renameDirectory(let path, let other): return move(absolute(path), absolute(other))
        case .removeDirectory(let path):
            TestFile.removeTree(absolute(path))
            return TestFile.exists(absolute(path)) ? ENOTEMPTY : 0
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
        TestFile.makeDirectory(path.parent)
        let descriptor = path.withCString { open($0, O_WRONLY | O_CLOEXEC | flags, 0o644) }
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        guard let pause else { return TestFile.tryPut(descriptor, content[...]) }
        let error = TestFile.tryPut(descriptor, content[..<(content.count / 2)])
        Deadline.pause(.milliseconds(pause))
        return after(error) { TestFile.tryPut(descriptor, content[(content.count / 2)...]) }
    }
}
