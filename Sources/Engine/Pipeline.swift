import FileEvents
import FileWatching
import Journaling
import Rules
import Settling

/// The middle stage: dirty paths in, settled events and jobs into the journal.
///
/// It belongs to the engine's thread. Hints only say where to look; what is
/// accepted is the difference between the ledger and the disk.
struct Pipeline: ~Copyable {
    /// What settles: a path, once for all rules that settle alike.
    struct Key: Hashable, Sendable {
        var path: PathBytes
        var policy: SettlePolicy
    }

    /// What is known of a settling path.
    struct Note: Sendable {
        var signs: Hint.Signs
        var origin: EventOrigin
        /// Found by the first listing: it is no new name.
        var wasThere = false
        /// The last look, when it could not decide.
        var sample: FinishedProbe.Sample?
        var hasWarned = false
    }

    private let ruleset: Ruleset
    private let journal: any Journal
    private let report: (EngineReport) -> Void
    /// Whether a path that can't be looked at is tried again, or told of and left.
    private let isPatient: Bool
    private var settler = Settler<Key, Note>()

    /// What one turn of the engine commits together.
    private var jobs: [Job] = []
    private var entries: [LedgerEntry] = []
    /// The newest of `entries` for a rule and path.
    private var overlay: [String: [PathBytes: LedgerEntry]] = [:]

    /// Other names of files that changed: the kernel tells of one name only.
    private var otherNames: [(key: Key, note: Note)] = []

    /// After so long a file that is still being written to is worth a warning.
    private static let patience = Duration.seconds(600)
    /// A file that changed so shortly before the start may still be in the making.
    private static let recent = Duration.seconds(60)

    init(ruleset: Ruleset, journal: any Journal, isPatient: Bool, report: @escaping (EngineReport) -> Void) {
        self.ruleset = ruleset
        self.journal = journal
        self.isPatient = isPatient
        self.report = report
    }

    var isEmpty: Bool { settler.count == 0 }
    var nextDeadline: ContinuousClock.Instant? { settler.nextDeadline }
    /// The paths that have not settled, and those of the others that hold something which no rule was told of.
    func unsettled(and others: Set<PathBytes>) -> [PathBytes] {
        let news = others.filter { path in
            guard case .present(let snapshot) = DiskProbe.look(at: path) else { return false }
            return ruleset.rules(taking: path).contains { match in
                let rule = ruleset.rules[match.rule]
                guard rule.types.contains(snapshot.type) else { return false }
                return journal.snapshot(rule: rule.name, path: path).map { !$0.hasSameContent(as: snapshot) } ?? true
            }
        }
        return news.union(settler.keys.map(\.path)).sorted()
    }

    // MARK: In

    /// Takes a hint of a watched path.
    mutating func add(_ hint: Hint, at now: ContinuousClock.Instant) {
        if hint.signs.contains(.subtree) { addKnown(inside: hint.path, at: now) }
        let matches = ruleset.rules(taking: hint.path)
        guard !matches.isEmpty else { return }
        if hint.signs.contains(.appeared) { acceptMove(to: hint.path, matches, origin: hint.origin) }
        for policy in Set(matches.map { ruleset.rules[$0.rule].settle }) {
            let note = Note(signs: hint.signs, origin: hint.origin)
            settler.add(Key(path: hint.path, policy: policy), note: note, quiet: policy.quiet(isPolled: false), at: now)
            { known in
                known.signs.formUnion(hint.signs)
                if hint.origin == .live { known.origin = .live }
                known.sample = nil
            }
        }
    }

