import CAlightLinux
import FileEvents
import Glibc
import System

/// A folder that is being listed, piece by piece.
struct Listing {
    var reader: FolderReader
    var folder: FolderTree.ID
    /// The folder's path with a slash at the end.
    var prefix: [UInt8]
    var origin: EventOrigin
    /// The root whose tree the folder is in.
    var root: Int
    /// Whether it belongs to the present tour.
    var isTour: Bool
    /// Whether only what differs from the last look is told.
    var isComparison: Bool
    /// What each hint of it says.
    var signs: Hint.Signs
    /// What is there, to be compared at the next look, if there will be one.
    var memory: PolledFolder?
}

extension WatchLoop {
    /// Watches a folder, then begins to list it.
    func begin(_ visit: Visit, isTour: Bool) {
        let folder = visit.folder
        guard tree.contains(folder), let index = rootOfFolder[tree.root(of: folder)] else { return }
        let path = tree.path(of: folder)
        inheritPolling(folder, index)
        var error: Int32 = 0
        guard let reader = open(path, in: index, error: &error) else {
            refuse(visit, path, errno: error, isTour: isTour)
            return
        }
        decidePolling(folder, path, reader, index)
        record(reader, at: path, isRoot: tree.isRoot(folder))
        if isToBeWatched(folder, index) {
            error = watch(folder, path, reader)
            guard error == 0 || error == ENOSPC else {
                reader.close()
                refuse(visit, path, errno: error, isTour: isTour)
                return
            }
        }
        let isPolled = !tree.flags(of: folder).isDisjoint(with: [.polled, .short])
        var signs: Hint.Signs = visit.origin == .live || visit.origin == .poll ? [.listed, .appeared] : .listed
        if isPolled { signs.insert(.polled) }
        tree.markUnseen(below: folder)
        current = Listing(
            reader: reader, folder: folder, prefix: Self.prefix(path), origin: visit.origin, root: index,
            isTour: isTour, isComparison: false, signs: signs, memory: isPolled ? PolledFolder() : nil)
    }

    /// Has it recorded who does what in the folder, before the folder tells that something was done.
    private func record(_ reader: FolderReader, at path: PathBytes, isRoot: Bool) {
        guard let recorder = scope.recorder else { return }
        let error = recorder.enter(reader.descriptor, at: path, device: reader.device, isRoot: isRoot)
        if error != 0 { reports.append(.authorsUntold(path, errno: error)) }
    }

