import FileEvents
import FileWatching
import Glibc
import Globbing
import Reconciling
import Settling
import TestKit
import Testing

/// What a first listing tells when there was a run before.
struct BeginningTests {
    private static let policy = SettlePolicy(quiet: .milliseconds(100), writers: .ignore)

    /// A tree with the files `same`, `more`, `gone` and `name`, of which all are known.
    private static func known(_ tree: borrowing TemporaryTree) throws -> TestLedger {
        for name in ["same", "more", "gone", "name"] { TestFile.write(tree.path(name), name) }
        var desk = try Desk(tree.root, settle: policy, isReady: false)
        desk.list(["same", "more", "gone", "name"])
        #expect(desk.words() == [])
        return desk.ledger
    }

    /// What may happen while nobody looks.
    private static func change(_ tree: borrowing TemporaryTree) {
        TestFile.write(tree.path("more"), "more and more")
        unlink(tree.path("gone").description)
        rename(tree.path("name").description, tree.path("other").description)
        TestFile.write(tree.path("new"), "new")
    }

    @Test func `S25 what happened between two runs is told as if live`() throws {
        try withTempTree { tree in
            let ledger = try Self.known(tree)
            Self.change(tree)
            var desk = try Desk(
                tree.root, settle: Self.policy, beginning: .compared(since: nil), ledger: ledger, isReady: false)
            desk.list(["same", "more", "other", "new"])
            desk.wait()
            desk.wait()
            let origins = Set(desk.told.map(\.origin))
            #expect(desk.words().sorted() == ["created new", "deleted gone", "modified more", "moved other"])
            #expect(origins == [.scan])
            // And that is known now.
            var again = try Desk(
                tree.root, settle: Self.policy, beginning: .compared(since: nil), ledger: ledger, isReady: false)
            again.list(["same", "more", "other", "new"])
            again.wait()
            #expect(again.words() == [])
        }
    }

    @Test func `S25 a view that does not catch up takes everything for known`() throws {
        try withTempTree { tree in
            let ledger = try Self.known(tree)
            Self.change(tree)
            var desk = try Desk(
                tree.root, settle: Self.policy, beginning: .renewed(since: nil), ledger: ledger, isReady: false)
            desk.list(["same", "more", "other", "new"])
            desk.wait()
            #expect(desk.words() == [])
            for (name, isKnown) in [("more", true), ("new", true), ("other", true), ("gone", false), ("name", false)] {
                #expect((ledger.snapshot(view: "v", path: tree.path(name)) != nil) == isKnown, "\(name)")
            }
            #expect(ledger.snapshot(view: "v", path: tree.path("more"))?.size == 13)
        }
    }

    @Test func `a path that is new to a view is told only if something has happened to it since`() throws {
        try withTempTree { tree in
            TestFile.write(tree.path("old"), "old")
            guard case .present(let old) = DiskProbe.look(at: tree.path("old")) else {
                Issue.record("the file is gone")
                return
            }
            // The clock of files moves in steps, and what came in the step that was under way is told, too.
            var since = DiskProbe.fileTime()
            #expect(
                Deadline.wait {
                    since = DiskProbe.fileTime()
                    return old.changed < since
                })
            TestFile.write(tree.path("new"), "new")
            var desk = try Desk(
                tree.root, settle: Self.policy, beginning: .compared(since: since), isReady: false)
            desk.list(["old", "new"])
            desk.wait()
            #expect(desk.words() == ["created new"])
            #expect(desk.ledger.snapshot(view: "v", path: tree.path("old")) != nil)
        }
    }

    @Test func `S08 what was on a file system that is not mounted at the start is not deleted`() throws {
        try withTempTree { tree in
            let ledger = try Self.known(tree)
            for name in ["same", "gone"] {
                // As a journal knows it that was written before a boot.
                var snapshot = try #require(ledger.snapshot(view: "v", path: tree.path(name)))
                snapshot.mount = 0
                if name == "gone" { snapshot.identity.deviceMinor += 77 }
                ledger.apply([LedgerEntry(view: "v", path: tree.path(name), snapshot: snapshot)])
                unlink(tree.path(name).description)
            }
            for (away, words) in [([tree.root], ["deleted same"]), ([], ["deleted gone"])] {
                var desk = try Desk(
                    tree.root, settle: Self.policy, beginning: .compared(since: nil), ledger: ledger, isReady: false)
                desk.noteAway(away)
                desk.list(["more", "name"])
                desk.wait()
                #expect(desk.words() == words)
            }
        }
    }

    @Test func `what one view is told of at the start is known to another one at once`() throws {
        try withTempTree { tree in
            let path = tree.path("a")
            TestFile.write(path, "a")
            let filter = PathFilter(globs: [try Glob(tree.path("**").bytes)])
            let views = [("told", Beginning.told), ("silent", .silent)].map { name, beginning in
                View(name: name, filter: filter, mask: .differences, settle: Self.policy, beginning: beginning)
            }
            let ledger = TestLedger()
            var reconciler = Reconciler(views: views, ledger: ledger, isPatient: true) { _ in }
            let now = ContinuousClock.now
            let hint = Hint(path: path, signs: .listed, origin: .scan)
            reconciler.take(HintQueue.Batch(hints: [hint], reports: [.listing(tree.root, .scan)]), at: now)
            let first = reconciler.takeSettled(at: now)
            #expect(first.events.isEmpty)
            #expect(first.entries.map(\.view) == ["silent"])
            ledger.apply(first.entries)
            let second = reconciler.takeSettled(at: now + .seconds(1))
            #expect(second.events.map(\.view) == [0])
            #expect(second.events.map(\.event.kind) == [.created])
            #expect(second.entries.map(\.view) == ["told"])
        }
    }

    @Test(arguments: [EventMask.created, [.created, .xattr]])
    func `S25 all of a large tree is known after the first listing, but for what is written to`(
        _ mask: EventMask
    ) throws {
        try withTempTree { tree in
            // More than one look ahead takes, and not by whole pieces.
            let names = (0..<9_001).map { "f\($0)" }
            for name in names where !name.hasSuffix("7") { TestFile.write(tree.path(name), name) }
            let open = tree.path("f500").withCString { Glibc.open($0, O_WRONLY) }
            var desk = try Desk(tree.root, mask: mask, settle: SettlePolicy(quiet: .milliseconds(100)), isReady: false)
            desk.list(names)
            for name in names {
                let known = desk.ledger.snapshot(view: "v", path: tree.path(name))
                if name.hasSuffix("7") || name == "f500" {
                    #expect(known == nil, "\(name)")
                } else {
                    #expect(known?.size == UInt64(name.utf8.count), "\(name)")
                    #expect((known?.extended == nil) == !mask.contains(.xattr), "\(name)")
                }
            }
            close(open)
            #expect(desk.wordsInTheEnd() == ["created f500"])
        }
    }
}
