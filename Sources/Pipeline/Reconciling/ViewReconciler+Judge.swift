package import FileEvents
import Settling
package import System

extension ViewReconciler {
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
    func judge(_ path: PathBytes, as seen: DiskProbe.StatResult? = nil) -> Judgement {
        let row = row(path)
        switch seen ?? stat(path) {
        case .unreadable: return .unreadable
        case .absent: return judgeGone(path, row)
        case .present(var now):
            if let digest = due[path]?.digest { now.digest = digest }
            return judgePresent(path, row, now)
        }
    }

    private func judgeGone(_ path: PathBytes, _ row: LedgerRow) -> Judgement {
        let signs = due[path]?.signs ?? []
        guard row.handled != nil || row.trust == .uncertain, isRemoved(path, row.handled) else { return .nothing(nil) }
        if let was = row.handled {
            if let other = movedTo(was, from: path, isGone: true) { return .wait(.path(other)) }
            if view.mask.contains(.moved) {
                if !shared.unlisted.isEmpty { return .wait(.listing) }
                if isPolled(path) || signs.contains(.polled), due[path]?.isConfirmed != true { return .wait(.listing) }
            }
        }
        if row.isSuppressed || !view.mask.contains(.deleted) { return .unreported(nil) }
        var event = event(.deleted, path, row.handled ?? .unseen)
        event.isByMove = signs.isSuperset(of: [.vanished, .moved])
        return .event(attributed(event))
    }

    private func judgePresent(_ path: PathBytes, _ row: LedgerRow, _ now: Snapshot) -> Judgement {
        let mask = view.mask
        let isUncertain = row.trust == .uncertain
        let seen = now
        guard let handled = row.handled else {
            if let move = move(to: path, now, isReplacing: false) { return move }
            var event = event(.created, path, now)
            event.isByMove = due[path]?.signs.isSuperset(of: [.appeared, .moved]) ?? false
            return reported(event, seen)
        }
        let was = shared.files.known(handled, as: now, at: path, due[path]?.signs ?? [])
        let difference = Difference(before: was, after: now, writing: writing(at: path, handled, now))
        var now = now
        if !view.settle.isTree { now.digest = was.digest }
        now.delivered = was.delivered
        var event = event(.modified, path, now)
        event.before = was
        event.isReplaced = difference.isReplaced
        event.changed = difference.content
        let hasMoreText = handled.hasMoreText(now)
        if hasMoreText, event.changed.isEmpty { event.changed = ["extended"] }
        guard !difference.isEmpty || hasMoreText else {
            return isUncertain ? reported(event, seen) : .nothing(seen)
        }
        if difference.isReplaced {
            if let other = movedTo(handled, from: path) { return .wait(.path(other)) }
            if let move = move(to: path, now, isReplacing: true) { return move }
        }
        let isContent = isUncertain && view.tail == nil || difference.isReplaced || !event.changed.isEmpty
        if !isContent || mask.isDisjoint(with: .content) && !difference.attributes.isEmpty {
            event.kind = .attributes
            event.changed = difference.attributes
        }
        return reported(event, seen)
    }

    /// Returns the evidence that a due file was written since it was handled.
    func writing(at path: PathBytes, _ handled: Snapshot, _ now: Snapshot) -> Difference.Writing {
        let signs = due[path]?.signs ?? []
        if signs.contains(.written) { return .certain }
        if now.hasSeveralNames, handled.changed != now.changed, isWrittenByAnyName(handled.identity, now.changed) {
            return .certain
        }
        // The copy in the upper layer of overlayfs has a change time of its own.
        if !signs.isDisjoint(with: [.listed, .polled]), handled.identity == now.identity { return .unwatched }
        // A file with another name, at present or in between, may have been written through that name.
        let isOnlyAttributes =
            signs.isSuperset(of: .attributes) && signs.isDisjoint(with: [.listed, .polled, .appeared])
        return isOnlyAttributes && !now.hasSeveralNames ? .excluded : .possible
    }

    /// Whether the kernel has reported a write to a changed file under any of its names.
    private func isWrittenByAnyName(_ identity: FileIdentity, _ changed: Timestamp) -> Bool {
        let file = fileNames(of: identity, changed: changed)
        if let isWritten = file.isWritten { return isWritten }
        let isWritten = file.present.contains(where: isWritten) || file.others.paths.contains(where: isWritten)
        names.files[identity]?.isWritten = isWritten
        return isWritten
    }

