package import FileEvents
import Settling
package import System

extension ViewReconciler {
    /// Undoes a lease whose action has not started; its paths settle again.
    ///
    /// - Parameters:
    ///   - number: The offer.
    ///   - isReported: Whether the removal of the file was already reported.
    ///   - now: The current time.
    package func withdraw(_ number: UInt64, isReported: Bool = false, at now: ContinuousClock.Instant) {
        guard let offer = offers[number] else { return }
        if offer.hasRun {
            // The state that the previous attempt left is unknown: the file may be back before its absence has
            // settled.
            offers.update(number) { $0.state = .retrying(now) }
        } else {
            remove(offer)
            addDue(offer.path, settled: nil, DirtyPaths.Hints(signs: offer.signs.union(.vanished), origin: .live))
            due.announce(offer.path, isReported ? nil : offer.offered?.identity)
        }
        for path in offer.paths {
            markDirty(path, .vanished, .live, at: now)
            due.wake(.path(path))
        }
        // No hint names the other names of a file that was removed in the meantime.
        if let offered = offer.offered, offered.hasSeveralNames { markOtherNames(offer.path, [offered.identity]) }
    }

    /// Undoes a lease whose action has not started; its path waits for a condition of the owner.
    ///
    /// The wait ends at the given time at the latest.
    package func postpone(
        _ number: UInt64, for gate: Reconciler.Gate, until time: ContinuousClock.Instant,
        _ reason: Reconciler.Reason? = nil
    ) {
        guard let offer = undoLease(number, until: time) else { return }
        due.wait(offer.path, for: .gate(gate), until: time, reason)
    }

    /// Undoes a lease whose action has not started; its path is the first in the order.
    package func putBack(_ number: UInt64, at now: ContinuousClock.Instant) {
        if let offer = undoLease(number, until: now) { due.requeueFirst(offer.path) }
    }

    /// Makes the path of an offer due again; returns nil if an action of it has run, so that it is retried at the time.
    private func undoLease(_ number: UInt64, until time: ContinuousClock.Instant) -> Offer? {
        guard let offer = offers[number] else { return nil }
        if offer.hasRun {
            offers.update(number) { $0.state = .retrying(time) }
            for path in offer.paths { compare(path) }
            return nil
        }
        remove(offer)
        let hints = DirtyPaths.Hints(signs: offer.signs, origin: offer.event.origin)
        let settled: Snapshot?? = isDirty(offer.path) ? nil : .some(inspect(offer.path))
        addDue(offer.path, settled: settled, hints, since: offer.event.time)
        due.announce(offer.path, offer.offered?.identity)
        if let from = offer.event.from { compare(from) }
        return offer
    }

    /// Records that a step has succeeded and another one follows.
    package func finishStep(_ number: UInt64, removedInput: Bool) {
        releaseOutputs(number)
        offers.update(number) { offer in
            (offer.hasSteps, offer.hasRun, offer.isInterrupted) = (true, true, false)
            if removedInput { offer.hasRemovedInput = true }
        }
    }

    /// Records the metadata that the offer's file had after its action.
    ///
    /// All hints that were queued when the result arrived must be received before. They apply until ``finish``, unless
    /// one of them names the path.
    package func recordSeen(_ snapshot: Snapshot, by number: UInt64) {
        guard let path = offers[number]?.path, !isDirty(path), due[path] == nil else { return }
        shared.files.record(snapshot, at: path)
    }

    /// Changes an offer, if it is unfinished.
    package func update(_ number: UInt64, _ body: (inout Offer) -> Void) { offers.update(number, body) }

    /// Records the result of an attempt.
    ///
    /// All hints that were queued when the result arrived must be received before.
    package func finish(
        _ number: UInt64, _ termination: Reconciler.Termination, at now: ContinuousClock.Instant
    ) {
        guard var offer = offers[number] else { return }
        releaseOutputs(number)
        let there = inspect(offer.path)
        let hasChanged = offer.left.map { left in there.map { !$0.isSameState(as: left) } ?? true } ?? true
        offer.left = there
        switch termination {
        case .gone: return supersede(number)
        case .retry(let time, let counts):
            offer.state = .retrying(time)
            if counts { offer.hasRun = true }
            offers.set(offer)
            for path in offer.paths { compare(path, at: now) }
            return
        case .overtaken:
            offer.state = .retrying(now)
            offer.interrupt()
            offer.left = nil
            offers.set(offer)
            for path in offer.paths { compare(path, at: now) }
            return
        case .succeeded, .gaveUp, .refused: break
        }
        remove(offer)
        settleRows(offer, there, hasChanged: hasChanged, termination)
        for path in offer.paths { compare(path, as: path == offer.path ? .some(there) : nil, at: now) }
        if let offered = offer.offered {
            markNames(of: offer.event)
            if offered.links == 1, let there, there.hasSeveralNames { markOtherNames(offer.path, [offered.identity]) }
        }
    }

