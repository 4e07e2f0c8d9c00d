import Glibc
import System
import Testing
import TestKit

@testable import Settling

struct TreeProbeTests {
    /// Returns the tree when it has settled; a process that another test starts briefly has copies of all descriptors.
    private func rested(_ root: PathBytes) -> TreeMetadata? {
        Deadline.poll {
            if case .quiet(let tree) = KernelFileSystem().tree(at: DiskProbe.Location(root)) { tree } else { nil }
        }
    }

    @Test func `S34 a settled directory has a number of entries and a fingerprint`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("a"), "123")
            TestFile.write(tree.path("b/c/d"), "45")
            _ = tree.path("b/link").withCString { symlink("/etc/passwd", $0) }
            let metadata = try #require(rested(tree.root))
            #expect(metadata.entries == 5)
            #expect(metadata.fingerprint.count == 32)
            #expect(!metadata.isUncertain)
            #expect(metadata.changed <= DiskProbe.now())
        }
    }

    @Test func `S34 a writer anywhere below makes the directory busy, unless writers are not requested`() {
        withTempTree { tree in
            TestFile.write(tree.path("a"), "1")
            TestFile.write(tree.path("b/c/d"), "2")
            #expect(rested(tree.root) != nil)
            let writer = tree.path("b/c/d").withCString { open($0, O_WRONLY | O_CLOEXEC) }
            #expect(KernelFileSystem().tree(at: DiskProbe.Location(tree.root)) == .busy)
            guard case .quiet = KernelFileSystem().tree(at: DiskProbe.Location(tree.root), askingWriters: false)
            else {
                Issue.record("the writer was asked for")
                return
            }
            close(writer)
            #expect(rested(tree.root) != nil)
        }
    }

    @Test func `S34 each change below changes the fingerprint, and an inspection changes nothing`() throws {
        try withTempTree { tree in
            let root = tree.root
            TestFile.write(tree.path("a"), "1")
            TestFile.write(tree.path("b/c"), "2")
            var seen = Set([try #require(rested(root)).fingerprint])
            #expect(rested(root)?.fingerprint == seen.first)
            let changes: [(String, () -> Void)] = [
                ("append", { TestFile.write(root.appending("a"), Array("3".utf8), appending: true) }),
                ("rewrite", { TestFile.write(root.appending("b/c"), "4") }),
                ("create", { TestFile.write(root.appending("b/d"), "") }),
                ("folder", { TestFile.makeDirectory(root.appending("e")) }),
                ("rename", { rename(root, "b/d", "e/d") }),
                (
                    "exchange by hand",
                    {
                        rename(root, "a", "x"); rename(root, "b/c", "a"); rename(root, "x", "b/c")
                    }
                ),
                ("remove", { _ = root.appending("e/d").withCString { unlink($0) } }),
            ]
            for (name, change) in changes {
                change()
                #expect(seen.insert(try #require(rested(root)).fingerprint).inserted, "\(name) is not seen")
            }
        }
    }

    private func rename(_ root: PathBytes, _ from: String, _ to: String) {
        _ = root.appending(from).withCString { from in root.appending(to).withCString { Glibc.rename(from, $0) } }
    }

    @Test func `S18 links are entries and are not followed`() {
        withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            TestFile.write(tree.path("out/a"), "1")
            _ = tree.path("in/link").withCString { symlink("../out", $0) }
            _ = tree.path("in/loop").withCString { symlink(".", $0) }
            #expect(rested(tree.path("in"))?.entries == 2)
            #expect(KernelFileSystem().tree(at: DiskProbe.Location(tree.path("in/link"))) == .absent)
        }
    }

    @Test func `S34 a deep and wide directory is inspected completely`() {
        withTempTree { tree in
            var directory = tree.root
            for level in 0..<150 {
                directory = directory.appending("d\(level)")
                TestFile.write(directory.appending("f"), "x")
            }
            for index in 0..<500 { TestFile.makeDirectory(tree.path("w\(index)")) }
            #expect(rested(tree.root)?.entries == 800)
            let root = tree.root
            let inspected = KernelFileSystem().tree(at: DiskProbe.Location(root), askingWriters: false)
            #expect(inspected == rested(root).map { .quiet($0) })
        }
    }

    @Test func `a path that is not a directory is reported as such`() {
        withTempTree { tree in
            TestFile.write(tree.path("a"), "x")
            #expect(KernelFileSystem().tree(at: DiskProbe.Location(tree.path("a"))) == .absent)
            #expect(KernelFileSystem().tree(at: DiskProbe.Location(tree.path("missing"))) == .absent)
        }
    }

    @Test func `S44 a directory that cannot be listed is unreadable, and one below makes the result uncertain`() async {
        // The check needs a separate process, because root may read everything.
        await #expect(processExitsWith: .success) {
            let tree = TemporaryTree()
            _ = tree.root.withCString { chmod($0, 0o755) }
            TestFile.write(tree.path("in/a"), "x")
            TestFile.makeDirectory(tree.path("in/closed"))
            _ = tree.path("in/closed").withCString { chmod($0, 0) }
            if geteuid() == 0 { precondition(seteuid(65_534) == 0) }
            guard case .quiet(let metadata) = KernelFileSystem().tree(at: DiskProbe.Location(tree.path("in"))) else {
                preconditionFailure()
            }
            precondition(metadata.isUncertain && metadata.entries == 2)
            precondition(
                KernelFileSystem().tree(at: DiskProbe.Location(tree.path("in/closed"))) == .unreadable(errno: EACCES))
            if getuid() == 0 { precondition(seteuid(0) == 0) }
        }
    }
}
