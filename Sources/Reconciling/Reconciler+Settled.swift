import FileEvents
import FileWatching
import Globbing
import Settling

// The way out: what has settled is compared, and becomes events.
extension Reconciler {
    /// Looks at what has settled, and returns all that is to be committed.
    ///
    /// - Parameters:
    ///   - now: The present.
    ///   - limit: The most paths to look at; the rest is due at once in the next turn.
    /// - Returns: Events and the snapshots that they rest on. They must be committed before anything else is added.
    package mutating func takeSettled(at now: ContinuousClock.Instant, limit: Int = 500) -> Turn {
        defer { files.forget() }
        var gone: [(key: Key, note: Note)] = []
        for (key, entry) in settler.takeDue(at: now, limit: limit) {
            var entry = entry
            // The listing waits for one look, not for a file that somebody still writes to.
            if let scan = entry.note.scan {
                scans.end(scan)
                entry.note.scan = nil
            }
            let policy = policies[key.policy]
            let waited = now - entry.since
            let isSeenLate = entry.note.signs.contains(.polled) || isPolled(key.path)
            var verdict: FinishedProbe.Verdict
            do throws(SystemError) {
                verdict = FinishedProbe.check(
                    try files.place(of: key.path), in: host.fileSystem, at: host.clock.time(), policy: policy,
                    isPolled: isSeenLate,
                    sample: entry.note.sample, round: entry.rounds, waited: waited)
            } catch {
                let isGone = DiskProbe.Sight(directory: error.errno) == .absent
                verdict = isGone ? .gone : .unreadable(errno: error.errno)
            }
            if verdict != .gone, isBehindLinks(key.path) { verdict = .gone }
            if case .unreadable = verdict {} else if !unreadable.isEmpty { unreadable.remove(key.path.parent) }
            if !heldKeys.isEmpty { heldKeys[key] = nil }
            switch verdict {
            case .finished(let snapshot, let isForced):
                let accepted = turn.entries.count
                accept(key, snapshot, entry.note)
                let wasMissed = entry.note.signs.isSuperset(of: [.vanished, .listed])
                if isSeenLate || wasMissed || isShort, turn.entries.count > accepted { turn.doubted.append(key.path) }
                // What is told before it rests has to be looked at again.
                if isForced { add(key, Note(signs: .written, origin: entry.note.origin), at: now) }
            case .gone where entry.rounds == 0 && entry.note.signs.isDisjoint(with: [.vanished, .listed]):
                // Nobody has said so yet: what is about to be said may be that it has another name.
                settler.putBack(key, entry, until: now + Self.moment)
            // What went may have become something that settled just now: look at those first.
            case .gone: gone.append((key, entry.note))
            case .unreadable(let errno): putBackUnreadable(key, entry, errno, at: now)
            case .wait(let pause, let sample, let isHeld):
                entry.note.sample = sample
                if isHeld, waited >= Self.heldPatience { heldKeys[key] = entry.since }
                if waited > Self.patience, !entry.note.hasWarned {
                    entry.note.hasWarned = true
                    remark(.stillWritten(key.path, for: waited))
                }
                settler.putBack(key, entry, until: now + pause)
            }
        }
        for (key, note) in gone { acceptGone(key, note) }
        if hasLostUnseen { lookAtDoubts() }
        for (key, note) in otherNames { add(key, note, at: now) }
        otherNames = []
        if settler.count == 0 { carried = [:] }
        tellEndedScans()
        let taken = turn
        turn = Turn()
        overlay = [:]
        return taken
    }

    /// A path that can't be looked at is neither new nor gone: it waits until it can be.
    private mutating func putBackUnreadable(
        _ key: Key, _ entry: Settler<Key, Note>.Waiting, _ errno: Int32, at now: ContinuousClock.Instant
    ) {
        // Of a folder with many files one is enough to be told of.
        if unreadable.insert(key.path.parent).inserted { remark(.unreadable(key.path, errno: errno)) }
        guard isPatient else { return }
        var entry = entry
        entry.note.isUnseen = true
        settler.putBack(key, entry, until: now + .seconds(1 << min(entry.rounds, 3)))
    }

