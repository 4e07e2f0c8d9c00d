import CAlightLinux
import FileEvents
import Glibc
import System

extension WatchLoop {
    enum Cause: Equatable {
        case start, rescan
        /// Something happened in a directory above the root.
        case event
        /// A file system was mounted at the root or above it.
        case mounted
        /// The file system with this mount point, at the root or above it, was unmounted.
        case unmounted(PathBytes)
    }

    /// The active roots, inner ones first: when an outer root has been listed, so has everything in it.
    var rootOrder: [Int] { innerFirst(roots.indices.filter { !retired.contains($0) }) }

    func innerFirst(_ indices: some Sequence<Int>) -> [Int] {
        indices.sorted { roots[$0].path.bytes.count > roots[$1].path.bytes.count }
    }

    func makeRoots() {
        for root in RootState.wanted(by: scope) {
            roots.append(root)
            rootOfPath[root.path] = roots.count - 1
            tellAsked(root)
        }
    }

    /// Reports, once, that a root is polled because a rule asks for it.
    func tellAsked(_ root: RootState) {
        guard root.wantsPoll, toldPolling.insert(root.path).inserted else { return }
        reports.append(.polling(root.path, .asked, every: root.interval))
    }

    func checkSuspects() {
        guard !suspects.isEmpty else { return }
        let checked = suspects
        suspects = []
        for root in innerFirst(checked) { check(root, because: .event) }
    }

    /// Checks whether the root exists and is the same directory, and updates its state.
    ///
    /// Roots are compared by identity, not by existence: a root that was moved away and
    /// created again immediately is a different one. After an unmount nothing is
    /// compared, since the path is then a different directory below the mount point, and
    /// nothing was deleted.
    func check(_ index: Int, because cause: Cause) {
        guard !retired.contains(index) else { return }
        let way = walk(to: roots[index].path)
        for watch in ways.set(way, of: index) { release(watch) }
        if !way.isReliable { scheduleRoot(index) }
        let root = roots[index]
        switch way.end {
        case .folder(let identity, let physical):
            let isSame = root.presence == .present && !root.isLost && holds(root, identity)
            if isSame, cause != .start, cause != .rescan {
                roots[index].physical = physical
                if let folder = root.folder { retry(folder) }
                return
            }
            if !isSame { replace(index, by: (identity, physical), because: cause) }
            guard let folder = roots[index].folder else { return }
            let origin: EventOrigin = cause == .start ? .scan : isSame ? .rescan : .live
            switch cause {
            case .start, .unmounted: break
            default: hints.append(Hint(path: root.path, signs: .subtree, origin: origin))
            }
            tours.append(Scan(root: index, origin: origin, visits: [Visit(folder: folder, origin: origin)]))
        case .missing(let nearest, let isOther):
            guard root.presence != .missing else { return }
            if case .unmounted(let point) = cause, root.presence == .present {
                reports.append(.unmounted(root.path, point: point))
            }
            drop(index)
            roots[index].presence = .missing
            if isOther { reports.append(.failure(.notFolder(root.path))) }
            reports.append(.rootMissing(root.path, watching: nearest))
        case .denied(let errno):
            // A root that can't be read is not missing.
            guard root.presence != .denied, root.presence != .present || !root.isLost else { return }
            if root.presence != .present { roots[index].presence = .denied }
            reports.append(.failure(.refused(root.path, errno: errno)))
        }
    }

    /// Whether a present root is the directory with this identity.
    ///
    /// On overlayfs, the first change to a directory of a lower layer changes its birth time. While the directory is
    /// watched, no other directory has its inode.
    private func holds(_ root: RootState, _ identity: FileIdentity) -> Bool {
        let isWatched = root.folder.flatMap { tree.watch(of: $0) } != nil
        return root.identity == identity || isWatched && root.identity?.withoutBirth == identity.withoutBirth
    }

    private func replace(_ index: Int, by found: (FileIdentity, PathBytes), because cause: Cause) {
        let root = roots[index]
        switch (root.presence, cause) {
        case (.present, .mounted): reports.append(.mounted(root.path))
        case (.present, .unmounted(let point)): reports.append(.unmounted(root.path, point: point))
        case (.present, _):
            reports.append(.rootMissing(root.path, watching: found.1.parent))
            reports.append(.rootAppeared(root.path))
        case (.missing, _), (.denied, _): reports.append(.rootAppeared(root.path))
        case (.unknown, _): break
        }
        drop(index)
        let folder = tree.addRoot(root.path)
        rootOfFolder[folder] = index
        roots[index].folder = folder
        roots[index].presence = .present
        (roots[index].identity, roots[index].physical) = found
    }

