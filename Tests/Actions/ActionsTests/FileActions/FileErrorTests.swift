import ActionAPI
import CAlightLinux
import FileActions
import FileEvents
import Glibc
import Globbing
import JSON
import PluginProtocol
import Rules
import System
import TestKit
import Testing

/// `copy` and `move` when the disk, the directories or other processes interfere.
struct FileErrorTests {
    /// A file system in memory, mounted on a directory of the tree and unmounted on deinitialization.
    ///
    /// The initializer returns nil if mounting fails.
    final class Mounted {
        let path: PathBytes

        init?(_ path: PathBytes, options: String = "size=16m") {
            self.path = path
            TestFile.makeFolder(path)
            guard path.withCString({ mount("alight-test", $0, "tmpfs", 0, options) }) == 0 else {
                print("skipped: can't mount a file system (errno \(errno))")
                return nil
            }
        }

        func makeReadOnly() -> Bool {
            path.withCString { mount("alight-test", $0, "tmpfs", UInt(MS_REMOUNT | MS_RDONLY), nil) } == 0
        }

        deinit { _ = path.withCString { umount2($0, Int32(MNT_DETACH)) } }
    }

    @Test(arguments: BuiltInPlaceTests.kinds)
    func `a read-only destination is reported, and the source stays`(_ kind: BuiltInPlaceTests.Kind) {
        withTempTree { tree in
            guard let disk = Mounted(tree.path("disk")), disk.makeReadOnly() else { return }
            TestFile.write(tree.path("in/a"), "new")
            for to in ["a", "x/y/a"] {
                let outcome = BuiltInRun(kind.handler)(tree.path("in/a"), ["to": disk.path.appending(to)])
                #expect(outcome.ending == .failed, "\(outcome.message)")
                #expect(outcome.message.hasSuffix("Read-only file system"), "\(outcome.message)")
            }
            #expect(listing(tree.root) == ["disk/", "in/a: new"])
        }
    }

    @Test func `a source that cannot be removed is not copied`() {
        withTempTree { tree in
            guard let disk = Mounted(tree.path("disk")) else { return }
            TestFile.write(disk.path.appending("a"), "new")
            guard disk.makeReadOnly() else { return }
            let outcome = BuiltInRun(MoveHandler())(disk.path.appending("a"), ["to": tree.path("out/")])
            #expect(outcome.ending == .failed, "\(outcome.message)")
            #expect(outcome.message == "cannot remove '\(disk.path)/a': Read-only file system")
            #expect(listing(tree.root) == ["disk/a: new", "out/"])
        }
    }

    @Test(arguments: BuiltInPlaceTests.kinds)
    func `a name that is too long is reported`(_ kind: BuiltInPlaceTests.Kind) {
        withTempTree { tree in
            TestFile.write(tree.path("in/a"), "new")
            for to in [String(repeating: "n", count: 256), String(repeating: "n", count: 256) + "/x"] {
                let outcome = BuiltInRun(kind.handler)(tree.path("in/a"), ["to": tree.path("out/\(to)")])
                #expect(outcome.ending == .failed)
                #expect(outcome.message.hasSuffix("File name too long"), "\(outcome.message)")
            }
            #expect(listing(tree.root) == ["in/a: new", "out/"])
        }
    }

    @Test(arguments: BuiltInPlaceTests.kinds)
    func `a directory that vanishes repeatedly causes no loss`(_ kind: BuiltInPlaceTests.Kind) {
        withTempTree { tree in
            let out = tree.path("out/x")
            let source = tree.path("in/a")
            let isOver = Locked(false)
            onThreads(2) { thread in
                if thread == 1 {
                    while !isOver.value {
                        _ = out.withCString { rmdir($0) }
                        _ = out.parent.withCString { rmdir($0) }
                    }
                    return
                }
                for round in 0..<200 {
                    TestFile.write(source, "new \(round)")
                    let outcome = BuiltInRun(kind.handler)(source, ["to": out.appending("\(round)")])
                    let there = TestFile.read(out.appending("\(round)")) == Array("new \(round)".utf8)
                    switch outcome.ending {
                    case .succeeded: #expect(there, "\(round) \(outcome.message)")
                    case .retry: #expect(!there && TestFile.exists(source), "\(round) \(outcome.message)")
                    default: Issue.record("\(outcome.message)")
                    }
                }
                isOver.change { $0 = true }
            }
            #expect(!listing(tree.root).contains { $0.contains("alight-tmp") })
        }
    }