    /// Takes a path that the first listing found: it is known from now on, and nothing is told.
    ///
    /// A file that something has happened to since the watching began settles as
    /// always, and so does one that is being written to at this moment: it is not
    /// finished, so its completion is news.
    mutating func addFound(_ hint: Hint, at now: ContinuousClock.Instant) {
        guard hint.signs.contains(.listed), case .present(let snapshot) = DiskProbe.look(at: hint.path) else {
            if hint.origin == .live { add(hint, at: now) }
            return
        }
        let isUnfinished = isBeingWritten(hint.path, snapshot)
        let isActive = hint.origin == .live || isUnfinished
        for match in ruleset.rules(taking: hint.path) {
            let rule = ruleset.rules[match.rule]
            let key = Key(path: hint.path, policy: rule.settle)
            if isActive || settler.contains(key) {
                // What is not finished yet was never there as a complete file.
                let wasThere = !hint.signs.contains(.appeared) && !isUnfinished
                let note = Note(signs: hint.signs, origin: .live, wasThere: wasThere)
                settler.add(key, note: note, quiet: rule.settle.quiet(isPolled: false), at: now) {
                    $0.signs.formUnion(hint.signs)
                }
            } else if rule.types.contains(snapshot.type) {
                set(rule, hint.path, snapshot)
            }
        }
    }

    private func isBeingWritten(_ path: PathBytes, _ snapshot: Snapshot) -> Bool {
        guard snapshot.type == .file else { return false }
        let threshold = DiskProbe.now().advanced(by: .zero - Self.recent)
        guard snapshot.changed > threshold else { return false }
        return DiskProbe.writers(of: path) == .somebody
    }

    /// Makes everything dirty that is known in the folder: it may have gone with it.
    mutating func addKnown(inside folder: PathBytes, at now: ContinuousClock.Instant) {
        for rule in ruleset.rules {
            for path in journal.paths(rule: rule.name, inside: folder) { addVanished(path, rule, at: now) }
        }
    }

    private mutating func addVanished(_ path: PathBytes, _ rule: Rule, at now: ContinuousClock.Instant) {
        let note = Note(signs: .vanished, origin: .rescan)
        settler.add(
            Key(path: path, policy: rule.settle), note: note, quiet: rule.settle.quiet(isPolled: false), at: now
        ) { _ in }
    }

    /// Takes back a job whose file changed before its action began.
    mutating func addReturned(_ job: Job, at now: ContinuousClock.Instant) {
        guard let rule = ruleset.rule(named: job.rule) else { return }
        if let from = job.event.from { addVanished(from, rule, at: now) }
        let isNew = job.event.kind == .created || job.event.kind == .moved
        let note = Note(signs: isNew ? [.appeared, .written] : .written, origin: job.event.origin)
        settler.add(
            Key(path: job.event.path, policy: rule.settle), note: note, quiet: rule.settle.quiet(isPolled: false),
            at: now
        ) { $0.signs.formUnion(note.signs) }
    }

    // MARK: Out

    /// Looks at everything whose quiet time is over, and commits what that gave.
    mutating func acceptSettled(at now: ContinuousClock.Instant) {
        var gone: [(key: Key, note: Note)] = []
        for (key, entry) in settler.takeDue(at: now) {
            switch FinishedProbe.check(
                key.path, policy: key.policy, isPolled: false, sample: entry.note.sample, round: entry.rounds,
                waited: now - entry.since)
            {
            case .finished(let snapshot, _): accept(key, snapshot, entry.note)
            // What went may have become something that settled just now: look at those first.
            case .gone: gone.append((key, entry.note))
            case .unreadable(let errno): putBackUnreadable(key, entry, errno, at: now)
            case .wait(let pause, let sample):
                var entry = entry
                entry.note.sample = sample
                let waited = now - entry.since
                if waited > Self.patience, !entry.note.hasWarned {
                    entry.note.hasWarned = true
                    report(.stillWritten(key.path, for: waited))
                }
                settler.putBack(key, entry, until: now + pause)
            }
        }
        for (key, note) in gone { acceptGone(key, note) }
        commit(at: now)
        for (key, note) in otherNames {
            settler.add(key, note: note, quiet: key.policy.quiet(isPolled: false), at: now) {
                $0.signs.formUnion(note.signs)
            }
        }
        otherNames = []
    }

    /// A path that can't be looked at is neither new nor gone: it waits until it can be.
    private mutating func putBackUnreadable(
        _ key: Key, _ entry: Settler<Key, Note>.Waiting, _ errno: Int32, at now: ContinuousClock.Instant
    ) {
        var entry = entry
        if !entry.note.hasWarned { report(.unreadable(key.path, errno: errno)) }
        entry.note.hasWarned = true
        guard isPatient else { return }
        settler.putBack(key, entry, until: now + .seconds(1 << min(entry.rounds, 6)))
    }

