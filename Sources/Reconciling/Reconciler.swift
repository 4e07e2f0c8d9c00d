package import FileEvents
package import FileWatching
import Globbing
package import Settling

/// The middle stage: dirty paths in, settled events out.
///
/// Hints only say where to look. What is told is the difference between the
/// ledger and the disk, once a path has settled. Everything enters by the same
/// door: what the kernel told, what a listing found, what polling saw.
///
/// It belongs to one thread, and blocks as the file systems do that it looks at.
/// It holds no clock: the present is passed in.
///
/// The order of calls in one turn: ``take(_:at:)`` with what the watcher said, then
/// ``takeSettled(at:limit:)``, then its owner commits the entries to the ledger.
/// Until then the ledger is read together with them.
package struct Reconciler: ~Copyable {
    /// What settles: a path, once for all views that settle alike.
    struct Key: Hashable, Sendable {
        var path: PathBytes
        /// An index into `policies`.
        var policy: Int
    }

    /// What is known of a settling path.
    struct Note: Sendable {
        var signs: Hint.Signs
        var origin: EventOrigin
        /// Found by the first listing: it is no new name, unless it appeared since.
        var wasFound = false
        var hasArrived = false
        var hasWarned = false
        /// It could not be looked at when it was due: nobody knows which file it is.
        var isUnseen = false
        /// What few paths need is kept apart, since very many may wait.
        private var rare: Rare?

        private final class Rare: Sendable {
            let sample: FinishedProbe.Sample?
            let scan: Int?
            let linked: FileIdentity?

            init?(_ sample: FinishedProbe.Sample?, _ scan: Int?, _ linked: FileIdentity?) {
                if sample == nil, scan == nil, linked == nil { return nil }
                self.sample = sample
                self.scan = scan
                self.linked = linked
            }
        }

        init(signs: Hint.Signs, origin: EventOrigin) {
            self.signs = signs
            self.origin = origin
        }

        /// The last look, when it could not decide.
        var sample: FinishedProbe.Sample? {
            get { rare?.sample }
            set { rare = Rare(newValue, scan, linked) }
        }
        /// The listing that waits for this path to be looked at.
        var scan: Int? {
            get { rare?.scan }
            set { rare = Rare(sample, newValue, linked) }
        }
        /// The file with several names that the path was when it was dirty first.
        var linked: FileIdentity? {
            get { rare?.linked }
            set { rare = Rare(sample, scan, newValue) }
        }

        mutating func merge(_ later: Note) {
            signs.formUnion(later.signs)
            if later.origin == .live { origin = .live }
            if rare != nil || later.rare != nil { rare = Rare(nil, scan ?? later.scan, linked ?? later.linked) }
            wasFound = wasFound || later.wasFound
            hasArrived = hasArrived || later.hasArrived
            isUnseen = isUnseen || later.isUnseen
        }
    }

    /// A view that takes a path, by its index, and the root by which it does.
    struct Match {
        var view: Int
        var root: PathBytes
    }

    /// What an owner has to commit together.
    package struct Turn: Sendable {
        /// In the order in which they became certain; the view is an index.
        package var events: [(view: Int, event: FileEvent)] = []
        package var entries: [LedgerEntry] = []
        /// Paths that are there as a poll may not have seen them: if they go before the next, it finds no difference.
        package var doubted: [PathBytes] = []

        package var isEmpty: Bool { events.isEmpty && entries.isEmpty }
    }

    /// What it says besides events, to people.
    package enum Remark: Sendable, Hashable {
        /// A file has been open for writing for so long; it is still waited for.
        case stillWritten(PathBytes, for: Duration)
        /// A path can't be looked at; what is known of it stays.
        case unreadable(PathBytes, errno: Int32)
    }

    private(set) var views: [View]
    private(set) var filters: PathFilterIndex
    private(set) var policies: [SettlePolicy]
    /// The index of each view's policy.
    private(set) var policyOfView: [Int]
    let ledger: any Ledger
    let host: Host
    /// Whether a path that can't be looked at is tried again, or told of and left.
    let isPatient: Bool
    let remark: (Remark) -> Void

    var settler = Settler<Key, Note>()
    var turn = Turn()
    /// Which of the turn's entries is the newest for a view and path.
    var overlay: [String: [PathBytes: Int]] = [:]
    /// Other names of files that changed: the kernel tells of one name only.
    var otherNames: [(key: Key, note: Note)] = []
    /// Opens what the views watch.
    private(set) var files: WatchedPaths
    var scans = ScanTable()
    /// Folders that are looked at again and again, where a change is seen late and writers are not.
    var polled: Set<PathBytes> = []
    /// Places whose file system was unmounted, and is not there again.
    var away: Set<PathBytes> = []
    /// How much has been delivered of files that have left their names, and have not settled under new ones.
    var carried: [FileIdentity: UInt64] = [:]
    /// The roots that are there, or were when somebody looked last.
    var rootsSeen: Set<PathBytes> = []
    /// Whether the first listing still goes on.
    var isStarting = true
    /// Whether there were too few watches at any time, so that any folder may be looked at now and then only.
    var isShort = false
    /// What a process had open for writing or locked for ``heldPatience`` when it was looked at last.
    var heldKeys: [Key: ContinuousClock.Instant] = [:]
    /// Folders in which something could not be looked at, which has been said.
    var unreadable: Set<PathBytes> = []

    /// Files that had more names than were known when they were looked at last, no more of them than ``mostDoubts``.
    var doubts: Set<Key> = []
    /// Whether a name is gone that could not be looked at: nobody knows which file has a name less.
    var hasLostUnseen = false
    static let mostDoubts = 1_000

    /// How long a file rests that was complete when it came.
    static let moment = Duration.milliseconds(50)
    /// After so long a file that a process has open is among ``heldKeys``.
    static let heldPatience = Duration.seconds(60)
    /// After so long a file that is still being written to is worth a warning.
    static let patience = Duration.seconds(600)
    /// A file that changed so shortly before the start may still be in the making.
    static let recent = Duration.seconds(60)

    /// Makes a reconciler that nothing waits in.
    ///
    /// - Parameters:
    ///   - views: Who wants to be told what.
    ///   - ledger: What was accepted before.
    ///   - isPatient: Whether a path that can't be looked at is tried again until it can be.
    ///   - host: Where the files and the time of day are.
    ///   - remark: Called during the calls of this value.
    package init(
        views: [View], ledger: any Ledger, isPatient: Bool, on host: Host = .machine,
        remark: @escaping (Remark) -> Void
    ) {
        self.views = views
        filters = PathFilterIndex(views.map(\.filter))
        (policies, policyOfView) = Self.policies(of: views)
        files = WatchedPaths(roots: views.flatMap(\.roots), in: host.fileSystem)
        self.ledger = ledger
        self.host = host
        self.isPatient = isPatient
        self.remark = remark
    }

    private static func policies(of views: [View]) -> ([SettlePolicy], ofView: [Int]) {
        var policies: [SettlePolicy] = []
        let ofView = views.map { view in
            if let known = policies.firstIndex(of: view.settle) { return known }
            policies.append(view.settle)
            return policies.count - 1
        }
        return (policies, ofView)
    }

    /// Serves other views from now on, as if it began with them.
    ///
    /// What waits to settle goes on waiting, for every new view that takes the path.
    /// To be called between two turns, when the watcher has reported that it watches for
    /// the new views, and lists what is there for them.
    package mutating func change(to views: [View], at now: ContinuousClock.Instant) {
        precondition(turn.isEmpty, "what is told to the old views has not been taken")
        for (key, note) in otherNames { add(key, note, at: now) }
        let waiting = settler.keys.compactMap { key in
            settler.waiting(key).map { (path: key.path, policy: policies[key.policy], entry: $0) }
        }
        settler = Settler()
        otherNames = []
        overlay = [:]
        scans = ScanTable()
        heldKeys = [:]
        unreadable = []
        isStarting = true
        self.views = views
        filters = PathFilterIndex(views.map(\.filter))
        files = WatchedPaths(roots: views.flatMap(\.roots), in: host.fileSystem)
        (policies, policyOfView) = Self.policies(of: views)
        for (path, policy, entry) in waiting {
            var entry = entry
            entry.note.scan = nil
            for index in Set(matches(path).map { policyOfView[$0.view] }) {
                let other = policies[index]
                let isPolled = entry.note.signs.contains(.polled) || isPolled(path)
                // Views that settle alike don't wait anew, so that many changes in a row hold nothing up.
                let due = other == policy ? nil : now + other.quiet(isPolled: isPolled)
                settler.takeOver(Key(path: path, policy: index), entry, due: due) { $0.merge(entry.note) }
            }
        }
    }

    /// Notes mount points through which files are known that can't be seen now, since nothing is mounted there.
    package mutating func noteAway(_ points: [PathBytes]) { away.formUnion(points) }

    /// Whether nothing waits to settle or to be told.
    package var isEmpty: Bool { settler.count == 0 && turn.isEmpty }

    /// Whether the path waits until it has settled.
    package func isSettling(_ path: PathBytes) -> Bool { settler.keys.contains { $0.path == path } }

    /// How many paths wait until they have settled, counted once for each way to settle.
    package var settling: Int { settler.count }

    /// The paths that a process has had open for writing or locked for a minute, and since when they wait.
    package var held: [PathBytes: ContinuousClock.Instant] {
        var held: [PathBytes: ContinuousClock.Instant] = [:]
        for (key, since) in heldKeys where settler.contains(key) { held[key.path] = since }
        return held
    }

    /// When `takeSettled` has to be called next, at the latest; nil when nothing waits.
    package var nextDeadline: ContinuousClock.Instant? { settler.nextDeadline }

    /// The paths that have not settled, and those of the late hints that hold something which no view was told of.
    ///
    /// What the first listing found is no news, unless a view asks for it.
    package func unsettled(and late: [Hint]) -> [PathBytes] {
        let tellsExisting = views.contains(where: \.tellsExisting)
        let others = Set(late.filter { tellsExisting || $0.origin != .scan }.map(\.path))
        defer { files.forget() }
        let news = others.filter { path in
            guard case .present(let snapshot) = files.look(at: path) else { return false }
            return matches(path).contains { match in
                let view = views[match.view]
                guard view.types.contains(snapshot.type) else { return false }
                return ledger.snapshot(view: view.name, path: path).map { !$0.hasSameContent(as: snapshot) } ?? true
            }
        }
        return news.union(settler.keys.map(\.path)).sorted()
    }

    // MARK: In

    /// Takes what a watcher has said.
    ///
    /// A listing begins before what it found, and ends after it.
    package mutating func take(_ batch: HintQueue.Batch, at now: ContinuousClock.Instant) {
        defer { files.forget() }
        for report in batch.reports where !report.endsListing { take(report, at: now) }
        var first = 0
        while first < batch.hints.count {
            let window = batch.hints[first..<min(first + LookAhead.window, batch.hints.count)]
            add(window, at: now)
            first = window.endIndex
        }
        for report in batch.reports where report.endsListing { take(report, at: now) }
    }

    private mutating func add(_ hints: ArraySlice<Hint>, at now: ContinuousClock.Instant) {
        let ahead = lookAhead(at: hints)
        defer { ahead?.end() }
        var looks: [LookAhead.Look] = []
        var start = hints.startIndex
        for index in hints.indices {
            if let ahead, ahead.isStart(index) { (looks, start) = (ahead.looks(from: index), index) }
            add(hints[index], looks.isEmpty ? nil : looks[index - start], at: now)
        }
    }

    /// Begins to look at the paths of hints, when all are most likely new to every view, so that each is looked at.
    private func lookAhead(at hints: ArraySlice<Hint>) -> LookAhead? {
        guard isStarting, hints.allSatisfy({ $0.origin == .scan }), !views.contains(where: \.hasPast) else {
            return nil
        }
        let extras: DiskProbe.Extras = views.contains(where: \.readsExtended) ? .extended : []
        return LookAhead(hints, roots: Set(views.flatMap(\.roots)), on: host, reading: extras)
    }

    /// Takes a hint of a watched path.
    ///
    /// With it may come what was seen of the path already.
    private mutating func add(_ hint: Hint, _ look: LookAhead.Look?, at now: ContinuousClock.Instant) {
        var hint = hint
        if hint.signs.contains(.subtree) {
            let signs = hint.signs.intersection([.moved, .polled])
            compareKnown(inside: hint.path, signs: signs, scan: nil, origin: hint.origin, at: now)
        }
        tellRaw(hint)
        hint.signs.subtract(.bare)
        hint.signs.remove(.subtree)
        guard !hint.signs.isEmpty else { return }
        addTrees(holding: hint, at: now)
        let matches = matches(hint.path)
        guard !matches.isEmpty else { return }
        let isFound = isStarting && hint.signs.contains(.listed) && !hint.signs.contains(.appeared)
        if hint.origin == .scan || isFound {
            addFound(hint, look, matches, at: now)
        } else if hint.signs == .listed, isKnown(hint.path, matches) {
            return
        } else {
            var present: Snapshot?
            if !hint.signs.isDisjoint(with: .content),
                case .present(let snapshot) = files.look(at: hint.path)
            {
                let seen = matches.filter { !files.isBehindLink(hint.path, root: $0.root) }
                if !seen.isEmpty { present = snapshot }
                if hint.signs.contains(.appeared), acceptMove(to: hint.path, snapshot, seen, origin: hint.origin) {
                    hint.signs.insert(.written)
                }
            }
            addDirty(hint, present, matches, at: now)
        }
    }

    /// Makes the path settle for every view that takes it.
    private mutating func addDirty(
        _ hint: Hint, _ present: Snapshot?, _ matches: [Match], at now: ContinuousClock.Instant
    ) {
        var note = Note(signs: hint.signs, origin: hint.origin)
        if let present {
            if present.links > 1, present.type != .directory { note.linked = present.identity }
            note.hasArrived = tellArriving(hint, present, matches)
        }
        if hint.signs.contains(.listed) { note.scan = scans.innermost(holding: hint.path) }
        for policy in policies(of: matches) { add(Key(path: hint.path, policy: policy), note, at: now) }
    }

    /// How the views settle, each way once.
    func policies(of matches: [Match]) -> [Int] {
        let policies = matches.map { policyOfView[$0.view] }
        return policies.count == 1 ? policies : Array(Set(policies))
    }

    /// The one way into the settler: restarts the quiet time of a key, and merges what is known of it.
    mutating func add(_ key: Key, _ note: Note, at now: ContinuousClock.Instant) {
        let policy = policies[key.policy]
        // A complete file that was renamed into place has nothing to be waited for; its proof still comes, and a
        // moment for the action that may have renamed it to say so.
        let isComplete =
            note.signs.isSuperset(of: [.appeared, .moved]) && note.signs.isDisjoint(with: [.written, .listed])
            && !policy.isTree && !settler.contains(key)
        let asked = policy.quiet(isPolled: note.signs.contains(.polled) || isPolled(key.path))
        let quiet = isComplete ? min(asked, Self.moment) : asked
        let keepsScan = countForScan(key, note, quiet: quiet, at: now)
        settler.add(key, note: note, quiet: quiet, longest: policy.maximumWait, at: now) { kept in
            kept.merge(note)
            if !keepsScan { kept.scan = nil }
        }
    }

    /// Makes a listing wait for what it found, whether it was dirty before or not.
    ///
    /// - Returns: False when the listing is not to wait any longer: the path is touched again after its quiet time, so
    ///   it may never rest.
    private mutating func countForScan(
        _ key: Key, _ note: Note, quiet: Duration, at now: ContinuousClock.Instant
    ) -> Bool {
        guard !scans.isEmpty else { return true }
        let kept = settler.waiting(key)
        guard let scan = kept?.note.scan else {
            scans.begin(note.scan)
            return true
        }
        guard note.scan == nil, let since = kept?.since, since + quiet <= now else { return true }
        scans.end(scan)
        return false
    }

    func isPolled(_ path: PathBytes) -> Bool {
        !polled.isEmpty && path.andParents.contains { polled.contains($0) }
    }

    /// Whether a path that a listing found is what every view that takes it knows already.
    private func isKnown(_ path: PathBytes, _ matches: [Match]) -> Bool {
        guard case .present(let snapshot) = files.look(at: path) else { return false }
        return matches.allSatisfy { match in
            let view = views[match.view]
            if files.isBehindLink(path, root: match.root) { return false }
            if settler.contains(Key(path: path, policy: policyOfView[match.view])) { return false }
            guard let before = known(view, path) else { return !view.types.contains(snapshot.type) }
            return before.isUnchanged(snapshot)
        }
    }

    /// Takes back an event whose file changed before anything was done about it.
    package mutating func addReturned(_ event: FileEvent, view: Int, at now: ContinuousClock.Instant) {
        if let from = event.from {
            add(Key(path: from, policy: policyOfView[view]), Note(signs: .vanished, origin: .rescan), at: now)
        }
        let isNew = event.kind == .created || event.kind == .moved
        let note = Note(signs: isNew ? [.appeared, .written] : .written, origin: event.origin)
        add(Key(path: event.path, policy: policyOfView[view]), note, at: now)
    }

    /// Looks for more of a file that is followed, when what was told of it has been handled.
    package mutating func addTaken(_ path: PathBytes, view: Int, at now: ContinuousClock.Instant) {
        let key = Key(path: path, policy: policyOfView[view])
        guard views[view].tailBytes != nil, !settler.contains(key) else { return }
        settler.add(
            key, note: Note(signs: .written, origin: .live), quiet: .zero, longest: policies[key.policy].maximumWait,
            at: now
        ) { _ in }
    }

    // MARK: Views

    /// The views that take the path by name, in order.
    func matches(_ path: PathBytes) -> [Match] {
        var matches: [Match] = []
        for index in filters.candidates(for: path.bytes) {
            if let root = views[index].filter.root(taking: path.bytes) {
                matches.append(Match(view: index, root: PathBytes(root)))
            }
        }
        return matches
    }

    /// A sign of life below a folder that is one unit with all below it is one of the folder.
    private mutating func addTrees(holding hint: Hint, at now: ContinuousClock.Instant) {
        // What a listing finds below is compared with the folder.
        guard hint.signs != .listed else { return }
        for index in filters.treeCandidates(for: hint.path.bytes) {
            for folder in views[index].filter.trees(holding: hint.path.bytes) {
                let key = Key(path: PathBytes(folder), policy: policyOfView[index])
                add(key, Note(signs: .written, origin: hint.origin), at: now)
            }
        }
    }

    /// What is known of the path, with what this turn is about to commit.
    func known(_ view: View, _ path: PathBytes) -> Snapshot? {
        if let entry = overlay[view.name]?[path] { return turn.entries[entry].snapshot }
        return ledger.snapshot(view: view.name, path: path)
    }

    /// Whether anything is known of the path, with what this turn is about to commit.
    func knows(_ view: View, _ path: PathBytes) -> Bool {
        if let entry = overlay[view.name]?[path] { return turn.entries[entry].snapshot != nil }
        return ledger.knows(view: view.name, path: path)
    }

    mutating func set(_ view: View, _ path: PathBytes, _ snapshot: Snapshot?) {
        overlay[view.name, default: [:]][path] = turn.entries.count
        turn.entries.append(LedgerEntry(view: view.name, path: path, snapshot: snapshot))
    }

    mutating func tell(_ view: Int, _ event: FileEvent) {
        guard views[view].mask.takes(event.kind, changed: event.changed) else { return }
        var event = event
        if event.snapshot.type == .directory, event.kind != .deleted {
            event.children = (try? files.place(of: event.path)).flatMap { host.fileSystem.children(of: $0) }
        }
        turn.events.append((view, event))
    }

    func extended(of path: PathBytes) -> [ExtendedAttribute]? {
        guard case .present(let snapshot) = files.look(at: path, reading: .extended) else { return nil }
        return snapshot.extended
    }

    func event(
        _ kind: EventKind, _ root: PathBytes, _ path: PathBytes, _ snapshot: Snapshot, _ origin: EventOrigin
    ) -> FileEvent {
        FileEvent(kind: kind, path: path, root: root, snapshot: snapshot, origin: origin, time: host.clock.time())
    }
}

extension WatchReport {
    /// Whether the report comes after the hints of its batch.
    fileprivate var endsListing: Bool {
        switch self {
        case .listed, .ready, .rescanned: true
        default: false
        }
    }
}

extension Snapshot {
    /// Whether nothing at all has happened to the file since.
    ///
    /// The kernel sets the time of the last change whenever anything else changes,
    /// and nobody can set it back.
    func isUnchanged(_ later: Snapshot) -> Bool {
        identity == later.identity && changed == later.changed && size == later.size && modified == later.modified
            && type == later.type && mode == later.mode
    }
}
