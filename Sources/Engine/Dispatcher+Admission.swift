import FileEvents
import Handling
import Journaling
import PluginProtocol
import Reconciling
package import Rules
import Settling

// What becomes of jobs before an action begins: while their path is busy, and while it has to rest.
extension Dispatcher {
    /// Decides what is accepted of new jobs whose paths may be worked on at this moment.
    ///
    /// - Parameter jobs: What the rules are to be told, in order.
    /// - Returns: The jobs to be accepted; what is left out has been reported.
    mutating func admit(_ jobs: [Job]) -> [Job] {
        guard !whileBusy.isEmpty else { return jobs }
        return jobs.flatMap { job in
            guard EventMask.differences.contains(EventMask(job.event.kind)) else { return [job] }
            switch whileBusy[job.rule] {
            case .coalesce, nil: return [job]
            case .queue: return Self.alone(job)
            case .drop:
                // A move tells of its old name too, which nothing is being done about.
                guard job.event.kind != .moved, lanes.attempt(of: job.rule, at: job.event.path) != nil else {
                    return [job]
                }
                reportDropped(job)
                return []
            case .restart:
                for path in [job.event.path, job.event.from].compactMap(\.self) {
                    if let running = lanes.attempt(of: job.rule, at: path) { restarts[running]?.raise() }
                }
                return [job]
            }
        }
    }

    /// The job as one that is run for itself; of a file that was moved and changed it is two.
    private static func alone(_ job: Job) -> [Job] {
        var job = job
        job.isAlone = true
        guard let change = job.event.followingChange, job.mask.takes(.modified, changed: change.changed) else {
            return [job]
        }
        job.event = job.event.withoutFollowingChange
        var second = Job(id: JobID(now: change.time), rule: job.rule, event: change, mask: job.mask)
        second.isAlone = true
        return [job, second]
    }

    private func reportDropped(_ job: Job) {
        guard let rule = ruleset.rule(named: job.rule) else { return }
        let outcome = Outcome(.skipped, "its action was running for the file as it was before", code: "busy")
        reportUnrun(job, rule, attempt: 0, outcome, .skipped)
    }

    /// Ends jobs that were cut off again and again by the end of Alight, which they may be the cause of.
    func endCutOff(_ jobs: [Job], _ rule: Rule) -> [Job] {
        jobs.filter { job in
            guard job.isInterrupted, job.attempt > rule.retry.attempts + Self.mostCuts else { return true }
            let message =
                "\(job.attempt - 1) attempts were cut off by the end of Alight, which this may be the cause of"
            bury(job, rule, Outcome(.failed, message, code: "cut-off"))
            return false
        }
    }

    /// Makes a leased job a dead letter without running it.
    private func bury(_ job: Job, _ rule: Rule, _ outcome: Outcome) {
        _ = journal.record(job, nil, .ended(.dead, outcome), [])
        reportUnrun(job, rule, attempt: job.attempt - 1, outcome, .dead)
    }

    /// Tells of a job that ended before an action began.
    private func reportUnrun(_ job: Job, _ rule: Rule, attempt: Int, _ outcome: Outcome, _ state: JobState) {
        report(
            .attempt(
                AttemptReport(
                    job, rule, attempt: attempt, outcome, duration: .zero, state, pause: nil, at: host.clock.time())))
    }

    /// Takes out the jobs of paths that a rule has been run for too often of late, as rules are that feed themselves.
    ///
    /// Such a job becomes a dead letter. Since its action does not run, what fed
    /// itself ends with it; what comes from elsewhere meanwhile waits until the
    /// path has rested. A piece of text that was added, or one of several events
    /// that are each run for, only rests: taking it out would break the order.
    mutating func stopFeeding(_ jobs: [Job], _ rule: Rule, at now: ContinuousClock.Instant) -> [Job] {
        let limit = rule.tail == nil ? Brake.limit : Brake.followingLimit
        return jobs.filter { job in
            let path = job.event.path
            // Another attempt at the same event is no sign of a rule that feeds itself.
            guard job.attempt == 1, job.previous == nil, !job.event.kind.isLifecycle,
                brake.note(rule: rule.name, path: path, limit: limit, at: now)
            else { return true }
            report(.braked(rule: rule.name, path: path, limit: limit, pause: Brake.period))
            if rule.tail != nil || (job.isAlone && journal.hasPending(view: rule.name, path: path)) {
                _ = journal.record(job, nil, .early(due: now + Brake.period), [])
                return false
            }
            bury(job, rule, Self.fed("path", limit))
            return false
        }
    }

    /// Takes out all jobs of a set for which a rule has been run too often of late; none is left then.
    ///
    /// A set is run and rests as one. What an action has begun with only rests.
    mutating func stopFeeding(
        set jobs: [Job], named name: PathBytes, _ rule: Rule, at now: ContinuousClock.Instant
    ) -> [Job] {
        // Another attempt at the same events is no sign of a rule that feeds itself.
        guard let first = jobs.first(where: { $0.attempt == 1 && $0.previous == nil }) else { return jobs }
        guard brake.note(rule: rule.name, path: name, at: now) else {
            countedSets[jobs[0].id] = name
            return jobs
        }
        report(.braked(rule: rule.name, path: first.event.path, limit: Brake.limit, pause: Brake.period))
        brake.rest(rule: rule.name, paths: jobs.map(\.event.path), at: now)
        for job in jobs {
            if job.hasBegunBefore {
                _ = journal.record(job, nil, .early(due: now + Brake.period), [])
            } else {
                bury(job, rule, Self.fed("set", Brake.limit))
            }
        }
        return []
    }

    /// How a job ends that was one too many.
    private static func fed(_ what: String, _ limit: Int) -> Outcome {
        let message =
            "not run: the rule has run for this \(what) \(limit) times within a minute, as rules do that start "
            + "themselves or each other; when that is mended, 'alight retry' runs it"
        var outcome = Outcome(.failed, message, code: "loop")
        outcome.isUnbegun = true
        return outcome
    }

    /// How often beyond its attempts a job may be cut off.
    private static var mostCuts: Int { 5 }

    /// Puts jobs back whose paths have had a run too lately; they rest, and newer ones are merged into them.
    ///
    /// Another attempt has a pause of its own.
    mutating func putBackCooling(_ jobs: [Job], at now: ContinuousClock.Instant) -> [Job] {
        guard let name = jobs.first?.rule, cooldowns[name] != nil else { return jobs }
        return jobs.filter { job in
            guard job.previous == nil, let end = cooldowns[name]?.end(of: job.event.path, at: now) else { return true }
            _ = journal.record(job, nil, .early(due: end), [])
            return false
        }
    }
}

extension Rule {
    /// The actions' names, of a list joined by `+`.
    package var actionNames: String { actions.map(\.name).joined(separator: "+") }
}

extension FileEvent {
    /// The event as actions are told of it: of a moved file whose content changed too, a `modified` follows.
    var withoutFollowingChange: FileEvent {
        guard kind == .moved else { return self }
        var event = self
        event.changed = []
        event.tail = nil
        return event
    }

    /// The change of content that follows a move; nil when there is none.
    var followingChange: FileEvent? {
        guard kind == .moved, !changed.isEmpty || tail != nil else { return nil }
        var event = self
        event.kind = .modified
        event.from = nil
        event.isReplaced = false
        return event
    }
}
