import CAlightLinux
import FileEvents
import Glibc

/// The state of the watcher's thread, and its loop.
///
/// Each turn drains the kernel's queue first and lists a few folders then, so
/// that the queue stays empty however large the tree is that is being listed.
struct WatchLoop: ~Copyable {
    /// A folder to be watched and listed.
    private struct Visit {
        var folder: PathBytes
        var origin: EventOrigin
    }

    private let scope: WatchScope
    private let queue: HintQueue
    private var inotify: InotifyDescriptor
    private var table = WatchTable()
    private var visits: [Visit] = []
    /// Visits for which the system had no descriptor or memory, to be made when it may have again.
    private var postponed: [Visit] = []
    private var postponedUntil = ContinuousClock.now
    /// The roots that do not exist, each with the folder that is watched for it.
    private var missing: [PathBytes: PathBytes] = [:]
    private var isReady = false
    private var isRescanning = false
    private var hasReportedLimit = false

    private var hints: [Hint] = []
    private var reports: [WatchReport] = []

    /// Nanoseconds until a visit that the system had no room for is tried again.
    private static let postponement: Int64 = 1_000_000_000
    /// How many folders are listed between two looks at the kernel's queue.
    private static let visitsPerTurn = 32

    init(scope: WatchScope, queue: HintQueue, inotify: consuming InotifyDescriptor) {
        self.scope = scope
        self.queue = queue
        self.inotify = inotify
    }

    mutating func run(_ control: Watcher.Control) {
        for root in scope.rootPaths { arm(root, origin: .scan, mayHaveChanged: false) }
        while !control.isStopped {
            var descriptors = [
                pollfd(fd: inotify.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: control.descriptor, events: Int16(POLLIN), revents: 0),
            ]
            let rest: Int64 = postponed.isEmpty ? -1 : Self.postponement
            _ = cal_poll(&descriptors, 2, visits.isEmpty && isReady ? rest : 0)
            if !postponed.isEmpty, ContinuousClock.now >= postponedUntil {
                visits += postponed
                postponed = []
            }
            if descriptors[1].revents != 0 {
                control.clear()
                if control.takeRescan() { rescan() }
            }
            if descriptors[0].revents != 0 { drain() }
            for _ in 0..<Self.visitsPerTurn {
                guard let next = visits.popLast() else { break }
                visit(next)
            }
            if visits.isEmpty { finishListing() }
            queue.add(hints, reports: reports)
            hints.removeAll(keepingCapacity: true)
            reports.removeAll()
        }
    }

    private mutating func finishListing() {
        if !isReady {
            isReady = true
            reports.append(.ready(folders: table.count))
        }
        if isRescanning {
            isRescanning = false
            reports.append(.rescanned)
        }
    }

    /// Lists all roots again, and every folder below them.
    private mutating func rescan() {
        isRescanning = true
        for root in scope.rootPaths { arm(root, origin: .rescan, mayHaveChanged: true) }
    }

    // MARK: Roots

    /// Watches a root, or the nearest folder above it when it does not exist.
    ///
    /// - Parameters:
    ///   - root: The folder that is wanted.
    ///   - origin: Why it is listed.
    ///   - mayHaveChanged: Whether all that is known below it is to be compared,
    ///     now that it is there. Never after an unmount: what is below the mount
    ///     point then is another folder, and nothing was deleted.
    private mutating func arm(_ root: PathBytes, origin: EventOrigin, mayHaveChanged: Bool) {
        let wasMissing = missing.removeValue(forKey: root)
        defer { if let wasMissing { release(wasMissing) } }
        var folder = root
        while true {
            let watch = inotify.add(folder, followingLink: true)
            if watch >= 0 {
                if folder == root {
                    note(folder, watch)
                    visits.append(Visit(folder: root, origin: origin))
                    if wasMissing != nil { reports.append(.rootAppeared(root)) }
                    if mayHaveChanged { hints.append(Hint(path: root, signs: .subtree, origin: origin)) }
                    return
                }
                // The next folder on the way may have come before the watch was there.
                note(folder, watch)
                if leads(folder, to: root) {
                    folder = root
                    continue
                }
                missing[root] = folder
                if wasMissing == nil { reports.append(.rootMissing(root, watching: folder)) }
                return
            }
            guard -watch == ENOENT || -watch == ENOTDIR, folder.bytes != [.slash] else {
                fail(folder, errno: -watch)
                return
            }
            if -watch == ENOTDIR, folder == root {
                reports.append(.failure(.notFolder(root)))
            }
            folder = folder.parent
        }
    }

