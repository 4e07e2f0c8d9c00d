import Glibc
import System

/// The inotify instance of a watcher, and what has been reported about its limits.
struct KernelWatches {
    private(set) var inotify: InotifyInstance?
    /// The limit of instances, if it is the reason why there is no instance.
    private(set) var instanceLimit: InotifyLimit?
    private var hasReportedRefusal = false

    /// The need for watches at the last report of a shortage.
    private(set) var reportedNeed = 0
    /// The earliest time of the next such report; nil before the first one.
    private(set) var notBefore: ContinuousClock.Instant?
    /// Doubled each time, so that a tree that grows indefinitely does not cause reports indefinitely.
    private var gap = Duration.seconds(5)

    /// Opens the inotify instance; when the user's limit of instances is reached, everything is polled.
    ///
    /// - Parameter spareDescriptor: An open descriptor, to determine which limit is reached.
    /// - Returns: The error if it can't be opened for another reason, once.
    mutating func open(spareDescriptor: Int32) -> WatchError? {
        do throws(SystemError) {
            inotify = try InotifyInstance()
            if instanceLimit != nil { (reportedNeed, notBefore, gap) = (0, nil, .seconds(5)) }
            instanceLimit = nil
            return nil
        } catch {
            // The same errno means that the process has too many descriptors; then nothing else can be opened either.
            let spare = dup(spareDescriptor)
            if spare >= 0 { close(spare) }
            if error.errno == EMFILE, spare >= 0 {
                instanceLimit = instanceLimit ?? .instances
                return nil
            }
            defer { hasReportedRefusal = true }
            return hasReportedRefusal ? nil : .refused("inotify", errno: error.errno)
        }
    }

    /// Records a need for watches; returns whether it has grown since the last report, and is to be reported now.
    mutating func record(need: Int, at now: ContinuousClock.Instant) -> Bool {
        guard need > reportedNeed else { return false }
        (reportedNeed, notBefore, gap) = (need, now + gap, min(gap * 2, .seconds(3600)))
        return true
    }
}
