import FileEvents
import Settling
import System
import Watching

extension Reconciler {
    /// Inspects the paths whose quiet time is over; those that have settled and differ become due.
    ///
    /// - Parameters:
    ///   - now: The current time.
    ///   - limit: The maximum number of paths; the rest is inspected in the next turn.
    package mutating func settle(at now: ContinuousClock.Instant, limit: Int = 500) {
        for view in active { states[view].due.wake(until: now) }
        var others: [(view: Int, path: PathBytes, identities: [FileIdentity])] = []
        for (key, entry) in settler.takeDue(at: now, limit: limit) {
            var entry = entry
            // The listing waits for one inspection, not for a file that is still being written.
            let scan = entry.note.scan
            if let scan {
                scans.end(scan)
                entry.note.scan = nil
            }
            if !heldKeys.isEmpty { heldKeys[key] = nil }
            switch check(key, entry, at: now) {
            case .finished(let snapshot, let isForced):
                settled(key, snapshot, entry.note, &others)
                if isForced { add(key, entry.note, at: now) }
            case .gone where now - entry.since < Self.renameGap && awaitsHalf(key):
                scans.begin(scan)
                entry.note.scan = scan
                settler.putBack(key, entry, until: entry.since + Self.renameGap)
            case .gone: settled(key, nil, entry.note, &others)
            case .unreadable(let errno):
                if unreadable.insert(key.path.parent).inserted { warn(.unreadable(key.path, errno: errno)) }
                guard isPatient else {
                    for view in matches(key.path) where states[view].policy == key.policy { removeDue(view, key.path) }
                    continue
                }
                settler.putBack(key, entry, until: now + .seconds(1 << min(entry.rounds, 3)))
            case .wait(let pause, let sample, let isHeld):
                entry.note.sample = sample.map(Box.init)
                recordHeld(key, &entry, isHeld, at: now)
                settler.putBack(key, entry, until: now + pause)
            }
        }
        for (view, path, identities) in others { markOtherNames(view, path, identities) }
        // The end of a listing follows the events of the paths that it found.
        if !mayFreeze { freezeEndedScans() }
    }

    /// Checks whether a path has settled.
    private func check(
        _ key: Key, _ entry: Settler<Key, Note>.Waiting, at now: ContinuousClock.Instant
    ) -> SettledProbe.Verdict {
        do throws(SystemError) {
            return SettledProbe.check(
                try files.place(of: key.path), in: host.fileSystem, at: host.clock.time(), policy: policies[key.policy],
                isPolled: entry.note.signs.contains(.polled) || isPolled(key.path), sample: entry.note.sample?.value,
                round: entry.rounds, waited: now - entry.since)
        } catch {
            return DiskProbe.StatResult(directory: error.errno) == .absent ? .gone : .unreadable(errno: error.errno)
        }
    }

    private mutating func recordHeld(
        _ key: Key, _ entry: inout Settler<Key, Note>.Waiting, _ isHeld: Bool, at now: ContinuousClock.Instant
    ) {
        let waited = now - entry.since
        if isHeld, waited >= Self.heldTimeout { heldKeys[key] = entry.since }
        guard waited > Self.warningTimeout, !entry.note.hasWarned else { return }
        entry.note.hasWarned = true
        warn(.stillWritten(key.path, for: waited))
    }

    /// Whether a view that reports moves matches the path: the other half of a rename may still arrive.
    private func awaitsHalf(_ key: Key) -> Bool {
        matches(key.path).contains { states[$0].policy == key.policy && states[$0].view.mask.contains(.moved) }
    }

