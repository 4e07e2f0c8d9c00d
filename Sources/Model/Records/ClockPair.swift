import FileEvents
package import System

extension Timestamp {
    /// The nanoseconds since 1970, clamped to the range of a column: the years 1677 to 2262.
    package var columnValue: Int64 { clampedNanoseconds(seconds, Int64(nanoseconds)) }

    package init(columnValue: Int64) { self.init(wholeNanoseconds: columnValue) }
}

extension Duration {
    /// The whole nanoseconds, clamped to the range of a column.
    package var columnValue: Int64 { clampedNanoseconds(components.seconds, components.attoseconds / 1_000_000_000) }
}

private func clampedNanoseconds(_ seconds: Int64, _ rest: Int64) -> Int64 {
    let (product, hasOverflowed) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, hasOverflowedToo) = product.addingReportingOverflow(rest)
    return hasOverflowed || hasOverflowedToo ? (seconds < 0 ? .min : .max) : sum
}

/// A time on both clocks: the wall clock, which columns store, and the boot clock, by which jobs are due.
package struct ClockPair: Sendable {
    package var wall: Int64
    package var instant: ContinuousClock.Instant

    package init(_ wall: Timestamp, _ instant: ContinuousClock.Instant) {
        (self.wall, self.instant) = (wall.columnValue, instant)
    }

    package func columnValue(of due: ContinuousClock.Instant) -> Int64 { wall &+ (due - instant).columnValue }

    package func instant(of due: Int64) -> ContinuousClock.Instant {
        let (rest, hasOverflowed) = due.subtractingReportingOverflow(wall)
        return hasOverflowed ? instant : instant + .nanoseconds(rest)
    }
}
