import FileEvents
import Glibc
import System

/// The difference between the time of day and the boot clock when due times were written.
///
/// Changes when the time of day is set; then the due times of open jobs are moved by as much, so that a job waits
/// neither longer nor shorter for it, in this run and in the next one.
struct ClockOffset {
    /// Nanoseconds from the boot clock to the time of day.
    let value: Int64
    /// The boot to which the boot clock belongs; see `boot_id` in random(4).
    let boot: Int64

    /// The difference that the run before has noted.
    ///
    /// After a boot nothing but the time of the last commit is known: it is not earlier now, unless the clock was set
    /// back.
    init(_ facts: [String: Int64], kept: Int64, _ clocks: ClockPair) {
        boot = Self.currentBoot
        if let value = facts["clock_offset"], facts["boot"] == boot {
            self.value = value
        } else {
            value = Self.value(of: clocks) &+ max(0, kept &- clocks.wall)
        }
    }

    init(_ clocks: ClockPair) {
        value = Self.value(of: clocks)
        boot = Self.currentBoot
    }

    /// How far the time of day has been set forward since, in nanoseconds.
    func shift(to clocks: ClockPair) -> Int64 { Self.value(of: clocks) &- value }

    /// Whether it has been set by so much that due times have to be moved: more than adjtime(3) or the time between two
    /// readings of the clocks explains.
    func isStale(at clocks: ClockPair) -> Bool { abs(shift(to: clocks)) > 10_000_000_000 }

    private static func value(of clocks: ClockPair) -> Int64 {
        clocks.wall &- (boottime + (clocks.instant - origin)).columnValue
    }

    private static let origin = ContinuousClock.now
    private static let boottime = DiskProbe.sinceBoot()

    /// The first 64 bits of the kernel's number for this boot; 0 if it can't be read.
    private static let currentBoot: Int64 = {
        let descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return 0 }
        defer { close(descriptor) }
        let digits = (try? FileBytes.read(descriptor, 36, at: 0, of: "/proc/sys/kernel/random/boot_id")) ?? []
        let text = String(decoding: digits, as: UTF8.self).filter { $0 != "-" }
        return Int64(bitPattern: UInt64(text.prefix(16), radix: 16) ?? 0)
    }()
}
