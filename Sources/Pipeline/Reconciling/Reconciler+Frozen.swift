package import FileEvents
import Globbing
import Settling
import System

// Events that no later event replaces: watcher events, kernel reports, and events of views that report each change.
extension Reconciler {
    /// Freezes the due events of views that report each settled change, or the text added to files.
    ///
    /// All hints must be received before. The ledger rows are set to the state that the events show.
    package mutating func freezeDue() {
        for view in active.sorted() where states[view].view.freezes {
            var others: [PathBytes] = []
            while let path = states[view].due.next() {
                if !freezeDue(view, path) { others.append(path) }
            }
            for path in others { states[view].due.requeue(path) }
            if isSettled, states[view].due.isEmpty { states[view].carried = [:] }
        }
        freezeEndedScans()
    }

    /// Whether ``freezeDue()`` may have work.
    package var mayFreeze: Bool { active.contains { states[$0].view.freezes && !states[$0].due.isEmpty } }

    /// Freezes the event of a due path; returns false if it is to be leased.
    private mutating func freezeDue(_ view: Int, _ path: PathBytes) -> Bool {
        guard states[view].offerOfPath[path] == nil, root(view, path) != nil else { return false }
        if hasUnfinishedText(view, path) {
            states[view].due.wait(path, for: .path(path))
            return true
        }
        let judgement = judge(view, path)
        if case .event(let event) = judgement, !freezes(view, event) { return false }
        guard isReady(view, path, judgement, nil) else { return true }
        _ = candidate(view, path, judgement)
        return true
    }

    /// Whether an event is frozen and not leased.
    func freezes(_ view: Int, _ event: FileEvent) -> Bool {
        guard states[view].view.tailBytes != nil else { return states[view].view.whileBusy == .queue }
        return event.snapshot.type == .file && (event.kind == .created || event.kind == .modified)
    }

    /// Sets the ledger to the state that an event shows, and adds the event to ``frozen``.
    mutating func freeze(_ view: Int, _ event: FileEvent) {
        var event = event
        if let limit = states[view].view.tailBytes { addText(view, &event, limit: limit) }
        let isUncertain = event.paths.contains { row(view, $0).trust == .uncertain }
        setHandled(view, event)
        if !event.isWithoutText {
            for path in event.paths { states[view].frozen[path, default: 0] += 1 }
            frozen.append((view, event, isUncertain))
        }
        for path in event.paths { compare(view, path) }
        markNames(view, of: event)
    }

    /// Records that an action for a frozen event is about to start.
    package mutating func beginFrozen(_ view: Int, _ event: FileEvent) {
        if event.kind.isDifference { states[view].runningFrozen[event.path] = FrozenPath() }
    }

    /// Records that the row of a frozen event is finished: the paths that it names are compared again.
    ///
    /// All hints that were queued when the result arrived must be received before.
    package mutating func endFrozen(
        _ view: Int, _ event: FileEvent, _ termination: Termination, at now: ContinuousClock.Instant
    ) {
        guard event.kind.isDifference else { return }
        let running = states[view].runningFrozen.removeValue(forKey: event.path)
        // Later events of the path report its outcome.
        if states[view].frozen[event.path] == 1, let handled = row(view, event.path).handled,
            handled.isSameState(as: event.snapshot)
        {
            let mayHaveMissed = termination == .succeeded && mayHaveMissed(view, event, running)
            if termination == .gone, event.kind == .created {
                set(view, event.path, LedgerRow())
            } else if termination == .gone || mayHaveMissed {
                set(view, event.path, LedgerRow(handled, .uncertain))
            }
        }
        for path in event.paths {
            guard let count = states[view].frozen[path] else { continue }
            states[view].frozen[path] = count > 1 ? count - 1 : nil
            compare(view, path, quiet: .zero)
        }
    }

    /// Whether the file of a frozen event may have been absent from its path while the action ran.
    private func mayHaveMissed(_ view: Int, _ event: FileEvent, _ path: FrozenPath?) -> Bool {
        guard let path, event.kind != .deleted, event.tail == nil else { return false }
        return path.wasNamed || path.missedHints && present(view, event.path)?.changed != event.snapshot.changed
    }

    /// Records a file as handled if an action has received it on a user's request and it is unchanged since.
    package mutating func recordApplied(_ view: Int, _ event: FileEvent) {
        let path = event.path
        guard root(view, path) != nil, states[view].offerOfPath[path] == nil, row(view, path).trust != .uncertain,
            let now = inspect(view, path), now.isSameState(as: event.snapshot)
        else { return }
        set(view, path, LedgerRow(now))
        if states[view].due[path]?.settled != nil { resolve(view, path, wasHandled: true) }
    }

