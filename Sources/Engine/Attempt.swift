import FileEvents
import Glibc
import Globbing
import Handling
import Journaling
import Logging
import PluginProtocol
import Reconciling
import Rules
import Settling

/// One run of a rule's actions for a job, or for those that were gathered, on a thread of the pool.
struct Attempt: Sendable {
    /// Does one action, for several jobs in a batch; there is one outcome for each.
    typealias Perform = @Sendable (Action, [Invocation]) -> [Outcome]

    enum Ending: Sendable {
        case outcome(Outcome)
        /// The file is not what it was when it was accepted.
        case changed
    }

    /// How it ended for one of the jobs.
    struct Part: Sendable {
        var job: Job
        var ending = Ending.outcome(Outcome(.succeeded))
        var ownWrites: [LedgerEntry] = []
        /// What the file became while a program ran, when that may be anyone's work: it is told once more.
        var change: Snapshot?
        /// Whether no step is left to be done for it.
        var isOver = false

        init(_ job: Job) { self.job = job }

        mutating func end(_ ending: Ending) {
            self.ending = ending
            isOver = true
        }
    }

    struct Result: Sendable {
        var rule: String
        /// In the order of the jobs.
        var parts: [Part]
        var started: Timestamp
        var duration: Duration
    }

    let jobs: [Job]
    let rule: Rule
    let perform: Perform
    let stop: StopSignal
    let log: Logger
    /// The jobs whose event is nothing but a change that was seen while this rule's program ran before.
    var repeated: Set<JobID> = []
    /// Of jobs that tell of a rewrite, the checksum of the content that was handled last.
    var handled: [JobID: [UInt8]] = [:]

    func run() -> Result {
        let start = ContinuousClock.now
        let started = DiskProbe.now()
        var parts = jobs.map(Part.init)
        for index in parts.indices {
            if let early = lookAgain(parts[index].job) ?? compareContent(&parts[index].job) { parts[index].end(early) }
        }
        let begun = parts.indices.filter { !parts[$0].isOver }
        runSteps(&parts)
        for index in begun {
            if case .outcome(let outcome) = parts[index].ending { noteOwnWrites(outcome, &parts[index]) }
        }
        return Result(
            rule: rule.name, parts: parts, started: started, duration: ContinuousClock.now - start)
    }

    // MARK: Before

    /// Looks at the path once more before anything is done; nil to go on.
    private func lookAgain(_ job: Job) -> Ending? {
        // What tells of a moment is as true later on, and text that was added is in the event itself.
        let kind = job.event.kind
        guard kind != .deleted, !kind.isLifecycle, !kind.isRaw, job.event.tail == nil else { return nil }
        // A step that was done may have moved the file: what follows is its business.
        guard job.steps.isEmpty else { return nil }
        switch DiskProbe.look(at: job.event.path) {
        case .absent where job.event.kind == .moved:
            // The old name is still to be told of: as a deletion, or as a move to where the file is now.
            return .changed
        case .absent:
            return .outcome(Outcome(.skipped, "it was gone before the action began", code: "gone"))
        case .unreadable(let errno):
            return .outcome(Outcome(.retry, "it can't be looked at (errno \(errno))", code: "unreadable"))
        case .present(let snapshot):
            guard job.event.kind == .created || job.event.kind == .modified, snapshot.type == .file,
                !snapshot.hasSameContent(as: job.event.snapshot)
            else { return nil }
            return .changed
        }
    }

    /// Finds out whether a file was rewritten with the bytes it had, for rules that are not told of that.
    ///
    /// The checksum is kept in the job, and with the ledger's snapshot when the job has succeeded.
    private func compareContent(_ job: inout Job) -> Ending? {
        let event = job.event
        guard rule.sameContent == .ignore, job.steps.isEmpty, event.snapshot.type == .file,
            event.kind == .created || event.kind == .modified
        else { return nil }
        switch ContentDigest.sha256(of: event.path, stop: stop) {
        case .digest(let digest):
            guard case .present(let snapshot) = DiskProbe.look(at: event.path),
                snapshot.hasSameContent(as: event.snapshot)
            else { return .changed }
            job.event.snapshot.digest = digest
            guard event.kind == .modified, digest == handled[job.id] else { return nil }
            let message = "it was written again with the content that was handled before"
            return .outcome(Outcome(.skipped, message, code: "same-content"))
        case .interrupted: return .outcome(.interrupted("stopped while comparing the content"))
        case .notRegular: return .changed
        case .unreadable(ENOENT): return .changed
        // The action has its own way to say that it can't read the file.
        case .unreadable: return nil
        }
    }