    /// Forgets the tree of a root.
    func drop(_ index: Int) {
        roots[index].isLost = false
        roots[index].identity = nil
        roots[index].physical = nil
        guard let folder = roots[index].folder else { return }
        roots[index].folder = nil
        rootOfFolder[folder] = nil
        forget(folder)
    }

    private func scheduleRoot(_ index: Int) {
        guard !roots[index].isScheduled else { return }
        roots[index].isScheduled = true
        schedule.add(.root(index), every: roots[index].interval, after: .now)
    }

    // MARK: Directories above a root

    /// Resolves the path from `/` on, and watches each directory before it accesses the next one.
    private func walk(to path: PathBytes) -> AncestorWatch {
        for _ in 0..<8 {
            var way = AncestorWatch()
            if follow(path, &way) { return way }
        }
        // A process keeps moving directories; the root is checked again later.
        var way = AncestorWatch()
        way.end = .missing(nearest: "/", isOther: false)
        way.isReliable = false
        return way
    }

    /// Resolves the path once; returns false when a directory vanished meanwhile.
    private func follow(_ path: PathBytes, _ way: inout AncestorWatch) -> Bool {
        var folder = PathBytes("/")
        var rest = Array(path.bytes.split(separator: .slash).reversed())
        var links = 0
        while let name = rest.popLast() {
            if name.elementsEqual([.dot]) { continue }
            if name.elementsEqual([.dot, .dot]) {
                folder = folder.parent
                continue
            }
            let next = folder.appending(name)
            var error: Int32 = 0
            var isTold = step(&way, into: folder, name: rest.isEmpty ? name : nil, error: &error)
            if error == ENOENT || error == ENOTDIR || error == ELOOP { return false }
            var status = cal_stat()
            var result = next.withCString { cal_stat_path($0, &status) }
            var kind = result == 0 ? status.mode & UInt32(S_IFMT) : 0
            if kind != UInt32(S_IFDIR) {
                // It may have changed before the name was watched.
                if !rest.isEmpty { isTold = step(&way, into: folder, name: name, error: &error) }
                result = next.withCString { cal_stat_path($0, &status) }
                kind = result == 0 ? status.mode & UInt32(S_IFMT) : 0
                if !isTold || FileSystemType.untold(at: folder) != nil { way.isReliable = false }
            }
            switch (result, kind) {
            case (0, UInt32(S_IFDIR)): folder = next
            case (0, UInt32(S_IFLNK)):
                links += 1
                guard links <= 40, let target = Self.target(of: next) else {
                    way.end = .missing(nearest: folder, isOther: rest.isEmpty)
                    return true
                }
                if target.first == .slash { folder = "/" }
                rest += target.split(separator: .slash).reversed()
            case (0, _):
                way.end = .missing(nearest: folder, isOther: rest.isEmpty)
                return true
            case (ENOENT, _), (ENOTDIR, _), (ENAMETOOLONG, _):
                way.end = .missing(nearest: folder, isOther: false)
                return true
            default:
                way.end = .denied(errno: result)
                return true
            }
        }
        var status = cal_stat()
        let result = folder.withCString { cal_stat_path($0, &status) }
        guard result == 0 else { return false }
        way.end = .folder(FileIdentity(status), folder)
        return true
    }

    /// Watches a directory above a root; returns false on failure.
    private func step(
        _ way: inout AncestorWatch, into folder: PathBytes, name: ArraySlice<UInt8>?, error: inout Int32
    ) -> Bool {
        guard let inotify else {
            way.isReliable = false
            return false
        }
        let watch = inotify.add(folder, name == nil ? .itself : .names)
        if watch >= 0 {
            way.steps.append(AncestorWatch.Step(watch: watch, name: name.map { Array($0) }))
            return true
        }
        error = -watch
        if error == ENOSPC {
            way.shortCount += 1
            way.isReliable = false
        }
        return false
    }

    private static func target(of link: PathBytes) -> [UInt8]? {
        var buffer = [CChar](repeating: 0, count: 4096)
        let count = link.withCString { readlink($0, &buffer, buffer.count) }
        return count > 0 ? buffer[..<count].map { UInt8(bitPattern: $0) } : nil
    }

    // MARK: Watches

    /// Removes a watch that is no longer needed.
    func release(_ watch: WatchDescriptor) {
        if ways.contains(watch) || !tree.folders(of: watch).isEmpty { return }
        inotify?.remove(watch)
    }

    /// Forgets a directory and everything below it.
    ///
    /// - Parameters:
    ///   - folder: The directory.
    ///   - keepingItself: Whether only the directories below it are forgotten.
    /// - Returns: Whether some of them were polled, so that the kernel has not reported everything that vanished there.
    @discardableResult func forget(_ folder: DirectoryTree.ID, keepingItself: Bool = false) -> Bool {
        let forgotten = tree.forget(folder, keepingItself: keepingItself)
        for watch in forgotten.watches { release(watch) }
        for folder in forgotten.polled { polled[folder] = nil }
        return !forgotten.polled.isEmpty
    }

