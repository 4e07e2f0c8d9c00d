import FileEvents
package import Gates
package import Jobs
import Monitoring
import PluginProtocol
package import Reconciling
package import Records
import Rules
import Settling
package import System

// The choice of the jobs of one attempt.
extension Dispatcher {
    /// The limit of one attempt at brief actions in bytes of their files.
    private static let mostBriefBytes: UInt64 = 1 << 20
    /// The interval at which it is checked whether a rule of higher priority has finished with a file.
    private static let precedenceRecheck = Duration.seconds(1)

    package static func busy(_ path: PathBytes) -> Reconciler.Gate { Reconciler.Gate("busy", path) }

    /// Leases up to a number of jobs of a rule for one attempt.
    package mutating func nextInputs(_ state: RuleState, _ count: Int, at time: GateTime) -> [OpenJob] {
        var inputs = nextStored(state, count, at: time)
        var bytes: UInt64 = 0
        let isBatch = state.rule.batch != nil
        while inputs.count < count, isBatch || bytes < Self.mostBriefBytes,
            let candidate = state.view.nextCandidate(at: time.now)
        {
            guard let input = take(candidate, state, at: time) else { continue }
            bytes += input.job.event.snapshot.size
            inputs.append(input)
        }
        return inputs
    }

    /// Leases due stored jobs, up to a number, unless a due path has to be leased before; only those that users have
    /// requested if the others are held.
    package mutating func nextStored(
        _ state: RuleState, _ count: Int, isManual: Bool = false, at time: GateTime
    ) -> [OpenJob] {
        var inputs: [OpenJob] = []
        for number in state.jobs.due {
            guard inputs.count < count else { break }
            guard let job = state.jobs[number], let after = job.schedule?.after else { continue }
            if after > 0, after >= state.view.nextDuePosition ?? .max { continue }
            // A raw event that the kernel reported after the file had settled follows the event of the file.
            let event = job.event
            if isManual, event.origin != .manual { continue }
            if event.kind.isRaw, state.view.isDue(event.path, before: event.time) { continue }
            guard event.paths.allSatisfy({ uses.allows($0, state.rule.sharesFile) }), opens(job, state, at: time),
                let input = jobs.lease(stored: job, state, at: time)
            else { continue }
            inputs.append(input)
        }
        return inputs
    }

    /// Whether the gates let a due stored job run; otherwise it waits.
    private mutating func opens(_ job: Job, _ state: RuleState, at time: GateTime) -> Bool {
        let event = job.event
        let due = DueJob(
            event: event, hasStartedBefore: job.hasStarted, isInterrupted: job.isInterrupted || !job.steps.isEmpty)
        if var wait = state.gates.wait(for: due, at: time) {
            jobs.record(&wait, of: event, state)
            state.jobs.delay(job.number, until: wait.until ?? time.now + .seconds(60))
            if wait.waiting != job.waiting { state.jobs.update(job.number) { $0.waiting = wait.waiting } }
            return false
        }
        guard job.attempt == 0, !event.kind.isLifecycle,
            isOneTooMany(event.path, of: event.path, state, at: time.now)
        else { return true }
        // Skipping a piece of text would break the order.
        state.jobs.delay(job.number, until: time.now + LoopGuard.period)
        return false
    }

