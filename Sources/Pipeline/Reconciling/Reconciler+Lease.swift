package import FileEvents
import Settling
package import System

extension Reconciler {
    /// The result of comparing a due path with its ledger row.
    enum Judgement {
        /// No reportable difference; the payload is the inspected state.
        case nothing(Snapshot?)
        /// The rule does not match the difference; the payload is the inspected state.
        case unreported(Snapshot?)
        case wait(DueTable.Wait)
        case event(FileEvent)
        /// It cannot be inspected.
        case unreadable
    }

    /// Compares a path with its ledger row, as it is now or as it was just inspected.
    func judge(_ view: Int, _ path: PathBytes, as seen: DiskProbe.StatResult? = nil) -> Judgement {
        let row = row(view, path)
        switch seen ?? sight(view, path) {
        case .unreadable: return .unreadable
        case .absent: return judgeGone(view, path, row)
        case .present(var now):
            if let digest = states[view].due[path]?.digest { now.digest = digest }
            return judgePresent(view, path, row, now)
        }
    }

    private func judgeGone(_ view: Int, _ path: PathBytes, _ row: LedgerRow) -> Judgement {
        let signs = states[view].due[path]?.signs ?? []
        guard row.handled != nil || isUncertain(row), isInSight(view, path, row.handled) else {
            return .nothing(nil)
        }
        if let was = row.handled {
            if let other = movedTo(view, was, from: path) { return .wait(.path(other)) }
            if states[view].view.mask.contains(.moved), applies(.listing) {
                if !unlisted.isEmpty { return .wait(.listing) }
                if isPolled(view, path) || signs.contains(.polled), states[view].due[path]?.isConfirmed != true {
                    return .wait(.listing)
                }
            }
        }
        if row.isWithheld && applies(.withheld) || !states[view].view.mask.contains(.deleted) {
            return .unreported(nil)
        }
        var event = event(.deleted, view, path, row.handled ?? .unseen)
        event.isByMove = signs.isSuperset(of: [.vanished, .moved])
        return .event(attributed(view, event))
    }

    private func judgePresent(_ view: Int, _ path: PathBytes, _ row: LedgerRow, _ now: Snapshot) -> Judgement {
        let mask = states[view].view.mask
        let signs = states[view].due[path]?.signs ?? []
        let isUncertain = isUncertain(row)
        let seen = now
        guard let handled = row.handled else {
            if let move = move(view, to: path, now, isReplacing: false) { return move }
            var event = event(.created, view, path, now)
            event.isByMove = signs.isSuperset(of: [.appeared, .moved])
            return reported(view, event, seen)
        }
        let was = known(handled, as: now, at: path, signs)
        // A file with another name, at present or in between, may have been written through that name.
        let mayBeWritten =
            signs.contains(.written) || !signs.contains(.attributes) || now.links > 1
            || !signs.isDisjoint(with: [.listed, .polled, .appeared])
        let difference = Difference(before: was, after: now, mayBeWritten: mayBeWritten)
        var now = now
        if !states[view].view.settle.isTree { now.digest = was.digest }
        now.delivered = was.delivered
        var event = event(.modified, view, path, now)
        event.before = was
        event.isReplaced = difference.isReplaced
        event.changed = difference.content
        let hasMoreText = handled.hasMoreText(now)
        if hasMoreText, event.changed.isEmpty { event.changed = ["extended"] }
        guard !difference.isEmpty || hasMoreText else {
            return isUncertain ? reported(view, event, seen) : .nothing(seen)
        }
        if difference.isReplaced {
            if let other = movedTo(view, handled, from: path) { return .wait(.path(other)) }
            if let move = move(view, to: path, now, isReplacing: true) { return move }
        }
        let isContent =
            isUncertain && states[view].view.tailBytes == nil || difference.isReplaced || !event.changed.isEmpty
        if !isContent || mask.isDisjoint(with: .content) && !difference.attributes.isEmpty {
            event.kind = .attributes
            event.changed = difference.attributes
        }
        return reported(view, event, seen)
    }

    private func isUncertain(_ row: LedgerRow) -> Bool { row.trust == .uncertain && applies(.certain) }

    private func reported(_ view: Int, _ event: FileEvent, _ seen: Snapshot) -> Judgement {
        guard states[view].view.mask.takes(event.kind, changed: event.changed) else { return .unreported(seen) }
        let event = attributed(view, event)
        guard admits(view, event) else { return .unreported(seen) }
        return .event(event)
    }