    enum Change: String, CaseIterable { case truncated, appended, rewritten, unlinked, replaced }

    /// The change comes at any time during the copy.
    ///
    /// An incomplete copy is never visible, and the new content is never lost.
    @Test(.timeLimit(.minutes(10)), arguments: BuiltInPlaceTests.kinds, Change.allCases)
    func `a source that changes during the copy`(_ kind: BuiltInPlaceTests.Kind, _ change: Change) {
        withTempTree { tree in
            guard let other = OtherFileSystem() else {
                print("skipped: no second file system")
                return
            }
            let source = other.root.appending("in/a")
            let out = tree.path("out")
            let size = 24 << 20
            let old = [UInt8](repeating: 1, count: size)
            var met = 0
            // Until the change has come during the copy a few times, up to a maximum number of rounds.
            for round in 0..<40 where met < 3 {
                TestFile.write(source, old)
                TestFile.removeTree(out)
                let result = Locked<Outcome?>(nil)
                onThreads(2) { thread in
                    if thread == 0 {
                        let outcome = BuiltInRun(kind.handler)(source, ["to": out.appending("a")])
                        result.change { $0 = outcome }
                        return
                    }
                    usleep(useconds_t(2000 + round * 500))
                    Self.apply(change, source)
                }
                guard let outcome = result.value else { continue }
                let copy = TestFile.read(out.appending("a"))
                let left = TestFile.read(source)
                if let copy, copy.count != size {
                    // The copy started after the change, so it has all of the new content.
                    #expect(change != .unlinked && copy != old)
                    #expect(kind.takes ? left == nil : left == copy, "\(outcome.message)")
                }
                switch outcome.ending {
                case .succeeded: #expect(copy != nil)
                case .notReady:
                    met += 1
                    #expect(copy == nil, "\(outcome.message)")
                    #expect(change == .unlinked || left != nil)
                case .skipped: #expect(outcome.code == "gone" && change == .unlinked)
                default: Issue.record("\(outcome.message)")
                }
                // The content that was written meanwhile still exists in one of the places.
                if change == .replaced || change == .rewritten {
                    let isNew = [copy, left].contains { $0?.first == 2 }
                    #expect(isNew, "\(outcome.message)")
                }
                #expect(!listing(tree.root).contains { $0.contains("alight-tmp") })
                #expect(!listing(other.root).contains { $0.contains("alight-tmp") })
                // The open file is copied to its end, whichever file has its name by now.
                let keepsContent = change == .unlinked || change == .replaced
                if keepsContent, outcome.ending == .succeeded, copy?.count == size { met += 1 }
            }
            #expect(met > 0)
        }
    }

    private static func apply(_ change: Change, _ path: PathBytes) {
        switch change {
        case .truncated: _ = path.withCString { truncate($0, 1 << 20) }
        case .appended: append(path, [2])
        case .rewritten:
            let descriptor = path.withCString { open($0, O_WRONLY | O_CLOEXEC) }
            // The source may have been moved away by now: then there is nothing to lose.
            if descriptor >= 0 {
                TestFile.put(descriptor, [2, 2, 2])
                close(descriptor)
            } else {
                TestFile.write(path, [2, 2, 2])
            }
        case .unlinked: _ = path.withCString { unlink($0) }
        case .replaced:
            let temporary = path.parent.appending(".t")
            TestFile.write(temporary, [2, 2, 2])
            _ = temporary.withCString { from in path.withCString { rename(from, $0) } }
        }
    }

    private static func append(_ path: PathBytes, _ bytes: [UInt8]) {
        let descriptor = path.withCString { open($0, O_WRONLY | O_APPEND | O_CLOEXEC) }
        guard descriptor >= 0 else { return }
        TestFile.put(descriptor, bytes)
        close(descriptor)
    }

    // MARK: - Leftovers

    static let dead = ".a.txt.0123456789abc.alight-tmp"
    static let taken = ".b.txt.0123456789abc.taken.alight-tmp"

