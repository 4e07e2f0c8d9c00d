package import FileEvents
import Globbing
import Settling
import System

// Events that no later one replaces: of the watching, as the kernel reports them, and of views that want each.
extension Reconciler {
    /// Freezes the due events of views that want each settled change, or the text that was added to files.
    ///
    /// All hints have to be received before. The rows of the ledger move to what the events show.
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

    /// Freezes the event of a due path; false if it is to be leased.
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

    /// Moves the ledger to what an event shows, and adds it to ``frozen``.
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

    /// Records that the row of a frozen event has ended: the paths that it names are compared again.
    ///
    /// All hints have to be received before that were queued when the result arrived.
    package mutating func endFrozen(
        _ view: Int, _ event: FileEvent, _ termination: Termination, at now: ContinuousClock.Instant
    ) {
        guard event.kind.isDifference else { return }
        let running = states[view].runningFrozen.removeValue(forKey: event.path)
        // Later events of the path report what became of it.
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

    /// Whether the file of a frozen event may not have been at its path while the action ran.
    private func mayHaveMissed(_ view: Int, _ event: FileEvent, _ path: FrozenPath?) -> Bool {
        guard let path, event.kind != .deleted, event.tail == nil else { return false }
        return path.wasNamed || path.missedHints && present(view, event.path)?.changed != event.snapshot.changed
    }

    /// Lets a file count as handled that an action has received because a user asked for it, if it is as it was then.
    package mutating func recordApplied(_ view: Int, _ event: FileEvent) {
        let path = event.path
        guard root(view, path) != nil, states[view].offerOfPath[path] == nil, row(view, path).trust != .uncertain,
            let now = inspect(view, path), now.isSameState(as: event.snapshot)
        else { return }
        set(view, path, LedgerRow(now))
        if states[view].due[path]?.settled != nil { resolve(view, path, wasHandled: true) }
    }

    /// Takes over the rows of frozen events that an earlier run left.
    package mutating func restoreFrozen(_ view: Int, _ events: [FileEvent]) {
        active.insert(view)
        for event in events where event.kind.isDifference {
            for path in event.paths { states[view].frozen[path, default: 0] += 1 }
        }
    }

    // MARK: Text

    /// Whether text of a followed file was read and its action has not ended.
    func hasUnfinishedText(_ view: Int, _ path: PathBytes) -> Bool {
        states[view].view.tailBytes != nil && states[view].frozen[path] != nil
    }

    /// Reads the text that was added to a followed file, and how far it was read.
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

    /// How much was read of the file under another path, which it may have left and come back.
    mutating func carried(_ view: Int, _ path: PathBytes, _ file: FileIdentity) -> UInt64? {
        guard file.birth != 0 else { return nil }
        if let carried = states[view].carried.removeValue(forKey: file) { return carried.delivered }
        for other in ledger.paths(of: states[view].view.id, handling: file)
        where other != path && present(view, other)?.identity != file {
            if let delivered = row(view, other).handled?.delivered { return delivered }
        }
        return nil
    }

    /// Keeps how much was read of a file whose row goes to another file.
    mutating func carryOver(_ view: Int, _ old: Snapshot?, _ new: Snapshot?) {
        guard let old, old.delivered != nil, old.identity != new?.identity else { return }
        // It may have left several paths; how much was read last counts.
        if let known = states[view].carried[old.identity], known.changed > old.changed { return }
        states[view].carried[old.identity] = old
    }

    // MARK: While an action runs

    /// Reports the running offer of a path that has settled and shows something else than was offered.
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

    /// Lets what has settled at the paths of an offer while it ran count as handled.
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

    /// Freezes that a path was opened, read or closed, for views that want it.
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

    /// Freezes that a path exists that is not in the ledger, once while it settles.
    ///
    /// - Returns: Whether a view wants it.
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

    /// Adds the number of entries of a directory, and the other names of a new one of a file.
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

    // MARK: The watching

    mutating func freezeScan(_ kind: EventKind, _ root: PathBytes, _ origin: EventOrigin) {
        for view in filters.filters(at: root.bytes) {
            // The first listing is silent unless the view wants existing files.
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

    /// Makes a listing wait for a path that it found, whether that was dirty before or not.
    ///
    /// - Returns: False if the listing does not wait any longer: the path changes again after its quiet time, so it may never
    ///   settle.
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
