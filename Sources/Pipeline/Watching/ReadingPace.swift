import System

/// How often the kernel's queue was read lately, to tell a storm from a few files.
///
/// Each read wakes a thread, and the reader of the hints after it. In a storm most
/// of them would bring one event; after a moment's pause one brings many. A single
/// file brings three or four events and is never waited for.
struct ReadingPace {
    private static let window = Duration.milliseconds(10)
    /// So many reads in a window are no storm: some 400 files a second.
    private static let most = 16
    /// Of the kernel's queue, which has room for 16,384 events, a moment fills a small part.
    private static let moment = Duration.milliseconds(1)

    private var began: ContinuousClock.Instant
    private var reads = 0

    init(at now: ContinuousClock.Instant) { began = now }

    /// Notes a read.
    ///
    /// - Returns: How long to leave the queue alone after it; nil for not at all.
    mutating func noteRead(at now: ContinuousClock.Instant) -> Duration? {
        if now - began >= Self.window {
            began = now
            reads = 0
        }
        reads += 1
        return reads > Self.most ? Self.moment : nil
    }
}
