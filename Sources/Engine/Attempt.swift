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
        /// Nothing has begun, since something is waited for; it is looked for again after a pause.
        case waiting(Waiting, pause: Duration)
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
        /// Whether an action has begun with it.
        var hasBegun = false
        /// Why it failed for good; nil if it did not, or nothing is to be done then.
        var failure: String?
        /// How the actions ended that were done because it failed for good.
        var aftermath: [Outcome] = []
        /// What the actions of this attempt did that can be taken back.
        var changes: [FileChange] = []

        init(_ job: Job) { self.job = job }

        mutating func end(_ ending: Ending) {
            self.ending = ending
            isOver = true
        }
    }

    struct Result: Sendable {
        /// As it was when the attempt began; another rule may have its name by now.
        var rule: Rule
        /// In the order of the jobs.
        var parts: [Part]
        var started: Timestamp
        var duration: Duration

        var ended: Timestamp { started.advanced(by: duration) }

        /// Gives it to the rule under the name that this has now.
        mutating func rename(to name: String) {
            let old = rule.name
            guard name != old else { return }
            rule.name = name
            for index in parts.indices {
                parts[index].job.rule = name
                for place in parts[index].ownWrites.indices where parts[index].ownWrites[place].view == old {
                    parts[index].ownWrites[place].view = name
                }
            }
        }
    }

    /// What is told of it while it runs.
    func running(since time: Timestamp) -> EngineStatus.RunningAttempt? {
        jobs.first.map { job in
            EngineStatus.RunningAttempt(
                job: job.id, jobs: jobs.count, rule: rule.name, action: rule.actionNames, path: job.event.path,
                since: time, takesSlot: rule.takesSlot)
        }
    }

    let jobs: [Job]
    let rule: Rule
    let perform: Perform
    let stop: StopSignal
    let log: Logger
    let host: Host
    /// The jobs whose event is nothing but a change that was seen while this rule's program ran before.
    var repeated: Set<JobID> = []
    /// Of jobs that tell of a rewrite, the checksum of the content that was handled last.
    var handled: [JobID: [UInt8]] = [:]
    /// Called when a step has succeeded that others follow, with all that have.
    var progress: @Sendable (JobID, [Outcome]) -> Void = { _, _ in }

    func run() -> Result {
        let start = host.clock.now()
        let started = host.clock.time()
        var parts = jobs.map(Part.init)
        let files = WatchedPaths(roots: rule.roots + jobs.map(\.event.root), in: host.fileSystem)
        for index in parts.indices {
            if let early = lookAgain(&parts[index].job, files) ?? ask(parts[index].job)
                ?? awaitReady(parts[index].job, files) ?? compareContent(&parts[index].job, files)
            {
                parts[index].end(early)
            }
        }
        keepSetTogether(&parts)
        for index in parts.indices where !parts[index].isOver { parts[index].hasBegun = true }
        // Actions may move directories, or take long, while an open one keeps its file system from being unmounted.
        files.forget()
        runSteps(&parts)
        runOnFailure(&parts)
        for index in parts.indices { parts[index].gatherOutputs(files) }
        for index in parts.indices where parts[index].hasBegun || !parts[index].aftermath.isEmpty {
            if case .outcome(let outcome) = parts[index].ending { noteOwnWrites(outcome, &parts[index], files) }
        }
        return Result(
            rule: rule, parts: parts, started: started, duration: host.clock.now() - start)
    }

    /// The limit of reading that starts now.
    var limit: WorkLimit { WorkLimit(stop, timeout: rule.timeout) }

    // MARK: Before

    /// Looks at the path once more before anything is done; nil to go on.
    private func lookAgain(_ job: inout Job, _ files: WatchedPaths) -> Ending? {
        // What tells of a moment is as true later on, and text that was added is in the event itself.
        let kind = job.event.kind
        guard kind != .deleted, !kind.isLifecycle, !kind.isRaw, job.event.tail == nil else { return nil }
        // A step that was done may have moved the file: what follows is its business.
        guard job.steps.isEmpty else { return nil }
        switch files.look(at: job.event.path) {
        case .absent where job.event.kind == .moved && job.isAlone:
            return nil
        case .absent where job.event.kind == .moved:
            // The old name is still to be told of: as a deletion, or as a move to where the file is now.
            return .changed
        case .absent where job.isInterrupted && rule.actions.contains(where: \.mayRemoveInput):
            // The attempt that was cut off may have moved it away, and not have come to its end.
            return nil
        case .absent:
            return .outcome(Outcome(.skipped, "it was gone before the action began", code: "gone"))
        case .unreadable(let errno):
            var outcome = Outcome(.retry, "it can't be looked at (errno \(errno))", code: "unreadable")
            outcome.isUnbegun = !job.hasBegunBefore
            return .outcome(outcome)
        case .present(let snapshot):
            guard job.event.kind == .created || job.event.kind == .modified, snapshot.type == .file,
                !snapshot.hasSameContent(as: job.event.snapshot), !job.isAlone
            else { return nil }
            guard job.isInterrupted, rule.whileBusy == .drop else { return .changed }
            // It changed while the attempt ran that was cut off, and nobody else tells of that.
            job.event.snapshot = snapshot
            return nil
        }
    }

    /// Finds out whether a file was rewritten with the bytes it had, for rules that are not told of that.
    ///
    /// The checksum is kept in the job, and with the ledger's snapshot when the job has succeeded.
    private func compareContent(_ job: inout Job, _ files: WatchedPaths) -> Ending? {
        let event = job.event
        guard rule.sameContent == .ignore, job.steps.isEmpty, !job.isAlone, event.snapshot.type == .file,
            event.kind == .created || event.kind == .modified
        else { return nil }
        switch ContentDigest.sha256(of: event.path, below: event.root, within: limit) {
        case .digest(let digest):
            guard case .present(let snapshot) = files.look(at: event.path),
                snapshot.hasSameContent(as: event.snapshot)
            else { return .changed }
            job.event.snapshot.digest = digest
            // After an attempt that has failed nobody knows what is left of the content that was handled before it.
            guard event.kind == .modified, digest == handled[job.id], !job.isHeir, !job.hasBegunBefore else {
                return nil
            }
            let message = "it was written again with the content that was handled before"
            return .outcome(Outcome(.skipped, message, code: "same-content"))
        case .ended(var outcome):
            outcome.isUnbegun = !job.hasBegunBefore
            return .outcome(outcome)
        case .notRegular: return .changed
        case .unreadable(ENOENT): return .changed
        // The action has its own way to say that it can't read the file.
        case .unreadable: return nil
        }
    }

    // MARK: The steps

    /// Runs each action for all jobs that have come so far.
    private func runSteps(_ parts: inout [Part]) {
        let now = host.clock.time()
        let deadline = host.clock.now() + rule.timeout
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
            let timeout = jobs.count == 1 ? deadline - host.clock.now() : rule.timeout
            let invocations = due.map { index in
                var invocation = invocation(parts[index].job, now: now, timeout: timeout)
                // What came before may have changed it, and a job that stands for itself takes it as it is.
                let kind = parts[index].job.event.kind
                invocation.expectsSettled =
                    step == 0 && !parts[index].job.isAlone && (kind == .created || kind == .modified)
                return invocation
            }
            let outcomes = perform(action, invocations)
            precondition(outcomes.count == due.count, "an action has one outcome for each of its events")
            for (index, outcome) in zip(due, outcomes) {
                parts[index].changes += outcome.changes
                if outcome.ending == .succeeded {
                    parts[index].job.steps.append(outcome)
                    parts[index].ending = .outcome(outcome)
                    if step + 1 < rule.actions.count { progress(parts[index].job.id, parts[index].job.steps) }
                } else {
                    parts[index].end(.outcome(outcome))
                }
            }
        }
    }

    /// Does once what the rule has for jobs that are not tried again; how that ends is only told.
    private func runOnFailure(_ parts: inout [Part]) {
        guard !rule.onFailure.isEmpty else { return }
        var open: [Int: Job] = [:]
        for (index, part) in parts.enumerated() {
            guard case .outcome(let outcome) = part.ending,
                rule.retry.isDeadly(outcome, attempt: part.job.attempt)
            else { continue }
            parts[index].failure = outcome.message
            var job = part.job
            job.steps = []
            job.previous = PreviousAttempt(
                attempt: job.attempt, outcome: outcome.ending.rawValue, message: outcome.message)
            open[index] = job
        }
        let now = host.clock.time()
        for action in rule.onFailure {
            var due: [(index: Int, job: Job)] = []
            for (index, job) in open.sorted(by: { $0.key < $1.key }) {
                if let taken = action.events, !taken.takes(job.event.kind, changed: job.event.changed) {
                    let message = "it does not accept the event '\(job.event.kind.rawValue)'"
                    parts[index].add(Outcome(.skipped, message), of: action)
                    open[index] = nil
                } else {
                    due.append((index, job))
                }
            }
            guard !due.isEmpty else { return }
            let outcomes = perform(action, due.map { invocation($0.job, now: now, timeout: rule.timeout) })
            precondition(outcomes.count == due.count, "an action has one outcome for each of its events")
            for ((index, job), outcome) in zip(due, outcomes) {
                parts[index].add(outcome, of: action)
                var job = job
                job.steps.append(outcome)
                open[index] = outcome.ending == .succeeded ? job : nil
            }
        }
    }

    func invocation(_ job: Job, now: Timestamp, timeout: Duration) -> Invocation {
        var log = log
        log[metadataKey: "rule"] = "\(rule.name)"
        log[metadataKey: "job"] = "\(job.id)"
        var job = job
        job.event = job.event.withoutFollowingChange
        return rule.invocation(for: job, now: now, timeout: timeout, count: jobs.count, stop: stop, log: log)
    }
}

