/// The machine as the core sees it: its files, its clocks, and its random numbers.
///
/// The core accesses the machine only through this type, so that a simulated machine repeats a run exactly.
package final class Host: Sendable {
    package let fileSystem: any FileSystem
    package let clock: Clock
    /// Returns a number from 0 to 1.
    package let random: @Sendable () -> Double

    package init(
        fileSystem: any FileSystem, clock: Clock, random: @escaping @Sendable () -> Double = { .random(in: 0...1) }
    ) {
        self.fileSystem = fileSystem
        self.clock = clock
        self.random = random
    }

    /// The machine that the program runs on.
    package static let machine = Host(fileSystem: .kernel, clock: .system)
}

/// The clocks of a machine.
package struct Clock: Sendable {
    /// The monotonic clock for deadlines.
    package var now: @Sendable () -> ContinuousClock.Instant
    /// The time of day.
    package var time: @Sendable () -> Timestamp
    /// The timestamp that a file would get if it changed now, some milliseconds before ``time``; see
    /// ``DiskProbe/fileTime()``.
    package var fileTime: @Sendable () -> Timestamp

    package init(
        now: @escaping @Sendable () -> ContinuousClock.Instant, time: @escaping @Sendable () -> Timestamp,
        fileTime: @escaping @Sendable () -> Timestamp
    ) {
        self.now = now
        self.time = time
        self.fileTime = fileTime
    }

    /// The clocks of the kernel.
    package static let system = Clock(
        now: { ContinuousClock.now }, time: { DiskProbe.now() }, fileTime: { DiskProbe.fileTime() })
}