    private mutating func commit(at now: ContinuousClock.Instant) {
        guard !jobs.isEmpty || !entries.isEmpty else { return }
        journal.accept(jobs, entries, now: now)
        jobs = []
        entries = []
        overlay = [:]
    }

    private mutating func set(_ rule: Rule, _ path: PathBytes, _ snapshot: Snapshot?) {
        let entry = LedgerEntry(rule: rule.name, path: path, snapshot: snapshot)
        entries.append(entry)
        overlay[rule.name, default: [:]][path] = entry
    }

    // MARK: Differences

    private mutating func accept(_ key: Key, _ snapshot: Snapshot, _ note: Note) {
        for match in ruleset.rules(taking: key.path) {
            let rule = ruleset.rules[match.rule]
            guard rule.settle == key.policy else { continue }
            let before = known(rule, key.path)
            guard rule.types.contains(snapshot.type) else {
                // The path has become something that the rule does not look at.
                if let before { tellDeleted(rule, match.root, key.path, before, note.origin) }
                continue
            }
            if let before {
                acceptChange(rule, match.root, key.path, before, snapshot, note)
            } else {
                acceptNew(rule, match.root, key.path, snapshot, note)
            }
        }
    }

    private mutating func acceptNew(
        _ rule: Rule, _ root: PathBytes, _ path: PathBytes, _ snapshot: Snapshot, _ note: Note
    ) {
        if let move = move(rule, to: path, snapshot) {
            tellMoved(rule, root, move, path, snapshot, replacing: nil, note.origin)
            return
        }
        set(rule, path, snapshot)
        if snapshot.links > 1 { addOtherNames(rule, path, snapshot, note) }
        tell(rule, event(note.wasThere ? .modified : .created, root, path, snapshot, note.origin))
    }

    private mutating func acceptChange(
        _ rule: Rule, _ root: PathBytes, _ path: PathBytes, _ before: Snapshot, _ snapshot: Snapshot, _ note: Note
    ) {
        let isListed = note.signs.contains(.listed)
        let isClosed = note.signs.contains(.closed) && !note.signs.contains(.attributes)
        let difference = Difference(
            before: before, after: snapshot, mayBeWritten: note.signs.contains(.written) || isClosed || isListed)
        guard !difference.isEmpty else { return }
        if difference.isReplaced, let move = move(rule, to: path, snapshot) {
            tellMoved(rule, root, move, path, snapshot, replacing: before, note.origin)
            return
        }
        set(rule, path, snapshot)
        if snapshot.links > 1 || before.links > 1 {
            addOtherNames(rule, path, snapshot, note)
            if difference.isReplaced { addOtherNames(rule, path, before, note) }
        }
        var event = event(.modified, root, path, snapshot, note.origin)
        event.before = before
        event.isReplaced = difference.isReplaced
        if difference.isReplaced || !difference.content.isEmpty, rule.events.contains(.modified) {
            event.changed = difference.content
            tell(rule, event)
        } else if !difference.attributes.isEmpty {
            event.kind = .attributes
            event.changed = difference.attributes
            tell(rule, event)
        }
    }

    /// Makes the other names of a file dirty, which changed with it or have one name less or more beside them.
    private mutating func addOtherNames(_ rule: Rule, _ path: PathBytes, _ file: Snapshot, _ note: Note) {
        for other in journal.paths(rule: rule.name, identity: file.identity) where other != path {
            let signs = note.signs.subtracting([.appeared, .vanished])
            otherNames.append((Key(path: other, policy: rule.settle), Note(signs: signs, origin: note.origin)))
        }
    }

    private mutating func acceptGone(_ key: Key, _ note: Note) {
        for match in ruleset.rules(taking: key.path) {
            let rule = ruleset.rules[match.rule]
            guard rule.settle == key.policy, let before = known(rule, key.path) else { continue }
            // A root that is not there is unavailable, not empty; it is compared when it is back.
            guard case .present = DiskProbe.look(at: match.root) else { continue }
            if before.links > 1 { addOtherNames(rule, key.path, before, note) }
            tellDeleted(rule, match.root, key.path, before, note.origin)
        }
    }

