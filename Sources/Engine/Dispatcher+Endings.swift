package import FileEvents
import Handling
import Journaling
import PluginProtocol
import Reconciling
package import Rules
import Settling

// What becomes of jobs when their actions have ended.
extension Dispatcher {
    /// Records an attempt.
    ///
    /// The rule is the one with which it began, but for its name, which may be another by now.
    ///
    /// - Returns: The rule's name, and the jobs whose paths have to settle again.
    mutating func end(
        _ result: Attempt.Result, at now: ContinuousClock.Instant
    ) -> (rule: String, returned: [Job]) {
        guard let first = result.parts.first?.job.id else { preconditionFailure("an attempt at no job") }
        var result = result
        result.rename(to: lanes.end(first, at: now))
        let rule = result.rule
        noteEnded(result, at: now)
        noteEnd(ofSet: first, result)
        let wasRestarted = restarts.removeValue(forKey: first)?.isRaised ?? false
        var returned: [Job] = []
        var reports: [AttemptReport] = []
        // Brief jobs that were done by one attempt are nobody's batch: each has its part of the time.
        let duration = rule.tellsTogether ? result.duration : result.duration / result.parts.count
        // One for all that were told together, so that what failed together comes again together.
        var random = result.parts.allSatisfy(\.hasSucceeded) ? 0 : host.random()
        for part in result.parts {
            let job = part.job
            if !rule.tellsTogether, !part.hasSucceeded { random = host.random() }
            if case .waiting(let waiting, let pause) = part.ending {
                putBackWaiting(job, rule, waiting, pause, at: now)
                continue
            }
            forgetMarker(of: job, rule)
            guard case .outcome(var outcome) = part.ending else {
                if let (resting, due) = awaitingDifference(job, rule, at: now) {
                    _ = journal.record(resting, nil, .early(due: due), [])
                    continue
                }
                report(.superseded(rule: rule.name, job: job.id, path: job.event.path))
                _ = journal.record(job, nil, .returned(at: now), [])
                // Of a move the old name is left to be told, which no job of the new name does.
                if job.event.kind == .moved || !journal.hasPending(view: job.rule, path: job.event.path) {
                    returned.append(job)
                }
                continue
            }
            if wasRestarted, outcome.isInterrupted {
                outcome.message = "ended, since the file changed while it ran"
                outcome.code = "restarted"
            }
            if part.hasBegun, !outcome.isInterrupted { cooldowns[rule.name]?.note(job.event.path, at: now) }
            let (disposition, state, pause) = disposition(of: outcome, job, rule, random: random, at: now)
            var attempt = AttemptRecord(
                number: job.attempt, started: result.started, duration: duration, outcome: outcome)
            // Of all its steps, where the outcome is that of the last one.
            attempt.outcome.changes = part.changes
            _ = journal.record(job, attempt, disposition, part.ownWrites)
            changes[rule.name, default: [:]][job.event.path] = part.change
            reports.append(
                AttemptReport(
                    job, rule, attempt: job.attempt, outcome, duration: duration, state, pause: pause,
                    at: host.clock.time()))
            if !part.hasBegun, pause == nil, revise(job, rule, outcome, at: now) { returned.append(job) }
            if pause == nil, let unsettled = acceptFollowingChange(of: job, rule, at: now) {
                returned.append(unsettled)
            }
        }
        if reports.count > 1, rule.tellsTogether {
            report(.batch(reports))
        } else {
            for attempt in reports { report(.attempt(attempt)) }
        }
        noteBrief(result)
        if rule.tellsTogether {
            let (sign, message) = Self.sign(of: result.parts[...])
            noteSign(sign, rule, result.parts[0].job.event.path, message, at: now)
        } else {
            for index in result.parts.indices {
                let (sign, message) = Self.sign(of: result.parts[index...index])
                noteSign(sign, rule, result.parts[index].job.event.path, message, at: now)
            }
        }
        return (rule.name, returned)
    }

    /// The job as it waits for what its file is now, or for its file to be gone; nil if it is not to wait.
    ///
    /// An action has begun with it before, so somebody was told of the file as it
    /// was. What it is now is a difference from that, which takes the job's place
    /// when it has settled. Where the rule is not told of that difference, the ledger
    /// knows the file as it is then, and the job is run for it as that. A newer job
    /// that is there already does the work, whatever is decided here.
    private func awaitingDifference(
        _ job: Job, _ rule: Rule, at now: ContinuousClock.Instant
    ) -> (Job, due: ContinuousClock.Instant)? {
        let path = job.event.path
        guard isWatching, job.attempt > 1 || job.isInterrupted || job.isHeir, !job.isAlone,
            rule.root(taking: path) != nil, let known = journal.snapshot(view: rule.name, path: path)
        else { return nil }
        if known.hasSameContent(as: job.event.snapshot) { return (job, now + .seconds(2)) }
        guard job.event.kind != .moved, job.event.snapshot.changed < known.changed else { return nil }
        var job = job
        job.event.snapshot = known
        return (job, now)
    }