    /// Leases a candidate if the gates let it run.
    package mutating func take(_ candidate: Reconciler.Candidate, _ state: RuleState, at time: GateTime) -> OpenJob? {
        let event = candidate.event
        let retried = candidate.retried.flatMap { state.jobs[$0.number] }
        let job = DueJob(
            event: event, hasStartedBefore: candidate.retried != nil && retried?.previous?.isUnstarted != true,
            isInterrupted: candidate.retried?.mayBePartlyDone ?? false)
        guard mayRun(candidate, job, state, at: time) else { return nil }
        let isLooping =
            candidate.retried == nil && !event.kind.isLifecycle && state.rule.group == nil
            && isOneTooMany(event.path, of: event.path, state, at: time.now)
        let depth = engine.chains.depth(of: event)
        let isEndless = candidate.retried == nil && depth >= OutputChains.limit
        let input = jobs.lease(candidate, state)
        let refusal: Outcome? =
            if isLooping {
                .loop("path", state.gates.loop.limit)
            } else if isEndless {
                .endlessChain
            } else {
                input.job.interruptedTooOften(state.rule.retry)
            }
        guard let refusal else {
            if state.rule.actions.contains(where: \.isProgram) {
                engine.chains.start(input.job.id, event.path, depth: depth, at: time.time)
            }
            return input
        }
        if isEndless, !isLooping { reportChain(state, event.path, at: time.now) }
        jobs.endUnrun(input.job, state, refusal, at: time.now)
        return nil
    }

    /// Counts a run in the loop guard, and reports the path if it exceeds the limit.
    package func isOneTooMany(
        _ counted: PathBytes, of path: PathBytes, _ state: RuleState, at now: ContinuousClock.Instant
    ) -> Bool {
        guard state.gates.loop.count(counted, at: now) else { return false }
        engine.report(
            .loopDetected(rule: state.rule.name, path: path, limit: state.gates.loop.limit, pause: LoopGuard.period))
        return true
    }

    /// Reports a rule that runs for what actions have written, once in a period.
    private func reportChain(_ state: RuleState, _ path: PathBytes, at now: ContinuousClock.Instant) {
        if let last = state.reportedChain, now < last + LoopGuard.period { return }
        state.reportedChain = now
        engine.report(.chainDetected(rule: state.rule.name, path: path, limit: OutputChains.limit))
    }

    /// Whether other actions and the gates let a candidate run; otherwise it waits.
    package func mayRun(
        _ candidate: Reconciler.Candidate, _ job: DueJob, _ state: RuleState, at time: GateTime
    ) -> Bool {
        guard isFree(candidate, state, at: time.now) else { return false }
        if let reason = conditions.obstacle(to: candidate.event, rule: state.index) {
            let age = time.time.since(candidate.event.time)
            let pause = state.rule.retry.pause(whileNotReady: .seconds(1), age: age)
            let waiting = Waiting(.unreadable, reason)
            let gate = ReadyGate.gate(candidate.path)
            hold(candidate, GateWait(gate: gate, until: time.now + pause, waiting: waiting), state)
            return false
        }
        guard let wait = state.gates.wait(for: job, at: time) else { return true }
        hold(candidate, wait, state)
        return false
    }

    /// Whether no other action excludes one for the candidate; otherwise the candidate waits.
    private func isFree(
        _ candidate: Reconciler.Candidate, _ state: RuleState, at now: ContinuousClock.Instant
    ) -> Bool {
        let rule = state.rule
        if let busy = candidate.event.paths.first(where: { !uses.allows($0, rule.sharesFile) }) {
            hold(candidate, GateWait(gate: Self.busy(busy), waiting: .busy), state)
            return false
        }
        let path = candidate.event.path
        guard rule.removesInput, let other = preceding(rule.priority, path) else { return true }
        let waiting = Waiting(.precedence, "it waits for rule '\(other)', which has a higher priority")
        let wait = GateWait(gate: Self.busy(path), until: now + Self.precedenceRecheck, waiting: waiting)
        hold(candidate, wait, state)
        return false
    }

    /// Returns a rule of higher priority that has not finished with a file.
    private func preceding(_ priority: Int, _ path: PathBytes) -> String? {
        for other in jobs.rules where other.rule.priority > priority {
            if other.view.isUnfinished(path) || other.jobs.contains(path) {
                return other.rule.name
            }
        }
        return nil
    }

    /// Makes a candidate wait; a long wait is reported once.
    package func hold(_ candidate: Reconciler.Candidate, _ wait: GateWait, _ state: RuleState) {
        var wait = wait
        jobs.record(&wait, of: candidate.event, state)
        state.view.hold(candidate, for: wait.gate, until: wait.until, wait.reason)
    }
}
