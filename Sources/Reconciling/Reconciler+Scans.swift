import FileEvents
import FileWatching
import Globbing
import Settling

// Listings, and what the watcher reports of the watching itself.
extension Reconciler {
    /// Takes what the watcher tells besides hints.
    ///
    /// Views that ask for it are told; what it means for what is known is done.
    mutating func take(_ report: WatchReport, at now: ContinuousClock.Instant) {
        switch report {
        case .listing(let root, let origin):
            rootsSeen.insert(root)
            if scans.add(root, origin) { tellScan(.scanBegan, root, origin) }
        case .listed(let root, let origin):
            let scan = scans.of(root)
            compareKnown(inside: root, scan: scan, origin: origin == .scan ? .scan : .rescan, at: now)
            if let scan { scans.setListed(scan) }
        case .overflow: tellLifecycle(.overflow, at: nil, origin: .live)
        case .rootMissing(let root, _):
            // A root that was never there is not gone.
            if rootsSeen.remove(root) != nil { tellLifecycle(.rootGone, at: root, origin: .live) }
        case .rootAppeared(let root):
            tellLifecycle(.rootBack, at: root, origin: .live)
        case .unmounted(let folder, let point):
            away.insert(folder)
            // What is there instead may be told by the kernel.
            polled = polled.filter { !$0.isInside(folder) }
            for root in roots where root.isInside(folder) || folder.isInside(root) {
                tellLifecycle(.unmounted, at: root, path: point, origin: .live)
            }
        case .mounted(let folder): away.remove(folder)
        case .polling(let folder, _, _): polled.insert(folder)
        case .ready: isStarting = false
        case .limited: isShort = true
        case .progress, .rescanned, .failure, .changed, .authorsUntold: break
        }
    }

    /// The roots of all views, each once.
    private var roots: Set<PathBytes> { Set(views.flatMap(\.roots)) }

    // MARK: Lifecycle

    private mutating func tellScan(_ kind: EventKind, _ root: PathBytes, _ origin: EventOrigin) {
        for index in filters.filters(at: root.bytes) {
            // The first listing is silent unless the view wants to know what is there.
            if origin == .scan, !views[index].tellsExisting { continue }
            tell(index, lifecycleEvent(kind, root, in: root, origin))
        }
    }

    /// Reports to the views of a root, or to all views, each by its own root; the path is the root where none is given.
    private mutating func tellLifecycle(
        _ kind: EventKind, at root: PathBytes?, path: PathBytes? = nil, origin: EventOrigin
    ) {
        for index in root.map({ filters.filters(at: $0.bytes) }) ?? Array(views.indices) {
            for own in views[index].roots where root == nil || own == root {
                tell(index, lifecycleEvent(kind, path ?? own, in: own, origin))
            }
        }
    }

    private func lifecycleEvent(
        _ kind: EventKind, _ path: PathBytes, in root: PathBytes, _ origin: EventOrigin
    ) -> FileEvent {
        guard case .present(let snapshot) = host.fileSystem.stat(path) else {
            return event(kind, root, path, .unseen, origin)
        }
        return event(kind, root, path, snapshot, origin)
    }

    /// Tells of listings all of whose findings have been looked at.
    mutating func tellEndedScans() {
        for scan in scans.takeEnded() { tellScan(.scanEnded, scan.root, scan.origin) }
    }

    // MARK: What is told at once

    /// Passes on that the path was opened, read or closed, to views that ask for it.
    mutating func tellRaw(_ hint: Hint) {
        guard !hint.signs.isDisjoint(with: .bare) else { return }
        let kinds: [(sign: Hint.Signs, kind: EventKind)] = [
            (.opened, .opened), (.accessed, .accessed), (.closedUnwritten, .closed),
        ]
        let wanted = matches(hint.path).filter { !views[$0.view].mask.isDisjoint(with: .raw) }
        guard !wanted.isEmpty, case .present(let snapshot) = files.look(at: hint.path) else { return }
        for match in wanted where views[match.view].types.contains(snapshot.type) {
            for (sign, kind) in kinds where hint.signs.contains(sign) {
                tell(match.view, event(kind, match.root, hint.path, snapshot, hint.origin))
            }
        }
    }

    /// Tells that a path is there which is not known yet, once while it settles.
    ///
    /// - Returns: Whether anyone was told.
    mutating func tellArriving(_ hint: Hint, _ snapshot: Snapshot, _ matches: [Match]) -> Bool {
        let wanted = matches.filter { match in
            let view = views[match.view]
            guard view.mask.contains(.arriving), view.types.contains(snapshot.type) else { return false }
            let key = Key(path: hint.path, policy: policyOfView[match.view])
            return known(view, hint.path) == nil && settler.note(key)?.hasArrived != true
        }
        for match in wanted { tell(match.view, event(.arriving, match.root, hint.path, snapshot, hint.origin)) }
        return !wanted.isEmpty
    }

    // MARK: Listings