    /// Whether the kernel has reported a write to a file whose size and modification time were the same before.
    func wasRewritten(_ path: PathBytes, _ before: Snapshot, _ now: Snapshot) -> Bool {
        guard isWritten(path) else { return false }
        return !Difference(before: before, after: now, writing: .certain).content.isEmpty
    }

    /// Whether the kernel has reported a write to a path that settles or is due.
    func isWritten(_ path: PathBytes) -> Bool {
        due[path]?.signs.contains(.written) ?? false
            || shared.dirty.hints(of: path, policy)?.signs.contains(.written) ?? false
    }

    private func reported(_ event: FileEvent, _ seen: Snapshot) -> Judgement {
        guard view.mask.takes(event.kind, changed: event.changed) else { return .unreported(seen) }
        let event = attributed(event)
        guard shared.callbacks.admits(index, event) else { return .unreported(seen) }
        return .event(event)
    }

    /// Creates the event of a due path; a move offers the handled state, which has an earlier change time.
    func event(
        _ kind: EventKind, _ path: PathBytes, _ snapshot: Snapshot, changed: Timestamp? = nil
    ) -> FileEvent {
        let entry = due[path]
        var event = FileEvent(
            kind: kind, path: path, root: root(of: path) ?? path.parent, snapshot: snapshot,
            origin: entry?.origin ?? .live, time: entry?.time ?? shared.host.clock.time())
        addOthers(&event, changed: changed ?? snapshot.changed)
        return event
    }

    /// Adds the process that caused an event.
    func attributed(_ event: FileEvent) -> FileEvent {
        var event = event
        event.writer = due[event.path]?.writer ?? shared.callbacks.writer(index, event)
        return event
    }

    /// Adds the number of entries of a directory, and the other names of a file that has appeared under a new name.
    func addOthers(_ event: inout FileEvent, changed: Timestamp) {
        let file = event.snapshot
        if file.type == .directory {
            guard event.kind != .deleted else { return }
            event.children = shared.files.children(of: event.path)
        } else if file.hasSeveralNames, event.kind == .created || event.kind == .moved {
            let path = event.path
            let names = fileNames(of: file.identity, changed: changed)
            var others = Array(names.present.lazy.filter { $0 != path }.prefix(FileEvent.maximumOtherNames))
            for other in names.added where other != path {
                if others.count == FileEvent.maximumOtherNames { break }
                if present(other)?.identity == file.identity { others.append(other) }
            }
            event.sameAs = others.sorted()
        }
    }

    // MARK: Moves

    /// Returns the move by which a file came to a path; nil if it did not come from a path at which it was handled.
    func move(to path: PathBytes, _ now: Snapshot, isReplacing: Bool) -> Judgement? {
        // Without a birth time a reused inode looks like a moved file.
        guard view.mask.contains(.moved), now.identity.birth != 0 else { return nil }
        let identity = shared.files.recordedIdentity(of: now, at: path)
        let isKnown = now.hasSeveralNames && identity == now.identity
        let names = isKnown ? fileNames(of: identity, changed: now.changed).others : nil
        var paths = names?.paths ?? shared.ledger.paths(of: view.id, handling: identity)
        if view.tail != nil {
            let unfinished = paths.first {
                hasUnfinishedText($0) || unfinishedLines[$0]?.event.snapshot.identity == identity
            }
            if let unfinished { return .wait(.path(unfinished)) }
            // Its text continues after the last position read.
            paths.sort { readPosition($0) ?? .none > readPosition($1) ?? .none }
        }
        guard !paths.isEmpty else { return nil }
        let namesakes = names?.namesakes(of: path) ?? paths.filter { $0.lastComponent == path.lastComponent }[...]
        let sources = [namesakes, paths[...]].joined()
        func isLeased(_ from: PathBytes) -> Bool { offers.offer(at: from)?.isRunning == true }
        var found: [PathBytes] = []
        defer { self.names.confirm(found, identity) }
        // A move from a path whose action runs has to wait.
        for waits in [false, true] {
            for from in sources where from != path && isLeased(from) == waits {
                let source = row(from)
                guard let handled = source.handled, !source.isSuppressed else { continue }
                switch stat(from) {
                case .present(let there) where there.identity == now.identity || isReplacing:
                    if there.identity == now.identity { found.append(from) }
                    continue
                case .unreadable: continue
                default: break
                }
                let event = attributed(moveEvent(from, handled, to: path, now, isReplacing: isReplacing))
                guard shared.callbacks.admits(index, event) else { continue }
                return waits ? .wait(.path(from)) : .event(event)
            }
        }
        return nil
    }

