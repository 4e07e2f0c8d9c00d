import FileEvents
import Glibc
import Settling

extension Timestamp {
    /// Nanoseconds since 1970, as far as a column holds them: the years 1677 to 2262.
    var columnValue: Int64 {
        let (product, hasOverflowed) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, hasOverflowedToo) = product.addingReportingOverflow(Int64(nanoseconds))
        return hasOverflowed || hasOverflowedToo ? (seconds < 0 ? .min : .max) : sum
    }

    init(columnValue: Int64) {
        let (seconds, rest) = columnValue.quotientAndRemainder(dividingBy: 1_000_000_000)
        self.init(
            seconds: rest < 0 ? seconds - 1 : seconds, nanoseconds: UInt32(rest < 0 ? rest + 1_000_000_000 : rest))
    }
}

extension Duration {
    /// Whole nanoseconds, as far as a column holds them.
    var columnValue: Int64 {
        let (seconds, attoseconds) = components
        let (product, hasOverflowed) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, hasOverflowedToo) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        return hasOverflowed || hasOverflowedToo ? (seconds < 0 ? .min : .max) : sum
    }
}

/// One moment on both clocks: the time of day, which columns hold, and the boot clock, by which jobs are due.
struct ClockPair {
    var wall: Int64
    var instant: ContinuousClock.Instant

    init(_ wall: Timestamp, _ instant: ContinuousClock.Instant) {
        self.wall = wall.columnValue
        self.instant = instant
    }

    func columnValue(of due: ContinuousClock.Instant) -> Int64 { wall &+ (due - instant).columnValue }

    func instant(of due: Int64) -> ContinuousClock.Instant {
        let (rest, hasOverflowed) = due.subtractingReportingOverflow(wall)
        return hasOverflowed ? instant : instant + .nanoseconds(rest)
    }
}

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
