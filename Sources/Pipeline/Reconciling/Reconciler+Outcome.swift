import FileEvents
import Settling
package import System

extension Reconciler {
    /// The result of an attempt.
    package enum Termination: Sendable, Hashable {
        case succeeded
        /// It failed and is retried at the time; `counts` is whether the attempt counts.
        case retry(at: ContinuousClock.Instant, counts: Bool = true)
        /// It was stopped because its file has changed; this does not count as an attempt.
        case overtaken
        /// It failed and is not retried.
        case gaveUp
        /// It found neither its input nor its own output.
        case gone
        /// The rule does not match the event because of the content of the file.
        case refused
    }

    /// Undoes a lease whose action has not started; its paths settle again.
    ///
    /// - Parameters:
    ///   - view: The view.
    ///   - number: The offer.
    ///   - isReported: Whether the removal of the file was already reported.
    ///   - now: The current time.
    package mutating func withdraw(
        _ view: Int, _ number: UInt64, isReported: Bool = false, at now: ContinuousClock.Instant
    ) {
        guard let offer = states[view].offers[number] else { return }
        if offer.mayHaveBegun {
            // The state that the previous attempt left is unknown: the file may be back before its absence has
            // settled.
            states[view].offers[number]?.state = .retrying(now)
        } else {
            undoLease(view, offer)
            addDue(view, offer.path, settled: nil, Note(signs: .vanished, origin: .live))
            states[view].due.announce(offer.path, isReported ? nil : offer.offered?.identity)
        }
        for path in offer.paths {
            markDirty(path, .vanished, .live, [view], at: now)
            states[view].due.wake(.path(path))
        }
        // No hint names the other names of a file that was removed in the meantime.
        if let offered = offer.offered, offered.links > 1 { markOtherNames(view, offer.path, [offered.identity]) }
    }

    /// Undoes a lease whose action has not started; its path waits for a condition of the owner.
    ///
    /// The wait ends at the given time at the latest.
    package mutating func postpone(
        _ view: Int, _ number: UInt64, for gate: Gate, until time: ContinuousClock.Instant, _ reason: Reason? = nil
    ) {
        guard let offer = states[view].offers[number] else { return }
        if offer.mayHaveBegun {
            states[view].offers[number]?.state = .retrying(time)
            for path in offer.paths { compare(view, path) }
            return
        }
        undoLease(view, offer)
        addDue(view, offer.path, settled: .some(inspect(view, offer.path)), Note(signs: [], origin: offer.event.origin))
        states[view].due.wait(offer.path, for: .gate(gate), until: time, reason)
        if let from = offer.event.from { compare(view, from) }
    }

    private mutating func undoLease(_ view: Int, _ offer: Offer) {
        states[view].offers[offer.number] = nil
        for path in offer.paths { states[view].offerOfPath[path] = nil }
    }

    /// Records that a step has succeeded and another one follows.
    package mutating func finishStep(_ view: Int, _ number: UInt64, removedInput: Bool) {
        releaseOutputs(view, number)
        states[view].offers[number]?.steps += 1
        states[view].offers[number]?.isInterrupted = false
        if removedInput { states[view].offers[number]?.hasRemovedInput = true }
    }

    /// Changes an offer.
    package mutating func update(_ view: Int, _ number: UInt64, _ body: (inout Offer) -> Void) {
        guard var offer = states[view].offers[number] else { return }
        body(&offer)
        states[view].offers[number] = offer
    }

    /// Records the result of an attempt.
    ///
    /// All hints that were queued when the result arrived must be received before.
    package mutating func finish(
        _ view: Int, _ number: UInt64, _ termination: Termination, at now: ContinuousClock.Instant
    ) {
        guard var offer = states[view].offers[number] else { return }
        releaseOutputs(view, number)
        let there = inspect(view, offer.path)
        offer.isSent = false
        let hasChanged = offer.left.map { left in there.map { !$0.isSameState(as: left) } ?? true } ?? true
        offer.left = there
        switch termination {
        case .gone: return supersede(view, number)
        case .retry(let time, let counts):
            offer.state = .retrying(time)
            if counts { offer.attempt += 1 }
            states[view].offers[number] = offer
            for path in offer.paths { compare(view, path, at: now) }
            return
        case .overtaken:
            offer.state = .retrying(now)
            offer.isInterrupted = true
            offer.left = nil
            states[view].offers[number] = offer
            for path in offer.paths { compare(view, path, at: now) }
            return
        case .succeeded, .gaveUp, .refused: break
        }
        states[view].offers[number] = nil
        for path in offer.paths { states[view].offerOfPath[path] = nil }
        settleRows(view, offer, there, hasChanged: hasChanged, termination)
        if states[view].view.whileBusy == .drop { dropSettled(view, offer) }
        guard applies(.recheck) else { return }
        for path in offer.paths { compare(view, path, as: path == offer.path ? .some(there) : nil, at: now) }
        if let offered = offer.offered {
            markNames(view, of: offer.event)
            if offered.links == 1, let there, there.links > 1 { markOtherNames(view, offer.path, [offered.identity]) }
        }
    }

