import ActionAPI
import FileEvents
import Glibc
import Jobs
import PluginProtocol
import Records
import Rules
import System

// The checks of a job immediately before its action starts.
extension Attempt {
    /// The result of the checks that need no program.
    private enum Check {
        case passes
        case ends(AttemptTermination)
        /// A program has to be asked; the pause is that before it is asked again.
        case asks(Action, Invocation, pause: Duration)
    }

    /// Checks the files, and the conditions of the rule that need their content, and ends the parts that fail.
    ///
    /// - Returns: A program that has to be asked about the next part; nil once all are checked.
    @inline(never) func nextQuestion(_ progress: Progress) -> Call? {
        while progress.checked < progress.parts.count {
            switch firstCheck(progress.parts[progress.checked], progress.files) {
            case .ends(let termination): progress.parts[progress.checked].end(termination)
            case .asks(let question, let invocation, let pause):
                progress.pause = pause
                return (question, [invocation])
            case .passes: compareContent(&progress.parts[progress.checked], progress.files)
            }
            progress.checked += 1
        }
        return nil
    }

    /// Takes the answer of the program of `ready`.
    @inline(never) func takeAnswer(_ outcomes: [Outcome], _ progress: Progress) {
        let index = progress.checked
        take(outcomes, &progress.parts[index], pause: progress.pause)
        if !progress.parts[index].isOver { compareContent(&progress.parts[index], progress.files) }
        progress.checked += 1
    }

    private func firstCheck(_ part: AttemptPart, _ files: WatchedPaths) -> Check {
        if part.job.hasLostInput {
            let message = "a finished step that is no longer in the rule has moved or removed the file"
            return .ends(.outcome(Outcome(.failed, message, code: "rule-changed")))
        }
        // A condition may no longer match because of what a finished step has done.
        guard part.job.steps.isEmpty, part.job.failure == nil else { return .passes }
        return (checkFile(part, files) ?? checkConditions(part)).map { .ends($0) } ?? checkReady(part, files)
    }

    /// Makes a job wait until the kernel lets a file be read; a change of its mode or owner ends the wait.
    private func unreadable(_ part: AttemptPart, _ waiting: Waiting) -> AttemptTermination {
        let age = engine.host.clock.time().since(part.job.event.time)
        let pause = rule.retry.pause(whileNotReady: rule.settle.quiet(isPolled: false), age: age)
        return .waiting(waiting, pause: pause)
    }

    private func checkFile(_ part: AttemptPart, _ files: WatchedPaths) -> AttemptTermination? {
        let event = part.job.event
        guard event.kind != .deleted, !event.kind.isLifecycle, !event.kind.isRaw, event.tail == nil else { return nil }
        switch files.inspect(at: event.path) {
        case .absent where part.job.isStored && event.kind == .moved: return nil
        case .absent where part.job.isStored: return .outcome(.gone)
        case .absent: return part.input.mayBeDone ? nil : .gone
        case .unreadable(let errno):
            return unreadable(part, Waiting(.unreadable, "it can't be checked: \(SystemError(errno: errno))"))
        case .present(let snapshot):
            let isOfContent = event.kind == .created || event.kind == .modified
            guard isOfContent, snapshot.type == .file, !part.job.isStored, !part.input.mayBeDone else { return nil }
            return snapshot.hasSameContent(as: event.snapshot) ? nil : .changed
        }
    }

    private func checkConditions(_ part: AttemptPart) -> AttemptTermination? {
        let job = part.job
        guard job.event.origin != .manual else { return nil }
        guard job.event.kind.isLifecycle || rule.root(matching: job.event.path) != nil else {
            return .outcome(Outcome(.skipped, "the rule no longer matches this path", code: "path"))
        }
        guard job.event.kind != .deleted else { return nil }
        switch rule.admits(job.event, reading: { ConditionInput.Content(of: $0) }) {
        case .holds, .needsContent: return nil
        case .fails(let reason): return .outcome(Outcome(.skipped, reason, code: "where"))
        case .unreadable(let reason): return unreadable(part, .unreadable("where", reason))
        case .unknown(let reason):
            return part.input.hasStartedBefore ? nil : .outcome(Outcome(.skipped, reason, code: "where"))
        }
    }

