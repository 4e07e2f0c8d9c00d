import ActionAPI
import FileEvents
import Gates
import Globbing
import Jobs
import Logging
import PluginProtocol
import Records
import Rules
import Synchronization
import System

/// One run of a rule's actions for one job, or for several together.
///
/// It is prepared and concluded on threads of the pool, and so are handlers that block; it holds no thread while a program
/// runs or a plugin answers. It has no access to the ledger or the queue.
///
/// While it is suspended, its memory is that of its asynchronous functions. So they are short, and all else is in
/// functions that are not inlined into them.
final class Attempt: Sendable {
    let inputs: [OpenJob]
    let rule: Rule
    let perform: EngineContext.Perform
    let stop: StopSignal
    let log: Logger
    let host: Host
    let permission: StartPermission
    let mailbox: Mailbox
    let outputClaims: DestinationClaims
    let chains: OutputChains
    /// The directories of outputs without symbolic links, by path.
    private let resolved = Mutex<[PathBytes: PathBytes]>([:])

    init(
        _ inputs: [OpenJob], _ rule: Rule, _ engine: EngineContext, stop: StopSignal, permission: StartPermission,
        outputClaims: DestinationClaims
    ) {
        (self.inputs, self.rule, self.stop) = (inputs, rule, stop)
        (self.permission, self.outputClaims) = (permission, outputClaims)
        (perform, log, host) = (engine.perform, engine.log, engine.host)
        (mailbox, chains) = (engine.mailbox, engine.chains)
    }

    /// Runs the actions.
    func run() async -> AttemptResult {
        let start = (host.clock.now(), host.clock.time())
        let (new, files) = newParts()
        var parts = new
        for index in parts.indices { await check(&parts[index], files) }
        let begun = begin(&parts, files)
        for (step, action) in actions.enumerated() {
            let due = due(&parts, at: step, action)
            guard !due.isEmpty else { continue }
            finish(&parts, due, step, await perform(action, invocations(parts, due, step, since: begun)))
        }
        return conclude(&parts, files, since: start)
    }

    @inline(never) private func newParts() -> ([AttemptPart], WatchedPaths) {
        let roots = rule.roots + inputs.map(\.job.event.root)
        return (inputs.map(AttemptPart.init), WatchedPaths(roots: roots, in: host.fileSystem))
    }

    @inline(never) private func begin(
        _ parts: inout [AttemptPart], _ files: WatchedPaths
    ) -> (ContinuousClock.Instant, time: Timestamp) {
        keepSetTogether(&parts)
        for index in parts.indices where !parts[index].isOver {
            parts[index].hasStarted = true
            parts[index].termination = .outcome(parts[index].job.finishedSteps.last?.outcome ?? Outcome(.succeeded))
        }
        // An open directory prevents its file system from being unmounted.
        files.forget()
        return (host.clock.now(), host.clock.time())
    }

    @inline(never) private func conclude(
        _ parts: inout [AttemptPart], _ files: WatchedPaths, since start: (ContinuousClock.Instant, time: Timestamp)
    ) -> AttemptResult {
        for index in parts.indices where parts[index].hasStarted {
            collectOutputs(of: &parts[index], files)
            if let failure = parts[index].job.failure { parts[index].finish(failure, actions) }
        }
        let duration = host.clock.now() - start.0
        return AttemptResult(rule: rule, parts: parts, started: start.time, duration: duration)
    }

    /// The list of actions to run.
    private var actions: [Action] { rule.actions(of: inputs[0].job) }

    /// The limit for a read that starts now.
    var limit: WorkLimit { WorkLimit(stop, timeout: rule.timeout) }

    // MARK: Steps

    /// Returns the parts whose next step is the given one; ends those that it excludes, and all of them at a stop.
    @inline(never) private func due(_ parts: inout [AttemptPart], at step: Int, _ action: Action) -> [Int] {
        var due = parts.indices.filter { !parts[$0].isOver && parts[$0].job.finishedSteps.count == step }
        due.removeAll { excludes(&parts[$0], action) }
        guard !due.isEmpty, stop.isRaised else { return due }
        for index in due { parts[index].end(.outcome(.interrupted("stopped between two steps"))) }
        return []
    }

    @inline(never) private func invocations(
        _ parts: [AttemptPart], _ due: [Int], _ step: Int, since start: (ContinuousClock.Instant, time: Timestamp)
    ) -> [Invocation] {
        let left = start.0 + rule.timeout - host.clock.now()
        return due.map { index in
            let job = parts[index].job
            var invocation = invocation(job, now: start.time, timeout: inputs.count == 1 ? left : rule.timeout)
            invocation.expectsSettled =
                step == 0 && job.failure == nil && !parts[index].job.isStored
                && (job.event.kind == .created || job.event.kind == .modified)
            return invocation
        }
    }

    @inline(never) private func finish(_ parts: inout [AttemptPart], _ due: [Int], _ step: Int, _ outcomes: [Outcome]) {
        precondition(outcomes.count == due.count, "an action has one outcome for each of its events")
        for (index, outcome) in zip(due, outcomes) {
            endStep(of: &parts[index], outcome, actions[step], isLast: step + 1 == actions.count)
        }
    }

