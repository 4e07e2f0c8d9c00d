import FileEvents
import FileWatching
import Glibc
import Reconciling
import Settling
import TestKit
import Testing

/// Symbolic links in the place of folders: what is behind them has another path.
struct LinkTests {
    private let written: Hint.Signs = [.appeared, .written, .closed]

    /// Moves a folder away, and leaves a link to it in its place.
    private func replace(_ folder: PathBytes, byLinkTo other: PathBytes) {
        #expect(rename(folder.description, other.description) == 0)
        #expect(symlink(other.description, folder.description) == 0)
    }

    @Test func `S18 what went with its folder is moved, though a link leads there from its old path`() throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root)
            TestFile.write(tree.path("d/e/a"), "x")
            desk.take([("d/e/a", written)])
            desk.wait()
            #expect(desk.words() == ["created d/e/a"])
            replace(tree.path("d"), byLinkTo: tree.path("new"))
            desk.take([
                ("d", [.vanished, .appeared, .moved, .subtree]), ("d/e/a", [.closed]),
                ("new", [.appeared, .moved]), ("new/e/a", [.listed, .appeared]),
            ])
            #expect(desk.words() == ["moved new/e/a"])
            desk.wait(.seconds(10))
            #expect(desk.words() == [])
        }
    }

    @Test(arguments: [Hint.Signs.closed, [.appeared, .moved], [.appeared, .listed], .listed, .attributes])
    func `S18 a file that only a link leads to is not there`(_ signs: Hint.Signs) throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root, mask: [.differences, .arriving])
            TestFile.write(tree.path("outside/a"), "x")
            #expect(symlink("outside", tree.path("d").description) == 0)
            desk.take([("d/a", signs)])
            desk.wait(.seconds(10))
            #expect(desk.words() == [])
        }
    }

    @Test func `S18 what only a link leads to is gone, readable or not`() throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root)
            for name in ["d/a", "e/a"] { TestFile.write(tree.path(name), "x") }
            desk.take([("d/a", written), ("e/a", written)])
            desk.wait()
            #expect(desk.words().sorted() == ["created d/a", "created e/a"])
            for name in ["d", "e"] { TestFile.removeTree(tree.path(name)) }
            // To itself, which can't be followed, and to a folder with such a file.
            #expect(symlink("d", tree.path("d").description) == 0)
            TestFile.write(tree.path("outside/a"), "y")
            #expect(symlink("outside", tree.path("e").description) == 0)
            desk.take([("d/a", .vanished), ("e/a", .vanished)])
            desk.wait(.seconds(10))
            #expect(desk.words().sorted() == ["deleted d/a", "deleted e/a"])
        }
    }

    @Test func `S19 a root may be a link`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("there/sub/a"), "x")
            #expect(symlink("there", tree.path("root").description) == 0)
            var desk = try Desk(tree.path("root"))
            desk.take([("sub/a", written)])
            desk.wait()
            #expect(desk.words() == ["created sub/a"])
            desk.take(
                [("sub/a", .listed)], origin: .rescan,
                reports: [.listing(tree.path("root"), .rescan), .listed(tree.path("root"), .rescan)])
            desk.wait()
            #expect(desk.words() == [])
        }
    }

    @Test func `S52 while watches are short every path that is told is hinted again`() throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root)
            TestFile.write(tree.path("a"), "x")
            desk.take([("a", written)])
            desk.wait()
            #expect(desk.doubted == [])
            desk.take(reports: [.limited(WatchShortage(limit: InotifyLimit(name: "x", value: 1), needed: 2, polled: 1))]
            )
            TestFile.write(tree.path("b"), "x")
            desk.take([("b", written)])
            desk.wait()
            #expect(desk.doubted == [tree.path("b")])
        }
    }
}