    // MARK: Moves

    /// Returns the move by which a file came to a path; nil if it did not come from a path at which it was handled.
    private func move(_ view: Int, to path: PathBytes, _ now: Snapshot, isReplacing: Bool) -> Judgement? {
        // Without a birth time a reused inode looks like a moved file.
        guard states[view].view.mask.contains(.moved), now.identity.birth != 0 else { return nil }
        var paths = ledger.paths(of: states[view].view.id, handling: identity(of: now, at: path)).filter { $0 != path }
        if states[view].view.tailBytes != nil {
            if let unfinished = paths.first(where: { hasUnfinishedText(view, $0) }) { return .wait(.path(unfinished)) }
            // Its text continues after the last position read.
            paths.sort { row(view, $0).handled?.delivered ?? 0 > row(view, $1).handled?.delivered ?? 0 }
        }
        for from in paths {
            let source = row(view, from)
            guard let handled = source.handled, !source.isWithheld else { continue }
            switch sight(view, from) {
            case .present(let there) where there.identity == now.identity || isReplacing: continue
            case .unreadable: continue
            default: break
            }
            let event = attributed(view, moveEvent(view, from, handled, to: path, now, isReplacing: isReplacing))
            guard admits(view, event) else { continue }
            if let number = states[view].offerOfPath[from], states[view].offers[number]?.isRunning == true {
                return .wait(.path(from))
            }
            return .event(event)
        }
        return nil
    }

    private func moveEvent(
        _ view: Int, _ from: PathBytes, _ handled: Snapshot, to path: PathBytes, _ now: Snapshot, isReplacing: Bool
    ) -> FileEvent {
        var offered = handled
        if handled.isSameState(as: now) { (offered.changed, offered.mount) = (now.changed, now.mount) }
        offered.identity = now.identity
        var event = event(.moved, view, path, offered)
        event.from = from
        event.before = handled
        event.isReplaced = isReplacing
        return event
    }

    /// Returns a dirty or due path without a row that contains the file handled at a path: it will be reported as a
    /// move from there.
    private func movedTo(_ view: Int, _ was: Snapshot, from path: PathBytes) -> PathBytes? {
        guard applies(.waitForMove), states[view].view.mask.contains(.moved), was.identity.birth != 0,
            !row(view, path).isWithheld
        else {
            return nil
        }
        let paths = dirtyFiles[was.identity].union(states[view].dueFiles[was.identity])
        return paths.sorted().first { other in
            guard other != path, root(view, other) != nil, row(view, other).handled == nil, !isEndless(view, other),
                let now = present(view, other), now.identity == was.identity
            else { return false }
            return admits(view, attributed(view, moveEvent(view, path, was, to: other, now, isReplacing: false)))
        }
    }

    /// Returns the identity under which the ledger may contain the file at a path.
    ///
    /// On overlayfs, a file that was born after its content was last written may be the copy of one with an earlier
    /// birth time.
    private func identity(of snapshot: Snapshot, at path: PathBytes) -> FileIdentity {
        guard let born = snapshot.born, snapshot.modified < born else { return snapshot.identity }
        return files.isOnOverlay(path) ? snapshot.identity.withoutBirth : snapshot.identity
    }

    /// Returns the row's metadata, with the current file's identity if that is its copy in the upper layer of
    /// overlayfs.
    private func known(
        _ before: Snapshot, as snapshot: Snapshot, at path: PathBytes, _ signs: Hint.Signs
    ) -> Snapshot {
        guard snapshot.mayBeCopy(of: before) else { return before }
        let isSameName = signs.isDisjoint(with: [.appeared, .vanished, .listed, .polled])
        guard isSameName || snapshot.isUnwrittenCopy(of: before), files.isOnOverlay(path) else { return before }
        var known = before
        known.identity = snapshot.identity
        return known
    }

    /// Whether an absent path is removed and not just hidden by a missing root or another file system.
    func isInSight(_ view: Int, _ path: PathBytes, _ before: Snapshot?) -> Bool {
        guard let root = root(view, path), case .present(let there) = host.fileSystem.stat(root) else { return false }
        guard let before else { return true }
        var directory = path.parent
        var present = there
        while directory != root, directory.isInside(root) {
            if case .present(let snapshot) = files.look(at: directory) {
                present = snapshot
                break
            }
            directory = directory.parent
        }
        let isSameDevice =
            present.identity.deviceMajor == before.identity.deviceMajor
            && present.identity.deviceMinor == before.identity.deviceMinor
        if directory == path.parent, away.contains(path), !away.contains(where: { directory.isInside($0) }) {
            return true
        }
        let isAway = away.contains { path.isInside($0) }
        guard before.mount != 0, present.mount != 0 else { return isSameDevice || !isAway }
        return before.mount == present.mount
            || isSameDevice && !isAway && !host.fileSystem.isMounted(before.mount)
    }