    /// Sets the rows to the offered state; they are certain if the action can only have read that.
    private mutating func settleRows(
        _ view: Int, _ offer: Offer, _ there: Snapshot?, hasChanged: Bool, _ termination: Termination
    ) {
        let mayHaveMissed = isPolled(view, offer.path) || offer.missedHints
        let isSameTime = there == nil || !mayHaveMissed || there?.changed == offer.changed
        var handled = offer.offered
        let isAsOffered =
            there.flatMap { there in handled.map { $0.isSameState(as: there) } } ?? (there == nil && handled == nil)
        var isSure = !offer.wasNamed && isSameTime && isAsOffered
        if isAsOffered, let there { handled?.changed = there.changed }
        if !offer.wasNamed, offer.isRepeat, states[view].view.mayChangeInput, let there,
            there.identity == handled?.identity
        {
            isSure = true
            handled = there
            handled?.delivered = offer.offered?.delivered
        } else if !isAsOffered, hasChanged {
            states[view].left[offer.path] = there
        }
        // The same file may never have been removed, or may be back under another of its names. A file hidden by a
        // mount may still exist.
        if offer.hasRemovedInput, there != nil || isInSight(view, offer.path, offer.offered) {
            (isSure, handled) = (there == nil || there?.identity != offer.offered?.identity, nil)
        }
        if offer.hasWrittenPath, let own = row(view, offer.path).handled {
            (isSure, handled) = (there.map(own.isUnchanged) ?? false, own)
        }
        if !applies(.readWhatWasOffered) { isSure = true }
        if let from = offer.event.from {
            settleSource(view, from, of: offer, termination)
            isSure = isSure && (offer.trustBefore[from] == .certain || !applies(.certain))
        }
        // As with refusals that do not depend on the content, nothing remains to be reported.
        if termination == .refused { isSure = true }
        let trust: LedgerRow.Trust = termination == .gaveUp ? .failed : isSure ? .certain : .uncertain
        let isWithheld = termination == .refused && offer.event.isOfNewPath && !offer.isUncertain
        set(view, offer.path, LedgerRow(handled, trust, isWithheld: isWithheld))
    }

    /// Sets the row of the path from which the file of an offer was moved.
    private mutating func settleSource(_ view: Int, _ from: PathBytes, of offer: Offer, _ termination: Termination) {
        let source = row(view, from).handled
        if termination == .refused {
            // Without an event for the new name, the old one is gone.
            set(view, from, LedgerRow(source, offer.trustBefore[from] ?? .uncertain))
        } else {
            // A file that the action itself has written there since is another one.
            let isWritten = source != nil && source?.identity != offer.event.before?.identity
            set(view, from, isWritten ? LedgerRow(source) : LedgerRow())
        }
    }

    // MARK: Restarts, retries, own writes

    /// Restores the offers that an earlier run left; those that were running were interrupted.
    package mutating func restore(_ view: Int, _ offers: [Offer], at now: ContinuousClock.Instant) {
        active.insert(view)
        for var offer in offers {
            if offer.isRunning, !offer.isSent, !offer.isGivenUp {
                offer.state = .retrying(now)
                offer.attempt += 1
                offer.isInterrupted = true
                offer.left = inspect(view, offer.path)
            }
            if offer.steps > 0 && applies(.keptSteps) || offer.isSent && applies(.sent) || offer.isGivenUp {
                offer.missedHints = true
            }
            offer.trustBefore = [:]
            number = max(number, offer.number)
            states[view].offers[offer.number] = offer
            for path in offer.paths { states[view].offerOfPath[path] = offer.number }
        }
        for offer in offers { for path in offer.paths { compare(view, path) } }
    }

