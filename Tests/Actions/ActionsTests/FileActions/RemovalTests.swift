import CAlightLinux
@testable import FileActions
import Glibc
import System
import Testing
import TestKit

/// A name is removed only while the file that makes it redundant exists under another name.
struct RemovalTests {
    private static func open(_ path: PathBytes) throws -> DirectoryHandle {
        let opened = path.withCString { cal_open_root($0) }
        try #require(opened >= 0)
        return DirectoryHandle(opened, path)
    }

    /// A short name, a name that leaves just enough space for a temporary name, and one that leaves none.
    static let names = ["a.txt", String(repeating: "b", count: 220), String(repeating: "c", count: 255)]

    @Test(.enabled(if: geteuid() == 0), arguments: names)
    func `a file is not removed because it is visible under a second path`(name: String) throws {
        try withTempTree { tree in
            let (here, there) = (tree.path("in"), tree.path("mirror"))
            TestFile.write(here.appending(name), "precious")
            TestFile.makeDirectory(there)
            let isMounted = here.withCString { from in
                there.withCString { mount(from, $0, nil, UInt(MS_BIND), nil) } == 0
            }
            try #require(isMounted)
            defer { _ = there.withCString { umount2($0, Int32(MNT_DETACH)) } }
            let directory = try Self.open(here)
            let twin = Removal.Twin(directory: try Self.open(there), name: PathBytes(name))
            let metadata = try #require(try directory.metadata(of: PathBytes(name)))
            let ending = try Removal.remove(PathBytes(name), in: directory, if: metadata, excluding: twin)
            #expect(ending == .isTwin)
            #expect(try directory.names() == [PathBytes(name)])
            #expect(TestFile.read(here.appending(name)) == Array("precious".utf8))
        }
    }

    @Test(arguments: names)
    func `a file with an existing copy is removed, and a file that has changed is not`(name: String) throws {
        try withTempTree { tree in
            TestFile.write(tree.path("in").appending(name), "old")
            TestFile.write(tree.path("out").appending(name), "old")
            let directory = try Self.open(tree.path("in"))
            let twin = Removal.Twin(directory: try Self.open(tree.path("out")), name: PathBytes(name))
            let metadata = try #require(try directory.metadata(of: PathBytes(name)))
            TestFile.write(tree.path("in").appending(name), "newer")
            let changed = try Removal.remove(PathBytes(name), in: directory, if: metadata, excluding: twin)
            #expect(changed == .changed)
            #expect(try directory.names() == [PathBytes(name)])
            let present = try #require(try directory.metadata(of: PathBytes(name)))
            let removed = try Removal.remove(PathBytes(name), in: directory, if: present, excluding: twin)
            #expect(removed == .removed)
            #expect(try directory.names().isEmpty)
            #expect(try Removal.remove(PathBytes(name), in: directory, if: present, excluding: twin) == .gone)
        }
    }

    @Test(.enabled(if: geteuid() == 0), arguments: ["in/top", "in/top/deep/disk"])
    func `a mount in a directory that is removed is left alone`(location: String) throws {
        try withTempTree { tree in
            TestFile.write(tree.path("precious/a"), "text")
            TestFile.makeDirectory(tree.path("in/top/deep/disk"))
            let (precious, disk) = (tree.path("precious"), tree.path(location))
            let isMounted = precious.withCString { from in
                disk.withCString { mount(from, $0, nil, UInt(MS_BIND), nil) } == 0
            }
            try #require(isMounted)
            defer { _ = disk.withCString { umount2($0, Int32(MNT_DETACH)) } }
            let error = DirectoryRemoval.remove("top", in: try Self.open(tree.path("in"))) { false }
            #expect(error == EBUSY)
            #expect(TestFile.read(tree.path("precious/a")) == Array("text".utf8))
        }
    }

    @Test func `where rename cannot refuse an existing name, only a free name is used`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("a/folder/x"), "1")
            TestFile.write(tree.path("a/file"), "2")
            TestFile.write(tree.path("b/folder/y"), "3")
            TestFile.write(tree.path("b/file"), "4")
            TestFile.makeDirectory(tree.path("b/empty"))
            let from = try Self.open(tree.path("a"))
            let to = try Self.open(tree.path("b"))
            let inner = try Self.open(tree.path("b/folder"))
            for (name, new) in [("folder", "folder"), ("folder", "empty"), ("file", "file"), ("file", "empty")] {
                #expect(from.renameToNew(PathBytes(name), to: to, PathBytes(new)) == EEXIST)
            }
            #expect(from.renameToNew("none", to: to, "new") == ENOENT)
            #expect(listing(tree.root) == ["a/file: 2", "a/folder/x: 1", "b/empty/", "b/file: 4", "b/folder/y: 3"])
            #expect(from.renameToNew("folder", to: to, "folder 2") == 0)
            #expect(from.renameToNew("file", to: to, "file 2") == 0)
            // A directory cannot be moved into itself, and the attempt leaves nothing behind.
            #expect(to.renameToNew("folder", to: inner, "in") == EINVAL)
            #expect(
                listing(tree.root) == [
                    "a/", "b/empty/", "b/file: 4", "b/file 2: 2", "b/folder/y: 3", "b/folder 2/x: 1",
                ])
        }
    }
}