    // MARK: Leases

    /// An event of a due path that may be leased, as far as the reconciler itself is concerned.
    package struct Candidate: Sendable {
        package let view: Int
        /// The due path.
        package let path: PathBytes
        package var event: FileEvent
        /// The offer that is retried.
        package let retried: Offer?

        /// Creates a candidate for a path that need not be due.
        package init(view: Int, event: FileEvent) {
            (self.view, path, self.event, retried) = (view, event.path, event, nil)
        }

        init(view: Int, path: PathBytes, event: FileEvent, retried: Offer?) {
            (self.view, self.path, self.event, self.retried) = (view, path, event, retried)
        }
    }

    /// Takes the first due path of a view that may be leased.
    ///
    /// All hints must be received before. The caller leases the candidate, or makes it wait; a candidate for which it
    /// does neither is lost until its path is hinted again.
    package mutating func nextCandidate(_ view: Int, at now: ContinuousClock.Instant) -> Candidate? {
        while let path = states[view].due.next() {
            if let candidate = candidate(view, path, at: now) { return candidate }
        }
        return nil
    }

    /// Takes one due path, if it may be leased.
    package mutating func candidate(
        _ view: Int, _ path: PathBytes, at now: ContinuousClock.Instant
    ) -> Candidate? {
        guard states[view].due[path] != nil else { return nil }
        let old = offer(view, path).flatMap { applies(.busy) || !$0.isRunning ? $0 : nil }
        if old?.isRunning == true || states[view].outputs[path] != nil || hasUnfinishedText(view, path) {
            states[view].due.wait(path, for: .path(path))
            return nil
        }
        var judgement = judge(view, path)
        guard isReady(view, path, judgement, old) else { return nil }
        if let old {
            if let event = repeated(view, old, judgement) {
                guard case .retrying(let due) = old.state, due > now else {
                    return Candidate(view: view, path: path, event: event, retried: old)
                }
                states[view].due.wait(path, for: .time(due))
                return nil
            }
            supersede(view, old.number, settled: path)
            judgement = judge(view, path)
            guard isReady(view, path, judgement, nil) else { return nil }
        }
        return candidate(view, path, judgement)
    }

    /// Returns the candidate of a judged path; nil if it is handled, waits or was frozen.
    mutating func candidate(_ view: Int, _ path: PathBytes, _ judgement: Judgement) -> Candidate? {
        switch judgement {
        case .nothing, .unreported: conclude(view, path, judgement)
        case .unreadable: resettle(view, path)
        case .wait(let wait): self.wait(view, path, wait)
        case .event(let event):
            if let from = event.from, let source = offer(view, from) {
                supersede(view, source.number, settled: path)
                compare(view, from)
                states[view].due.requeue(path)
            } else if freezes(view, event) {
                freeze(view, event)
            } else {
                return Candidate(view: view, path: path, event: event, retried: nil)
            }
        }
        return nil
    }

    /// Takes the events of all due paths of a view, in order, and sets its ledger to the state that they show.
    ///
    /// All hints must be received before.
    package mutating func takeDue(_ view: Int, at now: ContinuousClock.Instant) -> [FileEvent] {
        var events: [FileEvent] = []
        while let path = states[view].due.next() {
            guard let event = candidate(view, path, at: now)?.event else { continue }
            setHandled(view, event)
            events.append(event)
            for path in event.paths {
                if event.kind == .moved { compare(view, path) } else { states[view].due.wake(.path(path)) }
            }
            markNames(view, of: event)
        }
        return events
    }

    /// Sets the rows of the paths that an event names to the state that it shows, and removes the paths from the
    /// order.
    mutating func setHandled(_ view: Int, _ event: FileEvent) {
        for path in event.paths { removeDue(view, path) }
        if let from = event.from { set(view, from, LedgerRow()) }
        set(view, event.path, LedgerRow(event.kind == .deleted ? nil : event.snapshot))
    }

