package import Rules
package import System

/// The activity of the last half hour, in slots of five seconds.
///
/// Pure: the current time is a parameter. Only the current slot is stored in detail; each of the others is one point.
package struct ActivityHistory: Sendable {
    /// The numbers of events and results in a slot, and the durations of attempts and of the phases before them.
    package struct Point: Sendable, Hashable {
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
    /// The points, indexed by the slot's number modulo the length.
    private var points: [(slot: Int, point: Point)] = []
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
        switch state {
        case .succeeded: open.succeeded += 1
        case .skipped: open.skipped += 1
        case .failed: open.failed += 1
        case .pending, .running: break
        }
    }

    private mutating func advance(to now: ContinuousClock.Instant) {
        let next = slot(of: now)
        guard next > slot else { return }
        let closed = closed
        if points.count < Self.length {
            // Allocates the places of empty slots too.
            points += repeatElement((slot: -1, point: Point()), count: Self.length - points.count)
        }
        points[slot % Self.length] = (slot, closed)
        slot = next
        open = Point()
        open.queue = closed.queue
        durations = [:]
    }

    /// The current slot so far.
    private var closed: Point {
        var point = open
        point.settleMedian = durations[.settle]?.quantile(0.5)
        point.waitMedian = durations[.wait]?.quantile(0.5)
        point.runMedian = durations[.run]?.quantile(0.5)
        point.runSlowest = durations[.run]?.quantile(0.99)
        return point
    }

    private func slot(of now: ContinuousClock.Instant) -> Int {
        // Whole seconds: a quotient of durations is a floating-point number, and may miss a slot by a rounding error.
        Int(max(0, (now - start).components.seconds) / Self.interval.components.seconds)
    }

    // MARK: Queries

    private func point(_ number: Int) -> Point? {
        if number == slot { return closed }
        guard number >= 0, number < slot, !points.isEmpty else { return nil }
        let (slot, point) = points[number % Self.length]
        return slot == number ? point : nil
    }

    /// Returns the points of all finished slots of the last half hour, the oldest first.
    ///
    /// - Parameters:
    ///   - now: The current time.
    ///   - wall: The current time by the system's clock, which the points' times use.
    /// - Returns: The points; one without any counts for a slot in which nothing happened.
    package func points(at now: ContinuousClock.Instant, wall: Timestamp) -> [Point] {
        let present = slot(of: now)
        let age = now - start
        var queue = 0
        var finished: [Point] = []
        let first = max(0, present - Self.length)
        for number in first..<max(first, present) {
            var point = self.point(number) ?? Point(queue: queue)
            queue = point.queue
            point.time = wall.advanced(by: Self.interval * number - age)
            finished.append(point)
        }
        return finished
    }

    /// Returns the numbers of events and of finished jobs in the current slot and the eleven before it.
    package func lastMinute(at now: ContinuousClock.Instant) -> (events: Int, jobs: Int) {
        let present = slot(of: now)
        let points = (max(0, present - 11)...present).compactMap(point)
        return points.reduce((0, 0)) { ($0.0 + $1.events, $0.1 + $1.succeeded + $1.skipped + $1.failed) }
    }
}
