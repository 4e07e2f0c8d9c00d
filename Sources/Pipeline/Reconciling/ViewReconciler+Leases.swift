package import FileEvents
import Settling
package import System

extension ViewReconciler {
    /// Takes the first due path that may be leased.
    ///
    /// All hints must be received before. The caller leases the candidate, or makes it wait; a candidate for which it
    /// does neither is lost until its path is hinted again.
    package func nextCandidate(at now: ContinuousClock.Instant) -> Reconciler.Candidate? {
        while let path = due.next() {
            if let candidate = candidate(path, at: now) { return candidate }
        }
        return nil
    }

    /// Takes one due path, if it may be leased.
    package func candidate(_ path: PathBytes, at now: ContinuousClock.Instant) -> Reconciler.Candidate? {
        guard due[path] != nil else { return nil }
        let old = offers.offer(at: path)
        if old?.isRunning == true || offers.isOutput(path) || hasUnfinishedText(path) {
            due.wait(path, for: .path(path))
            return nil
        }
        var judgement = judge(path)
        guard isReady(path, judgement, old) else { return nil }
        if let old {
            if let event = repeated(old, judgement) {
                guard case .retrying(let time) = old.state, time > now else {
                    return Reconciler.Candidate(view: index, path: path, event: event, retried: old)
                }
                due.wait(path, for: .time(time))
                return nil
            }
            supersede(old.number, settled: path)
            judgement = judge(path)
            guard isReady(path, judgement, nil) else { return nil }
        }
        return candidate(path, judgement)
    }

    /// Returns the candidate of a judged path; nil if it is handled, waits or was frozen.
    private func candidate(_ path: PathBytes, _ judgement: Judgement) -> Reconciler.Candidate? {
        switch judgement {
        case .nothing, .unreported: conclude(path, judgement)
        case .unreadable: resettle(path)
        case .wait(let wait): self.wait(path, wait)
        case .event(let event):
            if let from = event.from, let source = offers.offer(at: from) {
                supersede(source.number, settled: path)
                compare(from)
                due.requeue(path)
            } else if let earlier = earlier(than: event) {
                due.wait(path, for: .path(earlier))
            } else if freezes(event) {
                freeze(event)
            } else {
                return Reconciler.Candidate(view: index, path: path, event: event, retried: nil)
            }
        }
        return nil
    }

    /// Returns a path whose event comes before another event: the directory of a new path, if the view reports it,
    /// and the old name of a file that is reported as deleted and created.
    private func earlier(than event: FileEvent) -> PathBytes? {
        guard event.kind == .created || event.kind == .moved else { return nil }
        let parent = event.path.parent
        if view.types.contains(.directory), isAboutToBeReported(parent), row(parent).handled == nil { return parent }
        // A file that is written under a new name has no old name.
        guard event.kind == .created, view.mask.contains(.deleted),
            due[event.path]?.signs.isDisjoint(with: [.moved, .listed, .polled]) == false
        else { return nil }
        func isEarlier(_ other: PathBytes) -> Bool {
            guard other != event.path, isAboutToBeReported(other), due[other]?.wait != .path(event.path),
                case .absent = stat(other)
            else { return false }
            return true
        }
        let file = event.snapshot
        guard file.hasSeveralNames else {
            return shared.ledger.paths(of: view.id, handling: file.identity).first(where: isEarlier)
        }
        let others = fileNames(of: file.identity, changed: file.changed).others
        return others.namesakes(of: event.path).first(where: isEarlier) ?? others.paths.last(where: isEarlier)
    }

    /// Whether a path settles, or is due and waits for no condition of the owner, or its action runs.
    private func isAboutToBeReported(_ path: PathBytes) -> Bool {
        if let offer = offers.offer(at: path) { return offer.isRunning }
        guard let entry = due[path] else { return isDirty(path) && root(of: path) != nil }
        switch entry.wait {
        case .gate, .time: return false
        case .path, .listing, nil: return true
        }
    }

    /// Takes the events of all due paths, in order, and sets the ledger to the state that they show.
    ///
    /// All hints must be received before.
    package func takeDue(at now: ContinuousClock.Instant) -> [FileEvent] {
        var events: [FileEvent] = []
        while let path = due.next() {
            guard let event = candidate(path, at: now)?.event else { continue }
            setHandled(event)
            events.append(event)
            for path in event.paths {
                if event.kind == .moved { compare(path) } else { due.wake(.path(path)) }
            }
            markNames(of: event)
        }
        return events
    }