    /// Lists the next piece of the present folder.
    func advance() {
        guard var listing = current else { return }
        current = nil
        guard tree.contains(listing.folder) else {
            listing.reader.close()
            return
        }
        // Each entry of a polled folder costs a call, so that its pieces are smaller.
        let size = listing.memory == nil ? buffer.count : buffer.count / 8
        let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<size])
        let earlier = polled.isEmpty ? nil : polled[listing.folder]
        let result = listing.reader.next(into: piece) { take($0, in: &listing, earlier) }
        if result > 0 {
            current = listing
            return
        }
        listing.reader.close()
        if result < 0 {
            let visit = Visit(folder: listing.folder, origin: listing.origin)
            let path = tree.path(of: listing.folder)
            if listing.isComparison {
                fail(listing.folder, path, errno: Int32(-result))
                scheduleFolder(listing.folder, listing.root)
            } else {
                refuse(visit, path, errno: Int32(-result), isTour: listing.isTour)
            }
            return
        }
        finish(listing)
    }

    private func take(_ entry: FolderReader.Entry, in listing: inout Listing, _ earlier: PolledFolder?) {
        let path = Self.path(listing.prefix, entry.name)
        let isFolder = listing.reader.isFolder(entry)
        let isTaken = (scope.hintsFoundFolders || !isFolder || listing.origin != .scan) && scope.takes(path)
        let isEntered = isFolder && isEntered(path, listing.root)
        if listing.memory != nil, isTaken || isEntered {
            var status = cal_stat()
            switch listing.reader.look(at: entry, &status) {
            case 0: listing.memory?.add(entry.name, status)
            case ENOENT: return
            default: if let earlier { listing.memory?.add(entry.name, asIn: earlier) }
            }
        }
        if listing.isComparison {
            if isEntered, let child = tree.child(of: listing.folder, named: entry.name) {
                tree.insert(.seen, of: child)
            }
            return
        }
        if isTaken { hints.append(Hint(path: path, signs: listing.signs, origin: listing.origin)) }
        guard isEntered else { return }
        let visit = Visit(folder: tree.enter(listing.folder, named: entry.name), origin: listing.origin)
        if listing.isTour, !tours.isEmpty { tours[0].visits.append(visit) } else { visits.append(visit) }
    }

    private func finish(_ listing: Listing) {
        let folder = listing.folder
        let wasFailed = tree.flags(of: folder).contains(.failed)
        tree.remove(.failed, of: folder)
        // What was seen in a new folder before it had a watch may have gone before that, too.
        let isNew =
            !tree.isRoot(folder) && !tree.flags(of: folder).contains(.listed)
            && listing.origin != .scan && listing.origin != .rescan
        if wasFailed || isNew {
            hints.append(Hint(path: tree.path(of: folder), signs: .subtree, origin: listing.origin))
        }
        tree.insert(.listed, of: folder)
        var memory = listing.memory
        memory?.seal()
        if listing.isComparison, let memory { tell(memory, since: polled[folder] ?? PolledFolder(), listing) }
        for child in tree.unseen(below: folder) { lose(child) }
        if tree.flags(of: folder).isDisjoint(with: [.polled, .short]) {
            if !polled.isEmpty { polled[folder] = nil }
        } else {
            polled[folder] = memory
            scheduleFolder(folder, listing.root)
        }
    }

    /// Whether the folder at the path belongs to the root's tree.
    func isEntered(_ path: PathBytes, _ root: Int) -> Bool {
        guard scope.reaches(path) else { return false }
        guard roots.count > 1, let other = rootOfPath[path] else { return true }
        // It has a tree of its own, and need not be in two.
        return !roots[other].isWatchedAs(roots[root])
    }

    // MARK: Paths

    static func prefix(_ path: PathBytes) -> [UInt8] {
        path.bytes.last == .slash ? path.bytes : path.bytes + [.slash]
    }

    static func path(_ prefix: [UInt8], _ name: UnsafeRawBufferPointer) -> PathBytes {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(prefix.count + name.count)
        bytes.append(contentsOf: prefix)
        bytes.append(contentsOf: name)
        return PathBytes(bytes)
    }

    // MARK: Watches

    private func isToBeWatched(_ folder: FolderTree.ID, _ index: Int) -> Bool {
        if !roots[index].wantsWatch { return false }
        return !tree.flags(of: folder).contains(.polled) || roots[index].wantsPoll && !isUntold(folder)
    }

    /// What is asked of a folder in a tree.
    func mask(for path: PathBytes) -> InotifyMask {
        guard scope.mayTake(path) else { return .names }
        return [.names, .closeWrite, .modify, scope.isRaw ? .raw : []]
    }

    /// Opens a folder of a root's tree.
    func open(_ path: PathBytes, in index: Int, error: inout Int32) -> FolderReader? {
        FolderReader(path, below: roots[index].path, error: &error)
    }

    /// Gives the folder a watch; 0, or the errno.
    ///
    /// For want of watches it is polled.
    func watch(_ folder: FolderTree.ID, _ path: PathBytes, _ reader: FolderReader) -> Int32 {
        guard let inotify else {
            tree.insert(.short, of: folder)
            return ENOSPC
        }
        let watch = inotify.add(opened: reader.descriptor, mask(for: path))
        if watch >= 0 {
            if let freed = tree.setWatch(watch, of: folder) { release(freed) }
            tree.remove(.short, of: folder)
            reader.rewind()
            return 0
        }
        // A watch that it has already is another folder's by now, or of no more use than none.
        if -watch == ENOSPC {
            if let freed = tree.setWatch(nil, of: folder) { release(freed) }
            tree.insert(.short, of: folder)
        }
        return -watch
    }

    // MARK: Failures

    /// Has folders listed that could not be, since this one or one below it may be readable now.
    ///
    /// A folder that is watched already keeps its watch when it is closed to the
    /// program, and those that are made in it then fail for its sake.
    func retry(_ folder: FolderTree.ID, origin: EventOrigin = .live) {
        // A polled folder is looked at again in any case.
        if tree.isRoot(folder), tree.flags(of: folder).contains(.polled) { return }
        for failed in tree.failed(in: folder) { visits.append(Visit(folder: failed, origin: origin)) }
    }

    /// A folder can't be watched or listed now.
    private func refuse(_ visit: Visit, _ path: PathBytes, errno: Int32, isTour: Bool) {
        if [EMFILE, ENFILE, ENOMEM].contains(errno) { postpone(visit, isTour: isTour) }
        fail(visit.folder, path, errno: errno)
        if tree.contains(visit.folder), let index = rootOfFolder[tree.root(of: visit.folder)],
            !tree.flags(of: visit.folder).isDisjoint(with: [.polled, .short])
        {
            scheduleFolder(visit.folder, index)
        }
    }

    /// Tells that a folder can't be seen, once.
    func fail(_ folder: FolderTree.ID, _ path: PathBytes, errno: Int32) {
        let root = rootOfFolder[folder]
        // A root behind a link that is not followed is there, and would be found again at once.
        if errno == ENOENT || errno == ENOTDIR || errno == ELOOP && root == nil {
            // It has gone since, which is no failure.
            if let root {
                roots[root].isLost = true
                suspects.insert(root)
            } else {
                lose(folder)
            }
            return
        }
        guard !tree.flags(of: folder).contains(.failed) else { return }
        tree.insert(.failed, of: folder)
        reports.append(.failure(.refused(path, errno: errno)))
    }
}
