import FileEvents
import Glibc
import Settling
import TestKit
import Testing

struct DiskProbeTests {
    @Test func `a file that is open for writing has writers until it is closed`() {
        withTempTree { tree in
            let path = tree.path("a")
            TestFile.write(path, "x")
            #expect(DiskProbe.writers(of: path) == .nobody)
            let writer = path.withCString { open($0, O_WRONLY) }
            #expect(DiskProbe.writers(of: path) == .somebody)
            close(writer)
            #expect(DiskProbe.writers(of: path) == .nobody)
        }
    }

    @Test func `a writable mapping counts after its descriptor is closed`() {
        withTempTree { tree in
            let path = tree.path("a")
            TestFile.write(path, "xxxx")
            let writer = path.withCString { open($0, O_RDWR) }
            let mapping = mmap(nil, 4, PROT_READ | PROT_WRITE, MAP_SHARED, writer, 0)
            close(writer)
            #expect(DiskProbe.writers(of: path) == .somebody)
            munmap(mapping, 4)
            #expect(DiskProbe.writers(of: path) == .nobody)
        }
    }

    @Test func `a reader is no writer`() {
        withTempTree { tree in
            let path = tree.path("a")
            TestFile.write(path, "x")
            let reader = path.withCString { open($0, O_RDONLY) }
            defer { close(reader) }
            #expect(DiskProbe.writers(of: path) == .nobody)
        }
    }

    @Test func `a link is looked at, not followed`() {
        withTempTree { tree in
            let path = tree.path("link")
            _ = path.withCString { symlink("/etc/passwd", $0) }
            guard case .present(let snapshot) = DiskProbe.look(at: path) else {
                Issue.record("the link is not seen")
                return
            }
            #expect(snapshot.type == .symlink)
        }
    }

    @Test func `names that are not text are found by their bytes`() {
        withTempTree { tree in
            let path = tree.root.appending([0x63, 0xE9, 0xFF, 0x0A])
            TestFile.write(path, "xyz")
            guard case .present(let snapshot) = DiskProbe.look(at: path) else {
                Issue.record("the file is not seen")
                return
            }
            #expect(snapshot.size == 3)
            #expect(snapshot.identity.birth != 0)
        }
    }

    @Test func `identity survives a rename and not a replacement`() {
        withTempTree { tree in
            TestFile.write(tree.path("a"), "1")
            let before = DiskProbe.look(at: tree.path("a"))
            _ = tree.path("a").withCString { from in tree.path("b").withCString { rename(from, $0) } }
            #expect(identity(before) == identity(DiskProbe.look(at: tree.path("b"))))
            TestFile.write(tree.path("a"), "1")
            #expect(identity(before) != identity(DiskProbe.look(at: tree.path("a"))))
        }
    }

    private func identity(_ sight: DiskProbe.Sight) -> FileIdentity? {
        guard case .present(let snapshot) = sight else { return nil }
        return snapshot.identity
    }
}