    /// Restores the rows of frozen events that an earlier run left.
    package mutating func restoreFrozen(_ view: Int, _ events: [FileEvent]) {
        active.insert(view)
        for event in events where event.kind.isDifference {
            for path in event.paths { states[view].frozen[path, default: 0] += 1 }
        }
    }

    // MARK: Text

    /// Whether text of a followed file was read and its action is not finished.
    func hasUnfinishedText(_ view: Int, _ path: PathBytes) -> Bool {
        states[view].view.tailBytes != nil && states[view].frozen[path] != nil
    }

    /// Reads the text added to a followed file, and records how far it was read.
    private mutating func addText(_ view: Int, _ event: inout FileEvent, limit: Int) {
        guard let place = try? files.place(of: event.path) else { return }
        let handled = row(view, event.path).handled
        let isOther = handled?.identity != event.snapshot.identity
        let carried = carried(view, event.path, event.snapshot.identity)
        let read = max(carried ?? 0, isOther ? 0 : handled?.delivered ?? 0)
        let isReset = handled != nil && (carried == nil && event.isReplaced || event.snapshot.size < read)
        let text = TailReader.read(
            place, in: host.fileSystem, event.snapshot, from: isReset ? 0 : read, limit: limit, isReset: isReset)
        event.tail = text
        event.snapshot.delivered = text.offset + UInt64(text.bytes.count)
    }

    /// Returns how much of the file was read under another path, which it may have left and returned to.
    mutating func carried(_ view: Int, _ path: PathBytes, _ file: FileIdentity) -> UInt64? {
        guard file.birth != 0 else { return nil }
        if let carried = states[view].carried.removeValue(forKey: file) { return carried.delivered }
        for other in ledger.paths(of: states[view].view.id, handling: file)
        where other != path && present(view, other)?.identity != file {
            if let delivered = row(view, other).handled?.delivered { return delivered }
        }
        return nil
    }

    /// Preserves how much was read of a file whose row passes to another file.
    mutating func carryOver(_ view: Int, _ old: Snapshot?, _ new: Snapshot?) {
        guard let old, old.delivered != nil, old.identity != new?.identity else { return }
        // It may have left several paths; the last position read counts.
        if let known = states[view].carried[old.identity], known.changed > old.changed { return }
        states[view].carried[old.identity] = old
    }

    // MARK: While an action runs

    /// Reports the running offer of a path that has settled in another state than was offered.
    mutating func overtake(_ view: Int, _ path: PathBytes) {
        guard states[view].view.whileBusy == .restart, let offer = offer(view, path), offer.isRunning,
            !offer.hasRemovedInput,
            !overtaken.contains(where: { $0 == (view, offer.number) })
        else { return }
        let mask = states[view].view.mask
        let isWanted: Bool
        if let now = present(view, path), path == offer.path, let offered = offer.offered {
            let difference = Difference(before: offered, after: now, mayBeWritten: true)
            isWanted =
                (difference.isReplaced || !difference.content.isEmpty)
                && mask.takes(.modified, changed: difference.content)
                || mask.takes(.attributes, changed: difference.attributes) && !difference.attributes.isEmpty
        } else if present(view, path) == nil {
            isWanted =
                path == offer.path && offer.offered != nil && !offer.mayRemoveInput
                && !mask.isDisjoint(with: [.deleted, .moved])
        } else {
            isWanted = mask.contains(.created)
        }
        if isWanted { overtaken.append((view, offer.number)) }
    }

    /// Records the changes that have settled at the paths of an offer while it ran as handled.
    mutating func dropSettled(_ view: Int, _ offer: Offer) {
        for path in offer.paths where states[view].due[path]?.settled != nil {
            let judgement = judge(view, path)
            guard case .event(let event) = judgement, event.kind != .moved, isReady(view, path, judgement, nil) else {
                continue
            }
            markHandled(view, path, as: .some(event.kind == .deleted ? nil : event.snapshot))
            removeDue(view, path)
            reports.append(.busy(view: view, path))
        }
    }

    // MARK: The kernel's reports

    /// Freezes an event that a path was opened, read or closed, for views that report it.
    mutating func freezeRaw(_ hint: Hint) {
        guard !hint.signs.isDisjoint(with: .bare) else { return }
        let kinds: [(sign: Hint.Signs, kind: EventKind)] = [
            (.opened, .opened), (.accessed, .accessed), (.closedUnwritten, .closed),
        ]
        for view in matches(hint.path) where !states[view].view.mask.isDisjoint(with: .raw) {
            guard let snapshot = present(view, hint.path) else { continue }
            for (sign, kind) in kinds where hint.signs.contains(sign) {
                freezeReport(kind, view, hint.path, snapshot, hint.origin)
            }
        }
    }

