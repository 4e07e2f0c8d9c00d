import FileEvents
import Globbing
import System
import Watching

extension Reconciler {
    func receive(_ report: WatchReport, at now: ContinuousClock.Instant) {
        switch report {
        case .listing(let root, let origin):
            shared.unlisted.insert(root)
            rootsSeen.insert(root)
            if shared.dirty.scans.add(root, origin) { freezeScan(.scanStarted, root, origin) }
        case .listed(let root, let origin):
            compareKnown(inside: root, origin == .scan ? .scan : .rescan, at: now)
            shared.dirty.scans.setListed(root)
            shared.unlisted.remove(root)
            wakeIfListed()
        case .rescanned:
            // A name may have been removed after the other roots, but before its own root, was listed.
            for view in views.indices where views[view].view.roots.count > 1 { views[view].compareLinked() }
        case .overflow, .overflowAgain:
            for view in shared.active { views[view].markMissedHints() }
            if case .overflow = report { freezeLifecycle(.overflow) }
        case .rootMissing(let root, _):
            // A root that never existed cannot be removed.
            if rootsSeen.remove(root) != nil { freezeLifecycle(.rootGone, at: root) }
        case .rootAppeared(let root): freezeLifecycle(.rootBack, at: root)
        case .unmounted(let directory, let point):
            shared.files.unmount(directory)
            for root in Set(views.flatMap(\.view.roots)).sorted()
            where root.isInside(directory) || directory.isInside(root) {
                freezeLifecycle(.unmounted, at: root, path: point)
            }
        case .companions: shared.dirty.mayHaveCompanion = true
        case .mounted(let directory): shared.files.unmounted.remove(directory)
        case .polling(let directory, _, _): shared.files.polled.insert(directory)
        case .ready: shared.isStarting = false
        default: break
        }
    }

    /// Receives a path that the first listing found.
    func found(_ hint: Hint, _ matches: [Int], at now: ContinuousClock.Instant) {
        // Evaluated before a view that reports existing files makes the path settle for all views with its policy.
        let dirty = matches.filter { views[$0].isDirty(hint.path) }
        for view in matches {
            guard views[view].row(hint.path) == LedgerRow(), views[view].offer(at: hint.path) == nil,
                let snapshot = views[view].present(hint.path, found: hint.found)
            else { continue }
            let isUnfinished =
                snapshot.isRecent(asOf: shared.host.clock.time())
                && hint.found?.writers ?? shared.files.paths.writers(of: hint.path) == .held
            if isUnfinished || dirty.contains(view) || hint.origin == .live {
                views[view].markDirty(hint.path, hint.signs, .live, at: now)
            } else if views[view].view.initialScan.reports(snapshot, at: hint.path) {
                if hasLongSettled(view, hint.path, snapshot) {
                    let hints = DirtyPaths.Hints(signs: hint.signs, origin: hint.origin)
                    views[view].addDue(hint.path, settled: snapshot, hints)
                } else {
                    views[view].markDirty(hint.path, hint.signs, hint.origin, at: now)
                }
            } else {
                views[view].markHandled(hint.path, as: snapshot, from: LedgerRow())
            }
        }
    }

    /// Whether a file that the first listing found has certainly settled.
    private func hasLongSettled(_ view: Int, _ path: PathBytes, _ snapshot: Snapshot) -> Bool {
        let policy = views[view].view.settle
        guard !policy.isTree, policy.stable == nil, policy.locks == .ignore, !views[view].isPolled(path),
            !shared.ledger.handles(snapshot.identity, views[view].view.id)
        else { return false }
        let quiet = max(policy.quiet(isPolled: false), .seconds(1))
        guard snapshot.changed < shared.host.clock.time().advanced(by: .zero - quiet) else { return false }
        return snapshot.type != .file || policy.writers != .wait || shared.files.paths.writers(of: path) == .free
    }

    /// Marks paths as dirty that are in the ledger and differ from the disk.
    func compareKnown(
        inside directory: PathBytes, signs: Hint.Signs = [], _ origin: EventOrigin, at now: ContinuousClock.Instant
    ) {
        for view in filters.candidates(inside: directory.bytes)
        where origin != .scan || views[view].view.initialScan.usesLedger {
            var changed: [PathBytes] = []
            var gone: [PathBytes] = []
            var touched: [PathBytes] = []
            // The ledger may have no row of these paths.
            for path in views[view].offers.paths where path.isInside(directory) {
                if views[view].present(path) == nil { gone.append(path) } else { changed.append(path) }
            }
            shared.ledger.visit(views[view].view.id, inside: directory) { path, row in
                guard views[view].offer(at: path) == nil else { return }
                guard let now = views[view].present(path) else { return gone.append(path) }
                if views[view].view.settle.isTree || !views[view].isHandled(row, now) || row.trust == .uncertain {
                    changed.append(path)
                } else if views[view].isPolled(path), row.handled?.isUnchanged(now) == false {
                    touched.append(path)
                }
            }
            // The next poll could otherwise miss a file that was renamed to the path after the listing and is then
            // removed.
            shared.doubted += touched
            for path in changed.sorted() + gone.sorted(by: >) {
                if origin == .scan, replace(view, path) { continue }
                views[view].markDirty(path, signs.union([.vanished, .listed]), origin, at: now)
            }
        }
    }

    /// Records the state of a path at the start as handled, if the view's policy says so.
    private func replace(_ view: Int, _ path: PathBytes) -> Bool {
        let now = views[view].present(path)
        let row = views[view].row(path)
        guard views[view].view.initialScan.replaces(now), row.trust != .uncertain,
            views[view].offer(at: path) == nil, !views[view].isDirty(path),
            now != nil || views[view].isRemoved(path, row.handled)
        else { return false }
        views[view].markHandled(path)
        if views[view].isPolled(path), views[view].row(path).handled != nil { shared.doubted.append(path) }
        return true
    }

    // MARK: Events of the watcher

    private func freezeScan(_ kind: EventKind, _ root: PathBytes, _ origin: EventOrigin) {
        for view in filters.filters(at: root.bytes) {
            // The first listing is silent unless the view reports existing files.
            if origin == .scan, !views[view].view.reportsExisting { continue }
            freezeLifecycle(kind, view, root, in: root, origin)
        }
    }

    /// Freezes the ends of listings whose paths were all inspected.
    func freezeEndedScans() {
        for scan in shared.dirty.scans.takeEnded() { freezeScan(.scanEnded, scan.root, scan.origin) }
    }

    /// Freezes an event for the views of a root, or of all roots; the path is the root if none is given.
    private func freezeLifecycle(_ kind: EventKind, at root: PathBytes? = nil, path: PathBytes? = nil) {
        for view in root.map({ filters.filters(at: $0.bytes) }) ?? Array(views.indices) {
            for own in views[view].view.roots where root == nil || own == root {
                freezeLifecycle(kind, view, path ?? own, in: own, .live)
            }
        }
    }

    private func freezeLifecycle(
        _ kind: EventKind, _ view: Int, _ path: PathBytes, in root: PathBytes, _ origin: EventOrigin
    ) {
        let snapshot = shared.host.fileSystem.stat(path).snapshot ?? .unseen
        views[view].freezeReport(kind, path, root: root, snapshot, origin)
    }
}

extension WatchReport {
    var endsListing: Bool {
        switch self {
        case .listed, .ready, .rescanned: true
        default: false
        }
    }
}