    // MARK: The steps

    /// Runs each action for all jobs that have come so far.
    private func runSteps(_ parts: inout [Part]) {
        let now = DiskProbe.now()
        let deadline = ContinuousClock.now + rule.timeout
        for index in parts.indices where !parts[index].isOver {
            parts[index].ending = .outcome(parts[index].job.steps.last ?? Outcome(.succeeded))
        }
        for (step, action) in rule.actions.enumerated() {
            let due = parts.indices.filter { !parts[$0].isOver && parts[$0].job.steps.count == step }
            guard !due.isEmpty else { continue }
            if stop.isRaised {
                for index in due { parts[index].end(.outcome(.interrupted("stopped between two steps"))) }
                continue
            }
            let timeout = jobs.count == 1 ? deadline - ContinuousClock.now : rule.timeout
            let outcomes = perform(action, due.map { invocation(parts[$0].job, now: now, timeout: timeout) })
            precondition(outcomes.count == due.count, "an action has one outcome for each of its events")
            for (index, outcome) in zip(due, outcomes) {
                if outcome.ending == .succeeded {
                    parts[index].job.steps.append(outcome)
                    parts[index].ending = .outcome(outcome)
                } else {
                    parts[index].end(.outcome(outcome))
                }
            }
        }
    }

    private func invocation(_ job: Job, now: Timestamp, timeout: Duration) -> Invocation {
        var log = log
        log[metadataKey: "rule"] = "\(rule.name)"
        log[metadataKey: "job"] = "\(job.id)"
        var job = job
        job.event = job.event.withoutFollowingChange
        let facts = PlaceholderFacts(
            event: job.event, rule: rule.name, job: job.id.description, attempt: job.attempt, now: now,
            stepOutputs: job.steps.map(\.outputs))
        return Invocation(
            job: job, rule: rule.place, folder: rule.folder, maximumAttempts: rule.retry.attempts,
            parameters: .object([:]), selection: FileSelection(filter: rule.filter, types: rule.types), facts: facts,
            timeout: timeout, batch: rule.batch?.files, steps: job.steps, stop: stop, log: log)
    }

    // MARK: Own writes

    /// The names under which the rule would see an output: its own, and the one below the root that links lead to.
    private func names(of output: PathBytes) -> Set<PathBytes> {
        var names: Set<PathBytes> = [output]
        if let folder = output.parent.resolved {
            for root in Set(rule.globs.map { PathBytes($0.root) }) {
                guard let realRoot = root.resolved, let relative = folder.relative(to: realRoot) else { continue }
                let seen = relative.isEmpty ? root : root.appending(relative)
                names.insert(seen.appending(output.lastComponent))
            }
        }
        return names.filter { rule.root(taking: $0) != nil }
    }

