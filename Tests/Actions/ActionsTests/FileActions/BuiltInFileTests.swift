import ActionAPI
import FileActions
import Glibc
import OtherActions
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// Effects of `copy`, `move` and `log` on the file itself.
struct BuiltInFileTests {
    @Test(arguments: BuiltInLocationTests.kinds, [false, true])
    func `mode and modification time are retained`(_ kind: BuiltInLocationTests.Kind, isAcross: Bool) throws {
        try withTempTree { tree in
            guard let target = Self.target(tree.root, isAcross) else { return }
            let source = tree.path("in/a.txt")
            TestFile.write(source, "new")
            _ = source.withCString { chmod($0, 0o640) }
            var times = [timespec(tv_sec: 5, tv_nsec: 6), timespec(tv_sec: 1_234_567_890, tv_nsec: 123_456_789)]
            _ = source.withCString { utimensat(AT_FDCWD, $0, &times, 0) }
            let outcome = BuiltInRun(kind.handler)(source, ["to": target.path.appending("a.txt")])
            #expect(outcome.result == .succeeded, "\(outcome.message)")
            let there = try metadata(target.path.appending("a.txt"))
            #expect(there.mode == 0o640)
            #expect(there.modified == Timestamp(seconds: 1_234_567_890, nanoseconds: 123_456_789))
        }
    }

