import FileEvents
import Glibc
import Synchronization
import System
import Testing
import TestKit
import Watching

struct WatcherTests {
    @Test func `existing files are listed before ready`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("a/b/c"), "x")
            let watched = try Watched([tree.root])
            #expect(watched.wait(\.isReady))
            #expect(watched.hints[tree.path("a/b/c")] == .listed)
            #expect(watched.reports.contains(.ready(directories: 3)))
        }
    }

    /// Whether the file exists at the start, appears, or is in a directory that appears; and whether it is hinted.
    @Test(arguments: ["a.pdf.part", "sub/.~lock.a.odt#", "sub/a.crdownload"], [true, false])
    func `the first companion of an unfinished file is reported`(name: String, isEarly: Bool) throws {
        try withTempTree { tree in
            TestFile.write(tree.path("a.pdf"), "x")
            if isEarly { TestFile.write(tree.path(name), "x") }
            let watched = try Watched([tree.root])
            #expect(watched.wait(\.isReady))
            #expect(watched.reports.contains(.companions) == isEarly)
            if !isEarly { TestFile.write(tree.path(name), "x") }
            TestFile.write(tree.path("b.part"), "x")
            #expect(watched.wait { $0.hints[tree.path("b.part")] != nil })
            #expect(watched.reports.count { $0 == .companions } == 1)
        }
    }

    @Test func `the initial listing inspects what it finds if the scope asks for that`() throws {
        try withTempTree { tree in
            let root = tree.root
            TestFile.write(root.appending("a/closed"), "four")
            TestFile.write(root.appending("a/open"), "x")
            let descriptor = root.appending("a/open").withCString { open($0, O_WRONLY | O_CLOEXEC) }
            defer { close(descriptor) }
            var scope = WatchScope(roots: [WatchRoot(path: root)], reaches: { _ in true }, takes: { _ in true })
            scope.readsExtended = true
            let queue = HintQueue(wake: {})
            let watcher = try Watcher(scope: scope, queue: queue)
            defer { watcher.stop() }
            var hints: [Hint] = []
            var reports: [WatchReport] = []
            func take() {
                let batch = queue.take()
                hints += batch.hints
                reports += batch.reports
            }
            #expect(
                Deadline.wait {
                    take()
                    return reports.contains(.ready(directories: 2))
                })
            let found = Dictionary(uniqueKeysWithValues: hints.map { ($0.path.description, $0.found) })
            let (directory, closed, held) = (found["\(root)/a"], found["\(root)/a/closed"], found["\(root)/a/open"])
            #expect(directory??.snapshot.type == .directory)
            #expect(closed??.snapshot.size == 4)
            #expect(closed??.snapshot.extended == [])
            #expect(closed??.root == root)
            #expect(closed??.writers == .free)
            #expect(held??.writers == .held)
            // Later hints say only that a path has to be inspected.
            hints = []
            TestFile.write(root.appending("a/closed"), "x")
            #expect(
                Deadline.wait {
                    take()
                    return !hints.isEmpty
                })
            #expect(hints.allSatisfy { $0.found == nil })
        }
    }

    @Test func `writing, renaming and deleting are reported`() throws {
        try withTempTree { tree in
            let watched = try Watched([tree.root])
            #expect(watched.wait(\.isReady))
            TestFile.write(tree.path("a"), "x")
            #expect(watched.wait { $0.hints[tree.path("a")]?.isSuperset(of: [.appeared, .written, .closed]) == true })
            watched.clear()
            _ = tree.path("a").withCString { from in tree.path("b").withCString { rename(from, $0) } }
            #expect(
                watched.wait {
                    $0.hints[tree.path("a")] == [.vanished, .moved] && $0.hints[tree.path("b")] == [.appeared, .moved]
                })
            watched.clear()
            _ = tree.path("b").withCString { unlink($0) }
            #expect(watched.wait { $0.hints[tree.path("b")]?.contains(.vanished) == true })
        }
    }

    @Test func `nothing is missed in new directories, however fast they fill`() throws {
        try withTempTree { tree in
            let watched = try Watched([tree.root])
            #expect(watched.wait(\.isReady))
            var expected: Set<PathBytes> = []
            for round in 0..<100 {
                let path = tree.path("r\(round)/s/t/file")
                TestFile.write(path, "x")
                expected.insert(path)
            }
            #expect(watched.wait { expected.isSubset(of: $0.hints.keys) })
        }
    }

    @Test func `a directory that is moved in is listed`() throws {
        try withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            TestFile.write(tree.path("out/deep/file"), "x")
            let watched = try Watched([tree.path("in")])
            #expect(watched.wait(\.isReady))
            _ = tree.path("out").withCString { from in tree.path("in/new").withCString { rename(from, $0) } }
            #expect(watched.wait { $0.hints[tree.path("in/new/deep/file")]?.contains(.appeared) == true })
            watched.clear()
            TestFile.write(tree.path("in/new/deep/later"), "x")
            #expect(watched.wait { $0.hints[tree.path("in/new/deep/later")] != nil })
        }
    }

    @Test func `known files of a new directory are compared after it has been listed`() throws {
        try withTempTree { tree in
            TestFile.makeDirectory(tree.path("in"))
            let watched = try Watched([tree.path("in")])
            #expect(watched.wait(\.isReady))
            TestFile.makeDirectory(tree.path("in/new"))
            #expect(watched.wait { $0.hints[tree.path("in/new")]?.contains(.subtree) == true })
        }
    }

    @Test func `a directory that is moved out is no longer reported`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("in/sub/file"), "x")
            let watched = try Watched([tree.path("in")])
            #expect(watched.wait(\.isReady))
            _ = tree.path("in/sub").withCString { from in tree.path("away").withCString { rename(from, $0) } }
            #expect(watched.wait { $0.hints[tree.path("in/sub")]?.contains(.subtree) == true })
            watched.clear()
            TestFile.write(tree.path("away/file"), "y")
            TestFile.write(tree.path("in/marker"), "y")
            #expect(watched.wait { $0.hints[tree.path("in/marker")] != nil })
            #expect(
                watched.hints.keys.allSatisfy { !$0.isInside(tree.path("in/sub")) && !$0.isInside(tree.path("away")) })
        }
    }

    @Test func `a renamed directory is reported under its new path`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("in/old/x/file"), "x")
            let watched = try Watched([tree.path("in")])
            #expect(watched.wait(\.isReady))
            _ = tree.path("in/old").withCString { from in tree.path("in/new").withCString { rename(from, $0) } }
            #expect(watched.wait { $0.hints[tree.path("in/new/x/file")] != nil })
            watched.clear()
            TestFile.write(tree.path("in/new/x/file"), "longer")
            #expect(watched.wait { $0.hints[tree.path("in/new/x/file")]?.contains(.closed) == true })
        }
    }

    @Test func `an excluded directory is not watched`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("skip/file"), "x")
            TestFile.write(tree.path("keep/file"), "x")
            let watched = try Watched([tree.root], excluding: "skip")
            #expect(watched.wait(\.isReady))
            #expect(watched.reports.contains(.ready(directories: 2)))
            #expect(watched.hints[tree.path("skip/file")] == nil)
        }
    }

    @Test func `a missing root is waited for at any depth`() throws {
        try withTempTree { tree in
            let root = tree.path("a/b/c")
            let watched = try Watched([root])
            #expect(watched.wait(\.isReady))
            #expect(watched.reports.contains(.rootMissing(root, watching: tree.root)))
            TestFile.write(root.appending("file"), "x")
            #expect(watched.wait { $0.hints[root.appending("file")] != nil })
            #expect(watched.reports.contains(.rootAppeared(root)))
        }
    }

    @Test func `a root that is removed and restored is watched again`() throws {
        try withTempTree { tree in
            let root = tree.path("in")
            TestFile.write(root.appending("old"), "x")
            let watched = try Watched([root])
            #expect(watched.wait(\.isReady))
            for round in 0..<5 {
                TestFile.removeTree(root)
                TestFile.write(root.appending("new\(round)"), "x")
                #expect(watched.wait { $0.hints[root.appending("new\(round)")] != nil })
            }
            _ = root.withCString { from in tree.path("away").withCString { rename(from, $0) } }
            TestFile.write(root.appending("again"), "x")
            #expect(watched.wait { $0.hints[root.appending("again")] != nil })
        }
    }

    @Test func `a root may be a link, but no directory below it`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("real/file"), "x")
            TestFile.write(tree.path("other/file"), "x")
            _ = tree.path("root").withCString { symlink("real", $0) }
            _ = tree.path("real/link").withCString { symlink("../other", $0) }
            let watched = try Watched([tree.path("root")])
            #expect(watched.wait(\.isReady))
            #expect(watched.hints[tree.path("root/file")] != nil)
            #expect(watched.hints[tree.path("root/link")] != nil)
            #expect(watched.hints[tree.path("root/link/file")] == nil)
        }
    }

    @Test func `a root that is a file is reported as such`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("in"), "x")
            let watched = try Watched([tree.path("in")])
            #expect(watched.wait(\.isReady))
            #expect(watched.reports.contains(.failure(.notDirectory(tree.path("in")))))
        }
    }

    @Test func `a rescan lists everything again and reports its end`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("a/file"), "x")
            let watched = try Watched([tree.root])
            #expect(watched.wait(\.isReady))
            watched.clear()
            watched.rescan()
            #expect(watched.wait { $0.reports.contains(.rescanned) })
            #expect(watched.hints[tree.path("a/file")] == .listed)
        }
    }

    @Test func `stopping joins the thread and may be repeated`() throws {
        try withTempTree { tree in
            let watched = try Watched([tree.root])
            watched.stop()
            watched.stop()
        }
    }
}

