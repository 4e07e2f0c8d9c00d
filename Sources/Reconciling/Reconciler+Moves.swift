import FileEvents
import FileWatching
import Settling

// Files that have another name now.
extension Reconciler {
    struct Move {
        var from: PathBytes
        var before: Snapshot
    }

    /// Where the view knew this file, if it is not there any more.
    func move(_ view: View, to path: PathBytes, _ snapshot: Snapshot) -> Move? {
        // Without a birth time a reused inode can't be told from a moved file.
        guard snapshot.identity.birth != 0 else { return nil }
        let identity = identity(of: snapshot, at: path)
        for from in ledger.paths(view: view.name, identity: identity) where from != path {
            guard var before = known(view, from) else { continue }
            if identity.birth == 0, snapshot.isUnwrittenCopy(of: before) { before.identity = snapshot.identity }
            guard before.identity == snapshot.identity else { continue }
            // Another name of the file is a hard link, unless it is gone or names another file now.
            switch sight(of: from, view) {
            case .present(let there) where there.identity == snapshot.identity: continue
            // It may be there. A file with one name has that here.
            case .unreadable where snapshot.links > 1 && snapshot.type != .directory: continue
            default: return Move(from: from, before: before)
            }
        }
        return nil
    }

    /// The identity by which the ledger knows the file at a path.
    ///
    /// On overlayfs, a file that was born after its content was last written may be the copy of a file that is known by an
    /// earlier birth time.
    func identity(of snapshot: Snapshot, at path: PathBytes) -> FileIdentity {
        guard let born = snapshot.born, snapshot.modified < born else { return snapshot.identity }
        return files.isOnOverlay(path) ? snapshot.identity.withoutBirth : snapshot.identity
    }

    /// What is known of a path, with the identity of the file there now if that is its copy in the upper layer of overlayfs.
    func known(_ before: Snapshot, as snapshot: Snapshot, at path: PathBytes, _ note: Note) -> Snapshot {
        guard snapshot.mayBeCopy(of: before) else { return before }
        // No other file can have taken the name without a sign of that.
        let isSameName =
            note.origin == .live && note.signs.isDisjoint(with: [.appeared, .vanished, .listed, .polled])
        guard isSameName || snapshot.isUnwrittenCopy(of: before), files.isOnOverlay(path) else { return before }
        var known = before
        known.identity = snapshot.identity
        return known
    }

    /// Tells at once of a known file that has a new name: it was complete before, so there is nothing to wait for.
    ///
    /// If its content changed too, it is told with the old facts of that, which the ledger keeps under the new name:
    /// what it holds now may be half of what is being written. Settling finds the difference.
    ///
    /// - Returns: Whether it was written to since it was told of, as far as any view knows. That sign may have been for
    ///   the old name.
    mutating func acceptMove(
        to path: PathBytes, _ snapshot: Snapshot, _ matches: [Match], origin: EventOrigin
    ) -> Bool {
        var isWritten = false
        for match in matches {
            let view = views[match.view]
            guard view.types.contains(snapshot.type), let move = move(view, to: path, snapshot) else { continue }
            let replaced = known(view, path)
            let isSame = move.before.hasSameContent(as: snapshot)
            if !isSame { isWritten = true }
            let note = Note(signs: [.appeared, .moved], origin: origin)
            if isSame || view.mask.contains(.moved) {
                var present = isSame ? snapshot : move.before.withAttributes(of: snapshot)
                present.extended = move.before.extended
                tellMoved(match, move, path, present, replacing: replaced, note)
            } else {
                // The old name is gone for certain; the new one is told when its content is finished.
                if let delivered = move.before.delivered { carried[snapshot.identity] = delivered }
                tellDeleted(match, move.from, move.before, Note(signs: [.vanished, .moved], origin: origin))
            }
        }
        return isWritten
    }

    mutating func tellMoved(
        _ match: Match, _ move: Move, _ path: PathBytes, _ snapshot: Snapshot, replacing replaced: Snapshot?,
        _ note: Note
    ) {
        let view = views[match.view]
        var snapshot = snapshot
        snapshot.digest = move.before.digest
        snapshot.delivered = move.before.delivered
        snapshot.standing = move.before.standing
        set(view, move.from, nil)
        set(view, path, snapshot)
        if let replaced, replaced.type != .directory { addOtherNames(match, path, replaced.identity, note) }
        if view.mask.contains(.moved) {
            var event = event(.moved, match.root, path, snapshot, note.origin)
            event.from = move.from
            event.before = move.before
            event.isReplaced = replaced != nil
            tell(match.view, event)
            return
        }
        // A view that does not ask for moves is told the halves.
        var departure = event(.deleted, match.root, move.from, move.before, note.origin)
        departure.isByMove = true
        tell(match.view, departure)
        var arrival = event(replaced == nil ? .created : .modified, match.root, path, snapshot, note.origin)
        arrival.before = replaced
        arrival.isReplaced = replaced != nil
        if let replaced {
            arrival.changed = Difference(before: replaced, after: snapshot, mayBeWritten: true).content
        }
        arrival.isByMove = true
        let isFollowed = view.tailBytes != nil && view.mask.takes(arrival.kind, changed: arrival.changed)
        if isFollowed, !move.before.hasSameContent(as: snapshot) {
            let key = Key(path: path, policy: policyOfView[match.view])
            follow(match, key, &arrival, from: move.before.delivered ?? 0, isReset: false, note)
            set(view, path, arrival.snapshot)
        }
        tell(match.view, arrival)
    }
}

extension Snapshot {
    /// The same content, with the attributes that were told of.
    fileprivate func withAttributes(of told: Snapshot) -> Snapshot {
        var kept = self
        kept.mode = told.mode
        kept.uid = told.uid
        kept.gid = told.gid
        kept.links = told.links
        return kept
    }
}
