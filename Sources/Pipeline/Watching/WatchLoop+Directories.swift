import CAlightLinux
import FileEvents
import Glibc
import System

// Directories in the trees: watching, listing and polling them.
extension WatchLoop {
    // MARK: Listing

    /// Adds a watch to a directory, then starts to list it.
    func start(_ visit: ListingQueue.Visit) {
        let directory = visit.directory
        guard let index = root(of: directory) else { return }
        let path = tree.path(of: directory)
        inheritPolling(directory, index)
        do throws(SystemError) {
            let reader = try open(path, in: index)
            decidePolling(directory, path, reader, index)
            record(reader, at: path, isRoot: tree.isRoot(directory))
            if isToBeWatched(directory, index) { try watch(directory, path, reader) }
            let isPolled = tree.isPolled(directory)
            var signs: Hint.Signs = visit.origin == .live || visit.origin == .poll ? [.listed, .appeared] : .listed
            if isPolled { signs.insert(.polled) }
            tree.markUnseen(below: directory)
            listings.current = ListingQueue.Listing(
                reader: reader, visit: visit, prefix: path.withSlash, root: index, signs: signs,
                contents: isPolled ? PolledDirectory() : nil)
        } catch {
            refuse(visit, path, errno: error.errno)
        }
    }

    /// Registers the directory with the recorder, before its watch can report events.
    private func record(_ reader: DirectoryReader, at path: PathBytes, isRoot: Bool) {
        let error = scope.recorder?.recording.enter(reader, at: path, isRoot: isRoot)
        if let error, error != 0 { reports.append(.writersUnreported(path, errno: error)) }
    }

    /// Lists the next chunk of the current directory.
    func advance() {
        guard var listing = listings.current else { return }
        listings.current = nil
        let directory = listing.visit.directory
        guard tree.contains(directory) else { return }
        // Each entry of a polled directory costs a system call, so its chunks are smaller.
        let size = listing.contents == nil ? buffer.count : buffer.count / 8
        let chunk = UnsafeMutableRawBufferPointer(rebasing: buffer[..<size])
        let earlier = polling.contents.isEmpty ? nil : polling.contents[directory]
        let result = listing.reader.next(into: chunk) { add($0, to: &listing, earlier) }
        if result > 0 {
            listings.current = listing
        } else if result == 0 {
            finish(listing)
        } else if listing.isComparison {
            fail(directory, tree.path(of: directory), errno: Int32(-result))
            scheduleDirectory(directory, listing.root)
        } else {
            refuse(listing.visit, tree.path(of: directory), errno: Int32(-result))
        }
    }

    private func add(
        _ entry: DirectoryReader.Entry, to listing: inout ListingQueue.Listing, _ earlier: PolledDirectory?
    ) {
        recordName(entry.name)
        let path = PathBytes(listing.prefix, entry.name)
        let (directory, origin) = (listing.visit.directory, listing.visit.origin)
        let isDirectory = listing.reader.isDirectory(entry)
        let isHinted = (scope.hintsFoundDirectories || !isDirectory || origin != .scan) && scope.takes(path)
        let isEntered = isDirectory && isEntered(path, listing.root)
        if listing.contents != nil, isHinted || isEntered {
            switch listing.reader.stat(entry) {
            case .present(let file): listing.contents?.add(entry.name, file)
            case .absent: return
            case .unreadable: if let earlier { listing.contents?.add(entry.name, asIn: earlier) }
            }
        }
        if listing.isComparison {
            if isEntered, let child = tree.child(of: directory, named: entry.name) { tree.insert(.seen, of: child) }
            return
        }
        if isHinted {
            var hint = Hint(path: path, signs: listing.signs, origin: origin)
            if origin == .scan, listing.contents == nil, let readsExtended = scope.readsExtended {
                hint.found = found(entry, in: listing, readingExtended: readsExtended)
            }
            hints.append(hint)
        }
        guard isEntered else { return }
        listings.add(
            ListingQueue.Visit(
                directory: tree.enter(directory, named: entry.name), origin: origin, isScan: listing.visit.isScan))
    }