    /// Freezes the event of a path that exists and is not in the ledger, once while it settles.
    ///
    /// - Returns: Whether a view reports it.
    mutating func freezeArriving(_ hint: Hint, _ matches: [Int]) -> Bool {
        guard !hint.signs.isDisjoint(with: .content) else { return false }
        var hasArrived = false
        for view in matches where states[view].view.mask.contains(.arriving) {
            let key = Key(path: hint.path, policy: states[view].policy)
            guard settler.note(key)?.hasArrived != true, row(view, hint.path) == LedgerRow(),
                states[view].due[hint.path] == nil, let snapshot = present(view, hint.path)
            else { continue }
            freezeReport(.arriving, view, hint.path, snapshot, hint.origin)
            hasArrived = true
        }
        return hasArrived
    }

    private mutating func freezeReport(
        _ kind: EventKind, _ view: Int, _ path: PathBytes, root: PathBytes? = nil, _ snapshot: Snapshot,
        _ origin: EventOrigin
    ) {
        guard states[view].view.mask.takes(kind) else { return }
        var event = FileEvent(
            kind: kind, path: path, root: root ?? self.root(view, path) ?? path.parent, snapshot: snapshot,
            origin: origin, time: host.clock.time())
        addOthers(view, &event)
        event.author = writer(view, event)
        frozen.append((view, event, false))
    }

    /// Adds the number of entries of a directory, and the other names of a file that has appeared under a new name.
    func addOthers(_ view: Int, _ event: inout FileEvent) {
        let file = event.snapshot
        if file.type == .directory {
            guard event.kind != .deleted else { return }
            event.children = (try? files.place(of: event.path)).flatMap { host.fileSystem.children(of: $0) }
        } else if file.links > 1, event.kind == .created || event.kind == .moved {
            let path = event.path
            event.sameAs = ledger.paths(of: states[view].view.id, handling: file.identity).filter { other in
                other != path && present(view, other)?.identity == file.identity
            }
        }
    }

    // MARK: Watcher events

    mutating func freezeScan(_ kind: EventKind, _ root: PathBytes, _ origin: EventOrigin) {
        for view in filters.filters(at: root.bytes) {
            // The first listing is silent unless the view reports existing files.
            if origin == .scan, !states[view].view.reportsExisting { continue }
            freezeLifecycle(kind, view, root, in: root, origin)
        }
    }

    /// Freezes the ends of listings whose paths were all inspected.
    mutating func freezeEndedScans() {
        for scan in scans.takeEnded() { freezeScan(.scanEnded, scan.root, scan.origin) }
    }

    /// Freezes an event for the views of a root, or of all roots; the path is the root if none is given.
    mutating func freezeLifecycle(_ kind: EventKind, at root: PathBytes? = nil, path: PathBytes? = nil) {
        for view in root.map({ filters.filters(at: $0.bytes) }) ?? Array(states.indices) {
            for own in states[view].view.roots where root == nil || own == root {
                freezeLifecycle(kind, view, path ?? own, in: own, .live)
            }
        }
    }

    private mutating func freezeLifecycle(
        _ kind: EventKind, _ view: Int, _ path: PathBytes, in root: PathBytes, _ origin: EventOrigin
    ) {
        var snapshot = Snapshot.unseen
        if case .present(let present) = host.fileSystem.stat(path) { snapshot = present }
        freezeReport(kind, view, path, root: root, snapshot, origin)
    }

    /// Makes a listing wait for a path that it found, whether or not the path was dirty before.
    ///
    /// - Returns: False if the listing no longer waits: the path has changed again after its quiet time, so it may
    ///   never settle.
    mutating func countForScan(
        _ key: Key, _ note: Note, quiet: Duration, at now: ContinuousClock.Instant
    ) -> Bool {
        guard !scans.isEmpty else { return true }
        let waiting = settler.waiting(key)
        guard let scan = waiting?.note.scan else {
            scans.begin(note.scan)
            return true
        }
        guard note.scan == nil, let since = waiting?.since, since + quiet <= now else { return true }
        scans.end(scan)
        return false
    }
}

extension FileEvent {
    /// Whether a followed file has no more text than was read.
    fileprivate var isWithoutText: Bool {
        kind == .modified && !isReplaced && tail.map { $0.bytes.isEmpty && !$0.isReset } ?? false
    }
}
