import CAlightLinux
import FileEvents
import Glibc
import System

/// The state of the watcher's thread, and its loop.
///
/// Each turn drains the kernel queue first and then lists directories for a short
/// time, so that the queue stays empty however large the tree is that is being
/// listed. Between turns the thread sleeps in poll(2), until an event arrives or a
/// polled directory is due.
///
/// The other files of this directory contain the rest: directories are listed in
/// `+Listing`, events handled in `+Events`, roots and mounts in `+Roots`.
final class WatchLoop {
    /// A directory to be watched and listed.
    struct Visit {
        var folder: DirectoryTree.ID
        var origin: EventOrigin
    }

    /// The listing of a whole root.
    struct Scan {
        var root: Int
        var origin: EventOrigin
        var visits: [Visit]
        var hasBegun = false
    }

    var scope: WatchScope
    let queue: HintQueue
    let control: Watcher.Control

    var inotify: InotifyInstance?
    /// The limit of instances, if it is the reason why there is no instance.
    var instanceLimit: InotifyLimit?
    var hasToldRefusal = false
    var mounts = MountTable()
    var tree = DirectoryTree()
    var roots: [RootState] = []
    var rootOfPath: [PathBytes: Int] = [:]
    var rootOfFolder: [DirectoryTree.ID: Int] = [:]
    /// The roots to check when something happens in a directory above them.
    var ways = AncestorTable()
    var suspects: Set<Int> = []
    /// Roots that the scope no longer contains; they keep their watches until their replacement has been listed.
    var retired: Set<Int> = []