    /// Inspects an entry of a watched directory: a later change is hinted.
    private func found(
        _ entry: DirectoryReader.Entry, in listing: ListingQueue.Listing, readingExtended: Bool
    ) -> FoundFile? {
        guard let snapshot = listing.reader.stat(entry, readingExtended: readingExtended).snapshot else { return nil }
        let writers = snapshot.isRecent(asOf: DiskProbe.now()) ? listing.reader.writers(of: entry) : nil
        return FoundFile(snapshot, below: roots[listing.root].path, writers: writers)
    }

    private func finish(_ listing: ListingQueue.Listing) {
        let (directory, origin) = (listing.visit.directory, listing.visit.origin)
        let flags = tree.flags(of: directory)
        tree.remove(.failed, of: directory)
        // Entries found in a new directory before it had a watch may also have been removed before that.
        let isNew = !tree.isRoot(directory) && !flags.contains(.listed) && origin != .scan && origin != .rescan
        if flags.contains(.failed) || isNew {
            hints.append(Hint(path: tree.path(of: directory), signs: .subtree, origin: origin))
        }
        tree.insert(.listed, of: directory)
        var contents = listing.contents
        contents?.seal()
        if listing.isComparison, let contents {
            hintChanges(to: contents, since: polling.contents[directory] ?? PolledDirectory(), listing)
        }
        for child in tree.unseen(below: directory) { lose(child) }
        if tree.isPolled(directory) {
            polling.contents[directory] = contents
            scheduleDirectory(directory, listing.root)
        } else if !polling.contents.isEmpty {
            polling.contents[directory] = nil
        }
    }

    /// Returns the root whose tree contains the directory; nil if it has been removed.
    func root(of directory: DirectoryTree.ID) -> Int? {
        tree.contains(directory) ? roots.index(ofTop: tree.root(of: directory)) : nil
    }

    /// Whether the directory at the path belongs to the root's tree.
    func isEntered(_ path: PathBytes, _ root: Int) -> Bool {
        guard scope.reaches(path) else { return false }
        guard roots.count > 1, let other = roots.index(of: path) else { return true }
        // It has its own tree, and need not be in two.
        return !roots[other].isWatchedAs(roots[root])
    }

    // MARK: Watches

    private func isToBeWatched(_ directory: DirectoryTree.ID, _ index: Int) -> Bool {
        let root = roots[index]
        guard root.wantsWatch else { return false }
        if !tree.flags(of: directory).contains(.polled) { return true }
        // The rule that polls is another one; the file system decides whether the kernel reports every change.
        return root.wantsPoll && (root.isWatchForced || !polling.devices.isUnreliable(tree.device(of: directory)))
    }

    /// Returns the inotify mask for a directory in a tree.
    func mask(for path: PathBytes) -> Int32 {
        guard scope.canMatch(path) else { return WatchMask.names }
        return WatchMask.names | IN_CLOSE_WRITE | IN_MODIFY | (scope.isRaw ? WatchMask.raw : 0)
    }

    /// Opens a directory of a root's tree; the root stays open until ``closeDirectories()``.
    func open(_ path: PathBytes, in index: Int) throws(SystemError) -> DirectoryReader {
        let root = roots[index].path
        if openedRoot?.path != root { openedRoot = (root, try KernelFileSystem().open(root: root)) }
        return try DirectoryReader(path, below: root, opened: openedRoot?.directory)
    }

    /// Closes what prevents a file system from being unmounted, except for the directory that is being listed.
    func closeDirectories() {
        openedRoot = nil
        cal_leave_working_directory()
    }