    /// Checks `ready`; a missing file, or one named by a user, is not waited for.
    private func checkReady(_ part: AttemptPart, _ files: WatchedPaths) -> Check {
        let event = part.job.event
        guard let ready = rule.ready, !part.input.isInterrupted, event.origin != .manual,
            event.kind != .deleted, !event.kind.isLifecycle, !event.kind.isRaw,
            case .present(let snapshot) = files.inspect(at: event.path)
        else { return .passes }
        let now = engine.host.clock.time()
        let pause = rule.retry.pause(whileNotReady: rule.settle.quiet(isPolled: false), age: now.since(event.time))
        let waiting = ready.waiting(event.path, snapshot, now: now, .system, stat: { files.inspect(at: $0) })
        if let (waiting, known) = waiting { return .ends(.waiting(waiting, pause: known ?? pause)) }
        guard let question = rule.question else { return .passes }
        files.forget()
        return .asks(question, invocation(part.job, now: now, timeout: rule.timeout), pause: pause)
    }

    private func take(_ outcomes: [Outcome], _ part: inout AttemptPart, pause: Duration) {
        guard var outcome = outcomes.first else { preconditionFailure("an action has an outcome for its event") }
        if outcome.result == .succeeded { return }
        if outcome.process?.status == 75 {
            return part.end(.waiting(Waiting(.command, "'ready' reports: \(outcome.message)"), pause: pause))
        }
        // No action has started, so the next attempt has to check again.
        if outcome.isInterrupted { return part.end(.waiting(Waiting(.command, "'ready' was stopped"), pause: .zero)) }
        outcome.isUnstarted = !part.input.hasStartedBefore
        outcome.message = (outcome.isUnstarted ? "'ready': " : "'ready', run again: ") + outcome.message
        outcome.code = Outcome.readyCode
        part.end(.outcome(outcome))
    }

    /// Makes the files of a set wait for a file of the set that cannot start.
    func keepSetTogether(_ parts: inout [AttemptPart]) {
        guard rule.group != nil, let other = parts.first(where: \.isOver) else { return }
        var pause = Duration.seconds(1)
        if case .waiting(_, let longer) = other.termination { pause = longer }
        for index in parts.indices where !parts[index].isOver && !parts[index].input.hasStartedBefore {
            let waiting = Waiting(.group, "it waits for '\(other.job.event.path)'")
            parts[index].end(.waiting(waiting, pause: pause))
        }
    }

    /// Checks whether a file was rewritten with the same bytes, for rules that do not receive such changes.
    ///
    /// The checksum is stored with the ledger row once the job has succeeded.
    private func compareContent(_ part: inout AttemptPart, _ files: WatchedPaths) {
        if let found = changedContent(of: &part, files) { part.end(found) }
    }

    private func changedContent(of part: inout AttemptPart, _ files: WatchedPaths) -> AttemptTermination? {
        let event = part.job.event
        // Not before a list of which steps have finished, nor before `on_failure`.
        guard part.job.steps.isEmpty, part.job.failure == nil, rule.sameContent == .ignore, !part.job.isStored,
            event.snapshot.type == .file, event.kind == .created || event.kind == .modified
        else { return nil }
        switch ContentDigest.sha256(of: event.path, below: event.root, within: WorkLimit(stop, timeout: rule.timeout)) {
        case .digest(let digest):
            guard case .present(let snapshot) = files.inspect(at: event.path),
                snapshot.hasSameContent(as: event.snapshot)
            else { return .changed }
            part.job.event.snapshot.digest = digest
            guard event.kind == .modified, digest == event.before?.digest, part.input.offer?.isUncertain == false,
                !part.input.hasStartedBefore
            else { return nil }
            let message = "it was written again with the content that was processed before"
            return .outcome(Outcome(.skipped, message, code: "same-content"))
        case .ended(var outcome):
            outcome.isUnstarted = !part.input.hasStartedBefore
            return .outcome(outcome)
        case .notRegular, .unreadable(ENOENT): return .changed
        case .unreadable(let errno):
            return unreadable(part, .unreadable("same_content", SystemError(errno: errno).description))
        }
    }
}
