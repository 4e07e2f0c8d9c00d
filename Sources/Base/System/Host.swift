/// The machine as the core sees it: its files, its clocks, and its random numbers.
///
/// The core accesses the machine only through this type, so that a simulated machine repeats a run exactly.
package final class Host: Sendable {
    package let fileSystem: any FileSystem
    package let clock: Clock
    /// Returns a number from 0 to 1.
    package let random: @Sendable () -> Double

    package init(
        fileSystem: any FileSystem = .kernel, clock: Clock = Clock(),
        random: @escaping @Sendable () -> Double = { .random(in: 0...1) }
    ) {
        self.fileSystem = fileSystem
        self.clock = clock
        self.random = random
    }

    /// The machine that the program runs on.
    package static let machine = Host()
}

/// The clocks of a machine: at first, those of the kernel.
package struct Clock: Sendable {
    /// The monotonic clock for deadlines.
    package var now: @Sendable () -> ContinuousClock.Instant = { .now }
    /// The time of day.
    package var time: @Sendable () -> Timestamp = { DiskProbe.now() }
    /// The timestamp that a file would get if it changed now, some milliseconds before ``time``; see
    /// ``DiskProbe/fileTime()``.
    package var fileTime: @Sendable () -> Timestamp = { DiskProbe.fileTime() }

    package init() {}
}