    private mutating func settled(
        _ key: Key, _ snapshot: Snapshot?, _ note: Note,
        _ others: inout [(view: Int, path: PathBytes, identities: [FileIdentity])]
    ) {
        setDirtyFile(nil, at: key.path)
        for view in matches(key.path) where states[view].policy == key.policy {
            let now = snapshot.flatMap { present(view, key.path, as: $0) }
            // The next poll misses a file that is removed before it; a file that no hint has named may also be
            // polled.
            let isUnnamed =
                note.signs.contains(.vanished) && (note.signs.contains(.listed) || !note.signs.contains(.appeared))
            let isSeenLate = isPolled(view, key.path) || note.signs.contains(.polled) || isUnnamed
            if isSeenLate, let now, row(view, key.path).handled?.isUnchanged(now) != true { doubted.append(key.path) }
            if let now { markOtherSpellings(view, key.path, now) }
            var stamp = now
            stamp?.digest = snapshot?.digest
            var identities = [row(view, key.path).handled, now].compactMap { $0 }.filter { $0.links > 1 }.map(
                \.identity)
            let announced = states[view].due[key.path]?.announced
            addDue(view, key.path, settled: stamp.map { .some($0) } ?? .some(nil), note)
            let files = [note.file, announced].compactMap(\.self)
            identities += files.filter { $0 != now?.identity }
            if let offered = offer(view, key.path)?.offered, offered.links > 1 { identities.append(offered.identity) }
            if !identities.isEmpty { others.append((view, key.path, identities)) }
        }
    }

    /// Marks handled paths as dirty that the kernel resolves to a new file whose name differs in case: they do not
    /// exist.
    ///
    /// A file with one link has one name; only a listing shows which.
    private mutating func markOtherSpellings(_ view: Int, _ path: PathBytes, _ now: Snapshot) {
        guard now.links == 1, now.type == .file, row(view, path).handled == nil else { return }
        for other in ledger.paths(of: states[view].view.id, handling: now.identity)
        where other != path && other.parent == path.parent && present(view, other)?.identity == now.identity {
            let names = try? files.names(in: other.parent)
            guard names?.contains(where: { $0.bytes.elementsEqual(other.lastComponent) }) == false else { continue }
            otherSpellings.insert(other)
            markDirty(other, [.vanished, .moved], .live, [view], at: host.clock.now())
        }
    }

    private mutating func add(_ key: Key, _ note: Note, at now: ContinuousClock.Instant) {
        settler.add(key, note: note, quiet: policies[key.policy].quiet(isPolled: false), at: now) { $0.merge(note) }
    }

    /// Adds a path to the order.
    ///
    /// A path that settles is in the order only for a move. A path that has settled and needs no action is removed at
    /// once.
    ///
    /// - Parameters:
    ///   - view: The view.
    ///   - path: The path.
    ///   - settled: The metadata at which it settled; an inner nil for a missing path, nil while it settles.
    ///   - note: Its hints.
    mutating func addDue(_ view: Int, _ path: PathBytes, settled: Snapshot??, _ note: Note) {
        let before = removeDue(view, path)
        var entry = DueTable.Entry(
            settled: settled.map { DueTable.Stamp($0) }, signs: note.signs.union(before?.signs ?? []),
            origin: note.origin, time: host.clock.time(), announced: before?.announced,
            digest: settled??.digest, isConfirmed: note.isConfirmed)
        let file = settled == nil ? note.file : settled??.identity
        if let file, states[view].view.mask.contains(.moved), row(view, path).handled == nil {
            entry.file = file
            states[view].dueFiles.insert(path, file)
        }
        // A later change has another writer.
        if let writer = states[view].formerWriters.removeValue(forKey: path), entry.signs == .listed {
            entry.writer = writer
        }
        states[view].due.add(path, entry)
        active.insert(view)
        storeDue(view, path, true)
        if settled != nil { overtake(view, path) }
        guard let settled, states[view].offerOfPath[path] == nil, !hasUnfinishedText(view, path),
            !states[view].view.receivesAtOnce
        else { return }
        // A missing path may have another name that is not hinted yet: the lease receives all hints first.
        if settled == nil, states[view].view.mask.contains(.moved) { return }
        let judgement = judge(view, path, as: settled.map { .present($0) } ?? .absent)
        switch judgement {
        case .event(let event):
            accepted.append((view, event))
            if event.author != .notAsked {
                states[view].due.setWriter(path, event.author)
                storeDue(view, path, true)
            }
            if event.kind != .deleted { states[view].due.announce(path, event.snapshot.identity) }
        case .wait, .unreadable: break
        case .nothing, .unreported: conclude(view, path, judgement)
        }
    }