    /// Leases a candidate: the rows of the paths that its event names are uncertain from now on.
    ///
    /// The reconciler must not be changed between ``nextCandidate(_:at:)`` and this call.
    package mutating func lease(_ candidate: Candidate) -> Offer {
        if let old = candidate.retried, let offer = again(candidate.view, old.number, candidate.event) { return offer }
        return make(candidate.view, candidate.event)
    }

    /// Makes a candidate wait for a condition of the owner, at most until the time.
    package mutating func hold(
        _ candidate: Candidate, for gate: Gate, until time: ContinuousClock.Instant? = nil, _ reason: Reason? = nil
    ) {
        states[candidate.view].due.wait(candidate.path, for: .gate(gate), until: time, reason)
        if isEndless(candidate.view, candidate.path) { states[candidate.view].due.wake(.path(candidate.path)) }
    }

    /// Whether a path waits without a limit for a condition that may never be met.
    private func isEndless(_ view: Int, _ path: PathBytes) -> Bool {
        guard case .gate(let gate) = states[view].due[path]?.wait else { return false }
        return gate.mayNeverOpen && states[view].due.limit(of: path) == nil
    }

    /// Returns the due paths that wait for a condition to the order.
    package mutating func wake(_ gate: Gate) {
        for view in active { states[view].due.wake(.gate(gate)) }
    }

    /// A condition for which due paths wait.
    package struct Gate: Sendable, Hashable {
        package let name: String
        package let path: PathBytes?
        /// Whether it may never be met, as for a set with a missing file; other paths do not wait for the outcome.
        package let mayNeverOpen: Bool

        package init(_ name: String, _ path: PathBytes? = nil, mayNeverOpen: Bool = false) {
            (self.name, self.path, self.mayNeverOpen) = (name, path, mayNeverOpen)
        }
    }

    /// The reason why a due path waits.
    package struct Reason: Sendable {
        /// A one-line message for the user.
        package let text: String
        /// Whether the wait ends after a short time by itself.
        package let passesSoon: Bool

        package init(_ text: String, passesSoon: Bool) { (self.text, self.passesSoon) = (text, passesSoon) }
    }

    /// Whether a path may be leased: it is in the state in which it settled, or it is a move, and the other path of
    /// its retry has also settled.
    mutating func isReady(_ view: Int, _ path: PathBytes, _ judgement: Judgement, _ old: Offer?) -> Bool {
        if case .event(let event) = judgement, event.kind == .moved, applies(.moveAtOnce) { return true }
        // The view no longer matches the path: the offer runs unchanged.
        if old != nil, root(view, path) == nil { return true }
        guard let settled = states[view].due[path]?.settled else { return false }
        let isAsSettled = settled == stamp(view, path, judgement)
        guard isAsSettled || !applies(.settledFacts) else {
            resettle(view, path)
            return false
        }
        guard let other = old?.paths.first(where: { $0 != path && isDirty(view, $0) }) else { return true }
        states[view].due.wait(path, for: .path(other))
        return false
    }

    /// Returns the stamp of a path as it was judged.
    private func stamp(_ view: Int, _ path: PathBytes, _ judgement: Judgement) -> DueTable.Stamp {
        if case .event(let event) = judgement, event.kind != .deleted { return DueTable.Stamp(event.snapshot) }
        let now = sight(view, path)
        return now == .absent ? .absent : DueTable.Stamp(now.snapshot)
    }

    /// Returns the event with which an offer is repeated; nil if the offer is superseded.
    ///
    /// It is the offer's own event or, if only its last attempt has changed the file, the current difference.
    private func repeated(_ view: Int, _ old: Offer, _ judgement: Judgement) -> FileEvent? {
        if isAsOffered(view, old) || root(view, old.path) == nil { return old.event }
        guard isLeft(view, old), case .event(let event) = judgement, event.from == nil, !freezes(view, event)
        else { return nil }
        return event
    }

    private mutating func wait(_ view: Int, _ path: PathBytes, _ wait: DueTable.Wait) {
        states[view].due.wait(path, for: wait)
        if case .listing = wait, unlisted.isEmpty { doubted.append(path) }
        // The path that contains its file may never settle.
        guard case .path(let other) = wait, states[view].due[other] == nil, let file = dirtyFile(other) else { return }
        addDue(view, other, settled: nil, Note(signs: [.appeared], origin: .live, file: file))
    }

    func offer(_ view: Int, _ path: PathBytes) -> Offer? {
        states[view].offerOfPath[path].flatMap { states[view].offers[$0] }
    }