    private mutating func accept(_ key: Key, _ snapshot: Snapshot, _ note: Note) {
        for match in matches(key.path) where policyOfView[match.view] == key.policy {
            if files.isBehindLink(key.path, root: match.root) {
                acceptGone(match, key, note)
                continue
            }
            let view = views[match.view]
            let before = known(view, key.path)
            if let linked = note.linked, linked != snapshot.identity { addOtherNames(match, key.path, linked, note) }
            guard view.types.contains(snapshot.type) else {
                // The path has become something that the view does not look at.
                if let before { tellDeleted(match, key.path, before, note) }
                continue
            }
            var snapshot = snapshot
            if !view.settle.isTree { snapshot.digest = nil }
            if view.readsExtended { snapshot.extended = extended(of: key.path) }
            if let before {
                acceptChange(match, key, before, snapshot, note)
            } else {
                acceptNew(match, key, snapshot, note)
            }
        }
    }

    private mutating func acceptNew(_ match: Match, _ key: Key, _ snapshot: Snapshot, _ note: Note) {
        let view = views[match.view]
        let path = key.path
        if let move = move(view, to: path, snapshot) {
            acceptMoved(match, key, move, snapshot, replacing: nil, note)
            return
        }
        let wasThere = note.wasFound && !note.signs.contains(.appeared) && !view.tellsFound(snapshot)
        var event = event(wasThere ? .modified : .created, match.root, path, snapshot, note.origin)
        event.isByMove = event.kind == .created && note.signs.isSuperset(of: [.appeared, .moved])
        if snapshot.links > 1, snapshot.type != .directory {
            addOtherNames(match, path, snapshot.identity, note)
            doubtNames(match, key, snapshot, note)
            event.sameAs = ledger.paths(view: view.name, identity: snapshot.identity).filter { other in
                guard other != path, case .present(let there) = sight(of: other, view) else { return false }
                return there.identity == snapshot.identity
            }.sorted()
        }
        // A file that is new is followed from its beginning, one that was there from its end.
        let begin = carried.removeValue(forKey: snapshot.identity) ?? (wasThere ? snapshot.size : 0)
        follow(match, key, &event, from: begin, isReset: false, note)
        set(view, path, event.snapshot)
        tell(match.view, event)
    }

