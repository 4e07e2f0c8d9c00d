import FileEvents
import Globbing
import Settling
import System

/// Reconciles the paths of one view: compares them with the ledger, leases the due ones, and records the outcomes.
package final class ViewReconciler {
    package internal(set) var view: View
    /// The index of the view in the reconciler.
    package internal(set) var index: Int
    /// The index of its settle policy.
    var policy: Int
    let shared: SharedState
    var due = DueTable()
    /// The due paths with a file that is not handled there, by their files.
    var dueFiles = FileIndex()
    var offers = OfferTable()
    /// The number of due paths that an unfinished offer names.
    private(set) var offeredDueCount = 0
    let names = FileNames()
    var frozen = FrozenPaths()
    /// The state that the last action left at a path, if it differs from the offered one.
    var left: [PathBytes: Snapshot] = [:]
    /// The processes that made paths due in an earlier run, until the paths have settled.
    var formerWriters: [PathBytes: Writer] = [:]
    /// The read positions of followed files that have left their paths and are not yet in the ledger under another
    /// one.
    var carried: [FileIdentity: ReadPosition] = [:]
    /// The unfinished lines at the ends of followed files, which wait for their ends.
    var unfinishedLines: [PathBytes: UnfinishedLine] = [:]

    init(_ view: View, _ index: Int, policy: Int, _ shared: SharedState) {
        (self.view, self.index, self.policy, self.shared) = (view, index, policy, shared)
    }

    // MARK: Files and rows

    func root(of path: PathBytes) -> PathBytes? { view.root(of: path) }

    func isPolled(_ path: PathBytes) -> Bool { view.isPolled || shared.files.isPolled(path) }

    /// Returns the state of a path: absent behind a symbolic link, or if the view does not match the type of the file.
    func stat(_ path: PathBytes) -> DiskProbe.StatResult { shared.files.stat(path, for: view) }

    /// Returns the snapshot of a path that is present; it is not inspected again without need if one is passed.
    func present(_ path: PathBytes, as seen: Snapshot? = nil) -> Snapshot? {
        shared.files.stat(path, for: view, as: seen).snapshot
    }

    /// Returns the snapshot of a path that is present, as a listing found it if that shows all that the view compares.
    func present(_ path: PathBytes, found: FoundFile?) -> Snapshot? {
        guard let found, !isPolled(path), !view.readsExtended || found.snapshot.extended != nil else {
            return present(path)
        }
        guard root(of: path) == found.root else { return present(path) }
        return view.types.contains(found.snapshot.type) && !shared.files.otherSpellings.contains(path)
            ? found.snapshot : nil
    }

    /// Returns the state of a path, with the fingerprint of its content if a directory is handled as one unit.
    func inspect(_ path: PathBytes) -> Snapshot? {
        guard var snapshot = present(path) else { return nil }
        if view.settle.isTree, snapshot.type == .directory, let digest = shared.files.fingerprint(of: path) {
            snapshot.digest = digest
        }
        return snapshot
    }

    /// Whether an absent path is removed and not just hidden by a missing root or another file system.
    func isRemoved(_ path: PathBytes, _ before: Snapshot?) -> Bool {
        root(of: path).map { shared.files.isRemoved(path, below: $0, before) } ?? false
    }

    /// Returns the row of a path; it is uncertain while an offer names the path, which the ledger does not store.
    func row(_ path: PathBytes) -> LedgerRow {
        let row = shared.ledger.row(of: view.id, at: path)
        return offers.number(at: path) == nil ? row : LedgerRow(row.handled, .uncertain)
    }

    func set(_ path: PathBytes, _ row: LedgerRow) {
        let old = view.tail != nil || !names.isEmpty ? self.row(path).handled : nil
        if view.tail != nil { carryOver(old, row.handled) }
        shared.ledger.set(row.isEmpty ? LedgerRow() : row, of: view.id, at: path)
        if !names.isEmpty { names.setRow(path, old?.identity, row.handled?.identity) }
    }

    /// Whether the ledger contains the file in its current state, and all of its text was read.
    func isHandled(_ row: LedgerRow, _ now: Snapshot) -> Bool {
        row.handled.map { $0.isUnchanged(now) && !$0.hasMoreText(now) } ?? false
    }

    /// Whether a listing that found a path needs not compare it: it is unchanged since the view has handled it.
    func isKnown(_ path: PathBytes) -> Bool {
        if isDirty(path) || due[path] != nil { return false }
        let row = row(path)
        guard row.trust != .uncertain else { return offers.number(at: path) != nil }
        guard let now = present(path) else { return row.handled == nil }
        return isHandled(row, now)
    }

    func isDirty(_ path: PathBytes) -> Bool { shared.dirty.contains(path, policy) }

    // MARK: Dirty paths

    /// Makes a path settle.
    func markDirty(
        _ path: PathBytes, _ signs: Hint.Signs, _ origin: EventOrigin, quiet: Duration? = nil,
        at now: ContinuousClock.Instant? = nil
    ) {
        let hints = shared.markDirty(
            path, signs, origin, [policy], wantsMove: view.mask.contains(.moved), quiet: quiet,
            at: now ?? shared.host.clock.now())
        receive(hints, of: path)
    }

    /// Receives the hints of a path that has started to settle.
    func receive(_ hints: DirtyPaths.Hints, of path: PathBytes) {
        due.unsettle(path)
        // It may be a file that is written for long: its new name no longer waits for it.
        if hints.signs.contains(.appeared) { due.wake(.path(path)) }
        // A move is leased before it has settled.
        guard let file = hints.file, hints.signs.contains(.appeared), view.mask.contains(.moved), due[path] == nil,
            shared.ledger.handles(file, view.id)
        else { return }
        addDue(path, settled: nil, hints)
    }

    /// Records a create, move or delete event of a path for the offer that it may concern.
    func markNamed(_ path: PathBytes) {
        guard let offer = offers.offer(at: path), offer.keepsRecord, !offer.wasNamed else { return }
        offers.update(offer.number) { $0.wasNamed = true }
    }

    func markNamed(inside directory: PathBytes) {
        for (number, offer) in offers.all where offer.paths.contains(where: { $0.isInside(directory) }) {
            offers.update(number) { $0.wasNamed = true }
        }
    }

    /// Records that hints may have been lost.
    func markMissedHints() {
        for (number, offer) in offers.all where offer.keepsRecord {
            offers.update(number) { $0.missedHints = true }
        }
    }

    /// Makes a path due that has settled, or records that it needs no action.
    ///
    /// - Returns: The files whose other names may differ from the disk.
    func settle(_ path: PathBytes, _ snapshot: Snapshot?, _ hints: DirtyPaths.Hints) -> [FileIdentity] {
        let now = snapshot.flatMap { present(path, as: $0) }
        if !unfinishedLines.isEmpty { endLine(path, now) }
        // The next poll misses a file that is removed before it; a file that no hint has named may also be polled.
        let isUnnamed =
            hints.signs.contains(.vanished) && (hints.signs.contains(.listed) || !hints.signs.contains(.appeared))
        let isSeenLate = isPolled(path) || hints.signs.contains(.polled) || isUnnamed
        if isSeenLate, let now, row(path).handled?.isUnchanged(now) != true { shared.doubted.append(path) }
        if let now { markOtherSpellings(path, now) }
        var stamp = now
        stamp?.digest = snapshot?.digest
        var identities = [row(path).handled, now].compactMap(\.self).filter { $0.hasSeveralNames }.map(\.identity)
        let announced = due[path]?.announced
        addDue(path, settled: .some(stamp), hints)
        identities += [hints.file, announced].compactMap(\.self).filter { $0 != now?.identity }
        if let offered = offers.offer(at: path)?.offered, offered.hasSeveralNames {
            identities.append(offered.identity)
        }
        return identities
    }

    /// Makes a path settle again because its state has changed.
    func resettle(_ path: PathBytes) {
        if isDirty(path) { due.unsettle(path) } else { markDirty(path, .listed, .live) }
    }

    /// Compares a path again, because others have waited for its outcome, or because it may differ.
    ///
    /// Paths that are compared at the same time settle in the same turn. The path is inspected if its state is not
    /// given.
    func compare(
        _ path: PathBytes, as seen: Snapshot?? = nil, quiet: Duration? = nil, at now: ContinuousClock.Instant? = nil
    ) {
        due.wake(.path(path))
        let isNamed = offers.number(at: path) != nil
        guard root(of: path) != nil else {
            // The view no longer matches the path.
            if isNamed { addDue(path, settled: .some(nil), DirtyPaths.Hints(signs: .listed, origin: .live)) }
            return
        }
        let row = row(path)
        if !isNamed, row.trust != .uncertain {
            let there = seen ?? present(path)
            if there == nil, row.handled == nil { return }
            if !view.settle.isTree, let there, isHandled(row, there) { return }
        }
        if !isDirty(path) { markDirty(path, .listed, .live, quiet: quiet, at: now) }
    }

    /// Removes the due paths that a view no longer matches; those of an offer stay, and the offer runs unchanged.
    func dropUnmatched() {
        let paths = Set(due.entries.paths).union(offers.paths).sorted()
        for path in paths where root(of: path) == nil {
            if offers.number(at: path) == nil {
                removeDue(path)
                due.wake(.path(path))
            } else if due[path] == nil {
                addDue(path, settled: .some(nil), DirtyPaths.Hints(signs: .listed, origin: .live))
            } else {
                due.requeue(path)
            }
        }
    }

    // MARK: Due paths

    /// Adds a path to the order.
    ///
    /// A path that settles is in the order only for a move. A path that has settled and needs no action is removed at
    /// once.
    ///
    /// - Parameters:
    ///   - path: The path.
    ///   - settled: The metadata at which it settled; an inner nil for a missing path, nil while it settles.
    ///   - hints: Its hints.
    ///   - time: The time of its event; nil for now.
    func addDue(
        _ path: PathBytes, settled: Snapshot??, _ hints: DirtyPaths.Hints, since time: Timestamp? = nil
    ) {
        let before = removeDue(path)
        var entry = DueTable.Entry(
            settled: settled.map { DueTable.Stamp($0) }, signs: hints.signs.union(before?.signs ?? []),
            origin: hints.origin, time: time ?? shared.host.clock.time(), announced: before?.announced,
            digest: settled??.digest, isConfirmed: before?.isAnswered(by: hints.request) ?? false)
        // A hint that answers an earlier request shows nothing new.
        if hints.request != 0 { entry.request = before?.request ?? 0 }
        let file = settled == nil ? hints.file : settled??.identity
        if let file, view.mask.contains(.moved), row(path).handled?.identity != file {
            entry.file = file
            dueFiles.insert(path, file)
        }
        // A later change has another writer.
        if let writer = formerWriters.removeValue(forKey: path), entry.signs == .listed { entry.writer = writer }
        if offers.number(at: path) != nil { offeredDueCount += 1 }
        due.add(path, entry)
        shared.active.insert(index)
        storeDue(path, true)
        if settled != nil { overtake(path) }
        guard let settled, offers.number(at: path) == nil, !hasUnfinishedText(path), !view.receivesAtOnce else {
            return
        }
        // A missing path may have another name that is not hinted yet: the lease receives all hints first.
        if settled == nil, view.mask.contains(.moved) { return }
        let judgement = judge(path, as: settled.map { .present($0) } ?? .absent)
        switch judgement {
        case .event(let event):
            shared.add(.due(view: index, event))
            if event.writer != .notAsked {
                due.setWriter(path, event.writer)
                storeDue(path, true)
            }
            if event.kind != .deleted { due.announce(path, event.snapshot.identity) }
        case .wait, .unreadable: break
        case .nothing, .unreported: conclude(path, judgement)
        }
    }

    /// Records the state of a path as handled, and removes the path from the order.
    func conclude(_ path: PathBytes, _ judgement: Judgement) {
        let (before, trust) = (row(path).handled, row(path).trust)
        let wasHandled = before != nil
        switch judgement {
        case .unreported(let seen):
            markHandled(path, as: .some(seen))
            if let before, let seen, trust == .refused || !before.hasSameContent(as: seen) { markRefused(path) }
            if view.tail != nil, let seen { keepText(path, of: seen, before) }
        case .nothing(let seen?): refresh(path, seen)
        default: break
        }
        resolve(path, wasHandled: wasHandled)
    }

    /// Records the state of a path as handled, without an event; the state and the row are read if they are not
    /// given.
    ///
    /// A judged state must be passed, since a later one has not been judged.
    func markHandled(_ path: PathBytes, as known: Snapshot?? = nil, from row: LedgerRow? = nil) {
        let old = row ?? self.row(path)
        let isTree = view.settle.isTree
        var now = if let known, !isTree || known?.digest != nil { known } else { inspect(path) }
        if view.tail != nil, let size = now?.size { now?.delivered = size }
        var isSuppressed = false
        if let now {
            // Without other events, the last state decides.
            let isUnnamed = view.mask.isDisjoint(with: .naming)
            let isNew = old.handled == nil && old.trust == .certain || isUnnamed || old.isSuppressed && known == nil
            let isRefused =
                isNew && shared.callbacks.mayRefuse(index)
                && !shared.callbacks.admits(index, attributed(event(.created, path, now)))
            isSuppressed = isRefused || old.isSuppressed && !isNew
        }
        set(path, LedgerRow(now, isSuppressed: isSuppressed))
        left[path] = nil
    }

    /// Records that the action has not received the content of a path, which it may receive under another name.
    private func markRefused(_ path: PathBytes) {
        var row = row(path)
        guard !row.isSuppressed, !view.mask.isDisjoint(with: .content) else { return }
        row.trust = .refused
        set(path, row)
    }

    /// Stores the metadata with which a path was judged to have no reportable difference.
    private func refresh(_ path: PathBytes, _ seen: Snapshot) {
        var row = row(path)
        guard let handled = row.handled, !handled.isUnchanged(seen) else { return }
        var fresh = seen
        (fresh.digest, fresh.delivered) = (handled.digest, handled.delivered)
        row.handled = fresh
        set(path, row)
    }

    @discardableResult
    func removeDue(_ path: PathBytes) -> DueTable.Entry? {
        guard let entry = due.remove(path) else { return nil }
        if offers.number(at: path) != nil { offeredDueCount -= 1 }
        if let file = entry.file { dueFiles.remove(path, file) }
        storeDue(path, false)
        return entry
    }

    /// Adds an offer, and counts the due paths that it names.
    func insert(_ offer: Offer) {
        offeredDueCount += offer.paths.count { offers.number(at: $0) == nil && due[$0] != nil }
        offers.insert(offer)
    }

    /// Removes an offer, and its paths from that count.
    func remove(_ offer: Offer) {
        offeredDueCount -= offer.paths.count { offers.number(at: $0) != nil && due[$0] != nil }
        offers.remove(offer)
    }

    private func storeDue(_ path: PathBytes, _ isDue: Bool) {
        guard view.storesDuePaths else { return }
        let change = isDue ? DueChange.stored(due[path]?.writer) : .deleted
        shared.dueChanges[view.id, default: [:]][path] = change
    }

    /// Removes a path from the order that needs no action.
    func resolve(_ path: PathBytes, wasHandled: Bool) {
        let entry = removeDue(path)
        if let file = entry?.announced, present(path) == nil, !isKnownElsewhere(file, path) {
            shared.add(.gone(view: index, path, wasHandled: wasHandled))
        }
        due.wake(.path(path))
    }

    func wait(_ path: PathBytes, _ wait: DueTable.Wait) {
        due.wait(path, for: wait)
        if case .listing = wait, shared.unlisted.isEmpty, due[path]?.request == 0 {
            shared.doubted.append(path)
            due.setRequest(path, shared.request)
        }
        // The path that contains its file may never settle.
        guard case .path(let other) = wait, due[other] == nil, let file = shared.dirty.file(at: other) else { return }
        addDue(other, settled: nil, DirtyPaths.Hints(signs: [.appeared], origin: .live, file: file))
    }

    // MARK: Other names

    private func isKnownElsewhere(_ file: FileIdentity, _ path: PathBytes) -> Bool {
        func isKnown(_ other: PathBytes) -> Bool {
            other != path && root(of: other) != nil && present(other)?.identity == file
        }
        let changed = shared.dirty.byFile.any(of: file, where: isKnown) ?? dueFiles.any(of: file, where: isKnown)
        if changed != nil { return true }
        if let names = names.files[file] {
            return names.present.contains { $0 != path } || names.others.paths.contains(where: isKnown)
        }
        return shared.ledger.paths(of: view.id, handling: file).contains(where: isKnown)
    }

    /// Marks handled paths as dirty that the kernel resolves to a new file whose name differs in case: they do not
    /// exist.
    ///
    /// A file with one link has one name; only a listing shows which.
    private func markOtherSpellings(_ path: PathBytes, _ now: Snapshot) {
        guard now.links == 1, now.type == .file, row(path).handled == nil else { return }
        for other in shared.ledger.paths(of: view.id, handling: now.identity)
        where other != path && other.parent == path.parent && present(other)?.identity == now.identity {
            let names = try? shared.files.paths.names(in: other.parent)
            guard names?.contains(where: { $0.bytes.elementsEqual(other.lastComponent) }) == false else { continue }
            shared.files.otherSpellings.insert(other)
            markDirty(other, [.vanished, .moved], .live)
        }
    }

    /// Marks the other names of the file of an event, and of a file that it has replaced, as dirty if they differ
    /// from the disk.
    ///
    /// The path itself is marked if it is only now known to have several names. The kernel hints only the name that
    /// was created or removed. A name that is removed before its hint is read does not show its file; that file is
    /// then found with one link less when its path settles again.
    func markNames(of event: FileEvent) {
        let files = [event.snapshot, event.before].compactMap(\.self).filter { $0.hasSeveralNames }
        if !files.isEmpty { markOtherNames(event.path, files.map(\.identity)) }
        guard event.snapshot.hasSeveralNames, event.kind != .deleted, event.before?.links != event.snapshot.links else {
            return
        }
        markDirty(event.path, .attributes, .live)
    }

    /// Marks files that had several names as dirty if they differ from the disk.
    func compareLinked() {
        var identities: [FileIdentity] = []
        for root in view.roots {
            shared.ledger.visit(view.id, inside: root) { _, row in
                if let handled = row.handled, handled.hasSeveralNames { identities.append(handled.identity) }
            }
        }
        markOtherNames(nil, identities)
    }

    /// Marks the other names of files as dirty if they differ from the disk; the kernel hints only the name that was
    /// used.
    func markOtherNames(
        _ path: PathBytes?, _ identities: some Sequence<FileIdentity>, _ signs: Hint.Signs = []
    ) {
        for identity in Set(identities) where !hasCompared(identity) {
            let file = fileNames(of: identity)
            for other in file.present.union(file.others.paths).sorted()
            where other != path && due[other] == nil && !isDirty(other) {
                let handled = row(other).handled
                let isAsHandled = present(other).map { handled?.isUnchanged($0) ?? false }
                if isAsHandled ?? !isRemoved(other, handled) { continue }
                markDirty(other, signs.union(.attributes), .live)
            }
            names.files[identity]?.isCompared = true
        }
    }

    private func hasCompared(_ identity: FileIdentity) -> Bool {
        guard let file = names.files[identity], file.isCompared else { return false }
        return file.present.first.map { present($0)?.changed == file.changed } ?? true
    }

    /// Returns the names of a file in the ledger; they are inspected unless that was done since the last hint and since
    /// the file changed.
    func fileNames(of identity: FileIdentity, changed: Timestamp? = nil) -> FileNames.File {
        if let changed, let file = names.files[identity], file.changed == changed { return file }
        let paths = shared.ledger.paths(of: view.id, handling: identity)
        let snapshots = paths.map { path in present(path).flatMap { $0.identity == identity ? $0 : nil } }
        var file = FileNames.File(changed: snapshots.lazy.compactMap(\.?.changed).first ?? changed)
        file.present = Set(zip(paths, snapshots).lazy.filter { $1 != nil }.map(\.0))
        file.others = PathsByName(zip(paths, snapshots).filter { $1 == nil }.map(\.0))
        names.files[identity] = file
        return file
    }
}

extension EventMask {
    /// The events that name a path before it is removed.
    fileprivate static let naming: EventMask = [.created, .modified, .moved, .attributes]
}