    /// The copy belongs to the user that Alight runs as: as root, a user's program would become root's.
    @Test func `a copy is never set-user-id`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("in/a"), "program")
            _ = tree.path("in/a").withCString { chmod($0, 0o6755) }
            #expect(
                BuiltInRun(TransferHandler.copy())(tree.path("in/a"), ["to": tree.path("out/a")]).result == .succeeded)
            let copy = try metadata(tree.path("out/a"))
            #expect(copy.mode == 0o755)
        }
    }

    @Test func `a move to another file system keeps the owner, or drops what only the owner may grant`() async {
        guard geteuid() == 0, OtherFileSystem() != nil else {
            print("skipped: needs root and a second file system")
            return
        }
        await #expect(processExitsWith: .success) {
            try withTempTree { tree in
                let other = try #require(OtherFileSystem())
                let root = tree.root
                func make(_ name: String) {
                    TestFile.write(root.appending(name), "program")
                    _ = root.appending(name).withCString { chown($0, 65534, 65534) }
                    _ = root.appending(name).withCString { chmod($0, 0o4755) }
                }
                make("in/a")
                let outcome = BuiltInRun(TransferHandler.move())(tree.path("in/a"), ["to": other.root.appending("a")])
                #expect(outcome.result == .succeeded)
                let retained = try metadata(other.root.appending("a"))
                #expect(retained.uid == 65534 && retained.gid == 65534 && retained.mode == 0o4755)

                // Another user may read and remove it, but cannot give it back to its owner.
                make("in/b")
                for directory in [tree.root, tree.path("in"), other.root] {
                    _ = directory.withCString { chmod($0, 0o777) }
                }
                try #require(setegid(65533) == 0 && seteuid(65533) == 0)
                let poor = BuiltInRun(TransferHandler.move())(tree.path("in/b"), ["to": other.root.appending("b")])
                try #require(seteuid(0) == 0)
                #expect(poor.result == .succeeded, "\(poor.message)")
                let given = try metadata(other.root.appending("b"))
                #expect(given.uid == 65533 && given.mode == 0o755)
            }
        }
    }

    /// A directory beside the tree, or on another file system.
    struct Target {
        var path: PathBytes
        var keeper: OtherFileSystem?
    }

    static func target(_ root: PathBytes, _ isAcross: Bool) -> Target? {
        guard isAcross else { return Target(path: root.appending("out")) }
        guard let other = OtherFileSystem() else {
            print("skipped: /dev/shm is not another file system than /tmp")
            return nil
        }
        return Target(path: other.root, keeper: other)
    }

    @Test(arguments: BuiltInLocationTests.kinds, ["rename", "overwrite", "skip", "fail"])
    func `another file system makes no difference`(_ kind: BuiltInLocationTests.Kind, conflict: String) {
        withTempTree { tree in
            guard let target = Self.target(tree.root, true) else { return }
            TestFile.write(tree.path("in/a.txt"), "new")
            TestFile.write(target.path.appending("a.txt"), "old")
            let outcome = BuiltInRun(kind.handler)(
                tree.path("in/a.txt"),
                ["to": PathBytes(target.path.bytes + [.slash]), "on_conflict": PathBytes(conflict)])
            let isDone = conflict == "rename" || conflict == "overwrite"
            let endings: [String: PluginResponse.Outcome] = ["skip": .skipped, "fail": .failed]
            #expect(outcome.result == endings[conflict, default: .succeeded], "\(outcome.message)")
            let left: [String: [String]] = [
                "rename": ["a (1).txt: new", "a.txt: old"], "overwrite": ["a.txt: new"],
            ]
            #expect(listing(target.path) == left[conflict, default: ["a.txt: old"]])
            #expect(TestFile.exists(tree.path("in/a.txt")) == !(isDone && kind.takes))
        }
    }

    @Test(arguments: [false, true])
    func `sparse files and odd sizes are copied byte for byte`(isAcross: Bool) {
        withTempTree { tree in
            guard let target = Self.target(tree.root, isAcross) else { return }
            let source = tree.path("in/sparse")
            TestFile.write(source, "begin")
            let descriptor = source.withCString { open($0, O_WRONLY | O_CLOEXEC) }
            for offset in [1 << 20, (5 << 20) + 3, (9 << 20) - 1] {
                lseek(descriptor, off_t(offset), SEEK_SET)
                TestFile.put(descriptor, Array("at \(offset)".utf8))
            }
            ftruncate(descriptor, off_t((12 << 20) + 7))
            close(descriptor)
            let outcome = BuiltInRun(TransferHandler.copy())(source, ["to": target.path.appending("copy")])
            #expect(outcome.result == .succeeded, "\(outcome.message)")
            #expect(TestFile.read(source) == TestFile.read(target.path.appending("copy")))
        }
    }

    // MARK: Entries other than regular files

    @Test func `a symbolic link is moved as it is, but not copied`() {
        withTempTree { tree in
            TestFile.write(tree.path("secret"), "secret")
            for (name, goal) in [("link", tree.path("secret")), ("dangling", tree.path("nothing"))] {
                TestFile.makeDirectory(tree.path("in"))
                _ = goal.withCString { from in tree.path("in/\(name)").withCString { symlink(from, $0) } }
                let copied = BuiltInRun(TransferHandler.copy())(tree.path("in/\(name)"), ["to": tree.path("out/")])
                #expect(copied.result == .failed)
                #expect(copied.code == "not-a-file")
                let moved = BuiltInRun(TransferHandler.move())(tree.path("in/\(name)"), ["to": tree.path("out/")])
                #expect(moved.result == .succeeded)
                #expect(listing(tree.path("out")).contains("\(name) -> \(goal)"))
            }
        }
    }

    @Test(.timeLimit(.minutes(15)), arguments: ["folder", "pipe", "socket"])
    func `copying an entry that is not a regular file fails at once and leaves nothing behind`(what: String) {
        withTempTree { tree in
            let source = tree.path("in/x")
            TestFile.makeDirectory(what == "folder" ? source : source.parent)
            if what == "pipe" { _ = source.withCString { mkfifo($0, 0o644) } }
            if what == "socket" { _ = source.withCString { mknod($0, mode_t(S_IFSOCK) | 0o644, 0) } }
            let outcome = BuiltInRun(TransferHandler.copy())(source, ["to": tree.path("out/")])
            #expect(outcome.result == .failed)
            #expect(outcome.code == "not-a-file", "\(outcome.message)")
            #expect(listing(tree.path("out")).isEmpty)
        }
    }

    @Test func `a directory moves with its contents, but not to another file system`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/d/e/f"), "x")
            let outcome = BuiltInRun(TransferHandler.move())(tree.path("in/d"), ["to": tree.path("out/")])
            #expect(outcome.outputs == [tree.path("out/d")])
            #expect(listing(tree.root).filter { !$0.hasSuffix("/") } == ["out/d/e/f: x"])
            let inside = BuiltInRun(TransferHandler.move())(tree.path("out/d"), ["to": tree.path("out/d/e/")])
            #expect(inside.result == .failed)
            guard let target = Self.target(tree.root, true) else { return }
            let across = BuiltInRun(TransferHandler.move())(
                tree.path("out/d"), ["to": PathBytes(target.path.bytes + [.slash])])
            #expect(across.result == .failed)
            #expect(across.code == "cross-device")
            #expect(listing(tree.root).filter { !$0.hasSuffix("/") } == ["out/d/e/f: x"])
            #expect(listing(target.path).isEmpty)
        }
    }

    @Test func `a move onto another hard link of the same file keeps that name`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/a"), "x")
            TestFile.makeDirectory(tree.path("out"))
            _ = tree.path("in/a").withCString { from in tree.path("out/a").withCString { link(from, $0) } }
            let outcome = BuiltInRun(TransferHandler.move())(
                tree.path("in/a"), ["to": tree.path("out/"), "on_conflict": "overwrite"])
            #expect(outcome.outputs == [tree.path("out/a")])
            #expect(listing(tree.root) == ["in/", "out/a: x"])
        }
    }

    // MARK: Repeated and interrupted attempts

    @Test(arguments: BuiltInLocationTests.kinds, [false, true])
    func `a second attempt leaves one copy`(_ kind: BuiltInLocationTests.Kind, isOccupied: Bool) throws {
        try withTempTree { tree in
            TestFile.write(tree.path("in/a.txt"), "new")
            if isOccupied { TestFile.write(tree.path("out/a.txt"), "of somebody else") }
            var run = BuiltInRun(kind.handler)
            run.snapshot = try metadata(tree.path("in/a.txt"))
            let first = run(tree.path("in/a.txt"), ["to": tree.path("out/")])
            let after = listing(tree.root)
            run.attempt = 2
            let second = run(tree.path("in/a.txt"), ["to": tree.path("out/")])
            #expect(second.result == .succeeded, "\(second.message)")
            #expect(second.outputs == first.outputs)
            #expect(listing(tree.root) == after)
        }
    }

    @Test(arguments: [true, false], [true, false])
    func `an interrupted move is recognized by its file, even if another file now has the path`(
        expectsSettled: Bool, isOccupied: Bool
    ) throws {
        try withTempTree { tree in
            TestFile.write(tree.path("in/a.txt"), "first")
            if isOccupied { TestFile.write(tree.path("out/a.txt"), "of somebody else") }
            var run = BuiltInRun(TransferHandler.move())
            run.snapshot = try metadata(tree.path("in/a.txt"))
            let templates = ["to": Template(literal: tree.path("out/").description)]
            var invocation = run.invocation(tree.path("in/a.txt"), templates: templates)
            #expect(!TransferHandler.move().isDone(invocation))
            let first = TransferHandler.move().run(invocation)
            #expect(first.result == .succeeded)
            TestFile.write(tree.path("in/a.txt"), "a later one")
            let after = listing(tree.root)
            #expect(!TransferHandler.move().isDone(invocation))
            invocation.job.isInterrupted = true
            invocation.expectsSettled = expectsSettled
            #expect(TransferHandler.move().isDone(invocation))
            let second = TransferHandler.move().run(invocation)
            #expect(second.result == .succeeded && second.outputs == first.outputs, "\(second.message)")
            #expect(listing(tree.root) == after)
        }
    }

    @Test func `an interrupted rename is recognized by its file`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("in/a.txt"), "first")
            var run = BuiltInRun(TransferHandler.rename())
            run.snapshot = try metadata(tree.path("in/a.txt"))
            var invocation = run.invocation(tree.path("in/a.txt"), templates: ["name": Template(literal: "b.txt")])
            let first = TransferHandler.rename().run(invocation)
            TestFile.write(tree.path("in/a.txt"), "a later one")
            invocation.job.isInterrupted = true
            #expect(TransferHandler.rename().isDone(invocation))
            let second = TransferHandler.rename().run(invocation)
            #expect(second.result == .succeeded && second.outputs == first.outputs, "\(second.message)")
            #expect(listing(tree.root) == ["in/a.txt: a later one", "in/b.txt: first"])
        }
    }

    /// Both files have the same size and time, so only the content distinguishes them.
    @Test func `a second attempt does not mistake another file for its copy`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/a.txt"), "new")
            TestFile.write(tree.path("out/a.txt"), "old")
            var times = [timespec(tv_sec: 1_000, tv_nsec: 0), timespec(tv_sec: 1_000, tv_nsec: 0)]
            for path in ["in/a.txt", "out/a.txt"] {
                _ = tree.path(path).withCString { utimensat(AT_FDCWD, $0, &times, 0) }
            }
            var run = BuiltInRun(TransferHandler.copy())
            run.attempt = 2
            #expect(run(tree.path("in/a.txt"), ["to": tree.path("out/")]).outputs == [tree.path("out/a (1).txt")])
        }
    }

    @Test(arguments: BuiltInLocationTests.kinds)
    func `a stop leaves nothing behind and does not count as an attempt`(_ kind: BuiltInLocationTests.Kind) {
        withTempTree { tree in
            guard let target = Self.target(tree.root, true) else { return }
            TestFile.write(tree.path("in/a"), [UInt8](repeating: 1, count: 3 << 20))
            let run = BuiltInRun(kind.handler)
            run.stop.raise()
            let outcome = run(tree.path("in/a"), ["to": target.path.appending("a")])
            #expect(outcome.isInterrupted)
            #expect(listing(target.path).isEmpty)
            #expect(listing(tree.path("in")) == ["a: \(3 << 20) bytes"])
        }
    }

    @Test(arguments: BuiltInLocationTests.kinds)
    func `a full disk leads to a retry and nothing is left on it`(_ kind: BuiltInLocationTests.Kind) {
        withTempTree { tree in
            let small = tree.path("small")
            TestFile.makeDirectory(small)
            let error = small.withCString { mount("alight-test", $0, "tmpfs", 0, "size=1m") }
            guard error == 0 else {
                print("skipped: can't mount a small file system (errno \(errno))")
                return
            }
            defer { _ = small.withCString { umount2($0, Int32(MNT_DETACH)) } }
            TestFile.write(tree.path("in/a"), [UInt8](repeating: 1, count: 3 << 20))
            TestFile.write(small.appending("old"), "old")
            let outcome = BuiltInRun(kind.handler)(
                tree.path("in/a"), ["to": small.appending("old"), "on_conflict": "overwrite"])
            #expect(outcome.result == .retry, "\(outcome.message)")
            #expect(outcome.message.hasSuffix("No space left on device"))
            #expect(listing(small) == ["old: old"])
            #expect(listing(tree.path("in")) == ["a: \(3 << 20) bytes"])
        }
    }

    /// A new version replaces the source at any time during the move.
    ///
    /// It must not be removed with the old one.
    @Test(.timeLimit(.minutes(15)))
    func `a file that is replaced while it moves to another file system is not lost`() {
        withTempTree { tree in
            // From memory to disk, where flushing takes time.
            guard let other = OtherFileSystem() else {
                print("skipped: no second file system")
                return
            }
            let source = other.root.appending("a")
            let out = tree.path("out/")
            let isOver = Locked(false)
            let lost = Locked<[Int]>([])
            onThreads(2) { thread in
                if thread == 1 {
                    while !isOver.value { _ = BuiltInRun(TransferHandler.move())(source, ["to": out]) }
                    return
                }
                for round in 0..<60 {
                    TestFile.write(source, "first \(round)")
                    usleep(useconds_t(round * 30))
                    let temporary = source.parent.appending(".t")
                    TestFile.write(temporary, "second \(round)")
                    _ = temporary.withCString { from in source.withCString { rename(from, $0) } }
                    let hasArrived = Deadline.wait(within: .seconds(60)) {
                        listing(out).contains { $0.hasSuffix(": second \(round)") }
                    }
                    if !hasArrived { lost.change { $0.append(round) } }
                }
                isOver.change { $0 = true }
            }
            #expect(lost.value == [])
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `a copy has no name until it is complete, so a crash leaves nothing behind`() throws {
        // In memory, where files without names are supported. Copying a hole of 256 MB takes some time.
        guard let other = OtherFileSystem() else {
            print("skipped: no second file system")
            return
        }
        let size = 256 << 20
        let source = other.root.appending("in/a")
        TestFile.write(source, "x")
        #expect(source.withCString { truncate($0, off_t(size)) } == 0)
        let out = other.root.appending("out")
        TestFile.makeDirectory(out)
        let isOver = Locked(false)
        let partial = Locked<Set<String>>([])
        onThreads(2) { thread in
            if thread == 0 {
                #expect(BuiltInRun(TransferHandler.copy())(source, ["to": out.appending("a")]).result == .succeeded)
                isOver.change { $0 = true }
                return
            }
            while !isOver.value {
                for name in TestFile.names(in: out) {
                    guard let metadata = try? metadata(out.appending(name)), metadata.size < size else { continue }
                    partial.change { $0.insert(PathBytes(name).description) }
                }
            }
        }
        #expect(partial.value == [])
        #expect(TestFile.names(in: out) == [Array("a".utf8)])
        #expect(try metadata(out.appending("a")).mode == 0o644)
    }

    // MARK: Log

    @Test func `log writes its message, at level warning and above`() {
        let run = BuiltInRun(OtherActions.LogHandler())
        #expect(run("/in/a.txt", [:]).message == "created /in/a.txt")
        #expect(run("/in/a.txt", ["message": "hello"]).message == "hello")
        #expect(run("/in/a.txt", ["message": PathBytes([0xff, 0x21])]).message == "\u{FFFD}!")
        for level in ["debug", "info", "notice", "nonsense"] {
            #expect(run("/in/a.txt", ["message": "quiet", "level": PathBytes(level)]).result == .succeeded)
        }
        #expect(run.log.all == [])
        for level in ["warning", "error"] {
            #expect(run("/in/a.txt", ["message": "loud", "level": PathBytes(level)]).result == .succeeded)
        }
        #expect(run.log.all == ["warning: loud", "error: loud"])
    }
}