    func isDirty(_ view: Int, _ path: PathBytes) -> Bool {
        settler.contains(Key(path: path, policy: states[view].policy))
    }

    /// Makes a path settle again because its state has changed.
    private mutating func resettle(_ view: Int, _ path: PathBytes) {
        if isDirty(view, path) {
            states[view].due.unsettle(path)
        } else {
            markDirty(path, .listed, .live, [view], at: host.clock.now())
        }
    }

    /// Whether the disk is in the offered state, so that the offer can be repeated unchanged.
    private func isAsOffered(_ view: Int, _ offer: Offer) -> Bool {
        let now = inspect(view, offer.path)
        if offer.hasRemovedInput, applies(.steps) { return true }
        if offer.isInterrupted, offer.mayRemoveInput, offer.event.kind != .deleted, applies(.reenter) {
            if now == nil || hasWork(view, offer) { return true }
        }
        guard let offered = offer.offered else { return now == nil }
        guard let now else { return false }
        guard let from = offer.event.from else { return now.isSameState(as: offered) }
        return now.identity == offered.identity && present(view, from)?.identity != now.identity
    }

    /// Whether the disk is in the state that the last attempt of an offer left.
    private func isLeft(_ view: Int, _ offer: Offer) -> Bool {
        guard applies(.leftBehind), offer.event.from == nil, let left = offer.left, let now = inspect(view, offer.path)
        else { return false }
        return now.isSameState(as: left)
    }

    private mutating func again(_ view: Int, _ number: UInt64, _ event: FileEvent) -> Offer? {
        guard var offer = states[view].offers[number] else { return nil }
        if event != offer.event {
            offer.event = event
            offer.isRepeat = true
            offer.steps = 0
        }
        for path in offer.paths { removeDue(view, path) }
        offer.state = .leased
        if offer.steps == 0 || !applies(.keptSteps) {
            offer.wasNamed = false
            offer.missedHints = false
            offer.changed = present(view, offer.path)?.changed
        }
        states[view].offers[number] = offer
        return offer
    }

    private mutating func make(_ view: Int, _ event: FileEvent) -> Offer {
        number += 1
        let paths = event.paths
        // A move offers the handled state, whatever is at the path.
        let now = event.from != nil || event.kind == .deleted ? inspect(view, event.path) : event.snapshot
        let left = states[view].left.removeValue(forKey: event.path)
        let before = Dictionary(paths.map { ($0, row(view, $0).trust) }) { first, _ in first }
        var offer = Offer(
            number: number, event: event, isUncertain: before.values.contains { $0 == .uncertain || $0 == .failed },
            isRepeat: event.from == nil && now.flatMap { now in left.map { $0.isSameState(as: now) } } ?? false,
            changed: event.kind == .deleted ? nil : now?.changed, trustBefore: before)
        if event.from != nil { offer.left = now }
        for path in paths {
            removeDue(view, path)
            states[view].offerOfPath[path] = number
        }
        states[view].offers[number] = offer
        active.insert(view)
        return offer
    }

    /// Ends an offer in favor of a newer event; its paths stay uncertain and are compared.
    mutating func supersede(_ view: Int, _ number: UInt64, settled: PathBytes? = nil) {
        guard let offer = states[view].offers[number] else { return }
        states[view].offers[number] = nil
        for path in offer.paths {
            if applies(.keepUncertain) { set(view, path, row(view, path)) }
            states[view].offerOfPath[path] = nil
        }
        for path in offer.paths where path != settled { compare(view, path) }
        reports.append(.superseded(view: view, offer))
    }

    /// Stores the metadata with which a path was judged to have no reportable difference.
    mutating func refresh(_ view: Int, _ path: PathBytes, _ seen: Snapshot) {
        var row = row(view, path)
        guard let handled = row.handled, !handled.isUnchanged(seen) else { return }
        var fresh = seen
        (fresh.digest, fresh.delivered) = (handled.digest, handled.delivered)
        row.handled = fresh
        set(view, path, row)
    }
}

extension DiskProbe.StatResult {
    fileprivate var snapshot: Snapshot? {
        if case .present(let snapshot) = self { snapshot } else { nil }
    }
}

extension Snapshot {
    /// Whether both are the same file with the same content and attributes.
    func isSameState(as other: Snapshot) -> Bool {
        hasSameContent(as: other) && mode == other.mode && uid == other.uid && gid == other.gid
            && (type == .directory
                ? digest == other.digest || digest == nil || other.digest == nil : links == other.links)
    }
}