extension Attempt.Part {
    /// Names in the outcome what all steps have left; what a later step moved or removed is there no more.
    fileprivate mutating func gatherOutputs(_ files: WatchedPaths) {
        guard case .outcome(var outcome) = ending, job.steps.count + aftermath.count > 1 else { return }
        var seen = Set(outcome.outputs)
        outcome.outputs =
            job.steps.flatMap(\.outputs).filter { seen.insert($0).inserted && files.look(at: $0) != .absent }
            + outcome.outputs
        ending = .outcome(outcome)
    }

    /// Adds what was done because the job has failed for good.
    ///
    /// If that was cut off, so was the whole attempt: it does not count.
    fileprivate mutating func add(_ outcome: Outcome, of action: Action) {
        guard case .outcome(var whole) = ending else { return }
        guard !outcome.isInterrupted else {
            end(.outcome(outcome))
            return
        }
        aftermath.append(outcome)
        changes += outcome.changes
        let said = outcome.message.isEmpty ? "" : ": \(outcome.message)"
        whole.message += "; on_failure: '\(action.name)' \(outcome.ending.word)\(said)"
        whole.outputs += outcome.outputs
        whole.log += outcome.log
        ending = .outcome(whole)
    }
}

extension Outcome.Ending {
    /// The word for something that is not tried again.
    fileprivate var word: String { self == .succeeded || self == .skipped ? rawValue : "failed" }
}