    // MARK: Moves

    private struct Move {
        var from: PathBytes
        var before: Snapshot
    }

    /// Where the rule knew this file, if it is not there any more.
    private func move(_ rule: Rule, to path: PathBytes, _ snapshot: Snapshot) -> Move? {
        // Without a birth time a reused inode can't be told from a moved file.
        guard snapshot.identity.birth != 0 else { return nil }
        for from in journal.paths(rule: rule.name, identity: snapshot.identity) where from != path {
            guard let before = known(rule, from), before.identity == snapshot.identity else { continue }
            // Another name of the file is a hard link, unless it is gone or names another file now.
            if case .present(let there) = DiskProbe.look(at: from), there.identity == snapshot.identity { continue }
            return Move(from: from, before: before)
        }
        return nil
    }

    /// Tells at once of a known file that has a new name: it was complete before, so there is nothing to wait for.
    ///
    /// If its content changed too, the ledger keeps the old facts under the new
    /// name, and settling finds the difference.
    private mutating func acceptMove(to path: PathBytes, _ matches: [Ruleset.Match], origin: EventOrigin) {
        guard case .present(let snapshot) = DiskProbe.look(at: path) else { return }
        for match in matches {
            let rule = ruleset.rules[match.rule]
            guard rule.types.contains(snapshot.type), let move = move(rule, to: path, snapshot) else { continue }
            let replaced = known(rule, path)
            let isSame = move.before.hasSameContent(as: snapshot)
            if isSame || rule.events.contains(.moved) {
                tellMoved(rule, match.root, move, path, snapshot, replacing: replaced, origin)
                if !isSame { set(rule, path, move.before) }
            } else {
                // The old name is gone for certain; the new one is told when its content is finished.
                tellDeleted(rule, match.root, move.from, move.before, origin)
            }
        }
    }

    private mutating func tellMoved(
        _ rule: Rule, _ root: PathBytes, _ move: Move, _ path: PathBytes, _ snapshot: Snapshot,
        replacing replaced: Snapshot?, _ origin: EventOrigin
    ) {
        set(rule, move.from, nil)
        set(rule, path, snapshot)
        if rule.events.contains(.moved) {
            var event = event(.moved, root, path, snapshot, origin)
            event.from = move.from
            event.before = move.before
            event.isReplaced = replaced != nil
            tell(rule, event)
            return
        }
        // A rule that does not ask for moves is told the halves.
        tell(rule, event(.deleted, root, move.from, move.before, origin))
        var arrival = event(replaced == nil ? .created : .modified, root, path, snapshot, origin)
        arrival.before = replaced
        arrival.isReplaced = replaced != nil
        tell(rule, arrival)
    }

    private mutating func tellDeleted(
        _ rule: Rule, _ root: PathBytes, _ path: PathBytes, _ before: Snapshot, _ origin: EventOrigin
    ) {
        set(rule, path, nil)
        tell(rule, event(.deleted, root, path, before, origin))
    }

    // MARK: Jobs

    /// What is known of the path, with what this turn is about to commit.
    private func known(_ rule: Rule, _ path: PathBytes) -> Snapshot? {
        if let entry = overlay[rule.name]?[path] { return entry.snapshot }
        return journal.snapshot(rule: rule.name, path: path)
    }

    private func event(
        _ kind: EventKind, _ root: PathBytes, _ path: PathBytes, _ snapshot: Snapshot, _ origin: EventOrigin
    ) -> FileEvent {
        FileEvent(kind: kind, path: path, root: root, snapshot: snapshot, origin: origin, time: DiskProbe.now())
    }

    private mutating func tell(_ rule: Rule, _ event: FileEvent) {
        guard rule.events.contains(EventMask(event.kind)) else { return }
        let random = (UInt64.random(in: 0...UInt64.max), UInt16.random(in: 0...UInt16.max))
        jobs.append(Job(id: JobID(now: event.time, random: random), rule: rule.name, event: event))
    }
}