    private func moveEvent(
        _ from: PathBytes, _ handled: Snapshot, to path: PathBytes, _ now: Snapshot, isReplacing: Bool
    ) -> FileEvent {
        var offered = handled
        // The rename has set the change time too; without a reported write, it shows none. A write to the former path
        // may be one to the next file there.
        let isWritten = isWritten(path) || isWritten(from) && stat(from) == .absent
        if handled.isSameState(as: now), !isWritten {
            (offered.changed, offered.mount) = (now.changed, now.mount)
        }
        offered.identity = now.identity
        var event = event(.moved, path, offered, changed: now.changed)
        event.from = from
        event.before = handled
        event.isReplaced = isReplacing
        return event
    }

    /// Returns a dirty or due path that contains the file handled at a path: it will be reported as a move from there.
    ///
    /// - Parameters:
    ///   - was: The handled file.
    ///   - path: The path at which it was handled.
    ///   - isGone: Whether no file is at that path: the move may also replace a file.
    ///   - chain: The paths whose files have each replaced another one, up to this path.
    /// - Returns: The path; nil if there is none.
    private func movedTo(
        _ was: Snapshot, from path: PathBytes, isGone: Bool = false, after chain: Set<PathBytes> = []
    ) -> PathBytes? {
        guard view.mask.contains(.moved), was.identity.birth != 0, !row(path).isSuppressed else { return nil }
        let chain = chain.union([path])
        func isTarget(_ other: PathBytes) -> Bool {
            guard !chain.contains(other), root(of: other) != nil, !isEndless(other) else { return false }
            let held = row(other).handled
            guard held?.identity != was.identity, let now = present(other), now.identity == was.identity else {
                return false
            }
            if let held {
                // Its row passes to another path first.
                let isLeaving = offers.offer(at: other)?.event.from == other
                guard isGone || isLeaving || movedTo(held, from: other, after: chain) != nil else { return false }
            }
            let event = moveEvent(path, was, to: other, now, isReplacing: held != nil)
            return shared.callbacks.admits(index, attributed(event))
        }
        let file = was.identity
        // Of several names of a file, each waits for the same name in another directory, if there is one.
        let namesake =
            was.hasSeveralNames
            ? dueFiles.namesake(of: path, at: file, where: isTarget)
                ?? shared.dirty.byFile.namesake(of: path, at: file, where: isTarget) : nil
        return namesake ?? dueFiles.any(of: file, where: isTarget) ?? shared.dirty.byFile.any(of: file, where: isTarget)
    }

    // MARK: Queries

    /// Returns the kind of the event that a due path would have now; nil if it needs none.
    func kind(_ path: PathBytes) -> EventKind? {
        switch judge(path) {
        case .event(let event): event.kind
        case .nothing, .unreported: nil
        case .wait, .unreadable:
            row(path).handled == nil ? .created : present(path) == nil ? .deleted : .modified
        }
    }

    /// Returns the due paths without the job of an earlier attempt, the latest first.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of paths.
    ///   - isWanted: Whether a path is included.
    /// - Returns: The paths.
    package func duePaths(limit: Int, where isWanted: (PathBytes) -> Bool) -> [DuePath] {
        let (now, time) = (shared.host.clock.now(), shared.host.clock.time())
        var paths: [DuePath] = []
        for path in due.entries.latest where paths.count < limit && isWanted(path) {
            guard let entry = due[path], offers.offer(at: path)?.isRunning ?? true, let kind = kind(path) else {
                continue
            }
            var shown = DuePath(path: path, event: kind, since: entry.time)
            shown.reason = entry.reason?.text
            var end = due.limit(of: path)
            switch entry.wait {
            case .path(let other) where other != path: shown.reason = shown.reason ?? "it waits for '\(other)'"
            case .time(let time): end = time
            case .gate, .path, .listing, nil: break
            }
            shown.until = entry.reason?.end ?? end.map { time.advanced(by: $0 - now) }
            paths.append(shown)
        }
        return paths
    }

