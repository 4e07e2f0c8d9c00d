import FileEvents
import Glibc
import System
import Testing
import TestKit

@testable import Watching

struct PollingTests {
    private static let often = Duration.milliseconds(50)

    private static func watch(_ root: PathBytes, isWatchedToo: Bool = false) throws -> Watched {
        var roots = [WatchRoot(path: root, backend: .poll, interval: often)]
        if isWatchedToo { roots.append(WatchRoot(path: root)) }
        let watched = try Watched(roots)
        #expect(watched.wait(\.isReady))
        return watched
    }

    @Test func `S55: a polled root reports what a watched one does, marked as polled`() throws {
        try withTempTree { tree in
            let root = tree.path("in")
            let file = root.appending("a/file")
            TestFile.write(file, "x")
            let watched = try Self.watch(root)
            #expect(watched.reports.contains(.polling(root, .asked, every: Self.often)))
            #expect(watched.hints[file] == [.listed, .polled])
            watched.clear()
            TestFile.write(file, "longer")
            #expect(watched.wait { $0.hints[file] == [.polled, .written] })
            watched.clear()
            _ = file.withCString { chmod($0, 0o600) }
            #expect(watched.wait { $0.hints[file] == [.polled, .attributes] })
            watched.clear()
            _ = file.withCString { unlink($0) }
            #expect(watched.wait { $0.hints[file] == [.polled, .vanished] })
            watched.clear()
            TestFile.write(root.appending("a/b/c/new"), "x")
            #expect(watched.wait { $0.hints[root.appending("a/b/c/new")]?.contains([.polled, .appeared]) == true })
            TestFile.write(root.appending("a/b/c/newer"), "x")
            #expect(watched.wait { $0.hints[root.appending("a/b/c/newer")]?.contains([.polled, .appeared]) == true })
            watched.clear()
            TestFile.removeTree(root.appending("a/b"))
            #expect(watched.wait { $0.hints[root.appending("a/b")]?.contains([.polled, .vanished, .subtree]) == true })
        }
    }

    @Test func `S55: a path that was inspected between two polls is hinted again after the next`() throws {
        try withTempTree { tree in
            let root = tree.path("in")
            TestFile.write(root.appending("sub/file"), "x")
            let watched = try Self.watch(root)
            let path = root.appending("sub/came and went")
            watched.hintAgain(DoubtedPaths([path], request: 1))
            #expect(watched.wait { $0.hints[path] == .polled })
        }
    }

    @Test func `S55: an unchanged file is not reported`() throws {
        try withTempTree { tree in
            let root = tree.path("in")
            for number in 0..<50 { TestFile.write(root.appending("sub/file\(number)"), "x") }
            let watched = try Self.watch(root)
            watched.clear()
            for round in 0..<5 {
                let file = root.appending("sub/changed\(round)")
                TestFile.write(file, "x")
                #expect(watched.wait { $0.hints[file] != nil })
            }
            #expect(watched.hints.keys.allSatisfy { $0.lastComponent.starts(with: Array("changed".utf8)) })
        }
    }

    @Test func `S55: a file or directory of the same name and another identity is reported`() throws {
        try withTempTree { tree in
            let root = tree.path("in")
            TestFile.write(root.appending("sub/old"), "x")
            TestFile.write(root.appending("file"), "x")
            TestFile.write(tree.path("next/new"), "x")
            let watched = try Self.watch(root)
            watched.clear()
            TestFile.write(tree.path("file"), "x")
            Machine.move(tree.path("file"), root.appending("file"))
            #expect(watched.wait { $0.hints[root.appending("file")]?.contains([.polled, .appeared]) == true })
            // Atomically, so that no poll happens in between.
            let (one, other) = (tree.path("next"), root.appending("sub"))
            #expect(Machine.exchange(one, other) == 0)
            #expect(watched.wait { $0.hints[root.appending("sub/new")] != nil })
            #expect(watched.wait { $0.hints[root.appending("sub")]?.contains([.polled, .subtree]) == true })
        }
    }

    @Test func `S55: the kernel's own file systems are polled, and this is reported`() throws {
        let root = PathBytes("/proc/self/fdinfo")
        let watched = try Watched([WatchRoot(path: root, interval: Self.often)])
        #expect(watched.wait(\.isReady))
        #expect(watched.reports.contains(.polling(root, .fileSystem("proc"), every: Self.often)))
        let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        #expect(watched.wait { $0.hints[root.appending("\(descriptor)")]?.contains(.polled) == true })
        let forced = try Watched([WatchRoot(path: root, backend: .inotify, interval: Self.often)])
        #expect(forced.wait(\.isReady))
        #expect(!forced.reports.contains { if case .polling = $0 { true } else { false } })
    }