    /// Records the state of a path as handled, and removes the path from the order.
    mutating func conclude(_ view: Int, _ path: PathBytes, _ judgement: Judgement) {
        let (before, trust) = (row(view, path).handled, row(view, path).trust)
        let wasHandled = before != nil
        switch judgement {
        case .unreported(let seen):
            markHandled(view, path, as: .some(seen))
            if let before, let seen, trust == .refused || !before.hasSameContent(as: seen) { markRefused(view, path) }
            if states[view].view.tailBytes != nil, let seen { keepText(view, path, of: seen, before) }
        case .nothing(let seen?): refresh(view, path, seen)
        default: break
        }
        resolve(view, path, wasHandled: wasHandled)
    }

    /// Records that the action has not received the content of a path, which it may receive under another name.
    private mutating func markRefused(_ view: Int, _ path: PathBytes) {
        var row = row(view, path)
        guard !row.isWithheld, !states[view].view.mask.isDisjoint(with: .content) else { return }
        row.trust = .refused
        set(view, path, row)
    }

    /// Preserves the text of a refused file of which none was received; text added to another file is skipped.
    private mutating func keepText(_ view: Int, _ path: PathBytes, of seen: Snapshot, _ before: Snapshot?) {
        let isOther = before?.identity != seen.identity
        let received =
            isOther ? carried(view, path, seen.identity) ?? 0 : before?.delivered ?? 0
        guard isOther || received == 0 else { return }
        var row = row(view, path)
        row.handled?.delivered = received
        set(view, path, row)
    }

    @discardableResult
    mutating func removeDue(_ view: Int, _ path: PathBytes) -> DueTable.Entry? {
        guard let entry = states[view].due.remove(path) else { return nil }
        if let file = entry.file { states[view].dueFiles.remove(path, file) }
        storeDue(view, path, false)
        return entry
    }

    private mutating func storeDue(_ view: Int, _ path: PathBytes, _ isDue: Bool) {
        guard states[view].view.storesDuePaths, applies(.dueRows) else { return }
        let change = isDue ? DueChange.stored(states[view].due[path]?.writer) : .deleted
        dueChanges[states[view].view.id, default: [:]][path] = change
    }

    /// Removes a path from the order that needs no action.
    mutating func resolve(_ view: Int, _ path: PathBytes, wasHandled: Bool) {
        let entry = removeDue(view, path)
        if applies(.skipped), let file = entry?.announced, present(view, path) == nil,
            !isKnownElsewhere(view, file, path)
        {
            reports.append(.gone(view: view, path, wasHandled: wasHandled))
        }
        states[view].due.wake(.path(path))
    }

    private func isKnownElsewhere(_ view: Int, _ file: FileIdentity, _ path: PathBytes) -> Bool {
        let paths = dirtyFiles[file].union(states[view].dueFiles[file])
            .union(ledger.paths(of: states[view].view.id, handling: file))
        return paths.contains { $0 != path && root(view, $0) != nil && present(view, $0)?.identity == file }
    }

    /// Marks the other names of the file of an event, and of a file that it has replaced, as dirty if they differ
    /// from the disk.
    ///
    /// The path itself is marked if it is only now known to have several names. The kernel hints only the name that
    /// was created or removed. A name that is removed before its hint is read does not show its file; that file is
    /// then found with one link less when its path settles again.
    mutating func markNames(_ view: Int, of event: FileEvent) {
        let files = [event.snapshot, event.before].compactMap(\.self).filter { $0.links > 1 }
        if !files.isEmpty { markOtherNames(view, event.path, files.map(\.identity)) }
        guard event.snapshot.links > 1, event.kind != .deleted, event.before?.links != event.snapshot.links else {
            return
        }
        markDirty(event.path, .attributes, .live, [view], at: host.clock.now())
    }