    private func endStep(of part: inout AttemptPart, _ outcome: Outcome, _ action: Action, isLast: Bool) {
        part.changes += outcome.changes
        guard outcome.result == .succeeded else { return part.end(.outcome(outcome)) }
        part.termination = .outcome(outcome)
        // The job is never resumed after the last step.
        part.job.finishedSteps.append(FinishedStep(outcome, action: isLast ? "" : action.digest))
        if isLast { return }
        mailbox.post(.advanced(part.job.id, part.job.finishedSteps, Set(outcome.outputs.flatMap(names))))
    }

    /// Ends the list of `on_failure` before an action that does not accept the event; `action` is checked when rules
    /// load.
    private func excludes(_ part: inout AttemptPart, _ action: Action) -> Bool {
        let event = part.job.event
        guard part.job.failure != nil, let mask = action.events, !mask.takes(event.kind, changed: event.changed) else {
            return false
        }
        part.end(.outcome(Outcome(.skipped, "it does not accept the event '\(event.kind.rawValue)'")))
        return true
    }

    func invocation(_ job: Job, now: Timestamp, timeout: Duration) -> Invocation {
        var log = log
        log[metadataKey: "rule"] = "\(rule.name)"
        log[metadataKey: "job"] = "\(job.id)"
        var invocation = rule.invocation(
            for: job, now: now, timeout: timeout, count: inputs.count, stop: stop, log: log)
        invocation.outputClaims = outputClaims
        invocation.permission = permission
        invocation.willWrite = { [self] path in
            // Before the file exists, so that a rule that runs for it at once knows its depth.
            chains.add(path, of: job.event.path)
            for name in names(of: path) { mailbox.post(.declared(job.id, name)) }
        }
        return invocation
    }

    // MARK: Outputs

    private func collectOutputs(of part: inout AttemptPart, _ files: WatchedPaths) {
        guard case .outcome(var outcome) = part.termination else { return }
        let steps = part.job.finishedSteps
        let written = steps.flatMap(\.outcome.outputs)
        // The outputs of earlier steps were recorded when those finished; later changes of them are events for the
        // rule.
        part.outputs = Set(outcome.outputs.flatMap(names))
        let mayRemove = zip(actions, steps).contains { action, _ in rule.mayRemoveInput(action) }
        if mayRemove { look(at: &part, files) }
        guard steps.count > 1 else { return }
        var seen = Set(outcome.outputs)
        outcome.outputs =
            written.filter { seen.insert($0).inserted && files.inspect(at: $0) != .absent } + outcome.outputs
        part.termination = .outcome(outcome)
    }

    /// Finds out whether the steps have removed the file.
    private func look(at part: inout AttemptPart, _ files: WatchedPaths) {
        switch files.inspect(at: part.job.event.path) {
        case .present(let now):
            part.seen = now
            part.hasRemovedInput = now.identity != part.job.event.snapshot.identity
        case .absent: part.hasRemovedInput = true
        case .unreadable: break
        }
    }

    /// Returns the names under which the rule matches an output: its own, and the one below the root after resolving
    /// links.
    private func names(of output: PathBytes) -> Set<PathBytes> {
        var names: Set<PathBytes> = [output]
        if let directory = resolve(output.parent) {
            for root in Set(rule.globs.map { PathBytes($0.root) }) {
                guard let realRoot = resolve(root), let relative = directory.relative(to: realRoot)
                else { continue }
                let seen = relative.isEmpty ? root : root.appending(relative)
                names.insert(seen.appending(output.lastComponent))
            }
        }
        return names.filter { rule.root(matching: $0) != nil }
    }

    /// Resolves a directory, once for all files of the attempt.
    private func resolve(_ directory: PathBytes) -> PathBytes? {
        if let known = resolved.withLock({ $0[directory] }) { return known }
        let found = host.fileSystem.resolve(directory)
        resolved.withLock { $0[directory] = found }
        return found
    }
}

extension AttemptPart {
    /// Merges the outcome of `on_failure` into that of the attempt after which the job was given up.
    ///
    /// A list that was interrupted resumes after its finished steps.
    fileprivate mutating func finish(_ failure: FinalFailure, _ actions: [Action]) {
        guard case .outcome(let last) = termination, !last.isInterrupted else { return }
        var outcomes = failure.steps.map(\.outcome)
        if last.result != .succeeded { outcomes.append(last) }
        var whole = failure.attempt.outcome
        for (action, outcome) in zip(actions, outcomes) {
            let isFailure = outcome.result != .succeeded && outcome.result != .skipped
            let detail = outcome.message.isEmpty ? "" : ": \(outcome.message)"
            whole.message += "; on_failure: '\(action.name)' \(isFailure ? "failed" : outcome.result.rawValue)\(detail)"
            whole.outputs += outcome.outputs
            whole.log += outcome.log
        }
        changes = whole.changes + outcomes.flatMap(\.changes)
        termination = .outcome(whole)
    }
}
