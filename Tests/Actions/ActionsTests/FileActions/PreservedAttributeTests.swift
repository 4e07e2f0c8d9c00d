import CAlightLinux
import FileActions
import Glibc
import JSON
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// Attributes of a file that `copy` and `move` keep.
struct PreservedAttributeTests {
    @Test(arguments: BuiltInLocationTests.kinds)
    func `sparseness, attributes and access lists are retained`(_ kind: BuiltInLocationTests.Kind) {
        withTempTree { tree in
            guard let other = OtherFileSystem() else {
                print("skipped: no second file system")
                return
            }
            let source = other.root.appending("in/a")
            TestFile.write(source, "begin")
            #expect(source.withCString { truncate($0, 64 << 20) } == 0)
            // Version 2: owner rw, user 1234 r, group r, mask r, others none.
            var list: [UInt8] = [2, 0, 0, 0]
            for (tag, permissions, id) in [
                (1, 6, UInt32.max), (2, 4, 1234), (4, 4, .max), (16, 4, .max), (32, 0, .max),
            ] as [(UInt16, UInt16, UInt32)] {
                withUnsafeBytes(of: tag.littleEndian) { list += $0 }
                withUnsafeBytes(of: permissions.littleEndian) { list += $0 }
                withUnsafeBytes(of: id.littleEndian) { list += $0 }
            }
            guard TestFile.setAttribute(source, "user.comment", [0xff, 0, 1]),
                TestFile.setAttribute(source, "system.posix_acl_access", list)
            else {
                print("skipped: no extended attributes on /dev/shm")
                return
            }
            var run = BuiltInRun(kind.handler)
            run.further = ["verify": .value(true)]
            let outcome = run(source, ["to": tree.path("out/")])
            #expect(outcome.result == .succeeded, "\(outcome.message)")
            let copy = tree.path("out/a")
            #expect(attribute(copy, "user.comment") == [0xff, 0, 1])
            #expect(attribute(copy, "system.posix_acl_access") == list)
            var status = stat()
            #expect(copy.withCString { lstat($0, &status) } == 0)
            #expect(status.st_size == 64 << 20)
            #expect(Int(status.st_blocks) * 512 < 1 << 20)
        }
    }

    @Test func `attributes that 'keep' does not name are not retained`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("in/a"), "new")
            _ = tree.path("in/a").withCString { chmod($0, 0o751) }
            var times = [timespec(tv_sec: 5, tv_nsec: 0), timespec(tv_sec: 5, tv_nsec: 0)]
            _ = tree.path("in/a").withCString { utimensat(AT_FDCWD, $0, &times, 0) }
            _ = TestFile.setAttribute(tree.path("in/a"), "user.comment", [1])
            var run = BuiltInRun(TransferHandler.copy())
            run.further = ["keep": .array([]), "durable": .value(false)]
            #expect(run(tree.path("in/a"), ["to": tree.path("out/")]).result == .succeeded)
            let copy = try metadata(tree.path("out/a"))
            #expect(copy.mode & 0o111 == 0 && copy.modified.seconds > 5)
            #expect(attribute(tree.path("out/a"), "user.comment") == nil)
        }
    }
}

/// Returns the value of an extended attribute, or nil if it does not exist.
private func attribute(_ path: PathBytes, _ name: PathBytes) -> [UInt8]? {
    var value = [UInt8](repeating: 0, count: 4096)
    let length = path.withCString { path in
        name.withCString { cal_read_attribute(path, $0, &value, value.count) }
    }
    return length >= 0 ? Array(value[..<Int(length)]) : nil
}