    /// Compares the paths that were due at the end of an earlier run.
    package mutating func restoreDue(_ view: Int, _ paths: [StoredDuePath], at now: ContinuousClock.Instant) {
        for due in paths {
            states[view].formerWriters[due.path] = due.writer
            markDirty(due.path, .listed, .live, [view], at: now)
        }
    }

    /// Retries a failed offer if no newer event of its paths was leased; otherwise compares its paths.
    package mutating func retry(_ view: Int, _ failed: Offer, at now: ContinuousClock.Instant) {
        guard !failed.paths.contains(where: { states[view].offerOfPath[$0] != nil }) else { return }
        let row = row(view, failed.path)
        let isOverdue = failed.paths.contains { $0 != failed.path && self.row(view, $0) != LedgerRow() }
        let isCurrent =
            failed.offered.map { offered in
                row.trust == .failed && row.handled?.isSameState(as: offered) == true
            } ?? (row == LedgerRow())
        if applies(.overtaken), !failed.hasRemovedInput, isOverdue || !isCurrent {
            for path in failed.paths {
                // An empty row means that the deletion was received since; a withheld one, that nothing was.
                let row = self.row(view, path)
                if row != LedgerRow(), !row.isWithheld { set(view, path, LedgerRow(row.handled, .uncertain)) }
                compare(view, path)
            }
            return
        }
        var offer = failed
        offer.trustBefore = [:]
        offer.state = .retrying(now)
        offer.attempt = 2
        offer.isSent = false
        offer.missedHints = true
        states[view].offers[offer.number] = offer
        active.insert(view)
        for path in offer.paths { states[view].offerOfPath[path] = offer.number }
        for path in offer.paths { compare(view, path) }
    }

    /// Changes the file at a path on behalf of Alight itself, without reporting an event.
    ///
    /// - Returns: False if an action runs for the path, or is pending for a frozen event; nothing is changed in that
    ///   case.
    package mutating func undo(_ view: Int, _ path: PathBytes, _ change: () -> Void) -> Bool {
        guard states[view].frozen[path] == nil else { return false }
        if let number = states[view].offerOfPath[path], let offer = states[view].offers[number] {
            guard !offer.isRunning else { return false }
            if applies(.ownLane) { supersede(view, number) }
        }
        change()
        files.forget()
        removeDue(view, path)
        markHandled(view, path)
        if isPolled(view, path) { doubted.append(path) }
        states[view].due.wake(.path(path))
        return true
    }

    /// Blocks a path that the running step of an offer is about to write until the step is finished.
    package mutating func declareOutput(_ view: Int, _ number: UInt64, _ path: PathBytes) {
        guard root(view, path) != nil else { return }
        states[view].outputs[path] = number
    }

    /// Releases the paths that a step has declared, whether or not it has written them.
    private mutating func releaseOutputs(_ view: Int, _ number: UInt64) {
        for path in states[view].outputs.filter({ $0.value == number }).keys.sorted() {
            states[view].outputs[path] = nil
            compare(view, path)
        }
    }

    /// Records that a step of an offer has written a path; the offer's own path is offered in its current state.
    package mutating func recordOwnWrite(_ view: Int, _ path: PathBytes, of number: UInt64) {
        guard let offer = states[view].offers[number], offer.path == path, offer.event.kind != .deleted else {
            if states[view].offers[number]?.path == path { states[view].offers[number]?.hasWrittenPath = true }
            return recordOwnWrite(view, path)
        }
        if let now = inspect(view, path) {
            states[view].offers[number]?.event.snapshot = now
        } else {
            states[view].offers[number]?.hasRemovedInput = true
        }
    }

    /// Records that an action of the rule has written a path.
    package mutating func recordOwnWrite(_ view: Int, _ path: PathBytes) {
        // The current trust is not used, since an offer of the path may be undone.
        let trust = ledger.row(of: states[view].view.id, at: path).trust
        markHandled(view, path)
        if trust == .uncertain { set(view, path, LedgerRow(row(view, path).handled, .uncertain)) }
        // The file is hinted again, so that the next poll does not miss it if it is gone by then.
        if isPolled(view, path) { doubted.append(path) }
    }
}

extension FileEvent {
    fileprivate var isOfNewPath: Bool { kind == .created || kind == .moved && !isReplaced }
}