    /// Sets the rows to the offered state; they are certain if the action can only have read that.
    private func settleRows(
        _ offer: Offer, _ there: Snapshot?, hasChanged: Bool, _ termination: Reconciler.Termination
    ) {
        // The change time of a plain directory only shows that its entries changed.
        let isPlainDirectory = there?.type == .directory && !view.settle.isTree
        let mayHaveMissed = (isPolled(offer.path) || offer.missedHints) && !isPlainDirectory
        let isSameTime = there == nil || !mayHaveMissed || there?.changed == offer.changed
        var handled = offer.offered
        let isAsOffered =
            there.flatMap { there in
                handled.map { $0.isSameState(as: there) && !wasRewritten(offer.path, $0, there) }
            } ?? (there == nil && handled == nil)
        var isSure = !offer.wasNamed && isSameTime && isAsOffered
        if isAsOffered, let there { handled?.changed = there.changed }
        if !offer.wasNamed, offer.isRepeat, view.mayChangeInput, let there, there.identity == handled?.identity {
            isSure = true
            handled = there
            handled?.delivered = offer.offered?.delivered
        } else if !isAsOffered, hasChanged {
            left[offer.path] = there
        }
        // The same file may never have been removed, or may be back under another of its names. A file hidden by a
        // mount may still exist.
        if offer.hasRemovedInput, there != nil || isRemoved(offer.path, offer.offered) {
            (isSure, handled) = (there == nil || there?.identity != offer.offered?.identity, nil)
        }
        if offer.hasWrittenPath, let own = row(offer.path).handled {
            (isSure, handled) = (there.map(own.isUnchanged) ?? false, own)
        }
        if let from = offer.event.from {
            settleSource(from, of: offer, termination)
            isSure = isSure && offer.trustBefore[from] == .certain
        }
        // As with refusals that do not depend on the content, nothing remains to be reported.
        if termination == .refused { isSure = true }
        let trust: LedgerRow.Trust = termination == .gaveUp ? .failed : isSure ? .certain : .uncertain
        let isSuppressed = termination == .refused && offer.event.isOfNewPath && !offer.isUncertain
        set(offer.path, LedgerRow(handled, trust, isSuppressed: isSuppressed))
    }

    /// Sets the row of the path from which the file of an offer was moved.
    private func settleSource(_ from: PathBytes, of offer: Offer, _ termination: Reconciler.Termination) {
        let source = row(from).handled
        if termination == .refused {
            // Without an event for the new name, the old one is gone.
            set(from, LedgerRow(source, offer.trustBefore[from] ?? .uncertain))
        } else {
            // A file that the action itself has written there since is another one. If it is not, the moved file has
            // replaced what the action has written.
            let isOther = source != nil && source?.identity != offer.event.before?.identity
            if isOther {
                set(from, LedgerRow(source))
            } else {
                set(from, offer.hasWrittenSource ? LedgerRow(source, .uncertain) : LedgerRow())
            }
        }
    }

    // MARK: Restarts and retries

    /// Restores the offers that an earlier run left; those that were running were interrupted.
    package func restore(_ former: [Offer], at now: ContinuousClock.Instant) {
        shared.active.insert(index)
        for var offer in former {
            if offer.state == .leased {
                offer.state = .retrying(now)
                offer.interrupt()
                offer.left = inspect(offer.path)
            }
            if offer.hasSteps || offer.state == .givenUp { offer.missedHints = true }
            offer.trustBefore = [:]
            shared.number = max(shared.number, offer.number)
            insert(offer)
        }
        for offer in former { for path in offer.paths { compare(path) } }
    }

    /// Restores the read positions of an earlier run.
    package func restore(_ positions: [FileIdentity: ReadPosition]) {
        // With the current device numbers; a rule that no longer follows files needs none.
        for (file, position) in positions { setCarried(file, view.tail == nil ? nil : position) }
    }

    /// Compares the paths that were due at the end of an earlier run.
    package func restoreDue(_ paths: [StoredDuePath], at now: ContinuousClock.Instant) {
        for due in paths {
            formerWriters[due.path] = due.writer
            markDirty(due.path, .listed, .live, at: now)
        }
    }