    /// Marks the other names of files as dirty if they differ from the disk; the kernel hints only the name that was
    /// used.
    mutating func markOtherNames(_ view: Int, _ path: PathBytes, _ identities: [FileIdentity]) {
        for identity in Set(identities) where applies(.names) {
            for other in ledger.paths(of: states[view].view.id, handling: identity)
            where other != path && states[view].due[other] == nil {
                guard !settler.contains(Key(path: other, policy: states[view].policy)) else { continue }
                let handled = row(view, other).handled
                let isAsHandled = present(view, other).map { handled?.isUnchanged($0) ?? false }
                if isAsHandled ?? !isInSight(view, other, handled) { continue }
                markDirty(other, .attributes, .live, [view], at: host.clock.now())
            }
        }
    }

    /// Compares a path again, because others have waited for its outcome, or because it may differ.
    ///
    /// Paths that are compared at the same time settle in the same turn. The path is inspected if its state is not
    /// given.
    mutating func compare(
        _ view: Int, _ path: PathBytes, as seen: Snapshot?? = nil, quiet: Duration? = nil,
        at now: ContinuousClock.Instant? = nil
    ) {
        let now = now ?? host.clock.now()
        states[view].due.wake(.path(path))
        let row = row(view, path)
        guard root(view, path) != nil else {
            // The view no longer matches the path.
            if states[view].offerOfPath[path] != nil {
                addDue(view, path, settled: .some(nil), Note(signs: .listed, origin: .live))
            }
            return
        }
        let isNamed = states[view].offerOfPath[path] != nil
        if !isNamed, row.trust != .uncertain {
            let there = seen ?? present(view, path)
            if there == nil, row.handled == nil { return }
            let isTree = states[view].view.settle.isTree
            if !isTree, let there, isHandled(row, there) { return }
        }
        if !settler.contains(Key(path: path, policy: states[view].policy)) {
            markDirty(path, .listed, .live, [view], at: now, quiet: quiet)
        }
    }

    /// Records the state of a path as handled, without an event; the state and the row are read if they are not
    /// given.
    ///
    /// A judged state must be passed, since a later one has not been judged.
    mutating func markHandled(
        _ view: Int, _ path: PathBytes, as known: Snapshot?? = nil, from row: LedgerRow? = nil
    ) {
        let old = row ?? self.row(view, path)
        let isTree = states[view].view.settle.isTree
        var now = if let known, !isTree || known?.digest != nil { known } else { inspect(view, path) }
        if states[view].view.tailBytes != nil, let size = now?.size { now?.delivered = size }
        var isWithheld = false
        if let now {
            // Without other events, the last state decides.
            let isUnnamed = states[view].view.mask.isDisjoint(with: .naming)
            let isNew = old.handled == nil && old.trust == .certain || isUnnamed || old.isWithheld && known == nil
            let isRefused = isNew && !admits(view, attributed(view, event(.created, view, path, now)))
            isWithheld = isRefused || old.isWithheld && !isNew
        }
        set(view, path, LedgerRow(now, isWithheld: isWithheld))
        states[view].left[path] = nil
    }

    /// Adds the process that caused an event.
    func attributed(_ view: Int, _ event: FileEvent) -> FileEvent {
        var event = event
        event.author = states[view].due[event.path]?.writer ?? writer(view, event)
        return event
    }

    func event(_ kind: EventKind, _ view: Int, _ path: PathBytes, _ snapshot: Snapshot) -> FileEvent {
        let entry = states[view].due[path]
        var event = FileEvent(
            kind: kind, path: path, root: root(view, path) ?? path.parent, snapshot: snapshot,
            origin: entry?.origin ?? .live, time: entry?.time ?? host.clock.time())
        addOthers(view, &event)
        return event
    }
}

extension EventMask {
    /// The events that name a path before it is removed.
    fileprivate static let naming: EventMask = [.created, .modified, .moved, .attributes]
}
