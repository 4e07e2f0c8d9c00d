import Glibc

/// Waits for conditions instead of for fixed times.
///
/// Only a failing test reaches a deadline, so deadlines are long: a busy machine may stall for some seconds.
package enum Deadline {
    /// Calls the closure every few milliseconds until it returns a value.
    ///
    /// - Returns: The value; nil if the deadline has passed without one.
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

    /// Waits until the condition holds.
    ///
    /// Returns false if it does not hold in time.
    package static func wait(within limit: Duration = .seconds(60), until condition: () throws -> Bool) rethrows -> Bool
    {
        try poll(within: limit) { try condition() ? true : nil } ?? false
    }

    /// Sleeps.
    ///
    /// Only for pauses that are part of a scenario's input, not for waiting.
    package static func pause(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
        nanosleep(&time, nil)
    }
}
