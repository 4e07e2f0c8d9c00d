import Rules

/// When work on a file ends though it is not done: at its rule's timeout, or at a stop.
package struct WorkLimit: Sendable {
    let stop: StopSignal
    private let deadline: ContinuousClock.Instant

    package init(_ stop: StopSignal, timeout: Duration) {
        self.stop = stop
        deadline = .now + timeout
    }

    var isOver: Bool { stop.isRaised || isTimeOver }

    private var isTimeOver: Bool { ContinuousClock.now > deadline }

    /// The outcome when the work has to end now; nil when it may go on.
    ///
    /// - Parameter work: The work: `copying`.
    /// - Returns: The outcome.
    func outcome(_ work: String) -> Outcome? {
        if stop.isRaised { return .interrupted("stopped during the \(work)") }
        return isTimeOver ? .timedOut("the timeout ended the \(work)") : nil
    }

    /// Throws when the work has to end now.
    func check(_ work: String) throws(FileFault) {
        if let outcome = outcome(work) { throw FileFault(outcome) }
    }
}

extension Invocation {
    /// The limit of work that starts now.
    var limit: WorkLimit { WorkLimit(stop, timeout: timeout) }
}
