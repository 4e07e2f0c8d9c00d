import CAlightLinux
import FileEvents
import Glibc
import System

/// The state of a directory listing that is read in chunks.
struct Listing {
    var reader: DirectoryReader
    var folder: DirectoryTree.ID
    /// The directory's path with a slash at the end.
    var prefix: [UInt8]
    var origin: EventOrigin
    /// The root whose tree contains the directory.
    var root: Int
    /// Whether it belongs to the current tour.
    var isTour: Bool
    /// Whether only differences to the last poll are reported.
    var isComparison: Bool
    /// The signs of each hint from this listing.
    var signs: Hint.Signs
    /// The entries found, for comparison at the next poll; nil if the directory is not polled.
    var memory: PolledDirectory?
}

extension WatchLoop {
    /// Adds a watch to a directory, then starts to list it.
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
            isTour: isTour, isComparison: false, signs: signs, memory: isPolled ? PolledDirectory() : nil)
    }

    /// Registers the directory with the recorder, before its watch can report events.
    private func record(_ reader: DirectoryReader, at path: PathBytes, isRoot: Bool) {
        guard let recorder = scope.recorder else { return }
        let error = recorder.enter(reader.descriptor, at: path, device: reader.device, isRoot: isRoot)
        if error != 0 { reports.append(.authorsUntold(path, errno: error)) }
    }

    /// Lists the next chunk of the current directory.
    func advance() {
        guard var listing = current else { return }
        current = nil
        guard tree.contains(listing.folder) else {
            listing.reader.close()
            return
        }
        // Each entry of a polled directory costs a system call, so its chunks are smaller.
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

    private func take(_ entry: DirectoryReader.Entry, in listing: inout Listing, _ earlier: PolledDirectory?) {
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
        // Entries found in a new directory before it had a watch may also have been removed before that.
        let isNew =
            !tree.isRoot(folder) && !tree.flags(of: folder).contains(.listed)
            && listing.origin != .scan && listing.origin != .rescan
        if wasFailed || isNew {
            hints.append(Hint(path: tree.path(of: folder), signs: .subtree, origin: listing.origin))
        }
        tree.insert(.listed, of: folder)
        var memory = listing.memory
        memory?.seal()
        if listing.isComparison, let memory { tell(memory, since: polled[folder] ?? PolledDirectory(), listing) }
        for child in tree.unseen(below: folder) { lose(child) }
        if tree.flags(of: folder).isDisjoint(with: [.polled, .short]) {
            if !polled.isEmpty { polled[folder] = nil }
        } else {
            polled[folder] = memory
            scheduleFolder(folder, listing.root)
        }
    }

    /// Whether the directory at the path belongs to the root's tree.
    func isEntered(_ path: PathBytes, _ root: Int) -> Bool {
        guard scope.reaches(path) else { return false }
        guard roots.count > 1, let other = rootOfPath[path] else { return true }
        // It has its own tree, and need not be in two.
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

    private func isToBeWatched(_ folder: DirectoryTree.ID, _ index: Int) -> Bool {
        if !roots[index].wantsWatch { return false }
        return !tree.flags(of: folder).contains(.polled) || roots[index].wantsPoll && !isUntold(folder)
    }

    /// Returns the inotify mask for a directory in a tree.
    func mask(for path: PathBytes) -> InotifyMask {
        guard scope.mayTake(path) else { return .names }
        return [.names, .closeWrite, .modify, scope.isRaw ? .raw : []]
    }

    /// Opens a directory of a root's tree.
    func open(_ path: PathBytes, in index: Int, error: inout Int32) -> DirectoryReader? {
        DirectoryReader(path, below: roots[index].path, error: &error)
    }

    /// Adds a watch to the directory; returns 0 or the errno.
    ///
    /// When the limit of watches is reached, the directory is polled.
    func watch(_ folder: DirectoryTree.ID, _ path: PathBytes, _ reader: DirectoryReader) -> Int32 {
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
        // A watch that it already has belongs to another directory by now, or is of no use.
        if -watch == ENOSPC {
            if let freed = tree.setWatch(nil, of: folder) { release(freed) }
            tree.insert(.short, of: folder)
        }
        return -watch
    }

    // MARK: Failures

    /// Schedules a new listing of the directories that could not be listed, since they may be readable now.
    ///
    /// The directories are this one and those below it. A watched directory keeps its
    /// watch when the program loses access to it; directories created in it then fail
    /// for that reason.
    func retry(_ folder: DirectoryTree.ID, origin: EventOrigin = .live) {
        // A polled root is polled again in any case.
        if tree.isRoot(folder), tree.flags(of: folder).contains(.polled) { return }
        for failed in tree.failed(in: folder) { visits.append(Visit(folder: failed, origin: origin)) }
    }

    /// Handles a directory that can't be watched or listed now.
    private func refuse(_ visit: Visit, _ path: PathBytes, errno: Int32, isTour: Bool) {
        if [EMFILE, ENFILE, ENOMEM].contains(errno) { postpone(visit, isTour: isTour) }
        fail(visit.folder, path, errno: errno)
        if tree.contains(visit.folder), let index = rootOfFolder[tree.root(of: visit.folder)],
            !tree.flags(of: visit.folder).isDisjoint(with: [.polled, .short])
        {
            scheduleFolder(visit.folder, index)
        }
    }

    /// Reports, once, that a directory can't be read.
    func fail(_ folder: DirectoryTree.ID, _ path: PathBytes, errno: Int32) {
        let root = rootOfFolder[folder]
        // A root behind a symbolic link that is not followed exists, and would be found again at once.
        if errno == ENOENT || errno == ENOTDIR || errno == ELOOP && root == nil {
            // It has been removed since, which is not an error.
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