struct HintQueueTests {
    @Test func `hints of a listing merge with earlier and later hints of the kernel`() {
        let listed = ["/in/a", "/in/b"].map { Hint(path: $0, signs: .listed, origin: .scan) }
        let queue = HintQueue {}
        queue.add(listed)
        queue.add([Hint(path: "/in/b", signs: .written, origin: .live)])
        queue.add([Hint(path: "/in/c", signs: .appeared, origin: .live)])
        queue.add([Hint(path: "/in/c", signs: .listed, origin: .scan)])
        #expect(
            queue.take().hints == [
                Hint(path: "/in/a", signs: .listed, origin: .scan),
                Hint(path: "/in/b", signs: [.listed, .written], origin: .live),
                Hint(path: "/in/c", signs: [.listed, .appeared], origin: .live),
            ])
        #expect(queue.take().hints.isEmpty)
    }

    @Test func `a further hint of a path drops what a listing found`() {
        let queue = HintQueue {}
        var listed = Hint(path: "/a", signs: .listed, origin: .scan)
        listed.found = FoundFile(.unseen, below: "/", writers: .free)
        queue.add([listed])
        #expect(queue.take().hints == [listed])
        let written = Hint(path: "/a", signs: .written, origin: .live)
        for order in [[listed, written], [written, listed]] {
            queue.add([order[0]])
            queue.add([order[1]])
            #expect(queue.take().hints.map(\.found) == [nil])
        }
    }

    @Test func `hints of one path merge and keep the first position`() {
        let wakes = Mutex(0)
        let queue = HintQueue { wakes.withLock { $0 += 1 } }
        queue.add([Hint(path: "/a", signs: .appeared, origin: .scan), Hint(path: "/b", signs: .written, origin: .live)])
        queue.add([Hint(path: "/a", signs: .closed, origin: .live)])
        let batch = queue.take()
        #expect(batch.hints.map(\.path) == ["/a", "/b"])
        #expect(batch.hints[0].signs == [.appeared, .closed])
        #expect(batch.hints[0].origin == .live)
        #expect(wakes.withLock { $0 } == 1)
        #expect(queue.take().hints.isEmpty)
    }
}
