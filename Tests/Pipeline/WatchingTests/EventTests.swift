import FileEvents
import Glibc
import System
import Testing
import TestKit
@testable import Watching

struct EventTests {
    @Test func `raw: opening, reading and closing are reported for files and not for directories`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("in/sub/file"), "x")
            let watched = try Watched([tree.path("in")], isRaw: true)
            #expect(watched.wait(\.isReady))
            watched.clear()
            _ = TestFile.names(in: tree.path("in/sub"))
            _ = TestFile.read(tree.path("in/sub/file"))
            #expect(watched.wait { $0.hints[tree.path("in/sub/file")] == [.opened, .accessed, .closedUnwritten] })
            #expect(watched.hints.count == 1)
        }
    }

    @Test func `S05: moves into the tree, out of it and within it have the sign of a move`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("in/out"), "x")
            TestFile.write(tree.path("new"), "x")
            let watched = try Watched([tree.path("in")])
            #expect(watched.wait(\.isReady))
            watched.clear()
            Machine.move(tree.path("in/out"), tree.path("away"))
            Machine.move(tree.path("new"), tree.path("in/new"))
            #expect(watched.wait { $0.hints[tree.path("in/new")] == [.appeared, .moved] })
            #expect(watched.hints[tree.path("in/out")] == [.vanished, .moved])
        }
    }

    @Test func `S17: two exchanged directories are both still watched`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("in/a/one"), "x")
            TestFile.write(tree.path("in/b/deep/two"), "x")
            let watched = try Watched([tree.path("in")])
            #expect(watched.wait(\.isReady))
            watched.clear()
            #expect(Machine.exchange(tree.path("in/a"), tree.path("in/b")) == 0)
            #expect(
                watched.wait { $0.hints[tree.path("in/a/deep/two")] != nil && $0.hints[tree.path("in/b/one")] != nil })
            watched.clear()
            TestFile.write(tree.path("in/a/deep/two"), "y")
            TestFile.write(tree.path("in/b/one"), "y")
            #expect(watched.wait { $0.hints[tree.path("in/a/deep/two")]?.contains(.closed) == true })
            #expect(watched.wait { $0.hints[tree.path("in/b/one")]?.contains(.closed) == true })
        }
    }

    @Test func `S01: a file without a name is not reported until it is linked`() throws {
        try withTempTree { tree in
            let watched = try Watched([tree.root])
            #expect(watched.wait(\.isReady))
            watched.clear()
            let flags = O_WRONLY | 0o20200000 | O_CLOEXEC  // O_TMPFILE
            let file = tree.root.withCString { open($0, flags, 0o600) }
            #expect(file >= 0)
            TestFile.put(file, Array("content".utf8))
            let link = tree.path("linked").withCString { name in
                linkat(AT_FDCWD, "/proc/self/fd/\(file)", AT_FDCWD, name, AT_SYMLINK_FOLLOW)
            }
            #expect(link == 0)
            close(file)
            #expect(watched.wait { $0.hints[tree.path("linked")]?.contains(.appeared) == true })
            TestFile.write(tree.path("marker"), "x")
            #expect(watched.wait { $0.hints[tree.path("marker")]?.contains(.closed) == true })
            #expect(watched.hints.keys.allSatisfy { $0.lastComponent.first != UInt8(ascii: "#") })
        }
    }

    @Test func `S47: a directory that is a root under two paths is reported under both`() throws {
        try withTempTree { tree in
            TestFile.makeDirectory(tree.path("real/sub"))
            _ = tree.path("link").withCString { symlink("real", $0) }
            let watched = try Watched([tree.path("real"), tree.path("link")])
            #expect(watched.wait(\.isReady))
            TestFile.write(tree.path("real/sub/file"), "x")
            #expect(watched.wait { $0.hints[tree.path("real/sub/file")]?.contains(.closed) == true })
            #expect(watched.wait { $0.hints[tree.path("link/sub/file")]?.contains(.closed) == true })
            // If one path is removed, the other one continues.
            _ = tree.path("link").withCString { unlink($0) }
            #expect(watched.wait { $0.reports.contains { if case .rootMissing = $0 { true } else { false } } })
            watched.clear()
            TestFile.write(tree.path("real/sub/other"), "x")
            #expect(watched.wait { $0.hints[tree.path("real/sub/other")]?.contains(.closed) == true })
            #expect(watched.hints[tree.path("link/sub/other")] == nil)
        }
    }

    @Test(.enabled(if: Machine.isRoot, "to become a user who may not read something, the test must be root"))
    func `S44: an unreadable directory is reported once, and listed when it is readable`() {
        withTempTree { tree in
            let root = tree.path("in")
            let hints = Machine.asNobody(tree, [], root) {
                TestFile.write(root.appending("sub/file"), "x")
                _ = root.appending("sub").withCString { chmod($0, 0) }
            }
            #expect(hints.count("report failure cannot watch '\(root)/sub'") == 1)
            _ = root.appending("sub").withCString { chmod($0, 0o700) }
            _ = root.appending("sub").withCString { chmod($0, 0o755) }
            #expect(hints.wait(for: "hint live ", " \(root)/sub/file"))
            TestFile.write(root.appending("sub/later"), "x")
            #expect(hints.wait(for: "hint live ", " \(root)/sub/later"))
            #expect(hints.count("report failure cannot watch '\(root)/sub'") == 1)
        }
    }

    @Test(.enabled(if: Machine.isRoot, "to become a user who may not read something, the test must be root"))
    func `S44: a directory created below one that becomes unreadable is listed when that is readable again`() {
        withTempTree { tree in
            let root = tree.path("in")
            let hints = Machine.asNobody(tree, [], root) { TestFile.makeDirectory(root.appending("outer/inner")) }
            let outer = root.appending("outer")
            _ = outer.withCString { chmod($0, 0) }
            TestFile.write(outer.appending("inner/new/file"), "x")
            #expect(hints.wait(for: "report failure cannot watch '\(outer)/inner/new'", ""))
            _ = outer.withCString { chmod($0, 0o755) }
            #expect(hints.wait(for: "hint live ", " \(outer)/inner/new/file"))
        }
    }

    @Test(.enabled(if: Machine.isRoot, "to become a user who may not read something, the test must be root"))
    func `S44: an unreadable root is reported once, and listed when it is readable`() {
        withTempTree { tree in
            let root = tree.path("in")
            let hints = Machine.asNobody(tree, [], root) {
                TestFile.write(root.appending("file"), "x")
                _ = root.withCString { chmod($0, 0) }
            }
            #expect(hints.count("report failure cannot watch '\(root)'") == 1)
            _ = root.withCString { chmod($0, 0o755) }
            #expect(hints.wait(for: "hint live ", " \(root)/file"))
            TestFile.write(root.appending("later"), "x")
            #expect(hints.wait(for: "hint live ", " \(root)/later"))
            #expect(hints.count("report failure") == 1)
        }
    }
}

