import FileEvents
package import System

/// What has happened in the last half hour, in slots of five seconds.
///
/// Pure: the present is passed in. Only the slot of the present is kept in detail; of the others there is one point each.
package struct ActivityHistory: Sendable {
    /// What came of attempts in a slot, and how long they and what comes before them took.
    package struct Point: Sendable, Hashable {
        /// When the slot began; set by ``points(at:wall:)``.
        package var time = Timestamp(seconds: 0, nanoseconds: 0)
        package var events = 0
        package var succeeded = 0
        package var skipped = 0
        /// Attempts that failed, for good or to be made again.
        package var failed = 0
        /// Jobs that were pending or running at its end.
        package var queue = 0
        /// From the last change of a file to its event.
        package var settleMedian: Duration?
        /// From the event to the beginning of the first attempt.
        package var waitMedian: Duration?
        package var runMedian: Duration?
        package var runSlowest: Duration?

        package init() {}
    }

    package static let interval = Duration.seconds(5)
    package static let length = 360

    private let start: ContinuousClock.Instant
    /// By the number of the slot, modulo the length.
    private var points: [(slot: Int, point: Point)] = []
    private var slot = 0
    private var open = Point()
    private var settles = LogHistogram()
    private var waits = LogHistogram()
    private var runs = LogHistogram()

    package init(start: ContinuousClock.Instant) { self.start = start }

    // MARK: Noting

    /// Notes how many jobs are pending or running, and how many events became jobs.
    package mutating func note(events: Int, queue: Int, at now: ContinuousClock.Instant) {
        advance(to: now)
        open.events += events
        open.queue = queue
    }

    package mutating func noteSettle(_ duration: Duration, at now: ContinuousClock.Instant) {
        advance(to: now)
        settles.add(duration)
    }

    package mutating func noteWait(_ duration: Duration, at now: ContinuousClock.Instant) {
        advance(to: now)
        waits.add(duration)
    }

    package mutating func noteRun(_ duration: Duration, at now: ContinuousClock.Instant) {
        advance(to: now)
        runs.add(duration)
    }

    package mutating func noteAttempt(_ kind: Ending, at now: ContinuousClock.Instant) {
        advance(to: now)
        switch kind {
        case .succeeded: open.succeeded += 1
        case .skipped: open.skipped += 1
        case .failed: open.failed += 1
        }
    }

    /// How an attempt ended, as far as it is counted.
    package enum Ending: Sendable { case succeeded, skipped, failed }

    private mutating func advance(to now: ContinuousClock.Instant) {
        let next = Self.slot(of: now, since: start)
        guard next > slot else { return }
        let closed = closed
        if points.count < Self.length {
            // Slots in which nothing happened have no place yet, either.
            points += repeatElement((slot: -1, point: Point()), count: Self.length - points.count)
        }
        points[slot % Self.length] = (slot, closed)
        slot = next
        open = Point()
        open.queue = closed.queue
        settles.removeAll()
        waits.removeAll()
        runs.removeAll()
    }

    /// The slot of the present as it is by now.
    private var closed: Point {
        var point = open
        point.settleMedian = settles.quantile(0.5)
        point.waitMedian = waits.quantile(0.5)
        point.runMedian = runs.quantile(0.5)
        point.runSlowest = runs.quantile(0.99)
        return point
    }

    private static func slot(of now: ContinuousClock.Instant, since start: ContinuousClock.Instant) -> Int {
        // Whole seconds: a quotient of durations is a number with a fraction, and may miss a slot by a hair.
        Int(max(0, (now - start).components.seconds) / interval.components.seconds)
    }

    // MARK: Looking

    private func point(_ number: Int) -> Point? {
        if number == slot { return closed }
        guard number >= 0, number < slot, !points.isEmpty else { return nil }
        let (slot, point) = points[number % Self.length]
        return slot == number ? point : nil
    }

    /// The points of the last half hour that have ended, the oldest first.
    ///
    /// - Parameters:
    ///   - now: The present.
    ///   - wall: The same by the system's clock, by which the points are told.
    /// - Returns: The points; one without any counts for a slot in which nothing happened.
    package func points(at now: ContinuousClock.Instant, wall: Timestamp) -> [Point] {
        let present = Self.slot(of: now, since: start)
        let age = now - start
        var queue = 0
        var told: [Point] = []
        let first = max(0, present - Self.length)
        for number in first..<max(first, present) {
            var point = self.point(number) ?? Point()
            if self.point(number) == nil { point.queue = queue }
            queue = point.queue
            point.time = wall.advanced(by: Self.interval * number - age)
            told.append(point)
        }
        return told
    }

    /// Events and finished attempts for each second of the last minute.
    package func rates(at now: ContinuousClock.Instant) -> (events: Double, jobs: Double) {
        let present = Self.slot(of: now, since: start)
        let first = max(0, present - 11)
        var events = 0
        var jobs = 0
        for number in first...present {
            guard let point = point(number) else { continue }
            events += point.events
            jobs += point.succeeded + point.skipped + point.failed
        }
        let span = max(1, (now - start) / .seconds(1) - Double(first) * (Self.interval / .seconds(1)))
        return (Double(events) / span, Double(jobs) / span)
    }
}