    /// Sets the ledger back to what the rule has received, after a job that ended before its action started.
    ///
    /// - Returns: Whether the path has to settle again.
    private func revise(_ job: Job, _ rule: Rule, _ outcome: Outcome, at now: ContinuousClock.Instant) -> Bool {
        let event = job.event
        guard !journal.hasPending(view: rule.name, path: event.path),
            var known = journal.snapshot(view: rule.name, path: event.path),
            known.hasSameContent(as: event.snapshot)
        else { return false }
        let hasReceived = job.hasBegunBefore || job.isHeir
        switch outcome.code {
        case "gone":
            // The file may be back before its absence has settled, and is due then as if it had never been offered.
            let isNew = event.kind == .created && !hasReceived
            let before = hasReceived ? nil : event.before
            let received = isNew ? nil : before ?? known.asAnotherFile
            journal.accept([], [LedgerEntry(view: rule.name, path: event.path, snapshot: received)], now: now)
            return true
        case "where" where event.kind == .created && !hasReceived:
            known.standing = .withheld
            journal.accept([], [LedgerEntry(view: rule.name, path: event.path, snapshot: known)], now: now)
            return false
        default: return false
        }
    }

    /// Tells of the content of a moved file that changed before anyone was told of the move.
    ///
    /// It goes to where the file is now. A newer job of that path tells of it already, unless it is another move: with
    /// that it is told as soon as it has settled. Content that the ledger does not know yet was not finished when the
    /// move was seen: settling tells what it differs by from what was told last.
    ///
    /// - Returns: The job that tells of it, when its path has to settle first.
    private mutating func acceptFollowingChange(
        of moved: Job, _ rule: Rule, at now: ContinuousClock.Instant
    ) -> Job? {
        guard var event = moved.event.followingChange, rule.events.takes(.modified, changed: event.changed) else {
            return nil
        }
        let paths = journal.paths(view: rule.name, identity: event.snapshot.identity)
        guard let path = paths.contains(event.path) ? event.path : paths.first, let root = rule.root(taking: path)
        else {
            return nil
        }
        event.path = path
        event.root = root
        let job = Job(id: JobID(now: event.time), rule: rule.name, event: event, mask: moved.mask)
        if event.tail == nil, var known = journal.snapshot(view: rule.name, path: path) {
            let isPending = journal.hasPending(view: rule.name, path: path)
            if isPending {
                guard let pending = journal.pendingEvent(view: rule.name, path: path), pending.kind == .moved,
                    pending.followingChange == nil
                else { return nil }
            }
            let isUnfinished =
                event.snapshot.type == .file && !known.hasSameContent(as: event.snapshot)
                && known.changed < event.snapshot.changed
            if isPending || isUnfinished {
                guard let before = event.before, before.identity == known.identity else { return nil }
                known.size = before.size
                known.modified = before.modified
                journal.accept([], [LedgerEntry(view: rule.name, path: path, snapshot: known)], now: now)
                return job
            }
        }
        journal.accept([job], [], now: now)
        note([job], at: now)
        return nil
    }

    /// What an outcome means for the job.
    private func disposition(
        of outcome: Outcome, _ job: Job, _ rule: Rule, random: Double, at now: ContinuousClock.Instant
    ) -> (Disposition, JobState, Duration?) {
        switch outcome.ending {
        case .succeeded: return (.ended(.succeeded, outcome), .succeeded, nil)
        case .skipped: return (.ended(.skipped, outcome), .skipped, nil)
        case .failed, .retry:
            if rule.retry.isFinal(outcome, attempt: job.attempt) { return (.ended(.dead, outcome), .dead, nil) }
            if outcome.isInterrupted { return (.again(at: now, outcome, counts: false), .pending, .zero) }
            let pause = outcome.retryAfter ?? rule.retry.pause(after: job.attempt, random: random)
            return (.again(at: now + pause, outcome, counts: true), .pending, pause)
        case .notReady:
            let age = host.clock.time().since(job.event.time)
            let pause =
                outcome.retryAfter
                ?? rule.retry.pause(whileNotReady: rule.settle.quiet(isPolled: false), age: age)
            return (.again(at: now + pause, outcome, counts: false), .pending, pause)
        }
    }

    /// What an attempt says of the rule's action, and the message of a failure.
    ///
    /// Of a batch one success is enough: what all share is in order.
    private static func sign(of parts: ArraySlice<Attempt.Part>) -> (Breaker.Sign, String) {
        var sign = Breaker.Sign.nothing
        var message = ""
        for part in parts where part.hasBegun {
            guard case .outcome(let outcome) = part.ending, !outcome.isInterrupted else { continue }
            switch outcome.ending {
            case .succeeded, .skipped: return (.works, "")
            case .notReady: break
            case .retry, .failed:
                if outcome.isAboutFile { continue }
                if outcome.code == Outcome.cannotStartCode {
                    sign = .cannotStart
                } else if sign != .cannotStart {
                    sign = part.job.attempt == 1 || sign == .fails ? .fails : .failsAgain
                }
                message = part.failure ?? outcome.message
            }
        }
        return (sign, message)
    }
}

extension AttemptReport {
    /// What is told now of an attempt that has ended, or of a job that ended without one.
    package init(
        _ job: Job, _ rule: Rule, attempt: Int, _ outcome: Outcome, duration: Duration, _ state: JobState,
        pause: Duration?, at time: Timestamp
    ) {
        self.init(
            time: time, rule: rule.name, event: job.event.kind, path: job.event.path, from: job.event.from,
            job: job.id, attempt: attempt, maximumAttempts: rule.retry.attempts, action: rule.actionNames,
            outcome: outcome, duration: duration, state: state, pause: pause)
    }
}

extension Rule {
    /// Whether its jobs are told to its actions together.
    fileprivate var tellsTogether: Bool { batch != nil || group != nil }
}

extension Attempt.Part {
    var hasSucceeded: Bool {
        if case .outcome(let outcome) = ending { outcome.ending == .succeeded } else { false }
    }
}
