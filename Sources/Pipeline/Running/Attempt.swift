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
    let sharedRule: Box<Rule>
    let engine: EngineContext
    let stop: StopSignal
    let permission: StartPermission
    /// The directories of outputs without symbolic links, by path.
    private let resolved = Mutex<[PathBytes: PathBytes]>([:])

    init(
        _ inputs: [OpenJob], _ rule: Box<Rule>, _ engine: EngineContext, stop: StopSignal, permission: StartPermission
    ) {
        (self.inputs, sharedRule, self.engine) = (inputs, rule, engine)
        (self.stop, self.permission) = (stop, permission)
    }

    /// The state of a run between its steps.
    final class Progress {
        var parts: [AttemptPart]
        let files: WatchedPaths
        /// The number of parts that have been checked.
        var checked = 0
        /// The pause before the program of `ready` is asked again about the part that is being checked.
        var pause = Duration.zero
        /// The index of the next step, or of the running one.
        var step = 0
        /// The indices of the parts for which the step runs.
        var due: [Int] = []
        let start: ClockTimes
        /// The time at which the first step was due to start.
        var begun: ClockTimes

        fileprivate init(_ attempt: Attempt) {
            parts = attempt.inputs.map(AttemptPart.init)
            let roots = attempt.rule.roots + attempt.inputs.map(\.job.event.root)
            files = WatchedPaths(roots: roots, in: attempt.engine.host.fileSystem)
            start = attempt.engine.times
            begun = start
        }
    }

    typealias ClockTimes = (now: ContinuousClock.Instant, time: Timestamp)
    typealias Call = (action: Action, invocations: [Invocation])

    /// Runs the actions.
    func run() async -> AttemptResult {
        let progress = Progress(self)
        while let call = nextQuestion(progress) {
            takeAnswer(await engine.perform(call.action, call.invocations), progress)
        }
        begin(progress)
        while let call = nextStep(progress) { finish(await engine.perform(call.action, call.invocations), progress) }
        return conclude(progress)
    }

    @inline(never) private func begin(_ progress: Progress) {
        keepSetTogether(&progress.parts)
        for index in progress.parts.indices where !progress.parts[index].isOver {
            let last = progress.parts[index].job.finishedSteps.last?.outcome
            progress.parts[index].hasStarted = true
            progress.parts[index].termination = .outcome(last ?? Outcome(.succeeded))
        }
        // An open directory prevents its file system from being unmounted.
        progress.files.forget()
        progress.begun = engine.times
    }

    @inline(never) private func conclude(_ progress: Progress) -> AttemptResult {
        for index in progress.parts.indices where progress.parts[index].hasStarted {
            collectOutputs(of: &progress.parts[index], progress.files)
            if let failure = progress.parts[index].job.failure { progress.parts[index].finish(failure, actions) }
        }
        let duration = engine.host.clock.now() - progress.start.now
        return AttemptResult(rule: sharedRule, parts: progress.parts, started: progress.start.time, duration: duration)
    }

    var rule: Rule { sharedRule.value }

    /// The list of actions to run.
    private var actions: [Action] { rule.actions(of: inputs[0].job) }

    // MARK: Steps

    /// Returns the next step that runs for any part; nil after the last one.
    @inline(never) private func nextStep(_ progress: Progress) -> Call? {
        let actions = actions
        while progress.step < actions.count {
            let action = actions[progress.step]
            progress.due = due(&progress.parts, at: progress.step, action)
            if !progress.due.isEmpty { return (action, invocations(progress)) }
            progress.step += 1
        }
        return nil
    }

    /// Returns the parts whose next step is the given one; ends those that it excludes, and all of them at a stop.
    private func due(_ parts: inout [AttemptPart], at step: Int, _ action: Action) -> [Int] {
        var due = parts.indices.filter { !parts[$0].isOver && parts[$0].job.finishedSteps.count == step }
        due.removeAll { excludes(&parts[$0], action) }
        guard !due.isEmpty, stop.isRaised else { return due }
        for index in due { parts[index].end(.outcome(.interrupted("stopped between two steps"))) }
        return []
    }

    private func invocations(_ progress: Progress) -> [Invocation] {
        let left = progress.begun.now + rule.timeout - engine.host.clock.now()
        return progress.due.map { index in
            let job = progress.parts[index].job
            let timeout = inputs.count == 1 ? left : rule.timeout
            var invocation = invocation(job, now: progress.begun.time, timeout: timeout)
            invocation.expectsSettled =
                progress.step == 0 && job.failure == nil && !job.isStored
                && (job.event.kind == .created || job.event.kind == .modified)
            return invocation
        }
    }

    @inline(never) private func finish(_ outcomes: [Outcome], _ progress: Progress) {
        precondition(outcomes.count == progress.due.count, "an action has one outcome for each of its events")
        for (index, outcome) in zip(progress.due, outcomes) {
            let isLast = progress.step + 1 == actions.count
            endStep(of: &progress.parts[index], outcome, actions[progress.step], isLast: isLast)
        }
        progress.step += 1
    }

    private func endStep(of part: inout AttemptPart, _ outcome: Outcome, _ action: Action, isLast: Bool) {
        part.changes += outcome.changes
        guard outcome.result == .succeeded else { return part.end(.outcome(outcome)) }
        part.termination = .outcome(outcome)
        // The job is never resumed after the last step.
        part.job.finishedSteps.append(FinishedStep(outcome, action: isLast ? "" : action.digest))
        if isLast { return }
        engine.mailbox.post(.advanced(part.job.id, part.job.finishedSteps, Set(outcome.outputs.flatMap(names))))
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
        var log = engine.log
        log[metadataKey: "rule"] = "\(rule.name)"
        log[metadataKey: "job"] = "\(job.id)"
        var invocation = rule.invocation(
            for: job, now: now, timeout: timeout, count: inputs.count, stop: stop, log: log)
        invocation.outputClaims = engine.outputClaims
        invocation.permission = permission
        invocation.willWrite = { [self] path in
            // Before the file exists, so that a rule that runs for it at once knows its depth.
            engine.chains.add(path, of: job.event.path)
            for name in names(of: path) { engine.mailbox.post(.declared(job.id, name)) }
        }
        return invocation
    }

    // MARK: Outputs

    private func collectOutputs(of part: inout AttemptPart, _ files: WatchedPaths) {
        guard case .outcome(var outcome) = part.termination else { return }
        let steps = part.job.finishedSteps
        // The outputs of earlier steps were recorded when those finished; later changes of them are events for the
        // rule.
        part.outputs = Set(outcome.outputs.flatMap(names))
        if zip(actions, steps).contains(where: { rule.mayRemoveInput($0.0) }) { look(at: &part, files) }
        guard steps.count > 1 else { return }
        var seen = Set(outcome.outputs)
        outcome.outputs =
            steps.flatMap(\.outcome.outputs).filter { seen.insert($0).inserted && files.inspect(at: $0) != .absent }
            + outcome.outputs
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
        let found = engine.host.fileSystem.resolve(directory)
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
