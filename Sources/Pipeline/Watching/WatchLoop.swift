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
/// Directories are listed and polled in `+Directories`, roots and mounts checked in `+Roots`.
final class WatchLoop {
    var scope: WatchScope
    private let queue: HintQueue
    private let control: Watcher.Control

    var kernel = KernelWatches()
    var mounts = MountTable()
    var tree = DirectoryTree()
    var roots = RootTable()
    var listings = ListingQueue()
    var polling = PollingState()
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 8)
    var progress = Progress()
    /// The root of the last directory that was opened in this turn.
    var openedRoot: (path: PathBytes, directory: OpenFile)?

    var hints: [Hint] = []
    var reports: [WatchReport] = []
    /// Whether ``WatchReport/companions`` was reported.
    private var hasCompanions = false
    private var recent = RecentFiles()
    /// The directory of the last event and its path with a slash at the end; successive events often share a directory.
    private var lastPrefix: (directory: DirectoryTree.ID, bytes: [UInt8])?

    /// The progress of the scans of all roots.
    struct Progress {
        /// Whether all roots have been listed since the start, or since the scope changed.
        var isReady = false
        /// Whether the running scans are a rescan, after changes that may have been missed.
        var isRescan = false
        /// Whether another rescan is needed after the current listing.
        var isRescanWanted = false
        /// Whether the kernel queue overflowed, and that has been reported.
        var isOverflow = false
        /// The time since which roots are being listed; nil when none is.
        var start: ContinuousClock.Instant?
        var lastReport = ContinuousClock.now
    }

    /// The time for which directories are listed between two reads of the kernel queue.
    private static let turn = Duration.milliseconds(1)

    init(scope: WatchScope, queue: HintQueue, control: Watcher.Control) {
        self.scope = scope
        self.queue = queue
        self.control = control
    }

    deinit { buffer.deallocate() }

    func run() {
        cal_own_working_directory()
        openInotify()
        addRoots()
        for root in roots.innerFirst { check(root, because: .start) }
        var isFull = false
        var pace = ReadingPace(at: .now)
        while !control.isStopped {
            var descriptors = [
                pollfd(fd: control.waker.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: kernel.inotify?.descriptor ?? -1, events: Int16(POLLIN), revents: 0),
                pollfd(fd: mounts?.descriptor ?? -1, events: Int16(POLLPRI), revents: 0),
            ]
            closeDirectories()
            control.setIdle(hints.isEmpty)
            _ = cal_poll(&descriptors, 3, timeout(isFull: isFull))
            control.setIdle(false)
            var requests = Watcher.Requests()
            if descriptors[0].revents != 0 {
                control.waker.clear()
                // Read after `clear`, so that a request that arrives in between wakes the thread again.
                requests = control.takeRequests()
                handle(requests)
            }
            var pause: Duration?
            if descriptors[1].revents != 0 || !requests.drains.isEmpty {
                drain()
                pause = scope.rest ?? pace.recordRead(at: .now)
            }
            if descriptors[2].revents != 0 { compareMounts() }
            for root in roots.takeSuspects() { check(root, because: .event) }
            isFull = isFull && queue.isFull
            if !isFull { list() }
            queue.add(hints, reports: reports)
            hints.removeAll(keepingCapacity: hints.count < 4096)
            recent.removeAll()
            reports.removeAll()
            for drain in requests.drains { drain.end(()) }
            isFull = queue.isFull
            if let pause, isFull || !hasWork { wait(for: pause) }
        }
        control.setInotify(-1)
        for drain in control.takeRequests().drains { drain.end(()) }
    }

    /// Handles the requests of other threads, except for those that wait for the kernel queue.
    private func handle(_ requests: Watcher.Requests) {
        if requests.isRescanWanted { progress.isRescanWanted = true }
        if !requests.surveys.isEmpty {
            let status = status()
            for survey in requests.surveys { survey.end(status) }
        }
        for doubt in requests.doubts { hintAgain(doubt) }
        if let change = requests.change { self.change(to: change.scope, number: change.number) }
    }

    /// Pauses before the next read of the kernel queue; requests end the pause.
    private func wait(for pause: Duration) {
        closeDirectories()
        control.setIdle(hints.isEmpty)
        defer { control.setIdle(false) }
        var request = pollfd(fd: control.waker.descriptor, events: Int16(POLLIN), revents: 0)
        _ = cal_poll(&request, 1, Optional(.now + pause).pollLimit)
    }

    /// Returns the longest time to sleep in nanoseconds; negative for no limit.
    private func timeout(isFull: Bool) -> Int64 {
        if !isFull, hasWork { return 0 }
        var due: [ContinuousClock.Instant?] = isFull ? [] : [polling.schedule.nextDue, listings.nextDue]
        if progress.isReady, tree.shortCount > 0, needed > kernel.reportedNeed { due.append(kernel.notBefore) }
        let limit = due.compactMap(\.self).min().pollLimit
        return limit < 0 ? limit : limit + 1
    }

    private var hasWork: Bool {
        listings.hasWork || !polling.urgent.isEmpty || !roots.suspects.isEmpty || !progress.isReady
            || progress.isRescanWanted && listings.scans.isEmpty
    }

    // MARK: Listing

    private func list() {
        let start = ContinuousClock.now
        listings.resumePostponed(at: start)
        var now = start
        while !control.isStopped, now - start < Self.turn, hints.count < 4096, step(at: now) { now = .now }
        finishScans(at: now)
        reportShortage(at: now)
    }

    /// Does the next step of listing or polling; returns false when there is none.
    private func step(at now: ContinuousClock.Instant) -> Bool {
        if listings.current != nil {
            advance()
        } else if let visit = listings.takeVisit() {
            start(visit)
        } else if let directory = polling.urgent.popFirst() {
            poll(directory)
        } else {
            polling.isNext.toggle()
            if polling.isNext, let subject = polling.schedule.takeDue(at: now) {
                poll(subject)
            } else if listings.canScan {
                continueScan()
            } else if let subject = polling.schedule.takeDue(at: now) {
                poll(subject)
            } else {
                return false
            }
        }
        return true
    }

    private func continueScan() {
        let (path, origin) = (roots[listings.scans[0].root].path, listings.scans[0].origin)
        if !listings.scans[0].hasStarted {
            listings.scans[0].hasStarted = true
            reports.append(.listing(path, origin))
        }
        if let visit = listings.scans[0].visits.popLast() {
            start(visit)
        } else {
            reports.append(.listed(path, origin))
            listings.scans.removeFirst()
        }
    }

    /// Updates the state and reports when all roots have been listed.
    private func finishScans(at now: ContinuousClock.Instant) {
        if let start = progress.start {
            if listings.scans.isEmpty {
                progress.start = nil
            } else if now - max(start, progress.lastReport) >= .seconds(1) {
                progress.lastReport = now
                reports.append(.progress(directories: tree.count))
            }
        } else if !listings.scans.isEmpty {
            progress.start = now
        }
        guard listings.scans.isEmpty, listings.current == nil else { return }
        if !progress.isReady {
            progress.isReady = true
            // The roots of the old scope, after the new one is completely watched.
            for index in roots.innerFirst(roots.retired) { drop(index) }
            reportShortage(at: now)
            reports.append(.ready(directories: tree.count - tree.failedCount))
        }
        if progress.isRescan {
            progress.isRescan = false
            if !progress.isRescanWanted { progress.isOverflow = false }
            reports.append(.rescanned)
        }
        if progress.isRescanWanted {
            progress.isRescanWanted = false
            progress.isRescan = true
            for root in roots.innerFirst { check(root, because: .rescan) }
        }
    }

    // MARK: Limits

    func openInotify() {
        if let error = kernel.open(spareDescriptor: control.waker.descriptor) { reports.append(.failure(error)) }
        control.setInotify(kernel.inotify?.descriptor ?? -1)
    }

    /// The number of watches that this program uses.
    private var watchCount: Int {
        tree.watchCount + roots.ancestors.count { tree.directories(of: $0).isEmpty } + scope.watchesBeside
    }

    /// The limit of watches, or of instances, that this program would need.
    private var needed: Int {
        if let limit = kernel.instanceLimit { return limit.value + 1 }
        return kernel.inotify == nil ? 0 : watchCount + tree.shortCount + roots.ancestors.shortCount
    }

    private func reportShortage(at now: ContinuousClock.Instant) {
        guard progress.isReady, tree.shortCount > 0 || roots.ancestors.shortCount > 0, listings.isEmpty else { return }
        if let next = kernel.notBefore, now < next { return }
        let needed = needed
        guard kernel.record(need: needed, at: now) else { return }
        reports.append(.limited(kernel.instanceLimit ?? .watches, needed: needed, polled: tree.shortCount))
    }

    private func status() -> WatchStatus {
        let present = roots.active.map { index -> WatchStatus.Root in
            let root = roots[index]
            guard let directory = root.directory, root.presence == .present,
                !tree.flags(of: directory).contains(.failed)
            else {
                return WatchStatus.Root(path: root.path, means: .missing, isDenied: root.presence != .missing)
            }
            let counts = tree.counts(in: directory)
            let isPolled = tree.flags(of: directory).contains(.polled)
            let unreliable = isPolled && !root.wantsPoll ? PollingReason.unreliableFileSystem(of: root.path) : nil
            return WatchStatus.Root(
                path: root.path, means: isPolled || kernel.inotify == nil ? .polling : .inotify,
                polling: isPolled ? unreliable ?? .asked : nil, directories: counts.directories, polled: counts.polled,
                short: counts.short)
        }
        return WatchStatus(
            roots: present.sorted { $0.path < $1.path }, watches: kernel.inotify == nil ? 0 : watchCount,
            limit: InotifyLimit.watches.value, instanceLimit: kernel.instanceLimit, short: tree.shortCount,
            failed: tree.failedCount)
    }

    // MARK: Events

    private func drain() {
        // Bounded, so that a process that writes continuously can't keep directories from being listed.
        for _ in 0..<16 {
            guard let inotify = kernel.inotify, inotify.read({ handle($0) }) else { return }
        }
    }

    private func handle(_ event: InotifyEvent) {
        if event.has(IN_Q_OVERFLOW) {
            progress.isRescanWanted = true
            reports.append(progress.isOverflow ? .overflowAgain : .overflow)
            progress.isOverflow = true
        } else if event.has(IN_UNMOUNT) {
            unmounted(event.watch)
        } else if event.has(IN_IGNORED) {
            ended(event.watch)
        } else if event.name.isEmpty {
            handleItself(event)
        } else {
            if event.has(IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB) {
                roots.suspects.formUnion(roots.ancestors.roots(event.watch, event.name))
            }
            // Nearly always true, and avoids building an array.
            if let directory = tree.onlyDirectory(of: event.watch) { return handle(event, in: directory) }
            // With a directory mounted inside itself, one may be removed while another is handled.
            for directory in tree.directories(of: event.watch) where tree.contains(directory) {
                handle(event, in: directory)
            }
        }
    }

    /// Handles a watch that the kernel has removed, since the directory is gone.
    private func ended(_ watch: WatchDescriptor) {
        roots.suspects.formUnion(roots.ancestors.roots(watch))
        for directory in tree.directories(of: watch) where tree.contains(directory) {
            if let root = roots.index(ofTop: directory) {
                _ = tree.setWatch(nil, of: directory)
                roots[root].isLost = true
                roots.suspects.insert(root)
            } else {
                // Hints for it come from the directory that contains it.
                pollParent(of: directory)
                lose(directory)
            }
        }
    }

    /// Handles an event about the watched directory itself.
    private func handleItself(_ event: InotifyEvent) {
        if event.has(IN_MOVE_SELF | IN_DELETE_SELF) { roots.suspects.formUnion(roots.ancestors.roots(event.watch)) }
        guard event.has(IN_MOVE_SELF | IN_ATTRIB) else { return }
        for directory in tree.directories(of: event.watch) {
            if let root = roots.index(ofTop: directory) {
                roots.suspects.insert(root)
            } else if event.has(IN_MOVE_SELF) {
                pollParent(of: directory)
            }
        }
    }

    /// Schedules an immediate poll of the parent directory if it has no watch.
    private func pollParent(of directory: DirectoryTree.ID) {
        guard let parent = tree.parent(of: directory), tree.watch(of: parent) == nil else { return }
        polling.urgent.insert(parent)
    }

    /// Reports the first name that may be that of a companion of an unfinished file, whether or not it is hinted.
    func recordName(_ name: some BidirectionalCollection<UInt8>) {
        guard !hasCompanions, PartialFile.isCompanion(name) else { return }
        hasCompanions = true
        reports.append(.companions)
    }

    private func handle(_ event: InotifyEvent, in directory: DirectoryTree.ID) {
        var signs = event.signs
        // One write causes two events or more, and usually others follow.
        let slot = event.isDirectory ? nil : recent.slot(of: event.name, in: directory)
        if let slot, let known = recent.hint(at: slot, named: event.name, among: hints) {
            hints[known].signs.formUnion(signs)
            return
        }
        recordName(event.name)
        if lastPrefix?.directory != directory { lastPrefix = (directory, tree.path(of: directory).withSlash) }
        let path = PathBytes(lastPrefix?.bytes ?? [], event.name)
        if event.isDirectory {
            handleSubdirectory(event, in: directory, path)
            if event.has(IN_MOVED_FROM), scope.reaches(path) { signs.insert(.subtree) }
        }
        if !signs.isEmpty, scope.takes(path) || signs.contains(.subtree) {
            if let slot { recent.set(hints.count, at: slot) }
            hints.append(Hint(path: path, signs: signs, origin: .live))
        }
    }

    private func handleSubdirectory(_ event: InotifyEvent, in directory: DirectoryTree.ID, _ path: PathBytes) {
        guard let index = root(of: directory), isEntered(path, index) else { return }
        let child = tree.child(of: directory, named: event.name)
        if event.has(IN_DELETE | IN_MOVED_FROM) {
            // Its watches would report wrong paths, or none.
            if let child { lose(child) }
            // If two directories were exchanged, another one has the name already.
            do throws(SystemError) {
                _ = try open(path, in: index)
            } catch {
                if [ENOENT, ENOTDIR, ELOOP].contains(error.errno) { return }
            }
        } else if event.has(IN_CREATE | IN_MOVED_TO) {
            // A listing may have found it before; a directory that already has a watch has been or will be listed.
            if let child, let watch = tree.watch(of: child), watch == addWatch(at: path, in: index) { return }
            if let child { lose(child) }
        } else {
            guard event.has(IN_ATTRIB) else { return }
            if let child { return retry(child) }
        }
        listings.add(ListingQueue.Visit(directory: tree.enter(directory, named: event.name), origin: .live))
    }

    /// Adds a watch for the directory that is now at the path, and returns it.
    private func addWatch(at path: PathBytes, in index: Int) -> WatchDescriptor? {
        guard let reader = try? open(path, in: index) else { return nil }
        return kernel.inotify?.add(opened: reader.file, mask(for: path))
    }
}