    /// Adds a watch to the directory, which is polled when the limit of watches is reached.
    private func watch(_ directory: DirectoryTree.ID, _ path: PathBytes, _ reader: DirectoryReader) throws(SystemError)
    {
        let watch = kernel.inotify?.add(opened: reader.file, mask(for: path)) ?? -ENOSPC
        if watch >= 0 {
            setWatch(watch, of: directory)
            tree.remove(.short, of: directory)
            reader.rewind()
        } else if watch == -ENOSPC {
            // A watch that it already has belongs to another directory by now, or is of no use.
            setWatch(nil, of: directory)
            tree.insert(.short, of: directory)
        } else {
            throw SystemError(errno: -watch)
        }
    }

    // MARK: Failures

    /// Schedules a new listing of the directories that could not be listed, since they may be readable now.
    ///
    /// The directories are this one and those below it. A watched directory keeps its
    /// watch when the program loses access to it; directories created in it then fail
    /// for that reason.
    func retry(_ directory: DirectoryTree.ID, origin: EventOrigin = .live) {
        // A polled root is polled again in any case.
        if tree.isRoot(directory), tree.flags(of: directory).contains(.polled) { return }
        for failed in tree.failed(in: directory) { listings.add(ListingQueue.Visit(directory: failed, origin: origin)) }
    }

    /// Handles a directory that can't be watched or listed now.
    private func refuse(_ visit: ListingQueue.Visit, _ path: PathBytes, errno: Int32) {
        let directory = visit.directory
        if [EMFILE, ENFILE, ENOMEM].contains(errno) { listings.postpone(visit) }
        fail(directory, path, errno: errno)
        if let index = root(of: directory), tree.isPolled(directory) { scheduleDirectory(directory, index) }
    }

    /// Reports, once, that a directory can't be read.
    private func fail(_ directory: DirectoryTree.ID, _ path: PathBytes, errno: Int32) {
        let root = roots.index(ofTop: directory)
        // A root behind a symbolic link that is not followed exists, and would be found again at once.
        if errno == ENOENT || errno == ENOTDIR || errno == ELOOP && root == nil {
            // It has been removed since, which is not an error.
            if let root {
                roots[root].isLost = true
                roots.suspects.insert(root)
            } else {
                lose(directory)
            }
            return
        }
        guard !tree.flags(of: directory).contains(.failed) else { return }
        tree.insert(.failed, of: directory)
        reports.append(.failure(.refused(path, errno: errno)))
    }

    // MARK: Polling

    /// Marks a directory as polled if the rule asks for it, or if its parent is polled.
    private func inheritPolling(_ directory: DirectoryTree.ID, _ index: Int) {
        let isInherited = tree.parent(of: directory).map { tree.flags(of: $0).contains(.polled) } ?? false
        if isInherited || roots[index].wantsPoll { tree.insert(.polled, of: directory) }
    }

    /// Decides by the file system type as well, at a root and at the top of another file system.
    private func decidePolling(
        _ directory: DirectoryTree.ID, _ path: PathBytes, _ reader: DirectoryReader, _ index: Int
    ) {
        let device = polling.devices.number(of: reader.device)
        tree.setDevice(device, of: directory)
        if let parent = tree.parent(of: directory), tree.device(of: parent) == device, device != 0 { return }
        if roots[index].isWatchForced { return }
        if roots[index].wantsPoll {
            // One rule polls, and another wants it watched where the kernel reports every change.
            if roots[index].wantsWatch { _ = polling.devices.unreliable(device, reader) }
            return
        }
        guard let name = polling.devices.unreliable(device, reader) else {
            tree.remove(.polled, of: directory)
            return
        }
        tree.insert(.polled, of: directory)
        if polling.reported.insert(path).inserted {
            reports.append(.polling(path, .fileSystem(name), every: roots[index].interval))
        }
    }

    private func scheduleDirectory(_ directory: DirectoryTree.ID, _ index: Int) {
        guard !tree.flags(of: directory).contains(.scheduled) else { return }
        tree.insert(.scheduled, of: directory)
        polling.schedule.add(.directory(directory), every: roots[index].interval, after: .now)
    }