    /// Notes what the action left behind, so that it does not come back to this rule as an event.
    ///
    /// Outputs are taken as they are now: a plugin that works in place names its
    /// input among them. Another change of the input while a program ran is
    /// either its own or somebody else's, and the second must not be lost. It
    /// comes back once; if the program then changes the file again, that is what
    /// it does, and the change is taken for its own. A job that will be tried
    /// again sees the changed file anyway.
    ///
    /// A rule that wants to be told of its own writes, or that follows the file,
    /// has only its outputs taken as known.
    private func noteOwnWrites(_ outcome: Outcome, _ part: inout Part) {
        let job = part.job
        for output in Set(job.steps.flatMap(\.outputs) + outcome.outputs).flatMap(names) {
            guard case .present(let snapshot) = look(at: output, for: job.event), rule.types.contains(snapshot.type)
            else { continue }
            part.ownWrites.append(LedgerEntry(view: rule.name, path: output, snapshot: snapshot))
        }
        guard rule.ownWrites == .ignore, rule.tail == nil, job.event.kind.isOfPresentPath else { return }
        switch look(at: job.event.path, for: job.event) {
        case .absent
        where (outcome.ending == .succeeded || !job.steps.isEmpty)
            && rule.actions.contains(where: \.mayRemoveInput):
            part.ownWrites.append(LedgerEntry(view: rule.name, path: job.event.path, snapshot: nil))
        case .present(let snapshot)
        where rule.actions.contains(where: \.isProgram) && !snapshot.isSameSight(as: job.event.snapshot):
            // While somebody has it open for writing the change is not finished, and comes by itself.
            guard snapshot.type != .file || DiskProbe.writers(of: job.event.path) != .somebody else { break }
            let comesAgain = outcome.ending == .retry || outcome.ending == .notReady
            let isSame = snapshot.hasSameContent(as: job.event.snapshot) && snapshot.hasSameTree(as: job.event.snapshot)
            if comesAgain || isSame || repeated.contains(job.id) {
                part.ownWrites.append(LedgerEntry(view: rule.name, path: job.event.path, snapshot: snapshot))
                part.job.event.snapshot = snapshot
            } else {
                part.change = snapshot
            }
        default: break
        }
    }

    /// What is at the path now, with all that the rule's view compares.
    ///
    /// The content of the event's own file is looked at again only if it can be another.
    private func look(at path: PathBytes, for event: FileEvent) -> DiskProbe.Sight {
        let readsExtended = !rule.events.isDisjoint(with: [.attributes, .xattr])
        guard case .present(var snapshot) = DiskProbe.look(at: path, reading: readsExtended ? .extended : []) else {
            return DiskProbe.look(at: path)
        }
        if rule.settle.isTree, snapshot.type == .directory,
            case .resting(let facts) = DiskProbe.tree(at: path, askingWriters: false)
        {
            snapshot.digest = facts.fingerprint
        }
        // A file that is followed from now on has nothing of its own text told.
        if rule.tail != nil { snapshot.delivered = snapshot.size }
        if rule.sameContent == .ignore, snapshot.type == .file {
            if path == event.path, snapshot.hasSameContent(as: event.snapshot) {
                snapshot.digest = event.snapshot.digest
            } else if case .digest(let digest) = ContentDigest.sha256(of: path, stop: stop) {
                snapshot.digest = digest
            }
        }
        return .present(snapshot)
    }
}

extension EventKind {
    /// Whether the ledger knows the path by an event of this kind, and that something is there.
    fileprivate var isOfPresentPath: Bool {
        switch self {
        case .created, .modified, .moved, .attributes: true
        default: false
        }
    }
}

extension FileEvent {
    /// The event as actions are told of it: of a moved file whose content changed too, a `modified` follows.
    fileprivate var withoutFollowingChange: FileEvent {
        guard kind == .moved else { return self }
        var event = self
        event.changed = []
        event.tail = nil
        return event
    }
}

extension Snapshot {
    /// Whether both are the same but for what only one of them has looked at.
    fileprivate func isSameSight(as other: Snapshot) -> Bool {
        var mine = self
        var other = other
        if mine.extended == nil || other.extended == nil { (mine.extended, other.extended) = (nil, nil) }
        if mine.digest == nil || other.digest == nil { (mine.digest, other.digest) = (nil, nil) }
        (mine.delivered, other.delivered) = (nil, nil)
        return mine == other
    }

    /// Whether what is below a folder is the same, as far as both have looked.
    fileprivate func hasSameTree(as other: Snapshot) -> Bool {
        guard type == .directory, let mine = digest, let theirs = other.digest else { return true }
        return mine == theirs
    }
}

extension Action {
    /// Whether the file may be gone afterwards because of it.
    fileprivate var mayRemoveInput: Bool { isProgram || !["log", "copy", "index"].contains(name) }

    /// Whether a program outside Alight does the work.
    fileprivate var isProgram: Bool {
        switch work {
        case .use(let reference, _): reference.location != nil
        case .exec, .shell: true
        }
    }
}
