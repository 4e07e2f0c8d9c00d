import FileEvents
import FileWatching
import Glibc
import Reconciling
import Settling
import TestKit
import Testing

/// Files that are renamed several times, or seen late.
struct RenameTests {
    private static let policy = SettlePolicy(quiet: .milliseconds(100), writers: .ignore)

    /// How changes are seen.
    enum Seen: CaseIterable, Sendable {
        /// By events, all of which come after the last change.
        case live
        /// By the listing after the kernel's queue was full.
        case listed
        /// By polling.
        case polled
        /// At the next start.
        case started
        /// At the next start, on a polled root.
        case startedPolled
    }

    private static func rename(_ tree: borrowing TemporaryTree, _ from: String, _ to: String) {
        #expect(Glibc.rename(tree.path(from).description, tree.path(to).description) == 0)
    }

    /// A desk that knows the files, calls the body, and has seen what it did.
    private static func events(
        _ tree: borrowing TemporaryTree, _ seen: Seen, mask: EventMask, tail: Int? = nil, after body: () -> Void
    ) throws -> [FileEvent] {
        func names() -> [String] { TestFile.names(in: tree.root).map { String(decoding: $0, as: UTF8.self) }.sorted() }
        let ledger = TestLedger()
        let polling: [WatchReport] = [.polling(tree.root, .asked, every: .seconds(1))]
        let before = names()
        var first = try Desk(tree.root, mask: mask, settle: policy, tail: tail, ledger: ledger, isReady: false)
        first.list(before)
        body()
        let after = names()
        var desk = try Desk(
            tree.root, mask: mask, settle: policy, beginning: .compared(since: nil), tail: tail, ledger: ledger,
            isReady: [.live, .listed, .polled].contains(seen))
        let all = Set(before + after).sorted()
        switch seen {
        case .live:
            desk.take(
                all.map { name in
                    var signs: Hint.Signs = before.contains(name) ? [.vanished, .moved] : []
                    if after.contains(name) { signs.formUnion([.appeared, .moved]) }
                    return (name, signs)
                })
        case .listed:
            desk.take(reports: [.listing(tree.root, .rescan)])
            desk.take(after.map { ($0, .listed) }, origin: .rescan)
            desk.take(reports: [.listed(tree.root, .rescan)])
        case .polled:
            desk.take(reports: polling)
            desk.take(
                all.map { name in
                    let isKnown = before.contains(name)
                    let signs: Hint.Signs = isKnown ? [.vanished, .polled] : [.appeared, .listed, .polled]
                    return (name, after.contains(name) ? signs.union([.appeared, .polled, .listed]) : signs)
                }, origin: .poll)
        case .started: desk.list(after)
        case .startedPolled:
            desk.take(reports: polling)
            desk.list(after)
        }
        for _ in 0..<12 { desk.wait(.seconds(2)) }
        return desk.events()
    }

    private static func words(_ events: [FileEvent]) -> [String] {
        events.map { event in
            let name = String(decoding: event.path.lastComponent, as: UTF8.self)
            let from = event.from.map { " from \(String(decoding: $0.lastComponent, as: UTF8.self))" } ?? ""
            return "\(event.kind.rawValue) \(name)\(from)"
        }
    }

    @Test(arguments: Seen.allCases)
    func `S04 a file that is renamed twice before it settles is moved`(_ seen: Seen) throws {
        try withTempTree { tree in
            TestFile.write(tree.path("a"), "x")
            let events = try Self.events(tree, seen, mask: [.created, .modified, .deleted, .moved]) {
                Self.rename(tree, "a", "b")
                Self.rename(tree, "b", "c")
            }
            #expect(Self.words(events) == ["moved c from a"])
        }
    }

    @Test(arguments: Seen.allCases)
    func `S04 two names that have changed places are both modified`(_ seen: Seen) throws {
        try withTempTree { tree in
            TestFile.write(tree.path("a"), "1")
            TestFile.write(tree.path("b"), "22")
            let events = try Self.events(tree, seen, mask: [.created, .modified, .deleted, .moved]) {
                Self.rename(tree, "a", "c")
                Self.rename(tree, "b", "a")
                Self.rename(tree, "c", "b")
            }
            let words = Self.words(events).sorted()
            withKnownIssue("One name is reported as moved, the other one as new: created b, moved a from b.") {
                #expect(words == ["modified a", "modified b"])
            }
        }
    }

