import FileEvents
import FileWatching
import Globbing
import Reconciling
import Settling
import TestKit
import Testing

/// What many views cost each other.
struct ManyViewsTests {
    /// A ledger that counts how often somebody goes over what is in a folder.
    private final class CountingLedger: Ledger {
        private var visits = 0

        func takeVisits() -> Int {
            defer { visits = 0 }
            return visits
        }

        func snapshot(view: String, path: PathBytes) -> Snapshot? { nil }
        func paths(view: String, identity: FileIdentity) -> [PathBytes] { [] }
        func hasPending(view: String, path: PathBytes) -> Bool { false }
        func visit(view: String, inside folder: PathBytes, _ body: (PathBytes, Snapshot) -> Void) { visits += 1 }
    }

    private static func views(_ count: Int, in root: PathBytes, mask: EventMask = .differences) throws -> [View] {
        try (0..<count).map { number in
            View(
                name: "v\(number)", filter: PathFilter(globs: [try Glob(root.appending("\(number)/*").bytes)]),
                mask: mask, beginning: .compared(since: nil))
        }
    }

    @Test func `a folder is compared with what the views know that look into it`() throws {
        try withTempTree { tree in
            let ledger = CountingLedger()
            let root = tree.root
            let now = ContinuousClock.now
            var reconciler = Reconciler(views: try Self.views(100, in: root), ledger: ledger, isPatient: true) { _ in }
            let roots = (0..<100).map { root.appending("\($0)") }
            reconciler.take(HintQueue.Batch(hints: [], reports: roots.map { .listing($0, .scan) }), at: now)
            #expect(ledger.takeVisits() == 0)
            reconciler.take(HintQueue.Batch(hints: [], reports: roots.map { .listed($0, .scan) }), at: now)
            #expect(ledger.takeVisits() == 100)
            for (path, count) in [(roots[17], 1), (roots[17].appending("a"), 1), (root, 100), ("/elsewhere", 0)] {
                let hint = Hint(path: path, signs: .subtree, origin: .live)
                reconciler.take(HintQueue.Batch(hints: [hint], reports: []), at: now)
                #expect(ledger.takeVisits() == count, "\(path)")
            }
        }
    }

    @Test func `listings are told to the views whose roots they are, each when it has ended`() throws {
        try withTempTree { tree in
            let root = tree.root
            let now = ContinuousClock.now
            let mask: EventMask = [.scanBegan, .scanEnded, .rootGone, .created]
            let policy = SettlePolicy(quiet: .milliseconds(100), writers: .ignore)
            let views = try Self.views(10, in: root, mask: mask).map { view in
                var view = view
                view.settle = policy
                return view
            }
            var reconciler = Reconciler(views: views, ledger: TestLedger(), isPatient: true) { _ in }
            let (three, seven) = (root.appending("3"), root.appending("7"))
            TestFile.write(three.appending("new"), "x")
            let found = Hint(path: three.appending("new"), signs: .listed, origin: .scan)
            let batches: [(hints: [Hint], reports: [WatchReport], pause: Duration, told: [String])] = [
                ([], [.listing(three, .scan), .listing(seven, .scan)], .zero, ["3 scan_begin", "7 scan_begin"]),
                ([], [.listing(three, .scan)], .zero, []), ([found], [.listed(three, .scan)], .zero, []),
                ([], [.listed(seven, .scan)], .zero, ["7 scan_end"]),
                ([], [], .seconds(5), ["3 created", "3 scan_end"]),
                ([], [.rootMissing(seven, watching: root)], .zero, ["7 root_gone"]),
                ([], [.listing(three, .rescan), .listed(three, .rescan)], .zero, ["3 scan_begin", "3 scan_end"]),
            ]
            for batch in batches {
                reconciler.take(HintQueue.Batch(hints: batch.hints, reports: batch.reports), at: now)
                let told = reconciler.takeSettled(at: now + batch.pause).events
                #expect(told.map { "\($0.view) \($0.event.kind.rawValue)" } == batch.told, "\(batch.reports)")
            }
        }
    }
}