    private mutating func acceptChange(
        _ match: Match, _ key: Key, _ before: Snapshot, _ snapshot: Snapshot, _ note: Note
    ) {
        let view = views[match.view]
        let path = key.path
        let before = known(before, as: snapshot, at: path, note)
        let isListed = !note.signs.isDisjoint(with: [.listed, .polled])
        // Whoever sets times gives a sign of it. A sign of writing may still be on its way, and comes too late then.
        let isTouched = note.signs.contains(.attributes)
        var snapshot = snapshot
        var difference = Difference(
            before: before, after: snapshot, mayBeWritten: note.signs.contains(.written) || !isTouched || isListed)
        // Of a file, the content that was handled last is remembered until something else is. It takes no part in the
        // comparison: what the file holds now has not been read.
        if !view.settle.isTree { snapshot.digest = before.digest }
        snapshot.standing = before.standing
        if view.settle.isTree, before.digest != snapshot.digest, difference.content.isEmpty {
            difference.content = ["overwritten"]
        }
        let hasMore = before.delivered.map { $0 < snapshot.size } ?? false
        guard !difference.isEmpty || hasMore else {
            // A link count of a folder, an access time: nothing to tell, but this is how it looks now.
            if !before.isUnchanged(snapshot) {
                snapshot.delivered = before.delivered
                set(view, path, snapshot)
            }
            return
        }
        if difference.isReplaced, let move = move(view, to: path, snapshot) {
            acceptMoved(match, key, move, snapshot, replacing: before, note)
            return
        }
        if max(snapshot.links, before.links) > 1, snapshot.type != .directory {
            addOtherNames(match, path, snapshot.identity, note)
            doubtNames(match, key, snapshot, note)
        }
        if difference.isReplaced, before.type != .directory { addOtherNames(match, path, before.identity, note) }
        var event = event(.modified, match.root, path, snapshot, note.origin)
        event.before = before
        event.isReplaced = difference.isReplaced
        let isContent = difference.isReplaced || !difference.content.isEmpty || hasMore
        if isContent, !view.mask.isDisjoint(with: .content) {
            // Text that nobody has taken yet would only grow: the file keeps the rest meanwhile.
            if view.tailBytes != nil, ledger.hasPending(view: view.name, path: path) { return }
            event.changed = difference.content
            // A file goes on where it ended under its former name, such as the next one of a chain of rotated logs.
            let carriedOver = difference.isReplaced ? carried.removeValue(forKey: snapshot.identity) : nil
            if difference.isReplaced, let delivered = before.delivered { carried[before.identity] = delivered }
            let delivered = carriedOver ?? before.delivered ?? 0
            let isReset = carriedOver == nil && (difference.isReplaced || snapshot.size < delivered)
            follow(match, key, &event, from: isReset ? 0 : delivered, isReset: isReset, note)
            set(view, path, event.snapshot)
            // A view that follows files is told of text; only a reset is news without any.
            if let tail = event.tail, tail.bytes.isEmpty, !tail.isReset { return }
            tell(match.view, event)
            return
        }
        event.snapshot.delivered = before.delivered
        set(view, path, event.snapshot)
        guard !difference.attributes.isEmpty else { return }
        event.kind = .attributes
        event.changed = difference.attributes
        tell(match.view, event)
    }

    /// Tells of a file that has settled under another name, and then of what was written to it.
    private mutating func acceptMoved(
        _ match: Match, _ key: Key, _ move: Move, _ snapshot: Snapshot, replacing replaced: Snapshot?, _ note: Note
    ) {
        tellMoved(match, move, key.path, snapshot, replacing: replaced, note)
        guard views[match.view].mask.contains(.moved), !move.before.hasSameContent(as: snapshot) else { return }
        var note = note
        note.signs.insert(.written)
        acceptChange(match, key, move.before, snapshot, note)
    }

    /// Reads what was added to a file that is followed, and notes how far.
    mutating func follow(
        _ match: Match, _ key: Key, _ event: inout FileEvent, from offset: UInt64, isReset: Bool, _ note: Note
    ) {
        let view = views[match.view]
        guard let limit = view.tailBytes, event.snapshot.type == .file else { return }
        if ledger.hasPending(view: view.name, path: key.path) {
            event.tail = TailText(offset: offset, bytes: [])
            event.snapshot.delivered = offset
            return
        }
        guard let place = try? files.place(of: key.path) else { return }
        let text = TailReader.read(
            place, in: host.fileSystem, event.snapshot, from: offset, limit: limit, isReset: isReset)
        event.tail = text
        event.snapshot.delivered = text.offset + UInt64(text.bytes.count)
        if text.remaining > 0, !text.bytes.isEmpty {
            otherNames.append((key, Note(signs: .written, origin: note.origin)))
        }
    }

    /// Makes the other names of a file dirty, which changed with it or have one name less or more beside them.
    mutating func addOtherNames(_ match: Match, _ path: PathBytes, _ file: FileIdentity, _ note: Note) {
        for other in ledger.paths(view: views[match.view].name, identity: file) where other != path {
            let signs = note.signs.subtracting([.appeared, .vanished, .moved])
            let key = Key(path: other, policy: policyOfView[match.view])
            otherNames.append((key, Note(signs: signs, origin: note.origin)))
        }
    }

    /// Looks once more at a file that has more names than are known.
    ///
    /// Another name may be gone before anyone has seen of which file it was, and
    /// nothing tells of that here. That may take longer where the other name is in a
    /// folder that can't be read.
    private mutating func doubtNames(_ match: Match, _ key: Key, _ snapshot: Snapshot, _ note: Note) {
        var names = Set(ledger.paths(view: views[match.view].name, identity: snapshot.identity))
        names.insert(key.path)
        guard names.count < snapshot.links else { return }
        otherNames.append((key, Note(signs: .attributes, origin: note.origin)))
        if doubts.count >= Self.mostDoubts { doubts.removeFirst() }
        doubts.insert(key)
    }

