package import FileEvents
package import System

/// A leased event, from its lease until its action has succeeded or was given up.
///
/// At most one offer of a view names a path.
package struct Offer: Sendable {
    package enum State: Sendable, Hashable {
        case leased
        /// The next attempt is due at the time.
        case retrying(ContinuousClock.Instant)
    }

    package var number: UInt64
    package var event: FileEvent
    /// The metadata that the action is offered; nil for a deletion.
    package var offered: Snapshot? { event.kind == .deleted ? nil : event.snapshot }
    package var attempt = 1
    package var state = State.leased
    /// The number of finished steps.
    package var steps = 0
    /// Whether a finished step has removed the input.
    package var hasRemovedInput = false
    /// Whether an attempt at the current step was interrupted by a kill, a timeout or a signal.
    package var isInterrupted = false
    /// Whether a path of the event was uncertain at the lease.
    package var isUncertain: Bool
    /// Whether it was given up and its `on_failure` runs, which survives a restart.
    package var isGivenUp = false
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
    var hasWrittenPath = false
    /// Whether the action for a move has written the path from which the file was moved.
    var hasWrittenSource = false
    /// The change time of the file at that lease.
    package var changed: Timestamp?
    /// The trust that its paths had before the lease.
    var trustBefore: [PathBytes: LedgerRow.Trust]

    /// Whether an earlier action may not have received a path of the event as it was offered.
    package var followsUnknownState: Bool { trustBefore.values.contains(.uncertain) }

    package var path: PathBytes { event.path }
    package var paths: [PathBytes] { event.paths }
    /// Whether an attempt before the current one may have started its action.
    package var mayHaveStarted: Bool { attempt > 1 || isInterrupted }
    /// Whether an interrupted attempt may have removed the input without finishing.
    package var mayHaveRemovedInput: Bool { isInterrupted && mayRemoveInput }
    package var isRunning: Bool { state == .leased }
    /// Whether the events at its paths are recorded for its outcome.
    var keepsRecord: Bool { isRunning || steps > 0 }
    /// The signs with which its path is due again if the action has not started.
    var signs: Hint.Signs { event.kind == .modified ? .written : [] }
}

extension Offer {
    /// Creates a restored offer; its other properties are set afterwards.
    package init(number: UInt64, event: FileEvent) {
        self.init(number: number, event: event, isUncertain: false, isRepeat: false, trustBefore: [:])
    }
}

/// The unfinished offers of one view.
struct OfferTable {
    private(set) var all: [UInt64: Offer] = [:]
    /// The numbers of the offers that have changed since the last commit.
    private(set) var changed: Set<UInt64> = []
    private var numbers: [PathBytes: UInt64] = [:]
    /// The paths that running actions have declared as their outputs, by number of the offer.
    private var outputs: [PathBytes: UInt64] = [:]

    subscript(number: UInt64) -> Offer? { all[number] }

    /// The paths that the offers name.
    var paths: Dictionary<PathBytes, UInt64>.Keys { numbers.keys }

    /// Returns the number of the offer that names a path.
    func number(at path: PathBytes) -> UInt64? { numbers[path] }

    func offer(at path: PathBytes) -> Offer? { numbers[path].flatMap { all[$0] } }

    /// Adds an offer, or replaces the one with its number; it names its paths from now on.
    mutating func insert(_ offer: Offer) {
        set(offer)
        for path in offer.paths { numbers[path] = offer.number }
    }

    /// Replaces the offer with this number and the same paths.
    mutating func set(_ offer: Offer) {
        all[offer.number] = offer
        changed.insert(offer.number)
    }

    /// Changes an offer, if it is unfinished.
    mutating func update(_ number: UInt64, _ body: (inout Offer) -> Void) {
        guard var offer = all[number] else { return }
        body(&offer)
        set(offer)
    }

    mutating func remove(_ offer: Offer) {
        all[offer.number] = nil
        changed.insert(offer.number)
        for path in offer.paths { numbers[path] = nil }
    }

    mutating func markCommitted() { changed.removeAll(keepingCapacity: true) }

    // MARK: Outputs

    func isOutput(_ path: PathBytes) -> Bool { outputs[path] != nil }

    mutating func declareOutput(_ path: PathBytes, of number: UInt64) { outputs[path] = number }

    /// Removes and returns the paths that an offer has declared as outputs, sorted.
    mutating func removeOutputs(of number: UInt64) -> [PathBytes] {
        guard !outputs.isEmpty else { return [] }
        let paths = outputs.filter { $0.value == number }.keys.sorted()
        for path in paths { outputs[path] = nil }
        return paths
    }
}
