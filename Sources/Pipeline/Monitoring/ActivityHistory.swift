package import Rules
package import System

/// The activity of the last half hour, in slots of five seconds.
///
/// Pure: the current time is a parameter. Only the current slot is stored in detail; each of the others is one point.
package struct ActivityHistory: Sendable {
    /// The numbers of events and results in a slot, and the durations of attempts and of the phases before them.
    package struct Point: JobCounts, Sendable, Hashable {
        /// The start of the slot; set by ``points(at:wall:)``.
        package var time = Timestamp(seconds: 0, nanoseconds: 0)
        package var events = 0
        package var succeeded = 0
        package var skipped = 0
        /// Failed jobs.
        package var failed = 0
        /// Jobs that were pending or running at its end.
        package var queue = 0
        /// The median time from the last change of a file to its event.
        package var settleMedian: Duration?
        /// The median time from the event to the start of the first attempt.
        package var waitMedian: Duration?
        package var runMedian: Duration?
        package var runSlowest: Duration?
    }

    package static let interval = Duration.seconds(5)
    package static let length = 360

    private let start: ContinuousClock.Instant
    /// The points of the slots before the current one, up to the length.
    private var points: [Point] = []
    private var slot = 0
    private var open = Point()
    /// The durations in the current slot.
    private var durations: [Phase: LogHistogram] = [:]

    package init(start: ContinuousClock.Instant) { self.start = start }

    // MARK: Recording

    /// Records the number of pending or running jobs.
    package mutating func record(queue: Int, at now: ContinuousClock.Instant) {
        advance(to: now)
        open.queue = queue
    }

    /// Records an event.
    package mutating func recordEvent(at now: ContinuousClock.Instant) {
        advance(to: now)
        open.events += 1
    }

    /// Records the duration of a phase of one job or attempt.
    package mutating func record(_ duration: Duration, of phase: Phase, at now: ContinuousClock.Instant) {
        advance(to: now)
        durations[phase, default: LogHistogram()].add(duration)
    }

    package enum Phase: Sendable { case settle, wait, run }

    /// Records the state of a job after an attempt.
    package mutating func record(_ state: JobState, at now: ContinuousClock.Instant) {
        advance(to: now)
        open.count(state)
    }

    private mutating func advance(to now: ContinuousClock.Instant) {
        let next = slot(of: now)
        guard next > slot else { return }
        open.settleMedian = durations[.settle]?.quantile(0.5)
        open.waitMedian = durations[.wait]?.quantile(0.5)
        open.runMedian = durations[.run]?.quantile(0.5)
        open.runSlowest = durations[.run]?.quantile(0.99)
        let empty = Point(queue: open.queue)
        points.append(open)
        points += repeatElement(empty, count: min(next - slot - 1, Self.length))
        points.removeFirst(max(0, points.count - Self.length))
        (slot, open, durations) = (next, empty, [:])
    }

    private func slot(of now: ContinuousClock.Instant) -> Int {
        // Whole seconds: a quotient of durations is a floating-point number, and may miss a slot by a rounding error.
        Int(max(0, (now - start).components.seconds) / Self.interval.components.seconds)
    }

    // MARK: Queries

    /// Returns the points of all finished slots of the last half hour, the oldest first.
    ///
    /// - Parameters:
    ///   - now: The current time.
    ///   - wall: The current time by the system's clock, which the points' times use.
    /// - Returns: The points; one without any counts for a slot in which nothing happened.
    package func points(at now: ContinuousClock.Instant, wall: Timestamp) -> [Point] {
        var history = self
        history.advance(to: now)
        let first = wall.advanced(by: Self.interval * (history.slot - history.points.count) - (now - start))
        for index in history.points.indices {
            history.points[index].time = first.advanced(by: Self.interval * index)
        }
        return history.points
    }

    /// Returns the numbers of events and of finished jobs in the current slot and the eleven before it.
    package func lastMinute(at now: ContinuousClock.Instant) -> (events: Int, jobs: Int) {
        var history = self
        history.advance(to: now)
        return (history.points.suffix(11) + [history.open]).reduce((0, 0)) { ($0.0 + $1.events, $0.1 + $1.ended) }
    }
}
