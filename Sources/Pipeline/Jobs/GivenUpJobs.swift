package import FileEvents
import Reconciling
package import Records
import Rules

/// Jobs that were given up and for which `on_failure`, a separate attempt, runs together.
///
/// The fact that a job was given up is committed before its list starts, and so is each finished step of the list;
/// after a restart the list resumes. Until it is finished, the job blocks its path. Whatever is at the path by then,
/// the list receives the event that has failed.
package struct GivenUpJobs {
    package let rule: RuleID
    package let numbers: [UInt64]
}

extension RuleState {
    /// Returns those of the jobs that were given up.
    package func givenUp(_ numbers: [UInt64]) -> [GivenUpJobs] {
        let numbers = numbers.filter { givenUpJob($0) != nil }
        let groups = rule.isCollected ? [numbers] : numbers.map { [$0] }
        return groups.filter { !$0.isEmpty }.map { GivenUpJobs(rule: id, numbers: $0) }
    }

    private func givenUpJob(_ number: UInt64) -> Job? { jobs[number].flatMap { $0.failure == nil ? nil : $0 } }

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
