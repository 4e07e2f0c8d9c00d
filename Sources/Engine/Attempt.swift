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

/// One run of a job's actions, on a thread of the pool.
struct Attempt: Sendable {
    /// Does one action.
    typealias Perform = @Sendable (Action, Invocation) -> Outcome

    enum Ending: Sendable {
        case outcome(Outcome)
        /// The file is not what it was when it was accepted.
        case changed
    }

    struct Result: Sendable {
        var job: Job
        var ending: Ending
        var ownWrites: [LedgerEntry]
        /// What the file became while a program ran, when that may be anyone's work: it is told once more.
        var change: Snapshot?
        var duration: Duration
    }

    let job: Job
    let rule: Rule
    let perform: Perform
    let stop: StopSignal
    let log: Logger
    /// Whether the event is nothing but a change that was seen while this rule's program ran before.
    var isRepeated = false

    func run() -> Result {
        let start = ContinuousClock.now
        var result = Result(
            job: job, ending: .outcome(Outcome(.succeeded)), ownWrites: [], change: nil, duration: .zero)
        if let early = lookAgain() {
            result.ending = early
        } else {
            result.ending = .outcome(runSteps(&result.job))
        }
        if case .outcome(let outcome) = result.ending { noteOwnWrites(outcome, &result) }
        result.duration = ContinuousClock.now - start
        return result
    }

    /// Looks at the path once more before anything is done; nil to go on.
    private func lookAgain() -> Ending? {
        // A step that was done may have moved the file: what follows is its business.
        guard job.event.kind != .deleted, job.steps.isEmpty else { return nil }
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

    private func runSteps(_ job: inout Job) -> Outcome {
        let now = DiskProbe.now()
        var log = log
        log[metadataKey: "rule"] = "\(rule.name)"
        log[metadataKey: "job"] = "\(job.id)"
        let deadline = ContinuousClock.now + rule.timeout
        var last = job.steps.last ?? Outcome(.succeeded)
        for action in rule.actions.dropFirst(job.steps.count) {
            if stop.isRaised { return .interrupted("stopped between two steps") }
            let facts = PlaceholderFacts(
                event: job.event, rule: rule.name, job: job.id.description, attempt: job.attempt, now: now,
                stepOutputs: job.steps.map(\.outputs))
            last = perform(
                action,
                Invocation(
                    job: job, rule: rule.place, folder: rule.folder, maximumAttempts: rule.retry.attempts,
                    parameters: .object([:]), selection: FileSelection(filter: rule.filter, types: rule.types),
                    facts: facts, timeout: deadline - ContinuousClock.now, steps: job.steps, stop: stop, log: log))
            guard last.ending == .succeeded else { return last }
            job.steps.append(last)
        }
        return last
    }

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
    private func noteOwnWrites(_ outcome: Outcome, _ result: inout Result) {
        let job = result.job
        for output in Set(job.steps.flatMap(\.outputs) + outcome.outputs).flatMap(names) {
            guard case .present(let snapshot) = DiskProbe.look(at: output), rule.types.contains(snapshot.type) else {
                continue
            }
            result.ownWrites.append(LedgerEntry(view: rule.name, path: output, snapshot: snapshot))
        }
        guard job.event.kind != .deleted else { return }
        switch DiskProbe.look(at: job.event.path) {
        case .absent
        where (outcome.ending == .succeeded || !job.steps.isEmpty)
            && rule.actions.contains(where: \.mayRemoveInput):
            result.ownWrites.append(LedgerEntry(view: rule.name, path: job.event.path, snapshot: nil))
        case .present(let snapshot) where rule.actions.contains(where: \.isProgram) && snapshot != job.event.snapshot:
            // While somebody has it open for writing the change is not finished, and comes by itself.
            guard snapshot.type != .file || DiskProbe.writers(of: job.event.path) != .somebody else { break }
            let comesAgain = outcome.ending == .retry || outcome.ending == .notReady
            let isSame = snapshot.hasSameContent(as: job.event.snapshot)
            if comesAgain || isSame || isRepeated {
                result.ownWrites.append(LedgerEntry(view: rule.name, path: job.event.path, snapshot: snapshot))
                result.job.event.snapshot = snapshot
            } else {
                result.change = snapshot
            }
        default: break
        }
    }
}

extension PathBytes {
    /// The path without symbolic links; nil when there is nothing of that name.
    fileprivate var resolved: PathBytes? {
        guard let path = withCString({ realpath($0, nil) }) else { return nil }
        defer { free(path) }
        return PathBytes(UnsafeBufferPointer(start: path, count: strlen(path)).map { UInt8(bitPattern: $0) })
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
