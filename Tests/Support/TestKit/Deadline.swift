import Glibc

/// Waits for facts, never for a while.
///
/// A deadline is met only by a test that fails, so it is long: a machine may do nothing for some seconds.
package enum Deadline {
    /// Asks every few milliseconds until the answer is there.
    ///
    /// - Returns: The answer; nil when the deadline has passed without one.
    package static func poll<Answer>(
        within limit: Duration = .seconds(60), _ question: () throws -> Answer?
    ) rethrows -> Answer? {
        let deadline = ContinuousClock.now + limit
        while true {
            if let answer = try question() { return answer }
            if ContinuousClock.now > deadline { return nil }
            pause(.milliseconds(5))
        }
    }

    /// Waits until the condition holds; false when it did not in time.
    package static func wait(within limit: Duration = .seconds(60), until condition: () throws -> Bool) rethrows -> Bool
    {
        try poll(within: limit) { try condition() ? true : nil } ?? false
    }

    /// Rests; for a writer in a scenario that pauses, which is input and not waiting.
    package static func pause(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
        nanosleep(&time, nil)
    }
}
