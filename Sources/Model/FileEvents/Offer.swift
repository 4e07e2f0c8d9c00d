package import System

/// A leased event, from its lease until its action has succeeded or was given up.
///
/// At most one offer of a view names a path.
package struct Offer: Sendable {
    package enum State: Sendable, Hashable {
        case leased
        /// It was given up before a restart, and its `on_failure` runs.
        case givenUp
        /// The next attempt is due at the time.
        case retrying(ContinuousClock.Instant)
    }

    package var number: UInt64
    package var event: FileEvent {
        _read { yield boxedEvent.value }
        set { boxedEvent = Box(newValue) }
    }
    /// The storage of ``event``, which makes copies of the offer cheap.
    private var boxedEvent: Box<FileEvent>
    /// The metadata that the action is offered; nil for a deletion.
    package var offered: Snapshot? { event.kind == .deleted ? nil : event.snapshot }
    package var state = State.leased
    /// Whether an attempt before the current one may have started an action.
    package var hasRun = false
    /// Whether steps of it are finished.
    package var hasSteps = false
    /// Whether a finished step has removed the input.
    package var hasRemovedInput = false
    /// Whether an attempt at the current step was interrupted by a kill, a timeout or a signal.
    package var isInterrupted = false
    /// Whether a path of the event was uncertain at the lease.
    package var isUncertain: Bool
    /// Whether the current step may remove the input without finishing.
    package var mayRemoveInput = false
    /// The file at the path at the end of the last attempt; for a move, before the first attempt, the file at the
    /// lease.
    package var left: Snapshot?
    /// Whether the event is only a change made by the rule's own program.
    package var isRepeat: Bool
    /// Whether a path was created, moved or deleted since the lease, or since the first lease if finished steps are
    /// preserved.
    package var wasNamed = false
    /// Whether hints were lost since then.
    package var missedHints = false
    /// Whether the action for a deletion has written the path again.
    package var hasWrittenPath = false
    /// Whether the action for a move has written the path from which the file was moved.
    package var hasWrittenSource = false
    /// The change time of the file at that lease.
    package var changed: Timestamp?
    /// The trust that its paths had before the lease.
    package var trustBefore: [PathBytes: LedgerRow.Trust]

    /// Whether an earlier action may not have received a path of the event as it was offered.
    package var followsUnknownState: Bool { trustBefore.values.contains(.uncertain) }

    package var path: PathBytes { event.path }
    package var paths: [PathBytes] { event.paths }
    /// Whether an interrupted attempt may have removed the input without finishing.
    package var mayHaveRemovedInput: Bool { isInterrupted && mayRemoveInput }
    /// Whether a part of the work may be done: by finished steps, or by an interrupted attempt.
    package var mayBePartlyDone: Bool { isInterrupted || hasSteps }
    package var isRunning: Bool { if case .retrying = state { false } else { true } }
    /// Records that an attempt may have started an action, and may have done a part of the work.
    package mutating func interrupt() { (isInterrupted, hasRun) = (true, true) }

    /// Whether the events at its paths are recorded for its outcome.
    package var keepsRecord: Bool { isRunning || hasSteps }
    /// The signs with which its path is due again if the action has not started.
    package var signs: Hint.Signs { event.kind == .modified ? .written : [] }

    package init(
        number: UInt64, event: FileEvent, isUncertain: Bool = false, isRepeat: Bool = false, changed: Timestamp? = nil,
        trustBefore: [PathBytes: LedgerRow.Trust] = [:]
    ) {
        (self.number, self.isUncertain, self.isRepeat) = (number, isUncertain, isRepeat)
        boxedEvent = Box(event)
        (self.changed, self.trustBefore) = (changed, trustBefore)
    }
}