    @Test func `a repeated job removes leftovers of a dead process, but not those of a live one`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("in/a.txt"), "new")
            TestFile.write(tree.path("out/\(Self.dead)"), "half")
            TestFile.write(tree.path("out/.live.0123456789abc.alight-tmp"), "half")
            TestFile.write(tree.path("out/\(Self.taken)"), "precious")
            TestFile.write(tree.path("out/.mine.alight-tmp"), "of somebody else")
            TestFile.write(tree.path("out/.d.0123456789abc.alight-tmp/x/y"), "half")
            let holder = RunningProgram(
                "/usr/bin/flock",
                // Without a child that outlives it.
                [
                    "--no-fork", "--shared", "out/.live.0123456789abc.alight-tmp", "sh", "-c",
                    "echo held; exec sleep 600",
                ],
                in: tree.root, output: tree.path("holder"))
            try #require(Deadline.wait { holder.lines.contains("held") })
            var run = BuiltInRun(CopyHandler())
            // An ordinary attempt does not search for leftovers.
            _ = run(tree.path("in/a.txt"), ["to": tree.path("out/first")])
            #expect(TestFile.exists(tree.path("out/\(Self.dead)")))
            run.isInterrupted = true
            #expect(run(tree.path("in/a.txt"), ["to": tree.path("out/")]).ending == .succeeded)
            #expect(
                listing(tree.path("out")) == [
                    ".live.0123456789abc.alight-tmp: half", ".mine.alight-tmp: of somebody else", "a.txt: new",
                    "b.txt: precious", "first: new",
                ])
            holder.signal(SIGKILL)
            _ = holder.wait()
        }
    }

    @Test func `a source that was set aside for removal is restored beside a newer one`() {
        withTempTree { tree in
            TestFile.write(tree.path("in/\(Self.taken)"), "older")
            TestFile.write(tree.path("in/b.txt"), "newer")
            var run = BuiltInRun(DeleteHandler())
            run.isInterrupted = true
            TestFile.write(tree.path("in/x"), "x")
            #expect(run(tree.path("in/x"), [:]).ending == .succeeded)
            #expect(listing(tree.path("in")) == ["b (1).txt: older", "b.txt: newer"])
        }
    }

    @Test func `the directories below the destinations are searched at startup`() {
        withTempTree { tree in
            TestFile.write(tree.path("out/2026/11/\(Self.dead)"), "half")
            TestFile.write(tree.path("elsewhere/\(Self.dead)"), "half")
            _ = tree.path("out/link").withCString { symlink("../elsewhere", $0) }
            let to = Template(parts: [
                .literal(Array("out/".utf8)), .placeholder(.mtime(format: "%Y")), .literal([0x2f]),
            ])
            let place = SourcePlace(file: "r.yaml", line: 1, column: 1)
            let action = Action(.use(HandlerReference(name: "move"), with: .object(["to": .text(to)])), place: place)
            let rule = Rule(
                name: "r", place: place, folder: tree.root, filter: PathFilter(globs: []), actions: [action])
            LeftoverSearch([rule]).clear()
            #expect(listing(tree.path("out")) == ["2026/11/", "link -> ../elsewhere"])
            #expect(listing(tree.path("elsewhere")) == ["\(Self.dead): half"])
        }
    }

    @Test func `a move interrupted before its source was removed is finished, not started again`() {
        withTempTree { tree in
            guard let other = OtherFileSystem() else {
                print("skipped: no second file system")
                return
            }
            for conflict in ["rename", "skip", "fail", "trash", "rename_existing", "deduplicate", "overwrite"] {
                let source = other.root.appending("a")
                TestFile.write(source, "new \(conflict)")
                let to = tree.path("out/\(conflict)/")
                #expect(BuiltInRun(CopyHandler())(source, ["to": to]).ending == .succeeded)
                var run = BuiltInRun(MoveHandler())
                run.isInterrupted = true
                let outcome = run(source, ["to": to, "on_conflict": PathBytes(conflict)])
                #expect(outcome.ending == .succeeded, "\(conflict): \(outcome.message)")
                #expect(listing(to.normalized) == ["a: new \(conflict)"])
                #expect(!TestFile.exists(source), "\(conflict)")
            }
        }
    }

    // MARK: - Preserved attributes

    @Test(arguments: BuiltInPlaceTests.kinds)
    func `sparseness, attributes and access lists are kept`(_ kind: BuiltInPlaceTests.Kind) {
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
            #expect(outcome.ending == .succeeded, "\(outcome.message)")
            let copy = tree.path("out/a")
            #expect(attribute(copy, "user.comment") == [0xff, 0, 1])
            #expect(attribute(copy, "system.posix_acl_access") == list)
            var status = stat()
            #expect(copy.withCString { lstat($0, &status) } == 0)
            #expect(status.st_size == 64 << 20)
            #expect(Int(status.st_blocks) * 512 < 1 << 20)
        }
    }

    @Test func `attributes that 'keep' does not name are not kept`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("in/a"), "new")
            _ = tree.path("in/a").withCString { chmod($0, 0o751) }
            var times = [timespec(tv_sec: 5, tv_nsec: 0), timespec(tv_sec: 5, tv_nsec: 0)]
            _ = tree.path("in/a").withCString { utimensat(AT_FDCWD, $0, &times, 0) }
            _ = TestFile.setAttribute(tree.path("in/a"), "user.comment", [1])
            var run = BuiltInRun(CopyHandler())
            run.further = ["keep": .array([]), "durable": .value(false)]
            #expect(run(tree.path("in/a"), ["to": tree.path("out/")]).ending == .succeeded)
            let copy = try facts(tree.path("out/a"))
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