    /// Whether the folder's entry on the way to the root is a folder by now.
    private func leads(_ folder: PathBytes, to root: PathBytes) -> Bool {
        guard let rest = root.relative(to: folder), let name = rest.split(separator: .slash).first else { return false }
        var status = stat()
        let result = folder.appending(name).withCString { stat($0, &status) }
        return result == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Drops the watch of a folder that was only waited in, unless something else needs it.
    private mutating func release(_ folder: PathBytes) {
        if missing.values.contains(folder) || isWanted(folder) { return }
        if let freed = table.forget(folder) { inotify.remove(freed) }
    }

    /// Whether the folder belongs to a watched tree.
    private func isWanted(_ folder: PathBytes) -> Bool {
        scope.rootPaths.contains { folder.isInside($0) } && scope.reaches(folder)
    }

    // MARK: Folders

    private mutating func note(_ folder: PathBytes, _ watch: WatchDescriptor) {
        if let freed = table.set(folder, to: watch) { inotify.remove(freed) }
    }

    private mutating func fail(_ folder: PathBytes, errno: Int32) {
        // A folder that has gone since is no failure: its own event tells.
        if errno == ENOENT || errno == ENOTDIR || errno == ELOOP { return }
        if errno == ENOSPC {
            if hasReportedLimit { return }
            hasReportedLimit = true
            reports.append(.failure(.watchLimit(folder, used: table.count, .watches)))
            return
        }
        reports.append(.failure(.refused(folder, errno: errno)))
    }

    /// Watches a folder, then lists it.
    private mutating func visit(_ visit: Visit) {
        let isRoot = scope.rootPaths.contains(visit.folder)
        let watch = inotify.add(visit.folder, followingLink: isRoot)
        if watch >= 0 {
            note(visit.folder, watch)
        } else {
            fail(visit.folder, errno: -watch)
        }
        let isListed = visit.origin != .live
        var found: [Hint] = []
        var folders: [PathBytes] = []
        let error = FolderListing.read(visit.folder, followingLink: isRoot) { entry in
            let path = visit.folder.appending(entry.name)
            if scope.takes(path) {
                found.append(Hint(path: path, signs: isListed ? .listed : [.listed, .appeared], origin: visit.origin))
            }
            if entry.isFolder, scope.reaches(path) { folders.append(path) }
        }
        hints += found
        visits += folders.map { Visit(folder: $0, origin: visit.origin) }
        if [EMFILE, ENFILE, ENOMEM].contains(error) || [ENOMEM].contains(-watch) {
            postponed.append(visit)
            postponedUntil = .now + .nanoseconds(Self.postponement)
        }
        // The refused watch has been told already; a folder that is only unreadable can be watched.
        if error != 0, watch >= 0 { fail(visit.folder, errno: error) }
    }

    // MARK: Events

    private mutating func drain() {
        // Bounded, so that a writer that never rests can't keep folders from being listed.
        for _ in 0..<16 {
            var events: [InotifyEvent] = []
            guard inotify.read({ events.append($0) }) else { return }
            for event in events { handle(event) }
        }
    }

    private mutating func handle(_ event: InotifyEvent) {
        if event.has(IN_Q_OVERFLOW) {
            reports.append(.overflow)
            rescan()
            return
        }
        if event.has(IN_IGNORED) {
            for folder in table.forget(descriptor: event.descriptor) { lost(folder, mayHaveChanged: true) }
            return
        }
        if event.name.isEmpty {
            let isUnmounted = event.has(IN_UNMOUNT)
            guard event.has(IN_MOVE_SELF) || isUnmounted else { return }
            for folder in table.paths(of: event.descriptor) where isRootOrWaiting(folder) {
                for freed in table.forget(below: folder) { inotify.remove(freed) }
                lost(folder, mayHaveChanged: !isUnmounted)
            }
            return
        }
        for folder in table.paths(of: event.descriptor) {
            handle(event, at: folder.appending(event.name))
        }
    }

    private mutating func handle(_ event: InotifyEvent, at path: PathBytes) {
        let appeared = event.has(IN_CREATE) || event.has(IN_MOVED_TO)
        if appeared, !missing.isEmpty {
            for root in missing.keys.filter({ $0.isInside(path) }) { arm(root, origin: .live, mayHaveChanged: true) }
        }
        if event.isFolder {
            if event.has(IN_MOVED_FROM) || event.has(IN_DELETE) { forget(path, isMoved: event.has(IN_MOVED_FROM)) }
            // A folder whose mode changed may have become readable.
            if appeared || event.has(IN_ATTRIB), scope.reaches(path),
                scope.rootPaths.contains(where: { path.isInside($0) })
            {
                let isKnown = !appeared && table.descriptor(of: path) != nil
                visits.append(Visit(folder: path, origin: isKnown ? .rescan : .live))
            }
        }
        guard scope.takes(path) else { return }
        var signs: Hint.Signs = []
        if appeared { signs.insert(.appeared) }
        if event.has(IN_MODIFY) { signs.insert(.written) }
        if event.has(IN_CLOSE_WRITE) { signs.insert(.closed) }
        if event.has(IN_ATTRIB) { signs.insert(.attributes) }
        if event.has(IN_DELETE) || event.has(IN_MOVED_FROM) { signs.insert(.vanished) }
        hints.append(Hint(path: path, signs: signs, origin: .live))
    }

    /// A folder below a watched one is gone or has another name: its watches would tell wrong paths.
    private mutating func forget(_ folder: PathBytes, isMoved: Bool) {
        visits.removeAll { $0.folder.isInside(folder) }
        if isMoved {
            for freed in table.forget(below: folder) { inotify.remove(freed) }
            hints.append(Hint(path: folder, signs: [.vanished, .subtree], origin: .live))
        }
    }

    private func isRootOrWaiting(_ folder: PathBytes) -> Bool {
        scope.rootPaths.contains(folder) || missing.values.contains(folder)
    }

    /// The watch of a folder is gone; a root is looked for again.
    ///
    /// Nothing is told of what was in it: a folder that can't be seen is not
    /// empty. What is missing is found by the comparison when it is back.
    private mutating func lost(_ folder: PathBytes, mayHaveChanged: Bool) {
        for (root, place) in missing where place == folder { arm(root, origin: .live, mayHaveChanged: mayHaveChanged) }
        if scope.rootPaths.contains(folder), missing[folder] == nil {
            arm(folder, origin: .live, mayHaveChanged: mayHaveChanged)
        }
    }
}