    /// Whether a path is due and waits for nothing.
    package var hasDue: Bool { due.hasNext }

    /// Returns the position of the first path in the order; nil if there is none.
    package var nextDuePosition: UInt64? { due.nextPosition }

    /// Returns the last position in the order.
    package var lastDuePosition: UInt64 { due.lastPosition }

    /// Whether nothing is due or unfinished.
    package var isIdle: Bool { due.isEmpty && offers.all.isEmpty && frozen.isEmpty }

    /// Returns the number of due paths without an unfinished offer.
    package var dueCount: Int { due.count - offeredDueCount }

    /// Whether a path is due or has an unfinished offer.
    package func isDue(_ path: PathBytes) -> Bool { due[path] != nil || offers.number(at: path) != nil }

    /// Whether a path has settled before a time and waits for nothing.
    package func isDue(_ path: PathBytes, before time: Timestamp) -> Bool {
        guard let entry = due[path] else { return false }
        return entry.settled != nil && entry.wait == nil && entry.time < time
    }

    /// Whether a path settles, is due or has an unfinished offer.
    package func isUnfinished(_ path: PathBytes) -> Bool {
        root(of: path) != nil && (isDirty(path) || isDue(path))
    }

    /// Whether the offered file has been at its path since the first lease.
    ///
    /// Another of its names may have been put there: the kernel reports that, polling shows another change time, and
    /// an interrupted attempt has left its output.
    package func hasSameFile(of number: UInt64) -> Bool {
        guard let offer = offers[number], !offer.wasNamed, let now = present(offer.path),
            !offer.isInterrupted || !shared.callbacks.hasWork(index, offer)
        else { return false }
        guard let offered = offer.offered else { return true }
        let mayBeBack = offered.hasSeveralNames && isPolled(offer.path) && now.changed != offer.changed
        return offered.identity == now.identity && !mayBeBack
    }

    /// Whether a file has settled in its current state: it is due, or the action has received it.
    ///
    /// A due file that has changed since, as when it gets another name, settles again.
    package func hasSettled(_ path: PathBytes, _ snapshot: Snapshot) -> Bool {
        guard !isDirty(path) else { return false }
        if let entry = due[path] {
            let isAsSettled = entry.settled == DueTable.Stamp(snapshot)
            if !isAsSettled { resettle(path) }
            return isAsSettled
        }
        let known = offers.offer(at: path)?.offered ?? row(path).handled
        return known.map { $0.hasSameContent(as: snapshot) } ?? false
    }

    /// Returns the number of offers that wait for their next attempt.
    package var retryingCount: Int { offers.retryingCount }

    /// Returns the number of due paths that wait for something that may take long.
    package var heldCount: Int { due.entries.values.count { $0.reason.map { !$0.passesSoon } ?? false } }

    /// Returns the number of due paths that wait for nothing.
    package var readyCount: Int { due.readyCount }

    /// Returns the directory and the paths inside it that the view knows, or that exist and match.
    package func knownPaths(inside directory: PathBytes) -> [PathBytes] {
        var paths: Set<PathBytes> = []
        shared.ledger.visit(view.id, inside: directory) { path, _ in paths.insert(path) }
        var open = [directory]
        while let path = open.popLast() {
            guard case .present(let snapshot) = shared.files.paths.inspect(at: path) else { continue }
            if root(of: path) != nil { paths.insert(path) }
            guard snapshot.type == .directory else { continue }
            open += ((try? shared.files.paths.names(in: path)) ?? []).map { path.appending($0.bytes) }
        }
        return paths.filter { root(of: $0) != nil }.sorted()
    }

    /// The unfinished offers, in the order of their first leases.
    package var sortedOffers: [Offer] { offers.all.values.sorted { $0.number < $1.number } }

    /// The offers of which an interrupted attempt may have removed the input, in no particular order.
    package var interruptedOffers: [Offer] {
        offers.interruptedCount == 0 ? [] : offers.all.values.filter(\.mayHaveRemovedInput)
    }

    /// The offers that have changed since the last commit, by number; nil for finished ones.
    package var changedOffers: [UInt64: Offer?] {
        Dictionary(uniqueKeysWithValues: offers.changed.map { ($0, offers[$0]) })
    }

    package func offer(_ number: UInt64) -> Offer? { offers[number] }

    package func offer(at path: PathBytes) -> Offer? { offers.offer(at: path) }
}