struct LifeTests {
    @Test func `S21: fifty starts and stops leave no descriptor and no thread`() async {
        await #expect(processExitsWith: .success) {
            try withTempTree { tree in
                for number in 0..<20 { TestFile.write(tree.path("in/sub\(number)/file"), "x") }
                func count() -> [Int] {
                    ["/proc/self/fd", "/proc/self/task"].map { TestFile.names(in: PathBytes($0)).count }
                }
                let queue = HintQueue(wake: {})
                let root = tree.path("in")
                func round(_ number: Int) throws {
                    let scope = WatchScope(
                        roots: [WatchRoot(path: root, backend: Backend.allCases[number % 3])],
                        reaches: { _ in true }, takes: { _ in true })
                    let watcher = try Watcher(scope: scope, queue: queue)
                    if number % 2 == 0 { while queue.take().reports.isEmpty { sched_yield() } }
                    watcher.stop()
                }
                try round(0)
                let before = count()
                for number in 0..<50 { try round(number) }
                // The kernel may still list a thread for a short time after it was joined.
                guard Deadline.wait(until: { count() == before }) else { exit(1) }
            }
        }
    }

    @Test func `a listing pauses while the reader is busy and then continues`() throws {
        // In memory, because filling the queue beyond one turn needs many entries.
        let root = PathBytes("/dev/shm/alight-test-rest-\(getpid())")
        defer { TestFile.removeTree(root) }
        let (capacity, entries) = (1_000, 12_000)
        TestFile.makeDirectory(root)
        let directory = root.withCString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        for number in 0..<entries { _ = symlinkat("nowhere", directory, "\(number)") }
        close(directory)
        let queue = HintQueue(capacity: capacity, wake: {})
        let watcher = try Watcher(
            scope: WatchScope(roots: [WatchRoot(path: root)], reaches: { _ in true }, takes: { _ in true }),
            queue: queue)
        defer { watcher.stop() }
        #expect(Deadline.wait { queue.isFull })
        var (seen, largest, isReady) = (0, 0, false)
        #expect(
            Deadline.wait {
                let batch = queue.take()
                seen += batch.hints.count
                largest = max(largest, batch.hints.count)
                isReady = isReady || batch.reports.contains { if case .ready = $0 { true } else { false } }
                return isReady
            })
        #expect(seen == entries)
        #expect(largest < entries)
    }

    @Test func `every change is reported even if the queue fills at once`() throws {
        try withTempTree { tree in
            for name in 0..<20 { TestFile.write(tree.path("in/\(name)/file"), "x") }
            let root = tree.path("in")
            let queue = HintQueue(capacity: 1, wake: {})
            let watcher = try Watcher(
                scope: WatchScope(roots: [WatchRoot(path: root)], reaches: { _ in true }, takes: { _ in true }),
                queue: queue)
            defer { watcher.stop() }
            #expect(Deadline.wait { queue.isFull })
            TestFile.write(root.appending("marker"), "x")
            var hinted: Set<PathBytes> = []
            #expect(
                Deadline.wait {
                    hinted.formUnion(queue.take().hints.filter { $0.origin == .live }.map(\.path))
                    return hinted.contains(root.appending("marker"))
                })
        }
    }

    /// The inotify mask that this process has set for the directory; see proc_pid_fdinfo(5).
    private static func asked(of directory: PathBytes) -> UInt32 {
        var status = stat()
        guard directory.withCString({ lstat($0, &status) }) == 0 else { return 0 }
        let inode = "ino:\(String(status.st_ino, radix: 16))"
        let descriptors = PathBytes("/proc/self/fdinfo")
        for name in TestFile.names(in: descriptors) {
            let text = TestFile.text(descriptors.appending(name)) ?? ""
            for line in text.split(separator: "\n") where line.hasPrefix("inotify ") {
                let words = line.split(separator: " ")
                guard words.contains(Substring(inode)), let mask = words.first(where: { $0.hasPrefix("mask:") })
                else { continue }
                return UInt32(mask.dropFirst(5), radix: 16) ?? 0
            }
        }
        return 0
    }

    @Test func `unwanted events wake no thread until another scope wants them`() throws {
        try withTempTree { tree in
            let root = tree.path("in")
            TestFile.write(root.appending("sub/file"), "x")
            let (deep, queue) = (root.appending("sub"), HintQueue(wake: {}))
            func scope(_ wanted: PathBytes) -> WatchScope {
                WatchScope(
                    roots: [WatchRoot(path: root)], reaches: { _ in true },
                    takes: { $0.parent == wanted }, canMatch: { $0 == wanted })
            }
            let watcher = try Watcher(scope: scope(deep), queue: queue)
            defer { watcher.stop() }
            func wait(for path: PathBytes) -> Bool {
                Deadline.wait { queue.take().hints.contains { $0.path == path } }
            }
            let (names, closed) = (UInt32(IN_CREATE | IN_DELETE | IN_MOVED_TO), UInt32(IN_CLOSE_WRITE))
            let (written, mask) = (UInt32(IN_MODIFY), names | UInt32(IN_CLOSE_WRITE | IN_MODIFY))
            #expect(wait(for: deep.appending("file")))
            #expect(Self.asked(of: root) & mask == names)
            #expect(Self.asked(of: deep) & mask == names | closed | written)

            watcher.change(to: scope(root), number: 1)
            #expect(Deadline.wait { Self.asked(of: root) & mask == names | closed | written })
            TestFile.write(root.appending("log"), "x")
            #expect(wait(for: root.appending("log")))
        }
    }

    @Test func `without a waiting reader the queue is not read for a while, and a request is answered`() throws {
        try withTempTree { tree in
            let root = tree.path("in")
            TestFile.makeDirectory(root)
            let queue = HintQueue(wake: {})
            var scope = WatchScope(roots: [WatchRoot(path: root)], reaches: { _ in true }, takes: { _ in true })
            scope.rest = .seconds(3600)
            let watcher = try Watcher(scope: scope, queue: queue)
            var (hints, reports): ([Hint], [WatchReport]) = ([], [])
            func wait(_ condition: () -> Bool) -> Bool {
                Deadline.wait {
                    let batch = queue.take()
                    hints += batch.hints
                    reports += batch.reports
                    return condition()
                }
            }
            #expect(wait { reports.contains { if case .ready = $0 { true } else { false } } })
            TestFile.write(root.appending("first"), "x")
            #expect(wait { hints.contains { $0.path == root.appending("first") } })
            TestFile.write(root.appending("second"), "x")
            watcher.rescan()
            #expect(wait { reports.contains { if case .rescanned = $0 { true } else { false } } })
            #expect(hints.contains { $0.path == root.appending("second") })
            watcher.stop()
        }
    }

    @Test func `existing directories give no hint if none is requested, and new ones do`() throws {
        try withTempTree { tree in
            let root = tree.path("in")
            TestFile.write(root.appending("old/file"), "x")
            let queue = HintQueue(wake: {})
            let watcher = try Watcher(
                scope: WatchScope(
                    roots: [WatchRoot(path: root)], hintsFoundDirectories: false, reaches: { _ in true },
                    takes: { _ in true }), queue: queue)
            defer { watcher.stop() }
            var paths: Set<PathBytes> = []
            func wait(for path: PathBytes) -> Bool {
                Deadline.wait {
                    paths.formUnion(queue.take().hints.map(\.path))
                    return paths.contains(path)
                }
            }
            #expect(wait(for: root.appending("old/file")))
            TestFile.makeDirectory(root.appending("new"))
            #expect(wait(for: root.appending("new")))
            #expect(!paths.contains(root.appending("old")))
        }
    }

    @Test func `alternating changes of two files are reported for each`() throws {
        try withTempTree { tree in
            let root = tree.path("in")
            let names = ["a", "ba", "a.b"]
            for name in names { TestFile.write(root.appending(name), "x") }
            TestFile.write(root.appending("sub/a"), "x")
            let watched = try Watched([root])
            #expect(watched.wait(\.isReady))
            watched.clear()
            for _ in 0..<3 {
                for name in names { TestFile.write(root.appending(name), "y") }
                TestFile.write(root.appending("sub/a"), "y")
            }
            let paths = (names + ["sub/a"]).map { root.appending($0) }
            #expect(
                watched.wait { watched in
                    paths.allSatisfy { watched.hints[$0]?.isSuperset(of: [.written, .closed]) ?? false }
                })
            #expect(Set(watched.hints.keys) == Set(paths))
        }
    }

    @Test func `S22: a stop in the middle of a listing takes effect at once`() throws {
        try withTempTree { tree in
            for directory in 0..<200 {
                for name in 0..<10 { TestFile.makeDirectory(tree.path("in/\(directory)/\(name)")) }
            }
            for _ in 0..<20 {
                let watched = try Watched([tree.path("in")])
                watched.stop()
                #expect(watched.queue.isFull == false)
            }
        }
    }
}