    var tours: [Scan] = []
    /// Directories that appeared outside a tour; they are visited first.
    var visits: [Visit] = []
    var current: Listing?
    /// Visits that failed because no descriptor or memory was available, to be retried later.
    var postponed: [(visit: Visit, isTour: Bool)] = []
    var postponedUntil = ContinuousClock.now
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 8)

    var polled: [DirectoryTree.ID: PolledDirectory] = [:]
    var schedule = PollSchedule()
    var isPollNext = false
    /// Polled directories with a reported change, to be polled before they are due.
    var urgent: Set<DirectoryTree.ID> = []
    var devices = DeviceTable()
    /// The paths that were reported as polled.
    var toldPolling: Set<PathBytes> = []

    var isReady = false
    var rescan = Rescan.none
    var listingSince: ContinuousClock.Instant?
    var lastProgress = ContinuousClock.now
    var shortage = ShortageReports()

    var hints: [Hint] = []
    var reports: [WatchReport] = []
    var recent = RecentFiles()
    /// The directory of the last event and its path with a slash at the end; successive events often share a directory.
    var lastPrefix: (folder: DirectoryTree.ID, bytes: [UInt8])?

    /// The directory counts of trees, cached from the last survey.
    var counted: (edition: Int, counts: [DirectoryTree.ID: DirectoryTree.Counts]) = (0, [:])

    /// The state of the rescan after changes that may have been missed.
    struct Rescan {
        var isRunning = false
        /// Whether another rescan is needed after the current listing.
        var isWanted = false
        /// Whether the kernel queue overflowed, and that has been reported.
        var isOverflow = false

        static let none = Rescan()
    }

    /// The schedule for reports about a shortage of watches.
    struct ShortageReports {
        var toldNeed = 0
        var notBefore: ContinuousClock.Instant?
        /// Doubled each time, so that a tree that grows indefinitely does not cause reports indefinitely.
        var gap = Duration.seconds(5)
    }

    private static let postponement = Duration.seconds(1)
    /// The time for which directories are listed between two reads of the kernel queue.
    private static let turn = Duration.milliseconds(1)

    init(scope: WatchScope, queue: HintQueue, control: Watcher.Control) {
        self.scope = scope
        self.queue = queue
        self.control = control
    }

    deinit {
        current?.reader.close()
        buffer.deallocate()
    }

    func run() {
        openInotify()
        makeRoots()
        for root in rootOrder { check(root, because: .start) }
        var isFull = false
        var pace = ReadingPace(at: .now)
        while !control.isStopped {
            var descriptors = [
                pollfd(fd: control.waker.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: inotify?.descriptor ?? -1, events: Int16(POLLIN), revents: 0),
                pollfd(fd: mounts?.descriptor ?? -1, events: Int16(POLLPRI), revents: 0),
            ]
            control.setIdle(hints.isEmpty)
            _ = cal_poll(&descriptors, 3, patience(isFull: isFull))
            control.setIdle(false)
            var drains: [Watcher.Drain] = []
            if descriptors[0].revents != 0 {
                control.waker.clear()
                // Read after `clear`, so that a request that arrives in between wakes the thread again.
                drains = control.takeDrains()
                if control.takeRescan() { rescan.isWanted = true }
                let surveys = control.takeSurveys()
                if !surveys.isEmpty {
                    let status = surveyed()
                    for survey in surveys { survey.end(status) }
                }
                doubt(control.takeDoubted())
                if let change = control.takeChange() { self.change(to: change.scope, number: change.number) }
            }
            var pause: Duration?
            if descriptors[1].revents != 0 || !drains.isEmpty {
                drain()
                pause = scope.rest ?? pace.noteRead(at: .now)
            }
            if descriptors[2].revents != 0 { compareMounts() }
            checkSuspects()
            isFull = isFull && queue.isFull
            if !isFull { list() }
            queue.add(hints, reports: reports)
            hints.removeAll(keepingCapacity: hints.count < 4096)
            recent.removeAll()
            reports.removeAll()
            for drain in drains { drain.end() }
            isFull = queue.isFull
            if let pause, isFull || !hasWork { rest(for: pause) }
        }
        control.setInotify(-1)
        for drain in control.takeDrains() { drain.end() }
    }

    /// Pauses before the next read of the kernel queue; requests end the pause.
    private func rest(for pause: Duration) {
        control.setIdle(hints.isEmpty)
        defer { control.setIdle(false) }
        var asked = pollfd(fd: control.waker.descriptor, events: Int16(POLLIN), revents: 0)
        _ = cal_poll(&asked, 1, Self.nanoseconds(pause))
    }

    /// Returns the longest time to sleep in nanoseconds; negative for no limit.
    private func patience(isFull: Bool) -> Int64 {
        if !isFull, hasWork { return 0 }
        var due: [ContinuousClock.Instant] = []
        if !isFull {
            if let next = schedule.nextDue { due.append(next) }
            if !postponed.isEmpty { due.append(postponedUntil) }
        }
        if isReady, tree.shortCount > 0, needed > shortage.toldNeed, let next = shortage.notBefore { due.append(next) }
        guard let first = due.min() else { return -1 }
        return Self.nanoseconds(max(.zero, first - .now)) + 1
    }

    private static func nanoseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }

    private var hasWork: Bool {
        current != nil || !visits.isEmpty || !urgent.isEmpty || !suspects.isEmpty || !isReady
            || rescan.isWanted && tours.isEmpty
            || !tours.isEmpty && !isTourWaiting
    }

    /// Whether everything left of the current tour was postponed.
    private var isTourWaiting: Bool { tours.first?.visits.isEmpty == true && postponed.contains(where: \.isTour) }

    // MARK: Listing

    private func list() {
        let begun = ContinuousClock.now
        if !postponed.isEmpty, begun >= postponedUntil {
            for (visit, isTour) in postponed {
                if isTour, !tours.isEmpty { tours[0].visits.append(visit) } else { visits.append(visit) }
            }
            postponed = []
        }
        var now = begun
        while !control.isStopped, now - begun < Self.turn, hints.count < 4096, step(at: now) { now = .now }
        finishTours(at: now)
        tellShortage(at: now)
    }

    /// Does the next step of listing or polling; returns false when there is none.
    private func step(at now: ContinuousClock.Instant) -> Bool {
        if current != nil {
            advance()
            return true
        }
        if let visit = visits.popLast() {
            begin(visit, isTour: false)
            return true
        }
        if let folder = urgent.popFirst() {
            poll(folder)
            return true
        }
        isPollNext.toggle()
        if isPollNext, let subject = schedule.takeDue(at: now) {
            poll(subject)
            return true
        }
        if !tours.isEmpty, !isTourWaiting {
            if !tours[0].hasBegun {
                tours[0].hasBegun = true
                reports.append(.listing(roots[tours[0].root].path, tours[0].origin))
            }
            if let visit = tours[0].visits.popLast() {
                begin(visit, isTour: true)
            } else {
                reports.append(.listed(roots[tours[0].root].path, tours[0].origin))
                tours.removeFirst()
            }
            return true
        }
        guard let subject = schedule.takeDue(at: now) else { return false }
        poll(subject)
        return true
    }

    /// Updates the state and reports when all roots have been listed.
    private func finishTours(at now: ContinuousClock.Instant) {
        if let since = listingSince {
            if tours.isEmpty {
                listingSince = nil
            } else if now - max(since, lastProgress) >= .seconds(1) {
                lastProgress = now
                reports.append(.progress(folders: tree.count))
            }
        } else if !tours.isEmpty {
            listingSince = now
        }
        guard tours.isEmpty, current == nil else { return }
        if !isReady {
            isReady = true
            dropRetired()
            tellShortage(at: now)
            reports.append(.ready(folders: tree.count - tree.failedCount))
        }
        if rescan.isRunning {
            rescan.isRunning = false
            if !rescan.isWanted { rescan.isOverflow = false }
            reports.append(.rescanned)
        }
        if rescan.isWanted {
            rescan.isWanted = false
            rescan.isRunning = true
            for root in rootOrder { check(root, because: .rescan) }
        }
    }

    func postpone(_ visit: Visit, isTour: Bool) {
        postponed.append((visit, isTour))
        postponedUntil = .now + Self.postponement
    }

    // MARK: Limits

    /// Opens the inotify instance; when the user's limit of instances is reached, everything is polled.
    func openInotify() {
        var error: Int32 = 0
        inotify = InotifyInstance(error: &error)
        control.setInotify(inotify?.descriptor ?? -1)
        if inotify != nil {
            if instanceLimit != nil { shortage = ShortageReports() }
            instanceLimit = nil
            return
        }
        // The same errno means that the process has too many descriptors; then nothing else can be opened either.
        let spare = dup(control.waker.descriptor)
        if spare >= 0 { close(spare) }
        if error == EMFILE, spare >= 0 {
            instanceLimit = instanceLimit ?? .instances
        } else if !hasToldRefusal {
            hasToldRefusal = true
            reports.append(.failure(.refused("inotify", errno: error)))
        }
    }

    /// The limit of watches that this program would need.
    private var needed: Int {
        if let instanceLimit { return instanceLimit.value + 1 }
        return inotify == nil
            ? 0
            : tree.watchCount + tree.shortCount + ways.shortCount + ways.count { tree.folders(of: $0).isEmpty }
                + scope.watchesBeside
    }

    private func tellShortage(at now: ContinuousClock.Instant) {
        guard isReady, tree.shortCount > 0 || ways.shortCount > 0 else { return }
        guard tours.isEmpty, visits.isEmpty, current == nil else { return }
        if let next = shortage.notBefore, now < next { return }
        let needed = needed
        guard needed > shortage.toldNeed else { return }
        shortage.toldNeed = needed
        shortage.notBefore = now + shortage.gap
        shortage.gap = min(shortage.gap * 2, .seconds(3600))
        reports.append(
            .limited(WatchShortage(limit: instanceLimit ?? .watches, needed: needed, polled: tree.shortCount)))
    }
}