    /// Sets the rows of the paths that an event names to the state that it shows, and removes the paths from the
    /// order.
    private func setHandled(_ event: FileEvent) {
        markNamesOfReplaced(by: event)
        for path in event.paths { removeDue(path) }
        if let from = event.from { set(from, LedgerRow()) }
        set(event.path, LedgerRow(event.kind == .deleted ? nil : event.snapshot))
    }

    /// Leases a candidate: the rows of the paths that its event names are uncertain from now on.
    ///
    /// The reconciler must not be changed between ``nextCandidate(at:)`` and this call.
    package func lease(_ candidate: Reconciler.Candidate) -> Offer {
        if let old = candidate.retried, let offer = again(old.number, candidate.event) { return offer }
        return make(candidate.event)
    }

    /// Makes a candidate wait for a condition of the owner, at most until the time.
    package func hold(
        _ candidate: Reconciler.Candidate, for gate: Reconciler.Gate, until time: ContinuousClock.Instant? = nil,
        _ reason: Reconciler.Reason? = nil
    ) {
        due.wait(candidate.path, for: .gate(gate), until: time, reason)
        // Others need not wait for a condition that may not be met for long.
        due.wake(.path(candidate.path))
    }

    /// Whether a path waits without a limit for a condition that may never be met.
    func isEndless(_ path: PathBytes) -> Bool {
        guard case .gate(let gate) = due[path]?.wait else { return false }
        return gate.mayNeverOpen && due.limit(of: path) == nil
    }

    /// Whether a path may be leased: it is in the state in which it settled, or it is a move, and the other path of
    /// its retry has also settled.
    private func isReady(_ path: PathBytes, _ judgement: Judgement, _ old: Offer?) -> Bool {
        if case .event(let event) = judgement, event.kind == .moved { return true }
        // The view no longer matches the path: the offer runs unchanged.
        if old != nil, root(of: path) == nil { return true }
        guard let settled = due[path]?.settled else { return false }
        guard settled == stamp(path, judgement) else {
            resettle(path)
            return false
        }
        guard let other = old?.paths.first(where: { $0 != path && isDirty($0) }) else { return true }
        due.wait(path, for: .path(other))
        return false
    }

    /// Returns the stamp of a path as it was judged.
    func stamp(_ path: PathBytes, _ judgement: Judgement) -> DueTable.Stamp {
        if case .event(let event) = judgement, event.kind != .deleted { return DueTable.Stamp(event.snapshot) }
        return DueTable.Stamp(present(path))
    }

    /// Returns the event with which an offer is repeated; nil if the offer is superseded.
    ///
    /// It is the offer's own event or, if only its last attempt has changed the file, the current difference.
    private func repeated(_ old: Offer, _ judgement: Judgement) -> FileEvent? {
        if isAsOffered(old) || root(of: old.path) == nil { return old.event }
        guard isLeft(old), case .event(let event) = judgement, event.from == nil, !freezes(event) else { return nil }
        return event
    }

    /// Whether the disk is in the offered state, so that the offer can be repeated unchanged.
    func isAsOffered(_ offer: Offer) -> Bool {
        let now = inspect(offer.path)
        if offer.hasRemovedInput { return true }
        if offer.isInterrupted, offer.mayRemoveInput, offer.event.kind != .deleted,
            now == nil || shared.callbacks.hasWork(index, offer)
        {
            return true
        }
        guard let offered = offer.offered else { return now == nil }
        guard let now else { return false }
        guard let from = offer.event.from else {
            var before = offered
            before.changed = offer.changed ?? offered.changed
            return now.isSameState(as: offered) && !wasRewritten(offer.path, before, now)
        }
        return now.identity == offered.identity && present(from)?.identity != now.identity
    }

    /// Whether the disk is in the state that the last attempt of an offer left.
    private func isLeft(_ offer: Offer) -> Bool {
        guard offer.event.from == nil, let left = offer.left, let now = inspect(offer.path) else { return false }
        return now.isSameState(as: left) && !wasRewritten(offer.path, left, now)
    }

