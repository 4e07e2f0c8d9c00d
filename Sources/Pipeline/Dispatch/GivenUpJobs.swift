import Reconciling
import Rules

/// The jobs that were given up and whose `on_failure`, a separate attempt, has not started.
///
/// The fact that a job was given up is committed before its list starts, and so is each finished step of the list;
/// after a restart the list resumes. Until it is finished, the job blocks its path. Whatever is at the path by then,
/// the list receives the event that has failed.
struct GivenUpJobs {
    typealias Entry = (number: UInt64, isFrozen: Bool)

    /// Jobs for which `on_failure` runs together.
    struct Group {
        let rule: RuleID
        let jobs: [Entry]
    }

    private(set) var queue: [Group] = []

    /// Queues those of the jobs that were given up.
    mutating func queue(_ jobs: [Entry], of state: RuleState) {
        let jobs = jobs.filter { state.givenUpJob($0) != nil }
        let groups = state.rule.isCollected ? [jobs] : jobs.map { [$0] }
        queue += groups.filter { !$0.isEmpty }.map { Group(rule: state.id, jobs: $0) }
    }

    mutating func queue(_ group: Group) { queue.append(group) }

    mutating func take() -> [Group] {
        defer { queue = [] }
        return queue
    }
}

extension RuleState {
    fileprivate func givenUpJob(_ entry: GivenUpJobs.Entry) -> Job? {
        let job = entry.isFrozen ? frozen[entry.number]?.job : jobs[entry.number]
        return job?.failure == nil ? nil : job
    }

    /// Returns the input of `on_failure` for a job; nil if the job no longer waits for it.
    func givenUpInput(_ entry: GivenUpJobs.Entry) -> Attempt.Input? {
        guard var job = givenUpJob(entry) else { return nil }
        job.rule = rule.name
        _ = job.keepSteps(of: rule)
        if entry.isFrozen { frozen[entry.number]?.job = job } else { jobs[entry.number] = job }
        return Attempt.Input(
            job: job, number: entry.number, isFrozen: entry.isFrozen, hasStartedBefore: true,
            isInterrupted: job.isInterrupted, mayBeDone: true)
    }
}