    /// Retries a failed offer if no newer event of its paths was leased; otherwise compares its paths.
    package func retry(_ failed: Offer, at now: ContinuousClock.Instant) {
        guard !failed.paths.contains(where: { offers.number(at: $0) != nil }) else { return }
        let row = row(failed.path)
        let isOverdue = failed.paths.contains { $0 != failed.path && self.row($0) != LedgerRow() }
        let isCurrent =
            failed.offered.map { offered in
                row.trust == .failed && row.handled?.isSameState(as: offered) == true
            } ?? (row == LedgerRow())
        if !failed.hasRemovedInput, isOverdue || !isCurrent {
            for path in failed.paths {
                // An empty row means that the deletion was received since; a withheld one, that nothing was; a certain
                // one, that a later job has succeeded.
                let row = self.row(path)
                if row != LedgerRow(), !row.isSuppressed, row.trust != .certain {
                    set(path, LedgerRow(row.handled, .uncertain))
                }
                compare(path)
            }
            return
        }
        var offer = failed
        offer.trustBefore = [:]
        offer.state = .retrying(now)
        offer.hasRun = true
        offer.missedHints = true
        insert(offer)
        shared.active.insert(index)
        for path in offer.paths { compare(path) }
    }

    /// Makes the next attempt of an offer due now.
    package func hasten(_ number: UInt64, at now: ContinuousClock.Instant) {
        guard let offer = offers[number], case .retrying = offer.state else { return }
        offers.update(number) { $0.state = .retrying(now) }
        for path in offer.paths { compare(path) }
        due.requeue(offer.path)
    }

    // MARK: Own writes

    /// Changes the file at a path on behalf of Alight itself, without reporting an event.
    ///
    /// - Returns: False if an action runs for the path, or is pending for a frozen event; nothing is changed in that
    ///   case.
    package func undo(_ path: PathBytes, _ change: () -> Void) -> Bool {
        guard frozen.count(of: path) == 0 else { return false }
        if let offer = offers.offer(at: path) {
            guard !offer.isRunning else { return false }
            supersede(offer.number)
        }
        change()
        shared.files.paths.forget()
        shared.files.forget()
        removeDue(path)
        markHandled(path)
        if isPolled(path) { shared.doubted.append(path) }
        due.wake(.path(path))
        return true
    }

    /// Blocks a path that the running step of an offer is about to write until the step is finished.
    package func declareOutput(_ number: UInt64, _ path: PathBytes) {
        if root(of: path) != nil { offers.declareOutput(path, of: number) }
    }

    /// Releases the paths that a step has declared, whether or not it has written them.
    private func releaseOutputs(_ number: UInt64) {
        for path in offers.removeOutputs(of: number) { compare(path) }
    }

    /// Records that a step of an offer has written a path; the offer's own path is offered in its current state.
    package func recordOwnWrite(_ path: PathBytes, of number: UInt64) {
        guard let offer = offers[number], offer.path == path, offer.event.kind != .deleted else {
            if offers[number]?.path == path { offers.update(number) { $0.hasWrittenPath = true } }
            return recordOwnWrite(path)
        }
        if let now = inspect(path) {
            offers.update(number) { $0.event.snapshot = now }
        } else {
            offers.update(number) { $0.hasRemovedInput = true }
        }
    }

    /// Records that an action of the rule has written a path.
    package func recordOwnWrite(_ path: PathBytes) {
        // The current trust is not used, since an offer of the path may be undone.
        let trust = shared.ledger.row(of: view.id, at: path).trust
        markHandled(path)
        if trust == .uncertain { set(path, LedgerRow(row(path).handled, .uncertain)) }
        if let offer = offers.offer(at: path), offer.event.from == path {
            offers.update(offer.number) { $0.hasWrittenSource = true }
        }
        // The file is hinted again, so that the next poll does not miss it if it is gone by then.
        if isPolled(path) { shared.doubted.append(path) }
    }

    /// Records a file as handled if an action has received it on a user's request and it is unchanged since.
    package func recordApplied(_ event: FileEvent) {
        let path = event.path
        guard root(of: path) != nil, offers.number(at: path) == nil, row(path).trust != .uncertain,
            let now = inspect(path), now.isSameState(as: event.snapshot), !wasRewritten(path, event.snapshot, now)
        else { return }
        set(path, LedgerRow(now))
        if due[path]?.settled != nil { resolve(path, wasHandled: true) }
    }

    /// Deletes the row of a path.
    package func forget(_ path: PathBytes) { set(path, LedgerRow()) }
}

extension FileEvent {
    fileprivate var isOfNewPath: Bool { kind == .created || kind == .moved && !isReplaced }
}