/// Several files in one call, as for a rule with `batch`.
struct CopyBatchTests {
    @Test func `a batch is copied with an outcome for each file`() {
        withTempTree { tree in
            let count = 150
            for number in 0..<count where number != 7 { TestFile.write(tree.path("in/\(number)"), "new \(number)") }
            TestFile.write(tree.path("out/9"), "old")
            TestFile.makeFolder(tree.path("in/11x"))
            let run = BuiltInRun(CopyHandler())
            let invocations = (0..<count).map { number in
                run.invocation(tree.path("in/\(number)"), templates: ["to": Template(literal: "\(tree.path("out"))/")])
            }
            let outcomes = run.handler.run(invocations)
            #expect(outcomes.count == count)
            for (number, outcome) in outcomes.enumerated() {
                if number == 7 {
                    #expect(outcome.code == "gone")
                } else {
                    let name = number == 9 ? "9 (1)" : "\(number)"
                    #expect(outcome.outputs == [tree.path("out/\(name)")], "\(outcome.message)")
                    #expect(TestFile.read(tree.path("out/\(name)")) == Array("new \(number)".utf8))
                }
            }
            #expect(TestFile.names(in: tree.path("out")).count == count)
            run.stop.raise()
            let stopped = run.handler.run(invocations)
            #expect(stopped.count == count && stopped.allSatisfy(\.isInterrupted))
        }
    }

    @Test func `several files are moved to another file system with an outcome for each`() {
        withTempTree { tree in
            guard let other = OtherFileSystem() else { return }
            let count = 70
            let gone = 7
            let crowded = 9
            for number in 0..<count where number != gone {
                TestFile.write(other.root.appending("\(number)"), "new \(number)")
            }
            TestFile.write(tree.path("out/\(crowded)"), "old")
            let run = BuiltInRun(MoveHandler())
            var invocations = (0..<count).map { number in
                run.invocation(
                    other.root.appending("\(number)"), templates: ["to": Template(literal: "\(tree.path("out"))/")])
            }
            // This path is now another file than the one that settled.
            invocations[11].expectsSettled = true
            TestFile.write(other.root.appending("11"), "something else")
            let outcomes = run.handler.run(invocations)
            #expect(outcomes.count == count)
            for (number, outcome) in outcomes.enumerated() {
                if number == gone {
                    #expect(outcome.code == "gone")
                } else if number == 11 {
                    #expect(outcome.code == "changed", "\(outcome)")
                } else {
                    let name = number == crowded ? "9 (1)" : "\(number)"
                    #expect(outcome.outputs == [tree.path("out/\(name)")], "\(outcome.message)")
                    #expect(TestFile.read(tree.path("out/\(name)")) == Array("new \(number)".utf8))
                    #expect(outcome.changes.count == 1)
                }
            }
            #expect(listing(other.root) == ["11: something else"])
            #expect(TestFile.names(in: tree.path("out")).count == count - 1)
        }
    }
}
