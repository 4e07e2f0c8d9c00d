import CTestKit
import FileEvents
import FileWatching
import Glibc
import Globbing
import Reconciling
import Settling
import TestKit
import Testing

struct ReconcilerTests {
    private let written: Hint.Signs = [.appeared, .written, .closed]

    @Test func `S01 a name that appears is told once, when it has settled`() throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root)
            TestFile.write(tree.path("a"), "one")
            desk.take([("a", written)])
            #expect(desk.words() == [])
            desk.wait()
            #expect(desk.words() == ["created a"])
            desk.take([("a", [.closed])])
            desk.wait()
            #expect(desk.words() == [])
        }
    }

    @Test func `S31 a path that is held open is named after a minute, until it is closed`() throws {
        try withTempTree { tree in
            let file = tree.path("a")
            TestFile.write(file, "one")
            let writer = file.withCString { open($0, O_WRONLY | O_CLOEXEC) }
            var desk = try Desk(tree.root)
            desk.take([("a", written)])
            for _ in 0..<55 { desk.wait(.seconds(1)) }
            #expect(desk.held == [:])
            for _ in 0..<10 { desk.wait(.seconds(1)) }
            #expect(desk.held == [file: .seconds(65)])
            close(writer)
            desk.take([("a", .closed)])
            #expect(
                Deadline.wait {
                    desk.wait(); return desk.held.isEmpty
                })
            #expect(desk.words() == ["created a"])
        }
    }

    @Test func `what the first listing found is not given up at a stop, unless it was to be told`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("a"), "x")
            let desk = try Desk(tree.root, isReady: false)
            #expect(desk.unsettled(and: ["a"], origin: .scan) == [])
            #expect(desk.unsettled(and: ["a"], origin: .live) == [tree.path("a")])
            let asking = try Desk(tree.root, beginning: .told, isReady: false)
            #expect(asking.unsettled(and: ["a"], origin: .scan) == [tree.path("a")])
        }
    }

    @Test(
        arguments: [
            ("longer", EventMask.extended, ["modified a"]), ("s", .truncated, ["modified a"]),
            ("four", .overwritten, ["modified a"]),
            ("longer", .truncated, []), ("s", [.extended, .overwritten], []), ("four", .content, ["modified a"]),
        ] as [(String, EventMask, [String])])
    func `S02 the narrower words tell how content changed`(text: String, mask: EventMask, words: [String]) throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root, mask: mask)
            TestFile.write(tree.path("a"), "word")
            desk.take([("a", written)])
            desk.wait()
            #expect(desk.words() == [])
            // Another moment, where the clock of the file system is coarse.
            var times = [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: 1, tv_nsec: 0)]
            TestFile.write(tree.path("a"), text)
            _ = tree.path("a").withCString { utimensat(AT_FDCWD, $0, &times, 0) }
            desk.take([("a", [.written, .closed])])
            desk.wait()
            #expect(desk.words() == words)
        }
    }

    @Test func `S55 a polled path that is told is to be hinted again, once`() throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root, types: [.symlink])
            #expect(symlink("nowhere", tree.path("a").description) == 0)
            desk.take([("a", [.appeared, .polled])], origin: .poll)
            desk.wait()
            #expect(desk.words() == ["created a"])
            #expect(desk.doubted == [tree.path("a")])
            desk.take([("a", .polled)], origin: .poll)
            desk.wait()
            #expect(desk.doubted.count == 1)
        }
    }

    @Test(.enabled(if: geteuid() == 0, "to become a user who may not enter a folder, the test must be root"))
    func `S44 a name that can't be looked at is not moved away from while the file has several`() throws {
        try withTempTree { tree in
            _ = tree.root.withCString { chmod($0, 0o755) }
            var desk = try Desk(tree.root)
            TestFile.write(tree.path("closed/a"), "x")
            desk.take([("closed/a", written)])
            desk.wait()
            #expect(link(tree.path("closed/a").description, tree.path("b").description) == 0)
            _ = tree.path("closed").withCString { chmod($0, 0) }
            ctk_access_files_as(65534)
            desk.take([("b", [.appeared])])
            desk.wait()
            ctk_access_files_as(0)
            #expect(desk.words() == ["created closed/a", "created b"])
        }
    }

    @Test func `S05 a file that comes or goes by a move is complete at once, and says so`() throws {
        try withTempTree { tree in
            let inside = tree.path("in")
            TestFile.makeFolder(inside)
            TestFile.write(tree.path("out"), "x")
            var desk = try Desk(inside)
            #expect(rename(tree.path("out").description, inside.appending("a").description) == 0)
            desk.take([("a", [.appeared, .moved])])
            desk.wait(.milliseconds(60))
            let arrived = desk.events()
            #expect(arrived.map(\.kind) == [.created])
            #expect(arrived.first?.isByMove == true)
            #expect(rename(inside.appending("a").description, tree.path("out").description) == 0)
            desk.take([("a", [.vanished, .moved])])
            desk.wait()
            let left = desk.events()
            #expect(left.map(\.kind) == [.deleted])
            #expect(left.first?.isByMove == true)
        }
    }

    @Test func `S06 what changed of the attributes is named, with what it was`() throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root, mask: [.mode, .xattr])
            let path = tree.path("a")
            TestFile.write(path, "x")
            desk.take([("a", written)])
            desk.wait()
            #expect(chmod(path.description, 0o600) == 0)
            desk.take([("a", [.attributes])])
            desk.wait()
            let event = try #require(desk.events().first)
            #expect(event.changed == ["mode"])
            #expect(event.before?.mode == 0o644)
            // Only what is asked for is told.
            var times = [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: 1, tv_nsec: 0)]
            #expect(utimensat(AT_FDCWD, path.description, &times, 0) == 0)
            desk.take([("a", [.attributes])])
            desk.wait()
            #expect(desk.words() == [])
            guard TestFile.setAttribute(path, "user.colour", Array("red".utf8)) else { return }
            desk.take([("a", [.attributes])])
            desk.wait()
            let colour = try #require(desk.events().first)
            #expect(colour.changed == ["xattr:user.colour"])
        }
    }

    @Test func `S07 a linked name says of which file it is another one`() throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root)
            TestFile.write(tree.path("a"), "x")
            desk.take([("a", written)])
            desk.wait()
            _ = desk.words()
            #expect(link(tree.path("a").description, tree.path("b").description) == 0)
            desk.take([("b", [.appeared])])
            desk.wait()
            desk.wait()
            let events = desk.events()
            #expect(events.map(\.kind) == [.created, .attributes])
            #expect(events.first?.sameAs == [tree.path("a")])
            #expect(events.last?.path == tree.path("a"))
            #expect(events.last?.changed == ["nlink"])
        }
    }

    @Test(arguments: ["unlinked", "replaced", "replaced by a move"])
    func `S07 a name that goes before its second one was looked at is missed at that one`(_ way: String) throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root)
            for name in ["a", "c"] {
                TestFile.write(tree.path(name), name)
                desk.take([(name, written)])
            }
            desk.wait()
            #expect(link(tree.path("a").description, tree.path("b").description) == 0)
            desk.take([("b", [.appeared])])
            desk.wait()
            _ = desk.words()
            // Known of `a` is still that it has one name.
            switch way {
            case "unlinked":
                #expect(unlink(tree.path("a").description) == 0)
                desk.take([("a", .vanished)])
            case "replaced":
                #expect(unlink(tree.path("a").description) == 0)
                TestFile.write(tree.path("a"), "new")
                desk.take([("a", written)])
            default:
                #expect(rename(tree.path("c").description, tree.path("a").description) == 0)
                desk.take([("c", [.vanished, .moved]), ("a", [.appeared, .moved])])
            }
            desk.wait()
            desk.wait()
            #expect(desk.words().filter { $0.hasSuffix(" b") } == ["attributes b"])
        }
    }

    @Test func `S07 a write by a name that is gone since is found at the others`() throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root)
            TestFile.write(tree.path("a"), "x")
            desk.take([("a", written)])
            desk.wait()
            _ = desk.words()
            #expect(link(tree.path("a").description, tree.path("b").description) == 0)
            TestFile.write(tree.path("b"), Array("yy".utf8), appending: true)
            desk.take([("b", written)])
            #expect(unlink(tree.path("b").description) == 0)
            desk.take([("b", [.vanished])])
            desk.wait()
            desk.wait()
            #expect(desk.words() == ["modified a"])
        }
    }

    @Test func `S07 the count of names is right, though the other came and went unseen`() throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root)
            TestFile.write(tree.path("a"), "x")
            #expect(link(tree.path("a").description, tree.path("b").description) == 0)
            desk.take([("a", written)])
            desk.wait()
            #expect(desk.words() == ["created a"])
            #expect(unlink(tree.path("b").description) == 0)
            desk.take([("b", [.appeared, .vanished])])
            desk.wait()
            desk.wait()
            let events = desk.events()
            #expect(events.map(\.kind) == [.attributes])
            #expect(events.first?.changed == ["nlink"])
        }
    }

    @Test(.enabled(if: geteuid() == 0, "to become a user who may not enter a folder, the test must be root"))
    func `S07 the count of names is right, though the other was never to be read`() throws {
        try withTempTree { tree in
            let other = tree.path("closed/b").description
            _ = tree.root.withCString { chmod($0, 0o755) }
            TestFile.makeFolder(tree.path("closed"))
            var desk = try Desk(tree.root)
            TestFile.write(tree.path("a"), "x")
            #expect(link(tree.path("a").description, other) == 0)
            _ = tree.path("closed").withCString { chmod($0, 0) }
            ctk_access_files_as(65534)
            desk.take([("a", written), ("closed/b", [.appeared])])
            desk.wait()
            // The one time that it is looked at in any case.
            desk.wait()
            ctk_access_files_as(0)
            #expect(desk.words() == ["created a"])
            #expect(unlink(other) == 0)
            desk.take([("closed/b", [.vanished])])
            desk.wait()
            desk.wait()
            let events = desk.events()
            #expect(events.map(\.kind) == [.attributes])
            #expect(events.first?.changed == ["nlink"])
        }
    }

    @Test func `S17 a folder that left the tree takes with it what was known`() throws {
        try withTempTree { tree in
            let inside = tree.path("in")
            TestFile.makeFolder(inside.appending("d/e"))
            var desk = try Desk(inside)
            for name in ["d/1", "d/e/2", "3"] {
                TestFile.write(inside.appending(name), name)
                desk.take([(name, written)])
            }
            desk.wait()
            #expect(Set(desk.words()) == ["created d/1", "created d/e/2", "created 3"])
            #expect(rename(inside.appending("d").description, tree.path("gone").description) == 0)
            desk.take([("d", [.vanished, .moved, .subtree])])
            desk.wait()
            #expect(desk.told.allSatisfy { $0.isByMove && $0.origin == .live })
            #expect(Set(desk.words()) == ["deleted d/1", "deleted d/e/2"])
        }
    }

    @Test func `S19 a root that goes and comes back is told, and what it lacks then`() throws {
        try withTempTree { tree in
            let root = tree.path("in")
            TestFile.makeFolder(root)
            var desk = try Desk(root, mask: [.differences, .rootGone, .rootBack])
            TestFile.write(root.appending("a"), "x")
            desk.take([("a", written)])
            desk.wait()
            #expect(desk.words() == ["created a"])
            TestFile.removeTree(root)
            desk.take([("a", [.vanished])], reports: [.rootMissing(root, watching: tree.root)])
            desk.wait()
            #expect(desk.words() == ["root_gone ."])
            desk.take(reports: [.rootMissing(root, watching: tree.root)])
            #expect(desk.words() == [])
            TestFile.makeFolder(root)
            TestFile.write(root.appending("b"), "y")
            desk.take(
                [("b", [.listed, .appeared])],
                reports: [.rootAppeared(root), .listing(root, .live), .listed(root, .live)])
            desk.wait()
            #expect(Set(desk.words()) == ["root_back .", "deleted a", "created b"])
        }
    }

    @Test func `S24 what is there is told between begin and end, also when there is nothing`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("old"), "x")
            TestFile.makeFolder(tree.path("d"))
            TestFile.write(tree.path("d/new"), "y")
            let mask: EventMask = [.created, .scanBegan, .scanEnded]
            var desk = try Desk(tree.root, mask: mask, beginning: .told, isReady: false)
            desk.take(
                [("old", .listed), ("d", .listed), ("d/new", .listed)], origin: .scan,
                reports: [.listing(tree.root, .scan), .listed(tree.root, .scan), .ready(folders: 2)])
            desk.wait(.seconds(2))
            let words = desk.words()
            #expect(words.first == "scan_begin .")
            #expect(words.last == "scan_end .")
            #expect(Set(words.dropFirst().dropLast()) == ["created old", "created d/new"])
            TestFile.makeFolder(tree.path("empty"))
            var nothing = try Desk(tree.path("empty"), mask: mask, beginning: .told)
            #expect(nothing.words() == ["scan_begin .", "scan_end ."])
            var silent = try Desk(tree.path("empty"), mask: mask)
            #expect(silent.words() == [])
        }
    }

    @Test func `S28 a rescan with nothing new is a begin and an end`() throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root, mask: [.differences, .scanBegan, .scanEnded])
            for name in ["a", "b"] {
                TestFile.write(tree.path(name), "x")
                desk.take([(name, written)])
            }
            desk.wait()
            _ = desk.words()
            desk.take(
                [("a", .listed), ("b", .listed)], origin: .rescan,
                reports: [.listing(tree.root, .rescan), .listed(tree.root, .rescan)])
            #expect(desk.words() == ["scan_begin .", "scan_end ."])
            TestFile.write(tree.path("c"), "x")
            #expect(unlink(tree.path("a").description) == 0)
            desk.take(
                [("b", .listed), ("c", .listed)], origin: .rescan,
                reports: [.listing(tree.root, .rescan), .listed(tree.root, .rescan)])
            #expect(desk.words() == ["scan_begin ."])
            desk.wait()
            let words = desk.words()
            #expect(Set(words) == ["deleted a", "created c", "scan_end ."])
            #expect(words.last == "scan_end .")
            let isEmpty = desk.isEmpty
            #expect(isEmpty)
        }
    }

    @Test func `S28 a rescan ends after what was dirty before it`() throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root, mask: [.differences, .scanBegan, .scanEnded])
            TestFile.write(tree.path("a"), "1")
            desk.take([("a", .written)])
            desk.wait()
            #expect(desk.words() == ["created a"])
            #expect(unlink(tree.path("a").description) == 0)
            desk.take([("a", .vanished)])
            desk.take(reports: [.listing(tree.root, .rescan), .listed(tree.root, .rescan)])
            desk.wait()
            #expect(desk.words() == ["scan_begin .", "deleted a", "scan_end ."])
        }
    }

    @Test func `S28 a rescan does not wait for a file that never rests`() throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root, mask: [.differences, .scanBegan, .scanEnded])
            TestFile.write(tree.path("log"), "1")
            desk.take(
                [("log", .listed)], origin: .rescan,
                reports: [.listing(tree.root, .rescan), .listed(tree.root, .rescan)])
            desk.wait(.milliseconds(60))
            desk.take([("log", .written)])
            #expect(desk.words() == ["scan_begin ."])
            desk.wait(.milliseconds(60))
            desk.take([("log", .written)])
            #expect(desk.words() == ["scan_end ."])
            desk.wait()
            #expect(desk.words() == ["created log"])
        }
    }

    @Test func `S32 a file is told at first sight and when it is complete`() throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root, mask: [.created, .modified, .arriving])
            TestFile.write(tree.path("a"), "x")
            desk.take([("a", [.appeared, .written])])
            desk.take([("a", [.written])])
            #expect(desk.words() == ["arriving a"])
            desk.wait()
            #expect(desk.words() == ["created a"])
            TestFile.write(tree.path("a"), "yy")
            desk.take([("a", [.written, .closed])])
            desk.wait()
            #expect(desk.words() == ["modified a"])
        }
    }

    @Test func `S34 a folder is one unit with everything below it`() throws {
        try withTempTree { tree in
            let policy = SettlePolicy(quiet: .zero, isTree: true)
            var desk = try Desk(
                tree.root, "*", mask: [.created, .modified, .deleted], types: [.directory], settle: policy)
            TestFile.makeFolder(tree.path("d/e"))
            TestFile.write(tree.path("d/e/1"), "x")
            let writer = tree.path("d/e/1").withCString { open($0, O_WRONLY | O_CLOEXEC) }
            desk.take([("d", .appeared), ("d/e", [.appeared, .listed]), ("d/e/1", [.appeared, .listed])])
            desk.wait(.seconds(20))
            #expect(desk.words() == [])
            close(writer)
            #expect(desk.wordsInTheEnd() == ["created d"])
            TestFile.write(tree.path("d/e/1"), "longer")
            desk.take([("d/e/1", [.written, .closed])])
            #expect(desk.wordsInTheEnd() == ["modified d"])
            desk.take([("d/e/1", [.attributes])])
            desk.wait(.seconds(20))
            desk.wait(.seconds(20))
            #expect(desk.words() == [])
            TestFile.removeTree(tree.path("d"))
            desk.take([("d/e/1", .vanished), ("d", .vanished)])
            desk.wait(.seconds(20))
            #expect(desk.words() == ["deleted d"])
        }
    }

    @Test func `S37 a file that never rests is told at least as often as asked`() throws {
        try withTempTree { tree in
            let policy = SettlePolicy(quiet: .milliseconds(100), maximumWait: .milliseconds(300))
            var desk = try Desk(tree.root, settle: policy)
            let writer = tree.path("log").withCString { open($0, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644) }
            defer { close(writer) }
            var told: [String] = []
            for round in 0..<20 {
                TestFile.put(writer, Array("line\n".utf8))
                desk.take([("log", round == 0 ? [.appeared, .written] : [.written])])
                desk.wait(.milliseconds(50))
                told += desk.words()
            }
            #expect(told == ["created log", "modified log", "modified log"])
        }
    }

    @Test func `S38 a file that is followed gives its text, whole characters of it`() throws {
        try withTempTree { tree in
            let path = tree.path("log")
            TestFile.write(path, "old\n")
            let policy = SettlePolicy(quiet: .milliseconds(100), writers: .ignore)
            var desk = try Desk(
                tree.root, mask: [.created, .modified, .moved], settle: policy, tail: 16, isReady: false)
            desk.take(
                [("log", .listed)], origin: .scan,
                reports: [.listing(tree.root, .scan), .listed(tree.root, .scan), .ready(folders: 1)])
            // An é is cut after its first byte.
            TestFile.write(path, Array("new caf".utf8) + [0xC3], appending: true)
            desk.take([("log", .written)])
            desk.wait()
            var event = try #require(desk.events().first)
            #expect(event.tail == TailText(offset: 4, bytes: Array("new caf".utf8), remaining: 1))
            TestFile.write(path, [0xA9, 0x0A], appending: true)
            desk.take([("log", .written)])
            desk.wait()
            event = try #require(desk.events().first)
            #expect(event.tail == TailText(offset: 11, bytes: Array("é\n".utf8)))
            // More than one delivery holds follows by itself.
            TestFile.write(path, Array("0123456789abcdefghij".utf8), appending: true)
            desk.take([("log", .written)])
            desk.wait()
            desk.wait()
            let texts = desk.events().compactMap(\.tail).map { String(decoding: $0.bytes, as: UTF8.self) }
            #expect(texts == ["0123456789abcdef", "ghij"])
            // A new file of the name is read from its beginning.
            #expect(rename(path.description, tree.path("log.1").description) == 0)
            TestFile.write(path, "fresh\n")
            desk.take([("log", [.vanished, .moved]), ("log.1", [.appeared, .moved]), ("log", written)])
            desk.wait()
            desk.wait()
            let rotated = desk.events()
            #expect(rotated.contains { $0.kind == .moved && $0.path == tree.path("log.1") })
            let fresh = try #require(rotated.last { $0.path == path })
            #expect(fresh.tail?.bytes == Array("fresh\n".utf8))
            TestFile.write(path, "x")
            desk.take([("log", [.written])])
            desk.wait()
            event = try #require(desk.events().first)
            #expect(event.tail == TailText(offset: 0, bytes: Array("x".utf8), isReset: true))
        }
    }

    @Test func `S38 text waits while nobody has taken what came before`() throws {
        try withTempTree { tree in
            let policy = SettlePolicy(quiet: .milliseconds(100), writers: .ignore)
            var desk = try Desk(tree.root, mask: [.created, .modified], settle: policy, tail: 1_000)
            TestFile.write(tree.path("log"), "one\n")
            desk.take([("log", written)])
            desk.wait()
            #expect(desk.events().first?.tail?.bytes == Array("one\n".utf8))
            desk.ledger.pending = [tree.path("log")]
            TestFile.write(tree.path("log"), Array("two\n".utf8), appending: true)
            desk.take([("log", .written)])
            desk.wait()
            desk.wait()
            #expect(desk.words() == [])
            let isQuiet = desk.isEmpty
            #expect(isQuiet)
            desk.finish("log")
            #expect(desk.events().first?.tail == TailText(offset: 4, bytes: Array("two\n".utf8)))
        }
    }

    @Test(arguments: [true, false])
    func `S38 the text of a rotated file goes on where it ended`(_ isSeen: Bool) throws {
        try withTempTree { tree in
            let policy = SettlePolicy(quiet: .milliseconds(100), writers: .ignore)
            var desk = try Desk(tree.root, mask: [.created, .modified], settle: policy, tail: 1_000)
            TestFile.write(tree.path("log"), "one\n")
            desk.take([("log", written)])
            desk.wait()
            _ = desk.events()
            TestFile.write(tree.path("log"), Array("two\n".utf8), appending: true)
            #expect(rename(tree.path("log").description, tree.path("log.1").description) == 0)
            if isSeen {
                desk.take([("log", [.vanished, .moved]), ("log.1", [.appeared, .moved])])
            } else {
                desk.take([("log.1", .listed)], origin: .rescan)
            }
            desk.wait()
            desk.wait()
            let texts = desk.events().compactMap(\.tail)
            #expect(texts == [TailText(offset: 4, bytes: Array("two\n".utf8))])
        }
    }

    @Test func `S38 text of a renamed file is kept for a view that was not told of the name`() throws {
        try withTempTree { tree in
            let root = tree.root
            let policy = SettlePolicy(quiet: .milliseconds(100), writers: .ignore)
            let filter = PathFilter(globs: [try Glob(root.appending("*").bytes)])
            let views = [("names", [.created, .modified]), ("texts", .modified)].map { (name, mask: EventMask) in
                View(name: name, filter: filter, mask: mask, settle: policy, tailBytes: 1_000)
            }
            let ledger = TestLedger()
            var reconciler = Reconciler(views: views, ledger: ledger, isPatient: true) { _ in }
            var now = ContinuousClock.now
            var told: [String] = []
            func hint(_ name: String, _ signs: Hint.Signs) -> HintQueue.Batch {
                HintQueue.Batch(hints: [Hint(path: root.appending(name), signs: signs, origin: .live)], reports: [])
            }
            TestFile.write(tree.path("log"), "one\n")
            let listed = Hint(path: tree.path("log"), signs: .listed, origin: .scan)
            let start: [WatchReport] = [.listing(root, .scan), .listed(root, .scan), .ready(folders: 1)]
            reconciler.take(HintQueue.Batch(hints: [listed], reports: start), at: now)
            ledger.apply(reconciler.takeSettled(at: now).entries)
            TestFile.write(tree.path("log"), Array("two\n".utf8), appending: true)
            #expect(rename(tree.path("log").description, tree.path("log.1").description) == 0)
            for step in [hint("log.1", .listed), hint("log.1", .written)] {
                if step.hints.first?.signs == .written {
                    TestFile.write(tree.path("log.1"), Array("three\n".utf8), appending: true)
                }
                reconciler.take(step, at: now)
                now += .milliseconds(150)
                let turn = reconciler.takeSettled(at: now)
                ledger.apply(turn.entries)
                told += turn.events.map { view, event in
                    let text = event.tail.map { String(decoding: $0.bytes, as: UTF8.self) } ?? ""
                    return "\(views[view].name) \(event.kind.rawValue) \(text)"
                }
            }
            #expect(told == ["names created two\n", "names modified three\n", "texts modified two\nthree\n"])
        }
    }

    @Test func `S04 a move that only a listing finds is followed by what was written`() throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root, mask: [.modified, .moved])
            TestFile.write(tree.path("a"), "1")
            TestFile.write(tree.path("x"), "1")
            desk.take([("a", written), ("x", written)])
            desk.wait()
            _ = desk.words()
            for (from, to) in [("a", "b"), ("b", "x")] {
                #expect(rename(tree.path(from).description, tree.path(to).description) == 0)
                TestFile.write(tree.path(to), Array("2".utf8), appending: true)
                desk.take(
                    [(to, .listed)], origin: .rescan,
                    reports: [.listing(tree.root, .rescan), .listed(tree.root, .rescan)])
                desk.wait()
                #expect(desk.words() == ["moved \(to)", "modified \(to)"])
            }
        }
    }

    @Test func `S04 what is written after a rename is told, though its sign comes after the look`() throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root, mask: [.created, .modified, .deleted])
            TestFile.write(tree.path("a"), "1")
            desk.take([("a", written)])
            desk.wait()
            #expect(desk.words() == ["created a"])
            #expect(rename(tree.path("a").description, tree.path("b").description) == 0)
            desk.take([("a", [.vanished, .moved]), ("b", [.appeared, .moved])])
            #expect(desk.words() == ["deleted a", "created b"])
            // As large as before, and later by the clock of the file system.
            let before = DiskProbe.look(at: tree.path("b"))
            let isLater = Deadline.wait {
                TestFile.write(tree.path("b"), "2")
                return DiskProbe.look(at: tree.path("b")) != before
            }
            #expect(isLater)
            desk.wait()
            #expect(desk.words() == ["modified b"])
            desk.take([("b", [.written, .closed])])
            desk.wait()
            #expect(desk.words() == [])
        }
    }

    @Test func `S04 what a move has told of the mode is known, though something was written too`() throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root, types: [.directory])
            TestFile.makeFolder(tree.path("d"))
            desk.take([("d", .appeared)])
            desk.wait()
            #expect(desk.words() == ["created d"])
            #expect(rename(tree.path("d").description, tree.path("e").description) == 0)
            TestFile.write(tree.path("e/a"), "x")
            _ = tree.path("e").withCString { chmod($0, 0o700) }
            desk.take([("d", [.vanished, .moved]), ("e", [.appeared, .moved])])
            let moved = try #require(desk.events().first)
            #expect(moved.kind == .moved && moved.snapshot.mode == 0o700)
            // As it was before the move.
            _ = tree.path("e").withCString { chmod($0, 0o755) }
            desk.take([("e", .attributes)])
            desk.wait()
            #expect(desk.words() == ["attributes e"])
        }
    }

    @Test func `S04 a file that settles while it is renamed is moved all the same`() throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root)
            TestFile.write(tree.path("a"), "x")
            desk.take([("a", written)])
            desk.wait()
            #expect(desk.words() == ["created a"])
            desk.take([("a", [.closed])])
            #expect(rename(tree.path("a").description, tree.path("b").description) == 0)
            desk.wait()
            desk.take([("a", [.vanished, .moved]), ("b", [.appeared, .moved])])
            desk.wait()
            #expect(desk.words() == ["moved b"])
        }
    }

    @Test func `S51 an overflow is told once, and what was missed after it`() throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root, mask: [.differences, .overflow])
            TestFile.write(tree.path("a"), "x")
            desk.take([("a", .listed)], origin: .rescan, reports: [.overflow, .listing(tree.root, .rescan)])
            desk.take(reports: [.listed(tree.root, .rescan), .rescanned])
            desk.wait()
            #expect(desk.words() == ["overflow .", "created a"])
        }
    }

    @Test func `S08 what was on a file system that is unmounted is not deleted`() throws {
        try withTempTree { tree in
            let root = tree.root
            var desk = try Desk(root, mask: [.differences, .unmounted])
            TestFile.makeFolder(root.appending("m"))
            TestFile.write(root.appending("m/a"), "x")
            desk.take([("m/a", written)])
            desk.wait()
            #expect(desk.words() == ["created m/a"])
            // As if the file had been on another device, which is gone.
            var there = try #require(desk.ledger.snapshot(view: "v", path: root.appending("m/a")))
            there.identity.deviceMinor += 77
            there.mount += 777_777
            desk.ledger.apply([LedgerEntry(view: "v", path: root.appending("m/a"), snapshot: there)])
            #expect(unlink(root.appending("m/a").description) == 0)
            desk.take([("m/a", .vanished)], reports: [.unmounted(root.appending("m"), point: root.appending("m"))])
            desk.wait()
            #expect(desk.words() == ["unmounted m"])
        }
    }

    @Test func `S08 an unmount names the mount point, also above the root`() throws {
        try withTempTree { tree in
            var desk = try Desk(tree.root, mask: [.unmounted])
            let point = tree.root.parent
            desk.take(reports: [.unmounted(tree.root, point: point)])
            #expect(desk.events().map(\.path) == [point])
        }
    }

    @Test func `raw words pass on what the kernel says, to those who ask`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("a"), "x")
            var desk = try Desk(tree.root, mask: [.opened, .closed])
            desk.take([("a", [.opened, .accessed, .closedUnwritten])])
            #expect(desk.words() == ["opened a", "closed a"])
            var other = try Desk(tree.root)
            other.take([("a", [.opened, .accessed, .closedUnwritten])])
            other.wait()
            #expect(other.words() == [])
        }
    }

    @Test func `a file that is open for writing at the start is told when it is complete`() throws {
        try withTempTree { tree in
            let writer = tree.path("a").withCString { open($0, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644) }
            var desk = try Desk(tree.root, isReady: false)
            desk.take(
                [("a", .listed)], origin: .scan,
                reports: [.listing(tree.root, .scan), .listed(tree.root, .scan), .ready(folders: 1)])
            desk.wait()
            #expect(desk.words() == [])
            close(writer)
            #expect(desk.wordsInTheEnd() == ["created a"])
        }
    }
}
