import FileEvents
import Glibc
import System

extension WatchLoop {
    // MARK: Polled directories

    /// Marks a directory as polled if the rule asks for it, or if its parent is polled.
    func inheritPolling(_ folder: DirectoryTree.ID, _ index: Int) {
        let isPolled = tree.parent(of: folder).map { tree.flags(of: $0).contains(.polled) } ?? false
        if isPolled || roots[index].wantsPoll { tree.insert(.polled, of: folder) }
    }

    /// Decides by the file system type as well, at a root and at the top of another file system.
    func decidePolling(_ folder: DirectoryTree.ID, _ path: PathBytes, _ reader: DirectoryReader, _ index: Int) {
        let device = devices.number(of: reader.device)
        tree.setDevice(device, of: folder)
        if let parent = tree.parent(of: folder), tree.device(of: parent) == device, device != 0 { return }
        if roots[index].isWatchForced { return }
        if roots[index].wantsPoll {
            // One rule polls, and another wants it watched where the kernel reports every change.
            if roots[index].wantsWatch { _ = devices.untold(device, reader) }
            return
        }
        guard let name = devices.untold(device, reader) else {
            tree.remove(.polled, of: folder)
            return
        }
        tree.insert(.polled, of: folder)
        if toldPolling.insert(path).inserted {
            reports.append(.polling(path, .fileSystem(name), every: roots[index].interval))
        }
    }

    /// Whether the kernel does not report every change on the file system of the directory.
    func isUntold(_ folder: DirectoryTree.ID) -> Bool {
        guard let index = rootOfFolder[tree.root(of: folder)], !roots[index].isWatchForced else { return false }
        return devices.isUntold(tree.device(of: folder))
    }

    func scheduleFolder(_ folder: DirectoryTree.ID, _ index: Int) {
        guard !tree.flags(of: folder).contains(.scheduled) else { return }
        tree.insert(.scheduled, of: folder)
        schedule.add(.folder(folder), every: roots[index].interval, after: .now)
    }

    // MARK: Polling

    func poll(_ subject: PollSchedule.Subject) {
        switch subject {
        case .paths(let paths, let turns, let interval) where turns > 1:
            schedule.add(.paths(paths, after: turns - 1, every: interval), every: interval, after: .now)
        case .paths(let paths, _, _):
            hints += paths.map { Hint(path: $0, signs: .polled, origin: .poll) }
        case .root(let index):
            roots[index].isScheduled = false
            if inotify == nil { openInotify() }
            check(index, because: .event)
        case .folder(let folder):
            if tree.contains(folder) { tree.remove(.scheduled, of: folder) }
            poll(folder)
        }
    }

    func poll(_ folder: DirectoryTree.ID) {
        guard tree.contains(folder), let index = rootOfFolder[tree.root(of: folder)] else { return }
        guard !tree.flags(of: folder).isDisjoint(with: [.polled, .short]) else { return }
        if tree.isRoot(folder) {
            check(index, because: .event)
            guard tree.contains(folder) else { return }
        }
        let path = tree.path(of: folder)
        var error: Int32 = 0
        guard let reader = open(path, in: index, error: &error) else {
            fail(folder, path, errno: error)
            if tree.contains(folder) { scheduleFolder(folder, index) }
            return
        }
        if tree.flags(of: folder).contains(.short) {
            // A watch may be free now. This one poll finds the changes before the watch was added.
            if inotify == nil { openInotify() }
            _ = watch(folder, path, reader)
        }
        tree.markUnseen(below: folder)
        current = Listing(
            reader: reader, folder: folder, prefix: Self.prefix(path), origin: .poll, root: index, isTour: false,
            isComparison: true, signs: [], memory: PolledDirectory())
    }

    /// Hints paths again after the directories that contain them have been polled.
    ///
    /// A directory that is being polled now joins its queue behind them, so they
    /// wait for a second turn.
    func doubt(_ paths: [PathBytes]) {
        let doubted = Dictionary(grouping: paths) { path in
            roots.filter { path.isInside($0.path) }.map(\.interval).max()
        }
        for case (let interval?, let paths) in doubted {
            schedule.add(.paths(paths, after: 2, every: interval), every: interval, after: .now)
        }
    }

    /// Adds hints for the differences to the last poll.
    func tell(_ memory: PolledDirectory, since earlier: PolledDirectory, _ listing: Listing) {
        memory.changes(since: earlier) { name, isFolder, change in
            let path = Self.path(listing.prefix, name)
            var signs: Hint.Signs = .polled
            var isGone = false
            switch change {
            case .appeared: signs.formUnion([.appeared, .listed])
            case .vanished:
                signs.insert(.vanished)
                isGone = isFolder
            case .replaced(let wasFolder):
                signs.formUnion([.vanished, .appeared, .listed, .written])
                isGone = wasFolder
            case .written: signs.insert(.written)
            case .attributes: signs.insert(.attributes)
            }
            let child = tree.child(of: listing.folder, named: name)
            if isGone {
                if let child { forget(child) }
                if scope.reaches(path) { signs.insert(.subtree) }
            }
            if isFolder, signs.contains(.appeared), isEntered(path, listing.root) {
                visits.append(Visit(folder: tree.enter(listing.folder, named: name), origin: .poll))
            } else if change == .attributes, let child {
                retry(child, origin: .poll)
            }
            if scope.takes(path) || signs.contains(.subtree) {
                hints.append(Hint(path: path, signs: signs, origin: .poll))
            }
        }
    }
}
