import FileEvents
import Handling
import Journaling
import Reconciling
import Rules
import Settling

extension Ruleset {
    /// Takes back what attempts did, the last change first, and has the journal know what that leaves.
    ///
    /// What is known is no event: no rule is told of what comes back, or goes.
    ///
    /// - Parameters:
    ///   - attempts: In the order in which they are taken back.
    ///   - journal: Keeps what became of it.
    ///   - host: Where the files are.
    func takeBack(_ attempts: [KeptChanges], _ journal: any Journal, on host: Host) {
        var undoing = Undoing()
        let files = WatchedPaths(roots: rules.flatMap(\.roots), in: host.fileSystem)
        for attempt in attempts where !attempt.isUndone {
            var reasons: [String?] = attempt.undo?.reasons ?? attempt.changes.map { _ in "" }
            var entries: [LedgerEntry] = []
            for (index, change) in attempt.changes.enumerated().reversed() where reasons[index] != nil {
                reasons[index] = undoing.undo(change, of: attempt.event)
                files.forget()
                guard reasons[index] == nil else {
                    if case .unpacked(let path, _, _) = change.kind { entries += gone(inside: path, journal, files) }
                    continue
                }
                for path in change.paths {
                    entries += self.entries(at: path, journal, files)
                    // Its own rule has taken that path, be its rules file known here or not.
                    if path == attempt.event.path, rule(named: attempt.rule) == nil {
                        entries.append(
                            LedgerEntry(view: attempt.rule, path: path, snapshot: files.look(at: path).snapshot))
                    }
                }
            }
            journal.note(UndoRecord(time: host.clock.time(), reasons: reasons), of: attempt, entries)
        }
    }

    /// What is known below the path, and is not there any more.
    private func gone(inside path: PathBytes, _ journal: any Journal, _ files: WatchedPaths) -> [LedgerEntry] {
        rules.flatMap { rule in
            var gone: [PathBytes] = []
            journal.visit(view: rule.name, inside: path) { inside, _ in
                if files.look(at: inside) == .absent { gone.append(inside) }
            }
            return gone.map { LedgerEntry(view: rule.name, path: $0, snapshot: nil) }
        }
    }

    /// What each rule that takes the path, or something below it, has to know of it from now on.
    private func entries(at path: PathBytes, _ journal: any Journal, _ files: WatchedPaths) -> [LedgerEntry] {
        rules.flatMap { rule -> [LedgerEntry] in
            guard case .present(let snapshot) = rule.look(at: path, files) else {
                var gone: [PathBytes] = [path]
                journal.visit(view: rule.name, inside: path) { inside, _ in gone.append(inside) }
                return gone.filter { journal.knows(view: rule.name, path: $0) }
                    .map { LedgerEntry(view: rule.name, path: $0, snapshot: nil) }
            }
            return rule.entries(at: path, snapshot, files)
        }
    }
}

extension DiskProbe.Sight {
    fileprivate var snapshot: Snapshot? { if case .present(let snapshot) = self { snapshot } else { nil } }
}

extension Rule {
    fileprivate func look(at path: PathBytes, _ files: WatchedPaths) -> DiskProbe.Sight {
        files.look(at: path, reading: events.isDisjoint(with: [.attributes, .xattr]) ? [] : .extended)
    }

    /// What is there now, with all that is below it, as far as the rule takes it.
    fileprivate func entries(at path: PathBytes, _ snapshot: Snapshot, _ files: WatchedPaths) -> [LedgerEntry] {
        var entries: [LedgerEntry] = []
        if root(taking: path) != nil, types.contains(snapshot.type) {
            var snapshot = snapshot
            // A file that is followed has nothing of its old text told.
            if tail != nil { snapshot.delivered = snapshot.size }
            entries.append(LedgerEntry(view: name, path: path, snapshot: snapshot))
        }
        guard snapshot.type == .directory else { return entries }
        for entry in (try? files.names(in: path)) ?? [] {
            let inner = path.appending(entry.bytes)
            if case .present(let snapshot) = look(at: inner, files) {
                entries += self.entries(at: inner, snapshot, files)
            }
        }
        return entries
    }
}