    private func again(_ number: UInt64, _ event: FileEvent) -> Offer? {
        guard var offer = offers[number] else { return nil }
        if event != offer.event {
            offer.event = event
            offer.isRepeat = true
            offer.hasSteps = false
        }
        removeDue(offer.event)
        offer.state = .leased
        if !offer.hasSteps {
            offer.wasNamed = false
            offer.missedHints = false
            offer.changed = present(offer.path)?.changed
        }
        offers.set(offer)
        return offer
    }

    private func make(_ event: FileEvent) -> Offer {
        markNamesOfReplaced(by: event)
        let paths = event.paths
        // A move offers the handled state, whatever is at the path.
        let now = event.from != nil || event.kind == .deleted ? inspect(event.path) : event.snapshot
        let left = left.removeValue(forKey: event.path)
        let before = Dictionary(paths.map { ($0, row($0).trust) }) { first, _ in first }
        var offer = Offer(
            number: shared.nextNumber(), event: event,
            isUncertain: before.values.contains { $0 == .uncertain || $0 == .failed },
            isRepeat: event.from == nil && now.flatMap { now in left.map { $0.isSameState(as: now) } } ?? false,
            changed: event.kind == .deleted ? nil : now?.changed, trustBefore: before)
        if event.from != nil { offer.left = now }
        removeDue(event)
        // What was written under the former name, so that the event has its change time, is reported after the move.
        if event.from != nil, let now, let before = event.before, before.isSameState(as: now),
            event.snapshot.changed == before.changed, before.changed != now.changed
        {
            markDirty(event.path, .written, event.origin)
        }
        insert(offer)
        shared.active.insert(index)
        return offer
    }

    /// Marks the other names of a file that a move has replaced as dirty; the event names only the moved file.
    private func markNamesOfReplaced(by event: FileEvent) {
        guard event.from != nil, let replaced = row(event.path).handled, replaced.hasSeveralNames,
            replaced.identity != event.snapshot.identity
        else { return }
        markOtherNames(event.path, [replaced.identity])
    }

    /// Removes the paths of a leased event from the order.
    ///
    /// Another file at the source of a move stays due: gone paths may wait for it.
    private func removeDue(_ event: FileEvent) {
        for path in event.paths where path != event.from || present(path) == nil { removeDue(path) }
    }

    /// Ends an offer in favor of a newer event; its paths stay uncertain and are compared.
    func supersede(_ number: UInt64, settled: PathBytes? = nil) {
        guard let offer = offers[number] else { return }
        for path in offer.paths { set(path, row(path)) }
        remove(offer)
        for path in offer.paths where path != settled { compare(path) }
        shared.add(.superseded(view: index, offer))
    }

    // MARK: Frozen events

    /// Freezes the events of the due paths, as far as they are frozen.
    func freezeDue() {
        var others: [PathBytes] = []
        while let path = due.next() {
            if !freezeDue(path) { others.append(path) }
        }
        for path in others { due.requeue(path) }
        // Each file that still exists has been found under another name.
        let isComplete = !shared.isStarting && shared.unlisted.isEmpty && shared.dirty.count == 0 && due.isEmpty
        if isComplete { for file in carried.keys { setCarried(file, nil) } }
    }

    /// Freezes the event of a due path; returns false if it is to be leased.
    func freezeDue(_ path: PathBytes) -> Bool {
        guard offers.number(at: path) == nil, root(of: path) != nil else { return false }
        if hasUnfinishedText(path) {
            due.wait(path, for: .path(path))
            return true
        }
        let judgement = judge(path)
        if case .event(let event) = judgement, !freezes(event) { return false }
        guard isReady(path, judgement, nil) else { return true }
        _ = candidate(path, judgement)
        return true
    }

    /// Whether an event is frozen and not leased.
    func freezes(_ event: FileEvent) -> Bool {
        view.freezes && event.snapshot.type == .file && (event.kind == .created || event.kind == .modified)
    }

    /// Sets the ledger to the state that an event shows, and stores the event.
    private func freeze(_ event: FileEvent) {
        var event = event
        if let tail = view.tail, !addText(&event, tail) { return }
        let isUncertain = event.paths.contains { row($0).trust == .uncertain }
        let isNew = row(event.path).handled == nil && !isUncertain
        setHandled(event)
        if event.isWithoutText {
            // The action does not know the path, so its deletion is not reported either.
            if isNew { set(event.path, LedgerRow(event.snapshot, isSuppressed: true)) }
        } else {
            frozen.add(event.paths)
            shared.add(.stored(view: index, event, isUncertain: isUncertain))
        }
        for path in event.paths { compare(path) }
        markNames(of: event)
    }