    /// Forgets a directory that has vanished from its path, and hints its subtree where events may be missing.
    ///
    /// A btrfs subvolume, which has a device number of its own, is deleted without events for its contents. There are
    /// no events either for the contents of a directory that has not been listed since it appeared.
    func lose(_ folder: DirectoryTree.ID) {
        let path = tree.path(of: folder)
        let device = tree.device(of: folder)
        let isOwnDevice = device != 0 && tree.parent(of: folder).map { tree.device(of: $0) != device } ?? false
        let wasListed = tree.flags(of: folder).contains(.listed)
        if forget(folder) || isOwnDevice || !wasListed {
            hints.append(Hint(path: path, signs: .subtree, origin: .live))
        }
    }

    // MARK: Mounts

    /// Compares the mount table with the last one, and updates the watched directories that are affected.
    func compareMounts() {
        guard let changes = mounts?.changes() else { return }
        if changes.came.isEmpty, changes.went.isEmpty { return }
        devices = DeviceTable(keeping: devices)
        scope.recorder?.forgetDevices()
        for point in changes.went { remount(point, isMounted: false) }
        for point in changes.came { remount(point, isMounted: true) }
    }

    private func remount(_ point: PathBytes, isMounted: Bool) {
        toldPolling = toldPolling.filter { path in !path.isInside(point) || isAsked(path) }
        for index in rootOrder {
            guard let physical = roots[index].physical, let top = roots[index].folder, !physical.isInside(point),
                let relative = point.relative(to: physical)
            else {
                // A symbolic link may lead through any directory, so a root behind one is always checked.
                if roots[index].physical != roots[index].path || roots[index].path.isInside(point) {
                    check(index, because: isMounted ? .mounted : .unmounted(point))
                }
                continue
            }
            var folder: DirectoryTree.ID? = top
            for name in relative.split(separator: .slash) {
                folder = folder.flatMap { inner in name.withUnsafeBytes { tree.child(of: inner, named: $0) } }
            }
            if let folder { remount(folder, isMounted: isMounted) }
        }
    }

    /// Handles a mount over a directory, or an unmount that uncovers it.
    private func remount(_ folder: DirectoryTree.ID, isMounted: Bool) {
        let path = tree.path(of: folder)
        reports.append(isMounted ? .mounted(path) : .unmounted(path, point: path))
        polled[folder] = nil
        forget(folder, keepingItself: true)
        if let freed = tree.setWatch(nil, of: folder) { release(freed) }
        tree.remove([.polled, .short, .failed], of: folder)
        // After an unmount, only the mount point itself is a different directory.
        hints.append(Hint(path: path, signs: isMounted ? .subtree : .listed, origin: .live))
        visits.append(Visit(folder: folder, origin: .live))
    }

    /// Handles the kernel's report that the file system of a watched directory was unmounted.
    ///
    /// Without a mount table this event is the only source; otherwise the mount table is compared instead.
    func unmounted(_ watch: WatchDescriptor) {
        guard mounts == nil else {
            compareMounts()
            return
        }
        for folder in tree.folders(of: watch) where tree.contains(folder) {
            var top = folder
            while let parent = tree.parent(of: top), tree.device(of: parent) == tree.device(of: top) { top = parent }
            if let root = rootOfFolder[top] {
                roots[root].isLost = true
                check(root, because: .unmounted(roots[root].path))
            } else {
                remount(top, isMounted: false)
            }
        }
    }

    private func isAsked(_ path: PathBytes) -> Bool { rootOfPath[path].map { roots[$0].wantsPoll } ?? false }
}

/// The devices of the directories as small numbers, and whether the kernel reports every change on them.
struct DeviceTable {
    private var numbers: [UInt64: UInt16] = [:]
    private var names: [UInt16: String?] = [:]

    init() {}

    /// Creates a table with the same numbers but without file system types, since a device may be reused after an
    /// unmount.
    init(keeping other: DeviceTable) { numbers = other.numbers }

    /// Returns the number of a device; 0 when there are too many devices.
    mutating func number(of device: UInt64) -> UInt16 {
        if let number = numbers[device] { return number }
        guard numbers.count < Int(UInt16.max) - 1 else { return 0 }
        let number = UInt16(numbers.count + 1)
        numbers[device] = number
        return number
    }

    /// Returns the name of the file system type if it has to be polled; determined once per device.
    mutating func untold(_ number: UInt16, _ reader: DirectoryReader) -> String? {
        if number != 0, let known = names[number] { return known }
        let name = reader.untoldFileSystem
        names[number] = .some(name)
        return name
    }

    func isUntold(_ number: UInt16) -> Bool { (names[number] ?? nil) != nil }
}
