import FileEvents
package import System

extension Timestamp {
    /// Nanoseconds since 1970, as far as a column holds them: the years 1677 to 2262.
    package var columnValue: Int64 {
        let (product, hasOverflowed) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, hasOverflowedToo) = product.addingReportingOverflow(Int64(nanoseconds))
        return hasOverflowed || hasOverflowedToo ? (seconds < 0 ? .min : .max) : sum
    }

    package init(columnValue: Int64) {
        let (seconds, rest) = columnValue.quotientAndRemainder(dividingBy: 1_000_000_000)
        self.init(
            seconds: rest < 0 ? seconds - 1 : seconds, nanoseconds: UInt32(rest < 0 ? rest + 1_000_000_000 : rest))
    }
}

extension Duration {
    /// Whole nanoseconds, as far as a column holds them.
    package var columnValue: Int64 {
        let (seconds, attoseconds) = components
        let (product, hasOverflowed) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, hasOverflowedToo) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        return hasOverflowed || hasOverflowedToo ? (seconds < 0 ? .min : .max) : sum
    }
}

/// One moment on both clocks: the time of day, which columns hold, and the boot clock, by which jobs are due.
package struct ClockPair: Sendable {
    package var wall: Int64
    package var instant: ContinuousClock.Instant

    package init(_ wall: Timestamp, _ instant: ContinuousClock.Instant) {
        self.wall = wall.columnValue
        self.instant = instant
    }

    package func columnValue(of due: ContinuousClock.Instant) -> Int64 { wall &+ (due - instant).columnValue }

    package func instant(of due: Int64) -> ContinuousClock.Instant {
        let (rest, hasOverflowed) = due.subtractingReportingOverflow(wall)
        return hasOverflowed ? instant : instant + .nanoseconds(rest)
    }
}
