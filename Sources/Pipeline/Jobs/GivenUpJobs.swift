package import FileEvents
import Reconciling
package import Records
import Rules

/// The jobs that were given up and whose `on_failure`, a separate attempt, has not started.
///
/// The fact that a job was given up is committed before its list starts, and so is each finished step of the list;
/// after a restart the list resumes. Until it is finished, the job blocks its path. Whatever is at the path by then,
/// the list receives the event that has failed.
package struct GivenUpJobs {
    /// Jobs for which `on_failure` runs together.
    package struct Group {
        package let rule: RuleID
        package let numbers: [UInt64]
    }

    package private(set) var queue: [Group] = []

    package init() {}

    /// Queues those of the jobs that were given up.
    package mutating func queue(_ numbers: [UInt64], of state: RuleState) {
        let numbers = numbers.filter { state.givenUpJob($0) != nil }
        let groups = state.rule.isCollected ? [numbers] : numbers.map { [$0] }
        queue += groups.filter { !$0.isEmpty }.map { Group(rule: state.id, numbers: $0) }
    }

    package mutating func queue(_ group: Group) { queue.append(group) }

    package mutating func take() -> [Group] {
        defer { queue = [] }
        return queue
    }
}

extension RuleState {
    fileprivate func givenUpJob(_ number: UInt64) -> Job? {
        jobs[number].flatMap { $0.failure == nil ? nil : $0 }
    }

    /// Returns the input of `on_failure` for a job; nil if the job no longer waits for it.
    package func givenUpInput(_ number: UInt64, _ offer: Offer?) -> OpenJob? {
        guard var job = givenUpJob(number) else { return nil }
        job.rule = rule.name
        job.keepSteps(of: rule)
        job.hasLostInput = false
        let current = job
        jobs.update(number) { $0 = current }
        return OpenJob(job, offer)
    }
}
