import Glibc
import System
import Testing
import TestKit

struct DiskProbeTests {
    @Test func `a file that is open for writing has writers until it is closed`() {
        withTempTree { tree in
            let path = tree.path("a")
            TestFile.write(path, "x")
            #expect(Deadline.wait { KernelFileSystem().writers(of: path) == .free })
            let writer = path.withCString { open($0, O_WRONLY | O_CLOEXEC) }
            #expect(KernelFileSystem().writers(of: path) == .held)
            close(writer)
            #expect(Deadline.wait { KernelFileSystem().writers(of: path) == .free })
        }
    }

    @Test func `a writable mapping counts after its descriptor is closed`() {
        withTempTree { tree in
            let path = tree.path("a")
            TestFile.write(path, "xxxx")
            let writer = path.withCString { open($0, O_RDWR | O_CLOEXEC) }
            let mapping = mmap(nil, 4, PROT_READ | PROT_WRITE, MAP_SHARED, writer, 0)
            close(writer)
            #expect(KernelFileSystem().writers(of: path) == .held)
            munmap(mapping, 4)
            #expect(Deadline.wait { KernelFileSystem().writers(of: path) == .free })
        }
    }

    @Test func `a reader is not a writer`() {
        withTempTree { tree in
            let path = tree.path("a")
            TestFile.write(path, "x")
            let reader = path.withCString { open($0, O_RDONLY | O_CLOEXEC) }
            defer { close(reader) }
            #expect(Deadline.wait { KernelFileSystem().writers(of: path) == .free })
        }
    }

