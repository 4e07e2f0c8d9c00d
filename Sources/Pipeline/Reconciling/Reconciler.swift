package import FileEvents
import Globbing
import Settling
package import System
package import Watching

/// Compares the disk with the ledger, and offers the differences as events.
///
/// A hint makes a path dirty. A dirty path settles; if it has then settled and differs from its ledger row, or its
/// row is uncertain, it is due. A due path is leased when a slot is free. Only then is the event computed, as the
/// difference between the state that the action has received and the disk. An outcome sets the row to the offered
/// state.
///
/// Everything enters as a hint: kernel events, listings, polling, and the comparison after an outcome. The reconciler
/// belongs to one thread, blocks as the file systems do, and receives the current time as an argument. The directory
/// of the path that was inspected last stays open until the next hints, or until ``closeDirectories()``.
package struct Reconciler: ~Copyable {
    /// A path that settles, shared by all views with the same policy.
    struct Key: Hashable, Sendable {
        var path: PathBytes
        var policy: Int
    }

    /// The merged hints of a dirty path.
    struct Note: Sendable {
        var signs: Hint.Signs
        var origin: EventOrigin
        /// The last inspection, if it could not decide.
        var sample: Box<SettledProbe.Sample>?
        /// The number of the listing that waits for the path to be inspected.
        var scan: UInt32?
        /// Whether its arrival was reported since it started to settle.
        var hasArrived = false
        /// Whether a warning was issued that it has been open for writing for a long time.
        var hasWarned = false
        /// Whether the watcher hinted it again after polling, see ``Reconciler/doubted``.
        var isConfirmed = false
        /// The file at the path according to its last hint, if it has several names or a view reports moves.
        var file: FileIdentity?

        mutating func merge(_ later: Note) {
            signs.formUnion(later.signs)
            if later.origin == .live { origin = .live }
            isConfirmed = later.isConfirmed
            sample = nil
            file = later.file ?? file
            scan = scan ?? later.scan
            hasArrived = hasArrived || later.hasArrived
        }
    }

    /// The state of one view.
    struct ViewState {
        var view: View
        var policy: Int
        var due = DueTable()
        /// The due paths without a row, by their files.
        var dueFiles = FileIndex()
        /// The unfinished offers, by number and by each path that they name.
        var offers = OfferTable()
        var offerOfPath: [PathBytes: UInt64] = [:]
        /// The state that the last action left at a path, if it differs from the offered one.
        var left: [PathBytes: Snapshot] = [:]
        /// The paths that running actions have declared as their outputs, by number of the offer.
        var outputs: [PathBytes: UInt64] = [:]
        /// The processes that made paths due in an earlier run, until the paths have settled.
        var formerWriters: [PathBytes: Writer] = [:]
        /// The number of unfinished frozen events by path.
        var frozen: [PathBytes: Int] = [:]
        /// The paths of frozen events whose actions run.
        var runningFrozen: [PathBytes: FrozenPath] = [:]
        /// The read positions of followed files that have left their paths and are not yet in the ledger under
        /// another one.
        var carried: [FileIdentity: Snapshot] = [:]
    }

    /// The events at the path of a frozen event since its action started.
    struct FrozenPath {
        /// Whether an event has named it.
        var wasNamed = false
        /// Whether hints may have been lost.
        var missedHints = false
    }

    /// A condition that users should know about.
    package enum Warning: Sendable, Hashable {
        /// A path cannot be inspected; its ledger row stays.
        case unreadable(PathBytes, errno: Int32)
        /// A file has been open for writing for the given time; the reconciler continues to wait for it.
        case stillWritten(PathBytes, for: Duration)
    }

    /// A change of the reconciler's state that its owner reports.
    package enum Report: Sendable {
        /// A due path is gone before an action received it.
        case gone(view: Int, PathBytes, wasHandled: Bool)
        /// An unfinished offer was dropped in favor of a newer event of its paths.
        case superseded(view: Int, Offer)
        /// A path has changed while its action ran, and the view drops such changes.
        case busy(view: Int, PathBytes)
    }

    package internal(set) var ledger: Ledger
    var states: [ViewState]
    /// The views that may have due paths, unfinished offers or frozen events.
    ///
    /// ``markCommitted()`` removes the others.
    package internal(set) var active: Set<Int> = []
    var filters: PathFilterIndex
    var policies: [SettlePolicy]
    let host: Host
    var files: WatchedPaths
    let isPatient: Bool
    /// Whether a view admits an event, by its conditions.
    let admits: (Int, FileEvent) -> Bool
    /// Whether the interrupted step of an offer finds its own output, whatever is at the path by now.
    let hasWork: (Int, Offer) -> Bool
    /// Returns the process that caused an event, as far as a view requests it.
    let writer: (Int, FileEvent) -> Writer
    let warn: (Warning) -> Void

    /// A rule of the core that a test leaves out.
    package var omitted: CoreRule?

    var settler = Settler<Key, Note>()
    /// The dirty paths by their files, as of their last hint.
    var dirtyFiles = FileIndex()
    private var fileOfDirty: [PathBytes: FileIdentity] = [:]
    /// Missing paths that the watcher has to hint again after it has polled the directories around them.
    package var doubted: [PathBytes] = []
    /// Due paths to store, or to delete from the store.
    package var dueChanges: [RuleID: [PathBytes: DueChange]] = [:]
    var polled: Set<PathBytes> = []
    /// Mount points whose file system is not mounted.
    var away: Set<PathBytes> = []
    /// Paths that the kernel resolves to a file whose name differs in case.
    var otherSpellings: Set<PathBytes> = []
    var isStarting = true
    /// The roots that the current listing has yet to list.
    var unlisted: Set<PathBytes> = []
    /// The number of the last offer.
    package var number: UInt64 = 0
    package var reports: [Report] = []
    /// The events for which paths have become due, as of that time.
    package var accepted: [(view: Int, event: FileEvent)] = []
    /// The events that no later one replaces, in the order in which they happened.
    ///
    /// Their owner commits each as a row together with the ledger, and runs the rows of a view first in, first out.
    /// It calls ``endFrozen(_:_:_:at:)`` when the row of an event that the ledger contains is finished.
    package var frozen: [(view: Int, event: FileEvent, isUncertain: Bool)] = []
    /// The running offers of views with ``View/WhileBusy/restart`` whose file has changed and settled.
    ///
    /// Their owner stops them, and ends them with ``Termination/overtaken``.
    package var overtaken: [(view: Int, number: UInt64)] = []
    var unreadable: Set<PathBytes> = []
    var scans = ScanTable()
    /// The roots that exist, or existed when they were last reported.
    var rootsSeen: Set<PathBytes> = []
    /// The paths that a process had open for ``heldTimeout`` at their last inspection, and the time since which they
    /// settle.
    var heldKeys: [Key: ContinuousClock.Instant] = [:]

    /// The quiet time of a file that was complete when it was renamed into place.
    static let moment = Duration.milliseconds(50)
    /// The minimum quiet time of a missing path whose file may be at another path.
    ///
    /// The kernel queues the halves of a rename up to 21 ms apart.
    static let renameGap = Duration.milliseconds(100)
    /// The age up to which a file found by the first listing is checked for writers.
    static let recent = Duration.seconds(60)
    /// The time for which a file has to be open for writing to be in ``held``.
    static let heldTimeout = Duration.seconds(60)
    /// The time for which a file has to be open for writing to cause a warning.
    static let warningTimeout = Duration.seconds(600)

    package init(
        views: [View], ledger store: any LedgerStore, isPatient: Bool, on host: Host = .machine,
        admits: @escaping (Int, FileEvent) -> Bool = { _, _ in true },
        hasWork: @escaping (Int, Offer) -> Bool = { _, _ in false },
        writer: @escaping (Int, FileEvent) -> Writer = { _, _ in .notAsked },
        warn: @escaping (Warning) -> Void = { _ in }
    ) {
        let policies = Self.policies(of: views)
        states = views.map { ViewState(view: $0, policy: policies.firstIndex(of: $0.settle) ?? 0) }
        self.policies = policies
        filters = PathFilterIndex(views.map(\.filter))
        files = WatchedPaths(roots: views.flatMap(\.roots), in: host.fileSystem)
        ledger = Ledger(store)
        self.host = host
        self.isPatient = isPatient
        self.admits = admits
        self.hasWork = hasWork
        self.writer = writer
        self.warn = warn
    }

    static func policies(of views: [View]) -> [SettlePolicy] {
        var policies: [SettlePolicy] = []
        for view in views where !policies.contains(view.settle) { policies.append(view.settle) }
        return policies
    }

    /// Whether nothing is dirty.
    package var isSettled: Bool { settler.count == 0 }
    package func isSettling(_ path: PathBytes) -> Bool { settler.keys.contains { $0.path == path } }
    package func isDue(_ path: PathBytes) -> Bool {
        states.contains { $0.due[path] != nil || $0.offerOfPath[path] != nil }
    }
    package var nextDeadline: ContinuousClock.Instant? {
        ([settler.nextDeadline] + active.map { states[$0].due.nextTime }).compactMap(\.self).min()
    }
    package func offers(of view: Int) -> [Offer] { states[view].offers.all.values.sorted { $0.number < $1.number } }

    /// Returns the offers of which an interrupted attempt may have removed the input, in no particular order.
    package func interruptedOffers(of view: Int) -> [Offer] {
        states[view].offers.all.values.filter(\.mayHaveRemovedInput)
    }

    /// Returns the offers that have changed since the last commit, by number; nil for finished ones.
    package func changedOffers(of view: Int) -> [UInt64: Offer?] {
        let offers = states[view].offers
        return Dictionary(uniqueKeysWithValues: offers.changed.map { ($0, offers[$0]) })
    }

    package mutating func markCommitted() {
        ledger.markCommitted()
        for view in active { states[view].offers.markCommitted() }
        active = active.filter { !isIdle($0) }
    }

    func applies(_ rule: CoreRule) -> Bool { rule != omitted }

    // MARK: Views

    /// Returns the views that match a path by name.
    func matches(_ path: PathBytes) -> [Int] {
        filters.candidates(for: path.bytes).filter { states[$0].view.filter.root(taking: path.bytes) != nil }
    }

    func root(_ view: Int, _ path: PathBytes) -> PathBytes? {
        states[view].view.filter.root(taking: path.bytes).map { PathBytes($0) }
    }

    func isPolled(_ path: PathBytes) -> Bool {
        !polled.isEmpty && path.andParents.contains { polled.contains($0) }
    }

    func isPolled(_ view: Int, _ path: PathBytes) -> Bool { states[view].view.isPolled || isPolled(path) }

    /// Returns the state of a path for a view: absent behind a symbolic link, or if the file has another type.
    ///
    /// The path is not inspected if a snapshot is passed, unless the view compares extended attributes.
    func sight(_ view: Int, _ path: PathBytes, as seen: Snapshot? = nil) -> DiskProbe.StatResult {
        guard let root = root(view, path), !files.isBehindLink(path, root: root), !otherSpellings.contains(path) else {
            return .absent
        }
        let readsExtended = states[view].view.readsExtended
        let known = seen.flatMap { readsExtended ? nil : DiskProbe.StatResult.present($0) }
        let sight = known ?? files.look(at: path, reading: readsExtended ? .extended : [])
        guard case .present(let snapshot) = sight, !states[view].view.types.contains(snapshot.type) else {
            return sight
        }
        return .absent
    }

    func present(_ view: Int, _ path: PathBytes, as seen: Snapshot? = nil) -> Snapshot? {
        if case .present(let snapshot) = sight(view, path, as: seen) { snapshot } else { nil }
    }

    /// Returns the state of a path, with the fingerprint of its content if a directory is handled as one unit.
    func inspect(_ view: Int, _ path: PathBytes) -> Snapshot? {
        guard var snapshot = present(view, path) else { return nil }
        guard states[view].view.settle.isTree, snapshot.type == .directory, let place = try? files.place(of: path),
            case .resting(let tree) = host.fileSystem.tree(at: place, askingWriters: false)
        else { return snapshot }
        snapshot.digest = tree.fingerprint
        return snapshot
    }

    /// Returns the row of a path; it is uncertain while an offer names the path, which the ledger does not store.
    func row(_ view: Int, _ path: PathBytes) -> LedgerRow {
        let row = ledger.row(of: states[view].view.id, at: path)
        return states[view].offerOfPath[path] == nil ? row : LedgerRow(row.handled, .uncertain)
    }

    mutating func set(_ view: Int, _ path: PathBytes, _ row: LedgerRow) {
        if states[view].view.tailBytes != nil { carryOver(view, self.row(view, path).handled, row.handled) }
        ledger.set(row.isEmpty ? LedgerRow() : row, of: states[view].view.id, at: path)
    }

    /// Closes the directories that were opened for paths, which prevent their file systems from being unmounted.
    package func closeDirectories() { files.forget() }

    // MARK: Hints

    /// Receives the hints and reports of the watcher.
    ///
    /// The start of a listing is received before the paths that it found, and its end after them.
    package mutating func receive(_ batch: HintQueue.Batch, at now: ContinuousClock.Instant) {
        // A directory that was opened before may have been replaced.
        if !batch.hints.isEmpty || !batch.reports.isEmpty { closeDirectories() }
        for report in batch.reports where !report.endsListing { receive(report, at: now) }
        for hint in batch.hints { receive(hint, at: now) }
        for report in batch.reports where report.endsListing { receive(report, at: now) }
    }

    private mutating func receive(_ hint: Hint, at now: ContinuousClock.Instant) {
        var hint = hint
        if hint.signs.contains(.subtree) {
            markNamed(inside: hint.path)
            compareKnown(inside: hint.path, signs: hint.signs.intersection([.moved, .polled]), hint.origin, at: now)
        }
        freezeRaw(hint)
        if hint.signs.contains(.appeared), !otherSpellings.isEmpty { otherSpellings.remove(hint.path) }
        hint.signs.subtract(.bare)
        hint.signs.remove(.subtree)
        guard !hint.signs.isEmpty else { return }
        markTrees(holding: hint, at: now)
        let matches = matches(hint.path)
        guard !matches.isEmpty else { return }
        if !hint.signs.isDisjoint(with: [.appeared, .vanished]) { for view in matches { markNamed(view, hint.path) } }
        let isFound = isStarting && hint.signs.contains(.listed) && !hint.signs.contains(.appeared)
        if hint.origin == .scan || isFound {
            found(hint, matches, at: now)
        } else if hint.signs != .listed || !isKnown(hint.path, matches) {
            let hasArrived = freezeArriving(hint, matches)
            markDirty(hint.path, hint.signs, hint.origin, matches, at: now, hasArrived: hasArrived)
        }
    }

    /// Makes a path settle for each of the views.
    mutating func markDirty(
        _ path: PathBytes, _ signs: Hint.Signs, _ origin: EventOrigin, _ matches: [Int],
        at now: ContinuousClock.Instant, quiet: Duration? = nil, hasArrived: Bool = false
    ) {
        var note = Note(signs: signs, origin: origin)
        note.hasArrived = hasArrived
        if signs.contains(.listed) { note.scan = scans.innermost(holding: path) }
        if case .present(let snapshot) = files.look(at: path), snapshot.type != .directory {
            let wantsMove = matches.contains { states[$0].view.mask.contains(.moved) }
            if wantsMove || snapshot.links > 1 { note.file = snapshot.identity }
            if wantsMove { setDirtyFile(snapshot.identity, at: path) }
        }
        note.isConfirmed = signs == .polled
        for policy in Set(matches.map { states[$0].policy }) {
            add(Key(path: path, policy: policy), note, quiet, at: now)
        }
        for view in matches {
            if applies(.leaseLook) { states[view].due.unsettle(path) }
            // A move is leased before it has settled.
            if let file = note.file, signs.contains(.appeared) { offerMove(view, to: path, of: file, note, at: now) }
        }
    }

    mutating func setDirtyFile(_ file: FileIdentity?, at path: PathBytes) {
        guard fileOfDirty[path] != file else { return }
        if let old = fileOfDirty[path] { dirtyFiles.remove(path, old) }
        fileOfDirty[path] = file
        // A dictionary does not release its memory otherwise.
        if fileOfDirty.isEmpty { fileOfDirty = [:] }
        if let file { dirtyFiles.insert(path, file) }
    }

    func dirtyFile(_ path: PathBytes) -> FileIdentity? { fileOfDirty[path] }

    /// Adds a dirty path to the order if its file was handled at another path.
    mutating func offerMove(
        _ view: Int, to path: PathBytes, of file: FileIdentity, _ note: Note, at now: ContinuousClock.Instant
    ) {
        guard applies(.moveAtOnce), states[view].view.mask.contains(.moved), states[view].due[path] == nil,
            !ledger.paths(of: states[view].view.id, handling: file).isEmpty
        else { return }
        addDue(view, path, settled: nil, note)
    }

    private mutating func add(
        _ key: Key, _ note: Note, _ quiet: Duration?, at now: ContinuousClock.Instant
    ) {
        let policy = policies[key.policy]
        let isComplete =
            note.signs.isSuperset(of: [.appeared, .moved]) && note.signs.isDisjoint(with: [.written, .listed])
            && !policy.isTree && !settler.contains(key)
        let asked = quiet ?? policy.quiet(isPolled: note.signs.contains(.polled) || isPolled(key.path))
        let time = isComplete ? min(asked, Self.moment) : asked
        let keepsScan = countForScan(key, note, quiet: time, at: now)
        settler.add(key, note: note, quiet: time, longest: policy.maximumWait, at: now) { kept in
            kept.merge(note)
            if !keepsScan { kept.scan = nil }
        }
    }

    /// Records a create, move or delete event of a path for the offers and frozen events that it may concern.
    private mutating func markNamed(_ view: Int, _ path: PathBytes) {
        states[view].runningFrozen[path]?.wasNamed = true
        guard let number = states[view].offerOfPath[path], let offer = states[view].offers[number],
            keepsRecord(offer), !offer.wasNamed
        else { return }
        states[view].offers[number]?.wasNamed = true
    }

    private func keepsRecord(_ offer: Offer) -> Bool { offer.isRunning || offer.steps > 0 && applies(.keptSteps) }

    private mutating func markNamed(inside directory: PathBytes) {
        for view in active {
            for (number, offer) in states[view].offers.all where offer.paths.contains(where: { $0.isInside(directory) })
            {
                states[view].offers[number]?.wasNamed = true
            }
            for path in states[view].runningFrozen.keys where path.isInside(directory) {
                states[view].runningFrozen[path]?.wasNamed = true
            }
        }
    }

    /// Treats a hint below a directory that is handled as one unit as a hint of the directory.
    private mutating func markTrees(holding hint: Hint, at now: ContinuousClock.Instant) {
        guard hint.signs != .listed else { return }
        for view in filters.treeCandidates(for: hint.path.bytes) {
            for directory in states[view].view.filter.trees(holding: hint.path.bytes) {
                let path = PathBytes(directory)
                if !hint.signs.isDisjoint(with: [.appeared, .vanished]) { markNamed(view, path) }
                markDirty(path, .written, hint.origin, [view], at: now)
            }
        }
    }

    /// Whether a path that a listing found is unchanged since all views have handled it.
    private func isKnown(_ path: PathBytes, _ matches: [Int]) -> Bool {
        matches.allSatisfy { view in
            if settler.contains(Key(path: path, policy: states[view].policy)) || states[view].due[path] != nil {
                return false
            }
            let row = row(view, path)
            guard row.trust != .uncertain else { return states[view].offerOfPath[path] != nil }
            guard let now = present(view, path) else { return row.handled == nil }
            return isHandled(row, now)
        }
    }

    /// Whether the ledger contains the file in its current state, and all of its text was read.
    func isHandled(_ row: LedgerRow, _ now: Snapshot) -> Bool {
        row.handled.map { $0.isUnchanged(now) && !$0.hasMoreText(now) } ?? false
    }

    // MARK: Listings

    private mutating func receive(_ report: WatchReport, at now: ContinuousClock.Instant) {
        switch report {
        case .listing(let root, let origin):
            unlisted.insert(root)
            rootsSeen.insert(root)
            if scans.add(root, origin) { freezeScan(.scanBegan, root, origin) }
        case .listed(let root, let origin):
            compareKnown(inside: root, origin == .scan ? .scan : .rescan, at: now)
            scans.setListed(root)
            unlisted.remove(root)
            if unlisted.isEmpty { for view in active { states[view].due.wake(.listing) } }
        case .overflow, .overflowAgain:
            for view in active {
                for (number, offer) in states[view].offers.all where keepsRecord(offer) {
                    states[view].offers[number]?.missedHints = true
                }
                for path in states[view].runningFrozen.keys { states[view].runningFrozen[path]?.missedHints = true }
            }
            if case .overflow = report { freezeLifecycle(.overflow) }
        case .rootMissing(let root, _):
            // A root that never existed cannot be removed.
            if rootsSeen.remove(root) != nil { freezeLifecycle(.rootGone, at: root) }
        case .rootAppeared(let root): freezeLifecycle(.rootBack, at: root)
        case .unmounted(let directory, let point):
            away.insert(directory)
            polled = polled.filter { !$0.isInside(directory) }
            for root in Set(states.flatMap(\.view.roots)).sorted()
            where root.isInside(directory) || directory.isInside(root) {
                freezeLifecycle(.unmounted, at: root, path: point)
            }
        case .mounted(let directory): away.remove(directory)
        case .polling(let directory, _, _): polled.insert(directory)
        case .ready: isStarting = false
        default: break
        }
    }

    /// Receives a path that the first listing found.
    private mutating func found(_ hint: Hint, _ matches: [Int], at now: ContinuousClock.Instant) {
        // Evaluated before a view that reports existing files makes the path settle for all views with its policy.
        let dirty = matches.filter { settler.contains(Key(path: hint.path, policy: states[$0].policy)) }
        for view in matches {
            guard row(view, hint.path) == LedgerRow(), states[view].offerOfPath[hint.path] == nil,
                let snapshot = present(view, hint.path)
            else { continue }
            let isUnfinished = isRecent(snapshot) && files.writers(of: hint.path) == .somebody
            if isUnfinished || dirty.contains(view) || hint.origin == .live {
                markDirty(hint.path, hint.signs, .live, [view], at: now)
            } else if states[view].view.initialScan.reports(snapshot, at: hint.path) {
                if hasLongSettled(view, hint.path, snapshot) {
                    addDue(view, hint.path, settled: snapshot, Note(signs: hint.signs, origin: hint.origin))
                } else {
                    markDirty(hint.path, hint.signs, hint.origin, [view], at: now)
                }
            } else {
                markHandled(view, hint.path, as: snapshot, from: LedgerRow())
            }
        }
    }

    /// Whether a file has changed so recently that a process may be about to write more of it.
    private func isRecent(_ snapshot: Snapshot) -> Bool {
        snapshot.type == .file && snapshot.changed > host.clock.time().advanced(by: .zero - Self.recent)
    }

    /// Whether a file that the first listing found has certainly settled.
    private func hasLongSettled(_ view: Int, _ path: PathBytes, _ snapshot: Snapshot) -> Bool {
        let policy = states[view].view.settle
        guard !policy.isTree, policy.stable == nil, policy.locks == .ignore, !isPolled(view, path),
            ledger.paths(of: states[view].view.id, handling: snapshot.identity).isEmpty
        else { return false }
        let quiet = max(policy.quiet(isPolled: false), .seconds(1))
        guard snapshot.changed < host.clock.time().advanced(by: .zero - quiet) else { return false }
        return snapshot.type != .file || policy.writers != .wait || files.writers(of: path) == .nobody
    }

    /// Marks paths as dirty that are in the ledger and differ from the disk.
    private mutating func compareKnown(
        inside directory: PathBytes, signs: Hint.Signs = [], _ origin: EventOrigin, at now: ContinuousClock.Instant
    ) {
        for view in filters.candidates(inside: directory.bytes)
        where origin != .scan || states[view].view.initialScan.usesLedger {
            var changed: [PathBytes] = []
            var gone: [PathBytes] = []
            var touched: [PathBytes] = []
            // The ledger may have no row of these paths.
            for path in states[view].offerOfPath.keys where path.isInside(directory) {
                if present(view, path) == nil { gone.append(path) } else { changed.append(path) }
            }
            ledger.visit(states[view].view.id, inside: directory) { path, row in
                guard states[view].offerOfPath[path] == nil else { return }
                guard let now = present(view, path) else { return gone.append(path) }
                if states[view].view.settle.isTree || !isHandled(row, now) || row.trust == .uncertain {
                    changed.append(path)
                } else if isPolled(view, path), row.handled?.isUnchanged(now) == false {
                    touched.append(path)
                }
            }
            // The next poll could otherwise miss a file that was renamed to the path after the listing and is then
            // removed.
            doubted += touched
            for path in changed.sorted() + gone.sorted(by: >) {
                if origin == .scan, replace(view, path) { continue }
                markDirty(path, signs.union([.vanished, .listed]), origin, [view], at: now)
            }
        }
    }

    /// Records the state of a path at the start as handled, if the view's policy says so.
    private mutating func replace(_ view: Int, _ path: PathBytes) -> Bool {
        let now = present(view, path)
        let row = row(view, path)
        guard states[view].view.initialScan.replaces(now), row.trust != .uncertain,
            states[view].offerOfPath[path] == nil, !isDirty(view, path),
            now != nil || isInSight(view, path, row.handled)
        else { return false }
        markHandled(view, path)
        if isPolled(view, path), self.row(view, path).handled != nil { doubted.append(path) }
        return true
    }
}

extension WatchReport {
    fileprivate var endsListing: Bool {
        switch self {
        case .listed, .ready, .rescanned: true
        default: false
        }
    }
}

extension Snapshot {
    /// Whether the file is unchanged since: the kernel sets the change time, and it cannot be set back.
    func isUnchanged(_ later: Snapshot) -> Bool {
        identity == later.identity && changed == later.changed && size == later.size && modified == later.modified
            && type == later.type && mode == later.mode && links == later.links
    }

    /// Whether a followed file has text that was not read yet.
    func hasMoreText(_ later: Snapshot) -> Bool { delivered.map { $0 < later.size } ?? false }
}
