import FileEvents
import FileWatching
import Glibc
import Globbing
import Reconciling
import Settling
import TestKit

/// A ledger for one test, in memory.
final class TestLedger: Ledger {
    private var trees: [String: LedgerTree] = [:]
    var pending: Set<PathBytes> = []

    func snapshot(view: String, path: PathBytes) -> Snapshot? { trees[view]?[path] }

    func paths(view: String, identity: FileIdentity) -> [PathBytes] { trees[view]?.paths(of: identity) ?? [] }

    func visit(view: String, inside folder: PathBytes, _ body: (PathBytes, Snapshot) -> Void) {
        trees[view]?.visit(inside: folder, body)
    }

    func hasPending(view: String, path: PathBytes) -> Bool { pending.contains(path) }

    func apply(_ entries: [LedgerEntry]) {
        for entry in entries { trees[entry.view, default: LedgerTree()].set(entry.path, entry.snapshot) }
    }
}

/// A reconciler over a real folder, with hints by hand and time that only the test moves.
struct Desk: ~Copyable {
    let root: PathBytes
    let ledger: TestLedger
    private var reconciler: Reconciler
    private var now = ContinuousClock.now
    private(set) var told: [FileEvent] = []
    private(set) var doubted: [PathBytes] = []

    init(
        _ root: PathBytes, _ pattern: String = "**", mask: EventMask = .differences, types: Set<FileType> = [.file],
        settle: SettlePolicy = SettlePolicy(quiet: .milliseconds(100)), beginning: Beginning = .silent,
        tail: Int? = nil, ledger: TestLedger = TestLedger(), isReady: Bool = true
    ) throws {
        self.root = root
        self.ledger = ledger
        let filter = PathFilter(globs: [try Glob(root.appending(pattern).bytes)], isTree: settle.isTree)
        let view = View(
            name: "v", filter: filter, types: types, mask: mask, settle: settle, beginning: beginning,
            tailBytes: tail)
        reconciler = Reconciler(views: [view], ledger: ledger, isPatient: true) { _ in }
        if isReady { take(reports: [.listing(root, .scan), .listed(root, .scan), .ready(folders: 1)]) }
    }

    var isEmpty: Bool { reconciler.isEmpty }

    /// The paths that have been held open, and for how long they have waited.
    var held: [PathBytes: Duration] { reconciler.held.mapValues { now - $0 } }

    /// The names that are given up when it stops now, with hints that came too late.
    func unsettled(and names: [String], origin: EventOrigin) -> [PathBytes] {
        reconciler.unsettled(and: names.map { Hint(path: root.appending($0), signs: .listed, origin: origin) })
    }

    /// Hands over what a watcher would say, in one batch, and commits what follows at once.
    mutating func take(
        _ hints: [(name: String, signs: Hint.Signs)] = [], origin: EventOrigin = .live, reports: [WatchReport] = []
    ) {
        let batch = hints.map { Hint(path: root.appending($0.name), signs: $0.signs, origin: origin) }
        reconciler.take(HintQueue.Batch(hints: batch, reports: reports), at: now)
        commit()
    }

    /// Hands over the first listing of a tree that holds these names.
    mutating func list(_ names: [String]) {
        take(reports: [.listing(root, .scan)])
        take(names.map { ($0, .listed) }, origin: .scan)
        take(reports: [.listed(root, .scan), .ready(folders: 1)])
    }

    /// Notes mount points where nothing is mounted now.
    mutating func noteAway(_ points: [PathBytes]) { reconciler.noteAway(points) }

    /// Lets time go by, and looks at what is due then.
    mutating func wait(_ duration: Duration = .milliseconds(150)) {
        now += duration
        commit()
    }

    /// Says that what was told of the path has been handled.
    mutating func finish(_ name: String) {
        ledger.pending.remove(root.appending(name))
        reconciler.addTaken(root.appending(name), view: 0, at: now)
        commit()
    }

    private mutating func commit() {
        let turn = reconciler.takeSettled(at: now)
        ledger.apply(turn.entries)
        told += turn.events.map(\.event)
        doubted += turn.doubted
    }

    /// Removes and returns what was told, as `kind name`.
    mutating func words() -> [String] {
        let words = told.map { event in
            let relative = event.path.relative(to: root).map { String(decoding: $0, as: UTF8.self) } ?? "?"
            return "\(event.kind.rawValue) \(relative.isEmpty ? "." : relative)"
        }
        told = []
        return words
    }

    /// Lets time go by until something is told.
    ///
    /// A program that another test starts at this moment has a copy of every
    /// descriptor until it has become itself, and so may be a writer for once.
    mutating func wordsInTheEnd() -> [String] {
        for _ in 0..<2_000 {
            wait(.seconds(20))
            if !told.isEmpty { return words() }
            usleep(5_000)
        }
        return []
    }

    mutating func events() -> [FileEvent] {
        defer { told = [] }
        return told
    }
}