    /// Takes a path that the first listing found.
    ///
    /// A file that something has happened to since the watching began settles as
    /// always, and so does one that is being written to at this moment: it is not
    /// finished, so its completion is news.
    mutating func addFound(
        _ hint: Hint, _ look: LookAhead.Look?, _ matches: [Match], at now: ContinuousClock.Instant
    ) {
        // What is known is looked at when the listing is compared with it: once is enough.
        let unknown = matches.filter { !knows(views[$0.view], hint.path) }
        guard !unknown.isEmpty else { return }
        let readsExtended = unknown.contains { views[$0.view].readsExtended }
        let look = look ?? LookAhead.Look(at: hint.path, files, on: host, reading: readsExtended ? .extended : [])
        guard case .present(let snapshot) = look.sight else { return }
        let writers = look.writers
        let isUnfinished = writers == .somebody
        // Before any view makes it settle because it wants to be told of it, which is no news to the others.
        let dirty =
            settler.count == 0
            ? [] : policies(of: matches).filter { settler.contains(Key(path: hint.path, policy: $0)) }
        for match in unknown {
            let view = views[match.view]
            let key = Key(path: hint.path, policy: policyOfView[match.view])
            guard view.types.contains(snapshot.type) else { continue }
            var note = Note(signs: hint.signs, origin: hint.origin)
            // What is not finished yet was never there as a complete file.
            note.wasFound = !isUnfinished
            if isUnfinished || hint.origin == .live || dirty.contains(key.policy) {
                note.origin = .live
                add(key, note, at: now)
            } else if !view.tellsFound(snapshot) {
                set(view, hint.path, baseline(of: hint.path, snapshot, for: view))
            } else if hasRested(hint.path, snapshot, view.settle, writers),
                ledger.paths(view: view.name, identity: identity(of: snapshot, at: hint.path)).isEmpty
            {
                let known = baseline(of: hint.path, snapshot, for: view)
                set(view, hint.path, known)
                tell(match.view, event(.created, match.root, hint.path, known, .scan))
            } else {
                // A known file that was renamed was complete before; in a polled root it settles later than its old name.
                if let move = move(view, to: hint.path, snapshot), sight(of: move.from, view) == .absent {
                    _ = acceptMove(to: hint.path, snapshot, [match], origin: hint.origin)
                }
                note.scan = scans.innermost(holding: hint.path)
                add(key, note, at: now)
            }
        }
    }

    /// Takes for known what became of a path while nobody looked, if the view wants that.
    ///
    /// - Returns: False when it is to be told.
    private mutating func renew(_ path: PathBytes, _ view: View) -> Bool {
        guard case .renewed = view.beginning, let root = view.filter.root(taking: path.bytes) else { return false }
        guard let before = known(view, path) else { return true }
        switch sight(of: path, view) {
        case .present(let snapshot) where view.types.contains(snapshot.type):
            guard view.renews(snapshot) else { return false }
            set(view, path, baseline(of: path, snapshot, for: view))
        case .present: set(view, path, nil)
        case .absent:
            if isInSight(path, before, root: PathBytes(root)) { set(view, path, nil) }
        case .unreadable: break
        }
        return true
    }

    /// What has to be known of a path that is there at the start.
    private func baseline(of path: PathBytes, _ snapshot: Snapshot, for view: View) -> Snapshot {
        var known = snapshot
        known.extended = view.readsExtended ? snapshot.extended ?? extended(of: path) : nil
        if view.tailBytes != nil { known.delivered = snapshot.size }
        if view.settle.isTree, snapshot.type == .directory { known.digest = treeDigest(of: path) }
        return known
    }

    private func treeDigest(of folder: PathBytes) -> [UInt8]? {
        guard let place = try? files.place(of: folder),
            case .resting(let facts) = host.fileSystem.tree(at: place, askingWriters: false)
        else { return nil }
        return facts.fingerprint
    }

    /// Whether a file that is there at the start is finished for certain, so that there is nothing to be waited for.
    ///
    /// `writers` is who can write to it, if somebody has looked.
    private func hasRested(
        _ path: PathBytes, _ snapshot: Snapshot, _ policy: SettlePolicy, _ writers: DiskProbe.Holders?
    ) -> Bool {
        guard !policy.isTree, policy.stable == nil, policy.locks == .ignore, !isPolled(path) else { return false }
        let threshold = host.clock.time().advanced(by: .zero - max(policy.quiet(isPolled: false), .seconds(1)))
        guard snapshot.changed < threshold else { return false }
        guard snapshot.type == .file, policy.writers == .wait else { return true }
        return (writers ?? files.writers(of: path)) == .nobody
    }

    /// Who can write to a file that changed of late; nil for all others, at which nobody has looked.
    static func recentWriters(of place: DiskProbe.Place, _ snapshot: Snapshot, on host: Host) -> DiskProbe.Holders? {
        guard snapshot.type == .file else { return nil }
        let threshold = host.clock.time().advanced(by: .zero - recent)
        return snapshot.changed > threshold ? host.fileSystem.writers(of: place) : nil
    }

    /// Makes everything dirty that is known in the folder and is not there as it was.
    mutating func compareKnown(
        inside folder: PathBytes, signs: Hint.Signs = [], scan: Int?, origin: EventOrigin,
        at now: ContinuousClock.Instant
    ) {
        for index in filters.candidates(inside: folder.bytes) where origin != .scan || views[index].hasPast {
            var changed: [PathBytes] = []
            var gone: [PathBytes] = []
            // Of a folder that is one unit with what is below it, its own facts say nothing.
            let isTree = views[index].settle.isTree
            // Another folder than a root may be a link by now.
            let top = views[index].roots.contains(folder) ? folder : folder.parent
            let files = files
            ledger.visit(view: views[index].name, inside: folder) { path, before in
                guard case .present(let present) = files.look(at: path), !files.isBehindLink(path, root: top) else {
                    gone.append(path)
                    return
                }
                if isTree || !before.isUnchanged(present) { changed.append(path) }
            }
            // What is in a directory is deleted before it.
            for path in changed.sorted() + gone.sorted(by: >) {
                if origin == .scan, renew(path, views[index]) { continue }
                var note = Note(signs: signs.union([.vanished, .listed]), origin: origin)
                note.scan = scan
                add(Key(path: path, policy: policyOfView[index]), note, at: now)
            }
        }
    }
}