    @Test func `S31 a writer of another user's file is found by its descriptor; an empty search proves nothing`() async
    {
        // The test needs a separate process, because it permanently becomes another user.
        await #expect(processExitsWith: .success) {
            let tree = TemporaryTree()
            let path = tree.path("a")
            TestFile.write(path, "x")
            _ = tree.root.withCString { chmod($0, 0o777) }
            _ = path.withCString { chmod($0, 0o666) }
            let isRoot = geteuid() == 0
            if isRoot { precondition(setuid(65_534) == 0) }
            let writer = path.withCString { open($0, O_RDWR | O_CLOEXEC) }
            precondition(KernelFileSystem().writers(of: path) == .held)
            close(writer)
            // The answer is cached for a short time.
            let answer: DiskProbe.Holders = isRoot ? .unknown : .free
            precondition(Deadline.wait { KernelFileSystem().writers(of: path) == answer })
            _ = path.withCString { unlink($0) }
        }
    }

    @Test func `S31 a process that has a file open for writing is named`() {
        withTempTree { tree in
            let (path, other) = (tree.path("a"), tree.path("b"))
            for file in [path, other] { TestFile.write(file, "x") }
            let writer = path.withCString { open($0, O_WRONLY | O_CLOEXEC) }
            let reader = other.withCString { open($0, O_RDONLY | O_CLOEXEC) }
            defer { for descriptor in [writer, reader] { close(descriptor) } }
            // A child process of another test has the descriptors until it calls execve(2).
            let found = WriterSearch.writers(of: [path, other, tree.path("missing")])
            let own = found[path, default: []].first { $0.process == getpid() }
            let name = TestFile.read("/proc/self/comm").map { String(decoding: $0.dropLast(), as: UTF8.self) }
            #expect(own?.name == name)
            #expect(found[other] == nil)
        }
    }

    @Test func `S09 a write lock is found, and a read lock does not count`() {
        withTempTree { tree in
            let path = tree.path("a")
            TestFile.write(path, "x")
            #expect(Deadline.wait { KernelFileSystem().locks(of: DiskProbe.Location(path)) == .free })
            let holder = path.withCString { open($0, O_RDWR | O_CLOEXEC) }
            defer { close(holder) }
            #expect(flock(holder, LOCK_SH) == 0)
            #expect(Deadline.wait { KernelFileSystem().locks(of: DiskProbe.Location(path)) == .free })
            #expect(flock(holder, LOCK_EX) == 0)
            #expect(KernelFileSystem().locks(of: DiskProbe.Location(path)) == .held)
            #expect(flock(holder, LOCK_UN) == 0)
            #expect(Deadline.wait { KernelFileSystem().locks(of: DiskProbe.Location(path)) == .free })
        }
    }

    @Test func `S09 a record lock is found, on any part of the file`() {
        withTempTree { tree in
            let path = tree.path("a")
            TestFile.write(path, "x")
            let holder = path.withCString { open($0, O_RDWR | O_CLOEXEC) }
            defer { close(holder) }
            var lock = Glibc.flock(
                l_type: Int16(F_WRLCK), l_whence: Int16(SEEK_SET), l_start: 1 << 40, l_len: 1, l_pid: 0)
            #expect(fcntl(holder, F_SETLK, &lock) == 0)
            #expect(KernelFileSystem().locks(of: DiskProbe.Location(path)) == .held)
        }
    }

    @Test func `S09 an entry that cannot be locked has no answer`() {
        withTempTree { tree in
            #expect(KernelFileSystem().locks(of: DiskProbe.Location(tree.root)) == .unknown)
            #expect(KernelFileSystem().locks(of: DiskProbe.Location(tree.path("missing"))) == .unknown)
        }
    }

    @Test func `S06 extended attributes are sorted, and read only on request`() {
        withTempTree { tree in
            let path = tree.path("a")
            TestFile.write(path, "x")
            #expect(seen(path)?.extended == [])
            #expect(TestFile.setAttribute(path, "user.b", [1, 0, 2]))
            #expect(TestFile.setAttribute(path, "user.a", []))
            #expect(TestFile.setAttribute(path, "user.c", Array(repeating: 7, count: 2_000)))
            #expect(
                seen(path)?.extended == [
                    ExtendedAttribute(name: "user.a", value: []),
                    ExtendedAttribute(name: "user.b", value: [1, 0, 2]),
                    ExtendedAttribute(name: "user.c", value: Array(repeating: 7, count: 2_000)),
                ])
            guard case .present(let plain) = KernelFileSystem().stat(path) else {
                Issue.record("the file is not seen")
                return
            }
            #expect(plain.extended == nil)
        }
    }

    @Test func `S06 the attributes of a link are its own`() {
        withTempTree { tree in
            TestFile.write(tree.path("a"), "x")
            #expect(TestFile.setAttribute(tree.path("a"), "user.a", [1]))
            _ = tree.path("link").withCString { symlink("a", $0) }
            #expect(seen(tree.path("link"))?.extended == [])
        }
    }

    private func seen(_ path: PathBytes) -> Snapshot? {
        guard case .present(let snapshot) = KernelFileSystem().stat(path, readingExtended: true) else { return nil }
        return snapshot
    }

    @Test func `S45 the children of a directory are counted, including hidden ones`() {
        withTempTree { tree in
            #expect(KernelFileSystem().children(of: DiskProbe.Location(tree.root)) == 0)
            TestFile.write(tree.path("a"), "x")
            TestFile.write(tree.path(".b"), "x")
            TestFile.write(tree.path("c/d"), "x")
            #expect(KernelFileSystem().children(of: DiskProbe.Location(tree.root)) == 3)
            #expect(KernelFileSystem().children(of: DiskProbe.Location(tree.path("a"))) == nil)
            #expect(KernelFileSystem().children(of: DiskProbe.Location(tree.path("missing"))) == nil)
        }
    }

    @Test func `a link is checked, not followed`() {
        withTempTree { tree in
            let path = tree.path("link")
            _ = path.withCString { symlink("/etc/passwd", $0) }
            guard case .present(let snapshot) = KernelFileSystem().stat(path) else {
                Issue.record("the link is not seen")
                return
            }
            #expect(snapshot.type == .symlink)
        }
    }

    @Test func `names that are not valid UTF-8 are found by their bytes`() {
        withTempTree { tree in
            let path = tree.root.appending([0x63, 0xE9, 0xFF, 0x0A])
            TestFile.write(path, "xyz")
            guard case .present(let snapshot) = KernelFileSystem().stat(path) else {
                Issue.record("the file is not seen")
                return
            }
            #expect(snapshot.size == 3)
            #expect(snapshot.identity.birth != 0)
        }
    }

    @Test func `the identity survives a rename but not a replacement`() {
        withTempTree { tree in
            TestFile.write(tree.path("a"), "1")
            let before = KernelFileSystem().stat(tree.path("a"))
            _ = tree.path("a").withCString { from in tree.path("b").withCString { rename(from, $0) } }
            #expect(identity(before) == identity(KernelFileSystem().stat(tree.path("b"))))
            TestFile.write(tree.path("a"), "1")
            #expect(identity(before) != identity(KernelFileSystem().stat(tree.path("a"))))
        }
    }

    private func identity(_ inspected: DiskProbe.StatResult) -> FileIdentity? {
        guard case .present(let snapshot) = inspected else { return nil }
        return snapshot.identity
    }
}
