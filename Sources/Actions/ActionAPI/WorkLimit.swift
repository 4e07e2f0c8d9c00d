package import Rules

/// The limit at which unfinished work on a file stops: the rule's timeout, or a stop.
package struct WorkLimit: Sendable {
    package let stop: StopSignal
    private let deadline: ContinuousClock.Instant

    package init(_ stop: StopSignal, timeout: Duration) {
        self.stop = stop
        deadline = .now + timeout
    }

    package var isOver: Bool { stop.isRaised || isTimeOver }

    private var isTimeOver: Bool { ContinuousClock.now > deadline }

    /// Returns the outcome if the work must stop now; nil if it may continue.
    ///
    /// - Parameter work: The name of the work, such as `copying`.
    /// - Returns: The outcome.
    package func outcome(_ work: String) -> Outcome? {
        if stop.isRaised { return .interrupted("stopped during the \(work)") }
        return isTimeOver ? .timedOut("timed out during the \(work)") : nil
    }
}

extension Invocation {
    /// The limit of work that starts now.
    package var limit: WorkLimit { WorkLimit(stop, timeout: timeout) }
}
