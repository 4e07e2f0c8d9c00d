import Records
import System

/// The difference between the wall clock and the boot clock when due times were written.
///
/// It changes when the wall clock is set. The due times of open jobs are then shifted by the same amount, so that a
/// job waits neither longer nor shorter, in this run and in the next one.
struct ClockOffset {
    /// The nanoseconds from the boot clock to the wall clock.
    let value: Int64
    /// The boot to which the boot clock belongs; see `boot_id` in random(4).
    let boot: Int64

    /// Creates the difference that the previous run recorded.
    ///
    /// After a boot only the time of the last commit is known: the current time is not earlier, unless the clock was
    /// set back.
    init(_ values: [String: Int64], lastCommit: Int64, _ clocks: ClockPair) {
        boot = Self.currentBoot
        if let value = values["clock_offset"], values["boot"] == boot {
            self.value = value
        } else {
            value = Self.value(of: clocks) &+ max(0, lastCommit &- clocks.wall)
        }
    }

    init(_ clocks: ClockPair) {
        value = Self.value(of: clocks)
        boot = Self.currentBoot
    }

    /// Returns how far the wall clock has since been set forward, in nanoseconds.
    func shift(to clocks: ClockPair) -> Int64 { Self.value(of: clocks) &- value }

    /// Whether the clock has been set by so much that due times must be shifted.
    ///
    /// The threshold exceeds what adjtime(3) or the time between two readings of the clocks explains.
    func isStale(at clocks: ClockPair) -> Bool { abs(shift(to: clocks)) > 10_000_000_000 }

    private static func value(of clocks: ClockPair) -> Int64 {
        clocks.wall &- (boottime + (clocks.instant - origin)).columnValue
    }

    private static let origin = ContinuousClock.now
    private static let boottime = DiskProbe.sinceBoot()

    /// The first 64 bits of the kernel's id of this boot; 0 if it can't be read.
    private static let currentBoot: Int64 = {
        let text = ProcFile.text(of: "/proc/sys/kernel/random/boot_id").filter { $0 != "-" }
        return Int64(bitPattern: UInt64(text.prefix(16), radix: 16) ?? 0)
    }()
}