    /// Records that the row of a frozen event is finished: the paths that it names are compared again.
    ///
    /// All hints that were queued when the result arrived must be received before.
    package func endFrozen(
        _ event: FileEvent, _ termination: Reconciler.Termination, at now: ContinuousClock.Instant
    ) {
        guard event.kind.isDifference else { return }
        // Later events of the path report its outcome.
        if frozen.count(of: event.path) == 1, let handled = row(event.path).handled,
            handled.isSameState(as: event.snapshot)
        {
            if termination == .gone {
                set(event.path, event.kind == .created ? LedgerRow() : LedgerRow(handled, .uncertain))
            }
        }
        for path in event.paths where frozen.count(of: path) > 0 {
            frozen.remove(path)
            compare(path, quiet: .zero)
        }
    }

    /// Restores the rows of frozen events that an earlier run left.
    package func restoreFrozen(_ events: [FileEvent]) {
        shared.active.insert(index)
        for event in events where event.kind.isDifference { frozen.add(event.paths) }
    }

    func freezeReport(
        _ kind: EventKind, _ path: PathBytes, root: PathBytes? = nil, _ snapshot: Snapshot, _ origin: EventOrigin
    ) {
        guard view.mask.takes(kind) else { return }
        var event = FileEvent(
            kind: kind, path: path, root: root ?? self.root(of: path) ?? path.parent, snapshot: snapshot,
            origin: origin, time: shared.host.clock.time())
        addOthers(&event, changed: snapshot.changed)
        event.writer = shared.callbacks.writer(index, event)
        shared.add(.stored(view: index, event, isUncertain: false))
    }

    /// Freezes the events that a path was opened, read or closed, if the view reports them.
    func freezeRaw(_ hint: Hint) {
        guard !view.mask.isDisjoint(with: .raw), let snapshot = present(hint.path) else { return }
        let kinds: [(sign: Hint.Signs, kind: EventKind)] = [
            (.opened, .opened), (.accessed, .accessed), (.closedUnwritten, .closed),
        ]
        for (sign, kind) in kinds where hint.signs.contains(sign) {
            freezeReport(kind, hint.path, snapshot, hint.origin)
        }
    }

    /// Freezes the event of a path that exists and is not in the ledger, once while it settles.
    ///
    /// - Returns: Whether the view reports it.
    func freezeArriving(_ hint: Hint) -> Bool {
        guard view.mask.contains(.arriving), !hint.signs.isDisjoint(with: .content),
            shared.dirty.hints(of: hint.path, policy)?.hasArrived != true, row(hint.path) == LedgerRow(),
            due[hint.path] == nil, let snapshot = present(hint.path)
        else { return false }
        freezeReport(.arriving, hint.path, snapshot, hint.origin)
        return true
    }

    // MARK: Changes while an action runs

    /// Reports the running offer of a path that has settled in another state than was offered.
    func overtake(_ path: PathBytes) {
        guard view.whileBusy == .restart, let offer = offers.offer(at: path), offer.isRunning, !offer.hasRemovedInput
        else {
            return
        }
        let mask = view.mask
        let isWanted: Bool
        if let now = present(path), path == offer.path, let offered = offer.offered {
            let difference = Difference(before: offered, after: now, writing: writing(at: path, offered, now))
            isWanted =
                (difference.isReplaced || !difference.content.isEmpty)
                && mask.takes(.modified, changed: difference.content)
                || mask.takes(.attributes, changed: difference.attributes) && !difference.attributes.isEmpty
        } else if present(path) == nil {
            isWanted =
                path == offer.path && offer.offered != nil && !offer.mayRemoveInput
                && !mask.isDisjoint(with: [.deleted, .moved])
        } else {
            isWanted = mask.contains(.created)
        }
        if isWanted { shared.add(.overtaken(view: index, number: offer.number)) }
    }
}

extension FileEvent {
    /// Whether a followed file has no more text than was read.
    fileprivate var isWithoutText: Bool { tail?.bytes.isEmpty ?? false }
}
