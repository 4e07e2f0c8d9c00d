import FileEvents
package import Logging
package import Rules
package import System

extension Rule {
    /// Creates the invocation of an action of the rule for a job.
    ///
    /// - Parameters:
    ///   - job: The job, at this attempt; the action receives its event unchanged.
    ///   - now: The start time of the attempt.
    ///   - timeout: The timeout of the action.
    ///   - count: The number of jobs in the attempt.
    ///   - stop: Raised when Alight stops.
    ///   - log: Receives the messages of the action.
    /// - Returns: The invocation, without parameters.
    package func invocation(
        for job: Job, now: Timestamp, timeout: Duration, count: Int, stop: StopSignal, log: Logger
    ) -> Invocation {
        var invocation = Invocation(
            job: job, rule: location, baseDirectory: baseDirectory, maximumAttempts: retry.attempts,
            parameters: .object([:]), roots: roots, now: now,
            captures: Captures(of: job.event.path, by: condition?.certainExpressions ?? []),
            timeout: timeout, batch: batch?.files ?? (group == nil ? nil : count),
            steps: job.finishedSteps.map(\.outcome), stop: stop, log: log)
        let placeholders = invocation.placeholders
        invocation.environment = environment.map { ($0.name, $0.value.expanded(with: placeholders)) }
        invocation.directory = directory.map { directory in
            ProgramPath(
                baseDirectory.resolving(directory.expanded(with: placeholders)).normalized, of: directory,
                in: baseDirectory, for: job.event)
        }
        invocation.input = input
        invocation.confinement = confinement
        invocation.hasFixedEnvironment =
            environment.allSatisfy { $0.value.literal != nil } && (directory.map { $0.literal != nil } ?? true)
            && !confinement.isOfOneRun
        return invocation
    }
}
