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
package final class Reconciler {
    package let shared: SharedState
    /// The views, in the order in which they were passed.
    package private(set) var views: [ViewReconciler]
    private(set) var filters: PathFilterIndex
    private let isPatient: Bool
    /// The roots that exist, or existed when they were last reported.
    var rootsSeen: Set<PathBytes> = []
    /// The directories of which the user knows that paths in them cannot be inspected.
    private var unreadable: Set<PathBytes> = []

    package init(
        views: [View], ledger store: any LedgerStore, isPatient: Bool, on host: Host = .machine,
        admits: @escaping (Int, FileEvent) -> Bool = { _, _ in true },
        mayRefuse: @escaping (Int) -> Bool = { _ in false },
        hasWork: @escaping (Int, Offer) -> Bool = { _, _ in false },
        writer: @escaping (Int, FileEvent) -> Writer = { _, _ in .notAsked },
        warn: @escaping (Warning) -> Void = { _ in }
    ) {
        let policies = Self.policies(of: views)
        let shared = SharedState(
            roots: views.flatMap(\.roots), policies: policies, store, host,
            Callbacks(admits: admits, mayRefuse: mayRefuse, hasWork: hasWork, writer: writer, warn: warn))
        self.shared = shared
        self.views = views.enumerated().map { index, view in
            ViewReconciler(view, index, policy: policies.firstIndex(of: view.settle) ?? 0, shared)
        }
        filters = PathFilterIndex(views.map(\.filter))
        self.isPatient = isPatient
    }

    static func policies(of views: [View]) -> [SettlePolicy] {
        var policies: [SettlePolicy] = []
        for view in views where !policies.contains(view.settle) { policies.append(view.settle) }
        return policies
    }

    /// Serves other views from now on, without restarting the watcher.
    ///
    /// Views with an existing id continue with their due paths and offers; those of removed views remain only in the
    /// store. Paths that are settling continue to settle for each view that matches. Call this after a commit, when
    /// the watcher has reported that it watches for the new views and lists their existing files.
    package func change(to views: [View], at now: ContinuousClock.Instant) {
        let policies = Self.policies(of: views)
        var former = Dictionary(uniqueKeysWithValues: self.views.map { ($0.view.id, $0) })
        var compared: [(view: Int, paths: [PathBytes])] = []
        self.views = views.enumerated().map { index, view in
            let policy = policies.firstIndex(of: view.settle) ?? 0
            guard let state = former.removeValue(forKey: view.id) else {
                return ViewReconciler(view, index, policy: policy, shared)
            }
            if state.view.mask != view.mask || state.view.types != view.types || state.view.freezes != view.freezes {
                compared.append((index, state.due.entries.paths))
            }
            (state.view, state.index, state.policy) = (view, index, policy)
            return state
        }
        shared.active = Set(self.views.indices)
        unreadable = []
        shared.isStarting = true
        filters = PathFilterIndex(views.map(\.filter))
        shared.files.setRoots(views.flatMap(\.roots))
        let files = shared.files
        shared.dirty.change(to: policies, at: now, isPolled: files.isPolled) { path in
            Set(matches(path).map { self.views[$0].policy })
        }
        for view in self.views.indices { self.views[view].dropUnmatched() }
        for (view, paths) in compared {
            for path in paths where self.views[view].root(of: path) != nil {
                self.views[view].markDirty(path, .listed, .live, at: now)
            }
        }
        shared.unlisted.formIntersection(views.flatMap(\.roots))
        wakeIfListed()
        for view in self.views { view.due.wakeAll() }
    }

    /// Whether nothing is dirty.
    package var isSettled: Bool { shared.dirty.count == 0 }
    package func isSettling(_ path: PathBytes) -> Bool { shared.dirty.contains(path) }
    package var nextDeadline: ContinuousClock.Instant? {
        ([shared.dirty.nextDeadline] + shared.active.map { views[$0].due.nextTime }).compactMap(\.self).min()
    }

    /// The number of paths that settle, counted once for each policy.
    package var settling: Int { shared.dirty.count }

    /// The paths that a process has had open for writing or locked for a minute, and the time since which they
    /// settle.
    package var held: [PathBytes: ContinuousClock.Instant] { shared.dirty.held }

    /// Returns the paths that have not settled, and those of late hints that differ from the ledger of a view.
    ///
    /// Paths found by the first listing count only if a view reports existing files, and those with an unfinished offer
    /// in each view do not.
    package func unsettled(and late: [Hint]) -> [PathBytes] {
        let reportsExisting = views.contains { $0.view.reportsExisting }
        let others = Set(late.filter { reportsExisting || $0.origin != .scan }.map(\.path)).filter { path in
            matches(path).contains { view in
                guard let now = views[view].present(path) else { return false }
                return views[view].row(path).handled.map { !$0.isUnchanged(now) } ?? true
            }
        }
        let settling = shared.dirty.paths.filter { path in
            let matching = matches(path)
            return matching.isEmpty || matching.contains { views[$0].offer(at: path) == nil }
        }
        return others.union(settling).sorted()
    }

    /// The files of the views; directories stay open until the end of the call that opened them.
    package var openedFiles: WatchedPaths { shared.files.paths }

    /// Closes the directories that were opened for paths, which prevent their file systems from being unmounted.
    package func closeDirectories() {
        openedFiles.forget()
        shared.files.forget()
    }

    /// Sets the mount points of files that are not visible now, since nothing is mounted there.
    package func setUnmounted(_ points: [PathBytes]) { shared.files.unmounted.formUnion(points) }

    package func markCommitted() {
        shared.ledger.markCommitted()
        (shared.dueChanges, shared.carriedChanges) = ([:], [:])
        for view in shared.active { views[view].offers.markCommitted() }
        for view in shared.active where views[view].isIdle {
            views[view].names.removeAll()
            shared.active.remove(view)
        }
    }

    /// Returns the due paths that wait for a condition to the order.
    package func wake(_ gate: Gate) {
        for view in shared.active { views[view].due.wake(.gate(gate)) }
    }

    func wakeIfListed() {
        guard shared.unlisted.isEmpty else { return }
        for view in shared.active { views[view].due.wake(.listing) }
    }

    // MARK: Hints

    /// Receives the hints and reports of the watcher.
    ///
    /// The start of a listing is received before the paths that it found, and its end after them.
    package func receive(_ batch: HintQueue.Batch, at now: ContinuousClock.Instant) {
        // A directory that was opened before may have been replaced.
        if !batch.hints.isEmpty || !batch.reports.isEmpty { openedFiles.forget() }
        if !batch.reports.isEmpty { shared.files.forget() }
        for report in batch.reports where !report.endsListing { receive(report, at: now) }
        for hint in batch.hints { receive(hint, at: now) }
        for report in batch.reports where report.endsListing { receive(report, at: now) }
    }

    private func receive(_ hint: Hint, at now: ContinuousClock.Instant) {
        var hint = hint
        shared.files.forget(hint.path)
        if hint.signs.contains(.subtree) {
            shared.files.forget()
            for view in shared.active {
                views[view].names.removeAll()
                // Another listing shows no change of a name by itself.
                if hint.origin != .rescan { views[view].markNamed(inside: hint.path) }
            }
            compareKnown(inside: hint.path, signs: hint.signs.intersection([.moved, .polled]), hint.origin, at: now)
        }
        if !hint.signs.isDisjoint(with: .bare) { for view in matches(hint.path) { views[view].freezeRaw(hint) } }
        if hint.signs.contains(.appeared), !shared.files.otherSpellings.isEmpty {
            shared.files.otherSpellings.remove(hint.path)
        }
        hint.signs.subtract(.bare)
        hint.signs.remove(.subtree)
        guard !hint.signs.isEmpty else { return }
        markTrees(holding: hint, at: now)
        let matches = matches(hint.path)
        guard !matches.isEmpty else { return }
        for view in matches { views[view].names.removeAll() }
        if !hint.signs.isDisjoint(with: [.appeared, .vanished]) {
            for view in matches { views[view].markNamed(hint.path) }
        }
        let isFound = shared.isStarting && hint.signs.contains(.listed) && !hint.signs.contains(.appeared)
        if hint.origin == .scan || isFound {
            found(hint, matches, at: now)
        } else if hint.signs != .listed || !matches.allSatisfy({ views[$0].isKnown(hint.path) }) {
            var hasArrived = false
            for view in matches where views[view].freezeArriving(hint) { hasArrived = true }
            markDirty(
                hint.path, hint.signs, hint.origin, matches, at: now, hasArrived: hasArrived,
                request: hint.signs == .polled ? hint.request : 0)
        }
    }

    /// Makes a path settle for each of the views.
    func markDirty(
        _ path: PathBytes, _ signs: Hint.Signs, _ origin: EventOrigin, _ matches: [Int],
        at now: ContinuousClock.Instant, hasArrived: Bool = false, request: UInt32 = 0
    ) {
        let hints = shared.markDirty(
            path, signs, origin, Set(matches.map { views[$0].policy }),
            wantsMove: matches.contains { views[$0].view.mask.contains(.moved) }, hasArrived: hasArrived,
            request: request, at: now)
        for view in matches { views[view].receive(hints, of: path) }
    }

    /// Treats a hint below a directory that is handled as one unit as a hint of the directory.
    private func markTrees(holding hint: Hint, at now: ContinuousClock.Instant) {
        guard hint.signs != .listed else { return }
        for view in filters.treeCandidates(for: hint.path.bytes) {
            for directory in views[view].view.filter.trees(holding: hint.path.bytes) {
                let path = PathBytes(directory)
                if !hint.signs.isDisjoint(with: [.appeared, .vanished]) { views[view].markNamed(path) }
                views[view].markDirty(path, hint.signs.intersection([.written, .polled]), hint.origin, at: now)
            }
        }
    }

    /// Returns the views that match a path by name.
    func matches(_ path: PathBytes) -> [Int] {
        filters.candidates(for: path.bytes).filter { views[$0].view.filter.root(matching: path.bytes) != nil }
    }

    // MARK: Settling

    /// The files of each view whose other names may differ from the disk, and the signs that concern these.
    private typealias OtherNames = [Int: [FileIdentity: Hint.Signs]]

    /// Inspects the paths whose quiet time is over; those that have settled and differ become due.
    ///
    /// - Parameters:
    ///   - now: The current time.
    ///   - limit: The maximum number of paths; the rest is inspected in the next turn.
    package func settle(at now: ContinuousClock.Instant, limit: Int = 500) {
        for view in shared.active { views[view].due.wake(until: now) }
        shared.files.forget()
        var others: OtherNames = [:]
        for (key, entry) in shared.dirty.takeDue(at: now, limit: limit) {
            var entry = entry
            let scan = entry.note.scan
            entry.note.scan = nil
            switch shared.dirty.inspect(key, entry, scan, in: shared.files, on: shared.host, at: now) {
            case .finished(let snapshot, let isForced):
                settled(key, snapshot, entry.note, &others)
                entry.note.seen = nil
                if isForced { shared.dirty.addAgain(key, entry.note, at: now) }
            case .gone:
                if now - entry.since < DirtyPaths.renameGap, awaitsHalf(key) {
                    shared.dirty.awaitOtherHalf(key, entry, scan)
                    continue
                }
                settled(key, nil, entry.note, &others)
            case .unreadable(let errno):
                if unreadable.insert(key.path.parent).inserted {
                    shared.callbacks.warn(.unreadable(key.path, errno: errno))
                }
                if isPatient {
                    shared.dirty.putBack(key, entry, until: now + .seconds(1 << min(entry.rounds, 3)))
                } else {
                    for view in views(of: key) { views[view].removeDue(key.path) }
                }
            case .wait(let pause, let sample, let isHeld):
                entry.note.sample = sample.map(Box.init)
                entry.note.seen = nil
                if let waited = shared.dirty.recordHeld(key, &entry, isHeld, at: now) {
                    shared.callbacks.warn(.stillWritten(key.path, for: waited))
                }
                shared.dirty.putBack(key, entry, until: now + pause)
            }
        }
        for (view, files) in others.sorted(by: { $0.key < $1.key }) {
            for signs in [Hint.Signs.written, []] {
                views[view].markOtherNames(nil, files.filter { $0.value == signs }.map(\.key), signs)
            }
        }
        // The end of a listing follows the events of the paths that it found.
        if !mayFreeze { freezeEndedScans() }
    }

    private func settled(
        _ key: DirtyPaths.Key, _ snapshot: Snapshot?, _ hints: DirtyPaths.Hints,
        _ others: inout OtherNames
    ) {
        shared.dirty.setFile(nil, at: key.path)
        // A directory without a watch, because the limit is reached, is polled or listed again.
        if let snapshot, hints.signs.isDisjoint(with: [.listed, .polled]) {
            shared.files.record(snapshot, at: key.path)
        }
        for view in views(of: key) {
            let identities = views[view].settle(key.path, snapshot, hints)
            for identity in identities {
                others[view, default: [:]][identity, default: []].formUnion(hints.signs.intersection(.written))
            }
        }
    }

    /// Whether a view that reports moves matches the path: the other half of a rename may still arrive.
    private func awaitsHalf(_ key: DirtyPaths.Key) -> Bool {
        views(of: key).contains { views[$0].view.mask.contains(.moved) }
    }

    /// Returns the views with the policy that match the path.
    private func views(of key: DirtyPaths.Key) -> [Int] { matches(key.path).filter { views[$0].policy == key.policy } }

    // MARK: Frozen events

    /// Freezes the due events of views that follow the growth of files.
    ///
    /// All hints must be received before. The ledger rows are set to the state that the events show.
    package func freezeDue() {
        for view in shared.active.sorted() where views[view].view.freezes { views[view].freezeDue() }
        freezeEndedScans()
    }

    /// Whether ``freezeDue()`` may have work.
    package var mayFreeze: Bool { shared.active.contains { views[$0].view.freezes && !views[$0].due.isEmpty } }
}
