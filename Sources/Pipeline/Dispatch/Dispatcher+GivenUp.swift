import PluginProtocol
import Reconciling
import Rules
import Storage

// `on_failure`: a separate attempt at jobs that were given up.
//
// The fact that a job was given up is committed before its list starts, and so is each finished step of the list;
// after a restart the list resumes. Until it is finished, the job blocks its path. Whatever is at the path by then,
// the list receives the event that has failed.
extension Dispatcher {
    /// Jobs for which `on_failure` runs together.
    struct GivenUp {
        let rule: RuleID
        let jobs: [(number: UInt64, isFrozen: Bool)]
    }

    /// Queues those of the jobs that were given up.
    mutating func queueGivenUp(_ jobs: [(number: UInt64, isFrozen: Bool)], _ index: Int) {
        let jobs = jobs.filter { givenUpJob($0, index) != nil }
        let lists = rules[index].rule.isCollected ? [jobs] : jobs.map { [$0] }
        givenUp += lists.filter { !$0.isEmpty }.map { GivenUp(rule: rules[index].id, jobs: $0) }
    }

    private func givenUpJob(_ job: (number: UInt64, isFrozen: Bool), _ index: Int) -> Job? {
        let job = job.isFrozen ? rules[index].frozen[job.number]?.job : rules[index].jobs[job.number]
        return job?.failure == nil ? nil : job
    }

    /// Whether a list could start if a slot were free.
    var hasGivenUp: Bool {
        givenUp.contains { list in index(of: list.rule).map { !pauses.hold(rules[$0].rule.name) } ?? false }
    }

    /// Starts the lists for which there are slots, and whose files are not in use.
    mutating func startGivenUp(at now: ContinuousClock.Instant) {
        let queued = givenUp
        givenUp = []
        for list in queued {
            // The jobs of a removed rule are stored.
            guard let index = index(of: list.rule) else { continue }
            let inputs = list.jobs.compactMap { givenUpInput($0, index) }
            guard !inputs.isEmpty else { continue }
            let rule = rules[index].rule
            let isFree = inputs.flatMap(\.paths).allSatisfy { uses.allows($0, rule.sharesFile) }
            if isFree, !pauses.hold(rule.name), lanes.room(for: rule, at: now) > 0 {
                prepare(inputs, index, at: now)
            } else {
                givenUp.append(list)
            }
        }
    }

    private mutating func givenUpInput(_ entry: (number: UInt64, isFrozen: Bool), _ index: Int) -> Attempt.Input? {
        guard var job = givenUpJob(entry, index) else { return nil }
        job.rule = rules[index].rule.name
        _ = job.keepSteps(of: rules[index].rule)
        if entry.isFrozen {
            rules[index].frozen[entry.number]?.job = job
        } else {
            rules[index].jobs[entry.number] = job
        }
        return Attempt.Input(
            job: job, number: entry.number, isFrozen: entry.isFrozen, hasStartedBefore: true,
            isInterrupted: job.isInterrupted, mayBeDone: true)
    }
}

extension Job {
    /// Returns the job to store until `on_failure` is finished; nil if that list does not follow the attempt.
    func givenUp(_ attempt: AttemptRecord, _ rule: Rule) -> Job? {
        var job = self
        guard failure == nil else {
            guard attempt.outcome.isInterrupted else { return nil }
            job.isInterrupted = true
            return job
        }
        let outcome = attempt.outcome
        guard !rule.onFailure.isEmpty, rule.retry.failsJob(outcome, attempt: self.attempt) else { return nil }
        job.failure = FinalFailure(attempt)
        job.previous = PreviousAttempt(self.attempt, outcome)
        return job
    }

    /// Discards the finished steps from the first one that is not in the rule's current list.
    ///
    /// - Returns: False if one of them has removed the input.
    mutating func keepSteps(of rule: Rule) -> Bool {
        guard !finishedSteps.isEmpty else { return true }
        let kept = zip(finishedSteps, rule.actions(of: self)).prefix { $0.action == $1.digest }.count
        let forgotten = finishedSteps.dropFirst(kept)
        finishedSteps.removeLast(forgotten.count)
        return !forgotten.contains(where: \.hasRemovedInput)
    }
}