    /// Looks once more at the files that may have had a name of which only is known that it is gone.
    private mutating func lookAtDoubts() {
        hasLostUnseen = false
        for key in doubts {
            let isInDoubt = matches(key.path).contains { match in
                let view = views[match.view]
                guard policyOfView[match.view] == key.policy, let file = known(view, key.path) else { return false }
                return file.links > ledger.paths(view: view.name, identity: file.identity).count
            }
            if isInDoubt {
                otherNames.append((key, Note(signs: .attributes, origin: .live)))
            } else {
                doubts.remove(key)
            }
        }
    }

    private mutating func acceptGone(_ key: Key, _ note: Note) {
        for match in matches(key.path) where policyOfView[match.view] == key.policy { acceptGone(match, key, note) }
    }

    private mutating func acceptGone(_ match: Match, _ key: Key, _ note: Note) {
        if let linked = note.linked { addOtherNames(match, key.path, linked, note) }
        guard let before = known(views[match.view], key.path), isInSight(key.path, before, root: match.root) else {
            if note.isUnseen, note.linked == nil { hasLostUnseen = true }
            return
        }
        // Whatever count is known: a link may have been made and not been looked at by this name.
        if before.type != .directory { addOtherNames(match, key.path, before.identity, note) }
        tellDeleted(match, key.path, before, note)
    }

    // MARK: Looking

    /// What a view has at a path: nothing below a symbolic link, which is not followed.
    func sight(of path: PathBytes, _ view: View) -> DiskProbe.Sight {
        let sight = files.look(at: path)
        guard sight != .absent, let root = view.filter.root(taking: path.bytes),
            files.isBehindLink(path, root: PathBytes(root))
        else { return sight }
        return .absent
    }

    /// Whether the path leads through a symbolic link for everyone who takes it.
    private func isBehindLinks(_ path: PathBytes) -> Bool {
        let matches = matches(path)
        return !matches.isEmpty && matches.allSatisfy { files.isBehindLink(path, root: $0.root) }
    }

    /// Whether a path that is absent is gone, and not only out of sight.
    ///
    /// A root that is not there is unavailable, not empty. And a path that was
    /// seen through another mount than the one that is there now is hidden by it,
    /// or went with its own; only when that one's file system is here again, it
    /// can be missed. The mount point itself is an entry of the directory that holds it.
    func isInSight(_ path: PathBytes, _ before: Snapshot, root: PathBytes) -> Bool {
        guard case .present(let there) = host.fileSystem.stat(root) else { return false }
        var folder = path.parent
        var present = there
        while folder != root, folder.isInside(root) {
            if case .present(let snapshot) = files.look(at: folder) {
                present = snapshot
                break
            }
            folder = folder.parent
        }
        let isSameDevice =
            present.identity.deviceMajor == before.identity.deviceMajor
            && present.identity.deviceMinor == before.identity.deviceMinor
        if folder == path.parent, away.contains(path), !away.contains(where: { folder.isInside($0) }) { return true }
        guard before.mount != 0, present.mount != 0 else {
            // Known of an earlier run, whose mounts had other numbers.
            return isSameDevice || !away.contains { path.isInside($0) }
        }
        guard before.mount != present.mount else { return true }
        return isSameDevice && !away.contains { path.isInside($0) } && !host.fileSystem.isMounted(before.mount)
    }

    mutating func tellDeleted(_ match: Match, _ path: PathBytes, _ before: Snapshot, _ note: Note) {
        set(views[match.view], path, nil)
        var event = event(.deleted, match.root, path, before, note.origin)
        event.isByMove = note.signs.isSuperset(of: [.vanished, .moved])
        tell(match.view, event)
    }
}
