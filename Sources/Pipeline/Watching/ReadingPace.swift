/// The recent rate of reads of the kernel queue, to distinguish an event storm from a few files.
///
/// Each read wakes a thread, and then the reader of the hints. In a storm, most
/// reads would return one event; after a short pause, one read returns many. A
/// single file causes three or four events and never causes a pause.
struct ReadingPace {
    private static let window = Duration.milliseconds(10)
    /// The number of reads in a window that are not yet a storm: about 400 files per second.
    private static let most = 16
    /// The pause; in that time the kernel queue, with a capacity of 16,384 events, fills only to a small part.
    private static let pause = Duration.milliseconds(1)

    private var started: ContinuousClock.Instant
    private var reads = 0

    init(at now: ContinuousClock.Instant) { started = now }

    /// Records a read.
    ///
    /// - Returns: How long to pause before the next read; nil for no pause.
    mutating func recordRead(at now: ContinuousClock.Instant) -> Duration? {
        if now - started >= Self.window {
            started = now
            reads = 0
        }
        reads += 1
        return reads > Self.most ? Self.pause : nil
    }
}