    @Test func `S55: a root that one rule watches and another polls is watched and polled`() throws {
        try withTempTree { tree in
            let root = tree.path("in")
            TestFile.makeDirectory(root)
            let watched = try Self.watch(root, isWatchedToo: true)
            TestFile.write(root.appending("file"), "x")
            #expect(watched.wait { $0.hints[root.appending("file")]?.contains([.closed, .polled]) == true })
        }
    }

    @Test func `S19: a polled root disappears and returns`() throws {
        try withTempTree { tree in
            let root = tree.path("in")
            TestFile.write(root.appending("file"), "x")
            let watched = try Self.watch(root)
            watched.clear()
            TestFile.removeTree(root)
            let directory = tree.root
            #expect(watched.wait { $0.reports.contains(.rootMissing(root, watching: directory)) })
            #expect(watched.hints[root.appending("file")] == nil)
            TestFile.write(root.appending("new"), "x")
            #expect(watched.wait { $0.hints[root.appending("new")] != nil })
        }
    }

    @Test func `S44: an unreadable directory is reported once, and nothing in it counts as gone`() throws {
        guard Machine.isRoot else { return }
        withTempTree { tree in
            let root = tree.path("in")
            let hints = Machine.asNobody(tree, ["--poll", "--every", "50"], root) {
                TestFile.write(root.appending("sub/file"), "x")
            }
            #expect(hints.wait(for: "hint scan listed,polled \(root)/sub/file"))
            _ = root.appending("sub").withCString { chmod($0, 0) }
            #expect(hints.wait { _ in hints.count("report failure") == 1 })
            // One polling round later it is still reported once.
            TestFile.write(root.appending("marker"), "x")
            #expect(hints.wait(for: "hint poll ", " \(root)/marker"))
            _ = root.appending("sub").withCString { chmod($0, 0o755) }
            TestFile.write(root.appending("sub/later"), "x")
            #expect(hints.wait(for: "hint poll ", " \(root)/sub/later"))
            #expect(hints.count("report failure") == 1)
            #expect(!hints.program.lines.contains { $0.contains("vanished") })
        }
    }

    @Test func `snapshots of a directory differ by name, content and attributes`() {
        func directory(_ entries: [(String, size: UInt64, mode: UInt16, inode: UInt64)]) -> PolledDirectory {
            var directory = PolledDirectory()
            for entry in entries {
                var file = Snapshot.unseen
                (file.type, file.size, file.mode, file.identity.inode) = (.file, entry.size, entry.mode, entry.inode)
                Array(entry.0.utf8).withUnsafeBytes { directory.add($0, file) }
            }
            directory.seal()
            return directory
        }
        let file: UInt16 = 0o600
        let before = directory([
            ("b", 1, file, 2), ("a", 1, file, 1), ("c", 1, file, 3), ("d", 1, file, 4), ("ab", 1, file, 5),
        ])
        let after = directory([
            ("ab", 1, file, 5), ("c", 2, file, 3), ("b", 1, file | 1, 2), ("d", 1, file, 9), ("e", 1, file, 6),
        ])
        var changes: [String: PolledDirectory.Change] = [:]
        after.changes(since: before) { name, _, change in changes[String(decoding: name, as: UTF8.self)] = change }
        #expect(
            changes == [
                "a": .vanished, "b": .attributes, "c": .written, "d": .replaced(wasDirectory: false), "e": .appeared,
            ])
        after.changes(since: after) { _, _, _ in Issue.record("a folder does not differ from itself") }
    }

    @Test func `polls of one interval run in order, and a late one does not accumulate`() {
        let start = ContinuousClock.now
        var schedule = PollSchedule()
        for root in 0..<200 { schedule.add(.root(root), every: .seconds(10), after: start + .milliseconds(root)) }
        schedule.add(.root(1000), every: .seconds(1), after: start)
        #expect(schedule.nextDue == start + .seconds(1))
        #expect(schedule.takeDue(at: start) == nil)
        var taken: [Int] = []
        while case .root(let root)? = schedule.takeDue(at: start + .seconds(11)) { taken.append(root) }
        #expect(taken == [1000] + Array(0..<200))
        #expect(schedule.nextDue == nil)
    }
}
