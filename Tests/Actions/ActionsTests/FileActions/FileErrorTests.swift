import FileActions
import Glibc
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// `copy` and `move` when the disk, the directories or other processes interfere.
struct FileErrorTests {
    /// A file system in memory, mounted on a directory of the tree and unmounted on deinitialization.
    ///
    /// The initializer returns nil if mounting fails.
    final class Mounted {
        let path: PathBytes

        init?(_ path: PathBytes, options: String = "size=16m") {
            self.path = path
            TestFile.makeDirectory(path)
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

    @Test(arguments: BuiltInLocationTests.kinds)
    func `a read-only destination is reported, and the source stays`(_ kind: BuiltInLocationTests.Kind) {
        withTempTree { tree in
            guard let disk = Mounted(tree.path("disk")), disk.makeReadOnly() else { return }
            TestFile.write(tree.path("in/a"), "new")
            for to in ["a", "x/y/a"] {
                let outcome = BuiltInRun(kind.handler)(tree.path("in/a"), ["to": disk.path.appending(to)])
                #expect(outcome.result == .retry, "\(outcome.message)")
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
            let outcome = BuiltInRun(TransferHandler.move())(disk.path.appending("a"), ["to": tree.path("out/")])
            #expect(outcome.result == .retry, "\(outcome.message)")
            #expect(outcome.message == "cannot remove '\(disk.path)/a': Read-only file system")
            #expect(listing(tree.root) == ["disk/a: new", "out/"])
        }
    }

    @Test(arguments: BuiltInLocationTests.kinds)
    func `a name that is too long is reported`(_ kind: BuiltInLocationTests.Kind) {
        withTempTree { tree in
            TestFile.write(tree.path("in/a"), "new")
            for to in [String(repeating: "n", count: 256), String(repeating: "n", count: 256) + "/x"] {
                let outcome = BuiltInRun(kind.handler)(tree.path("in/a"), ["to": tree.path("out/\(to)")])
                #expect(outcome.result == .failed)
                #expect(outcome.message.hasSuffix("File name too long"), "\(outcome.message)")
            }
            #expect(listing(tree.root) == ["in/a: new", "out/"])
        }
    }

    @Test(arguments: BuiltInLocationTests.kinds)
    func `a directory that vanishes repeatedly causes no loss`(_ kind: BuiltInLocationTests.Kind) {
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
                    switch outcome.result {
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
    @Test(.timeLimit(.minutes(10)), arguments: BuiltInLocationTests.kinds, Change.allCases)
    func `a source that changes during the copy causes no loss`(_ kind: BuiltInLocationTests.Kind, _ change: Change) {
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
                switch outcome.result {
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
                if keepsContent, outcome.result == .succeeded, copy?.count == size { met += 1 }
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
}