    @Test(arguments: [Seen.listed, .started, .startedPolled])
    func `S03 deletions that a listing finds come from the bottom up`(_ seen: Seen) throws {
        try withTempTree { tree in
            let names = ["d", "d/e", "d/e/f", "d/e/g", "d/h", "i"]
            for name in ["d/e/f", "d/e/g", "d/h", "i"] { TestFile.write(tree.path(name), "x") }
            let ledger = TestLedger()
            let types: Set<FileType> = [.file, .directory]
            var first = try Desk(tree.root, types: types, settle: Self.policy, ledger: ledger, isReady: false)
            first.list(names)
            TestFile.removeTree(tree.path("d"))
            var desk = try Desk(
                tree.root, types: types, settle: Self.policy, beginning: .compared(since: nil), ledger: ledger,
                isReady: seen == .listed)
            if seen == .startedPolled { desk.take(reports: [.polling(tree.root, .asked, every: .seconds(1))]) }
            if seen == .listed {
                desk.take(reports: [.listing(tree.root, .rescan), .listed(tree.root, .rescan)])
            } else {
                desk.list(["i"])
            }
            for _ in 0..<5 { desk.wait(.seconds(2)) }
            #expect(
                desk.words() == ["deleted d/h", "deleted d/e/g", "deleted d/e/f", "deleted d/e", "deleted d"])
        }
    }

    @Test(arguments: Seen.allCases)
    func `S38 a chain of rotated files gives each text once`(_ seen: Seen) throws {
        try withTempTree { tree in
            TestFile.write(tree.path("log.1"), "oldest\n")
            TestFile.write(tree.path("log"), "old\n")
            let events = try Self.events(tree, seen, mask: [.created, .modified], tail: 1_000) {
                TestFile.write(tree.path("log"), Array("last\n".utf8), appending: true)
                Self.rename(tree, "log.1", "log.2")
                Self.rename(tree, "log", "log.1")
                TestFile.write(tree.path("log"), "new\n")
            }
            let texts = events.compactMap { event in
                event.tail.flatMap { tail -> String? in
                    if tail.bytes.isEmpty { return nil }
                    let name = String(decoding: event.path.lastComponent, as: UTF8.self)
                    let text = String(decoding: tail.bytes.filter { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
                    return "\(name) \(tail.offset) \(text)\(tail.isReset ? " reset" : "")"
                }
            }
            #expect(texts.map { $0.replacing(" reset", with: "") }.sorted() == ["log 0 new", "log.1 4 last"])
            withKnownIssue("The new log does not begin anew if its former file was renamed before: log 0 new.") {
                #expect(texts.contains("log 0 new reset"))
            } when: {
                seen == .live || seen == .polled
            }
        }
    }

    @Test(
        arguments: [.polled, [.polled, .written]] as [Hint.Signs],
        [.moved, [.created, .deleted, .moved]] as [EventMask])
    func `S55 a polled path that is renamed before a listing sees it is moved`(signs: Hint.Signs, mask: EventMask)
        throws
    {
        try withTempTree { tree in
            var desk = try Desk(tree.root, mask: mask)
            TestFile.write(tree.path("a"), "x")
            desk.take([("a", [.appeared, .listed, .polled])], origin: .poll)
            for _ in 0..<5 { desk.wait(.seconds(2)) }
            #expect(desk.words() == (mask.contains(.created) ? ["created a"] : []))
            Self.rename(tree, "a", "b")
            desk.take([("a", signs)], origin: .poll)
            for _ in 0..<5 { desk.wait(.seconds(2)) }
            desk.take([("a", [.vanished, .polled]), ("b", [.appeared, .listed, .polled])], origin: .poll)
            for _ in 0..<5 { desk.wait(.seconds(2)) }
            let words = desk.words()
            withKnownIssue("The old name is checked before the listing that finds the new one: deleted a, created b.") {
                #expect(words == ["moved b"])
            }
        }
    }
}
