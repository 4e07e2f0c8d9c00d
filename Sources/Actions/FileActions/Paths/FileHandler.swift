package import ActionAPI
package import Rules

/// A handler whose work ends with an outcome, or with an error of an operation on a file.
package protocol FileHandler: BlockingHandler {
    /// Does the work of one action.
    func handle(_ invocation: Invocation) throws(FileError) -> Outcome
}

extension FileHandler {
    package func run(_ invocation: Invocation) -> Outcome {
        Outcome.of { () throws(FileError) in try handle(invocation) }
    }
}

extension Invocation {
    /// Whether an earlier attempt may have done part of the work.
    var hasStartedBefore: Bool { job.attempt > 1 || job.isInterrupted || job.mayHaveRunBefore }
}