    func poll(_ subject: PollSchedule.Subject) {
        switch subject {
        case .paths(let doubt, let turns, let interval) where turns > 1:
            polling.schedule.add(.paths(doubt, after: turns - 1, every: interval), every: interval, after: .now)
        case .paths(let doubt, _, _): hints += doubt.hints
        case .root(let index):
            roots[index].isScheduled = false
            if kernel.inotify == nil { openInotify() }
            check(index, because: .event)
        case .directory(let directory):
            if tree.contains(directory) { tree.remove(.scheduled, of: directory) }
            poll(directory)
        }
    }

    func poll(_ directory: DirectoryTree.ID) {
        guard let index = root(of: directory), tree.isPolled(directory) else { return }
        if tree.isRoot(directory) {
            check(index, because: .event)
            guard tree.contains(directory) else { return }
        }
        let path = tree.path(of: directory)
        let reader: DirectoryReader
        do throws(SystemError) {
            reader = try open(path, in: index)
        } catch {
            fail(directory, path, errno: error.errno)
            if tree.contains(directory) { scheduleDirectory(directory, index) }
            return
        }
        if tree.flags(of: directory).contains(.short) {
            // A watch may be free now. This one poll finds the changes before the watch was added.
            if kernel.inotify == nil { openInotify() }
            try? watch(directory, path, reader)
        }
        tree.markUnseen(below: directory)
        listings.current = ListingQueue.Listing(
            reader: reader, visit: ListingQueue.Visit(directory: directory, origin: .poll), prefix: path.withSlash,
            root: index, isComparison: true, contents: PolledDirectory())
    }

    /// Hints paths again after the directories that contain them have been polled.
    ///
    /// A directory that is being polled now joins its queue behind them, so they
    /// wait for a second turn.
    func hintAgain(_ doubt: DoubtedPaths) {
        let byInterval = Dictionary(grouping: doubt.paths) { roots.longestInterval(holding: $0) }
        for case (let interval?, let paths) in byInterval {
            let part = DoubtedPaths(paths, request: doubt.request)
            polling.schedule.add(.paths(part, after: 2, every: interval), every: interval, after: .now)
        }
    }

    /// Adds hints for the differences to the last poll.
    private func hintChanges(
        to contents: PolledDirectory, since earlier: PolledDirectory, _ listing: ListingQueue.Listing
    ) {
        contents.changes(since: earlier) { name, isDirectory, change in
            let path = PathBytes(listing.prefix, name)
            var signs: Hint.Signs = .polled
            var isGone = false
            switch change {
            case .appeared: signs.formUnion([.appeared, .listed])
            case .vanished:
                signs.insert(.vanished)
                isGone = isDirectory
            case .replaced(let wasDirectory):
                signs.formUnion([.vanished, .appeared, .listed, .written])
                isGone = wasDirectory
            case .written: signs.insert(.written)
            case .attributes: signs.insert(.attributes)
            }
            let child = tree.child(of: listing.visit.directory, named: name)
            if isGone {
                if let child { forget(child) }
                if scope.reaches(path) { signs.insert(.subtree) }
            }
            if isDirectory, signs.contains(.appeared), isEntered(path, listing.root) {
                listings.add(
                    ListingQueue.Visit(directory: tree.enter(listing.visit.directory, named: name), origin: .poll))
            } else if change == .attributes, let child {
                retry(child, origin: .poll)
            }
            if scope.takes(path) || signs.contains(.subtree) {
                hints.append(Hint(path: path, signs: signs, origin: .poll))
            }
        }
    }
}

extension PathBytes {
    /// The bytes of a directory's path with a slash at the end.
    var withSlash: [UInt8] { bytes.last == .slash ? bytes : bytes + [.slash] }

    /// Creates the path of a name in a directory, given with a slash at the end.
    init(_ prefix: [UInt8], _ name: UnsafeRawBufferPointer) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(prefix.count + name.count)
        bytes.append(contentsOf: prefix)
        bytes.append(contentsOf: name)
        self.init(bytes)
    }
}
