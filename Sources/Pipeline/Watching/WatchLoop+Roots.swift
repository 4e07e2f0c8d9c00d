import FileEvents
import Glibc
import System

// Roots, scopes and mounts.
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

    // MARK: Scopes

    /// Adds the roots of the scope.
    func addRoots() {
        for wanted in RootState.wanted(by: scope) {
            let (index, isOutdated) = roots.add(wanted)
            if isOutdated {
                // The backend of a tree is decided when its directories are entered.
                drop(index)
                roots.replace(index, with: wanted)
            }
            // Reported once: the rule asks for it.
            if wanted.wantsPoll, polling.reported.insert(wanted.path).inserted {
                reports.append(.polling(wanted.path, .asked, every: wanted.interval))
            }
        }
    }

    /// Switches to another scope.
    ///
    /// All roots are listed again, which adds the directories that only the new scope
    /// reaches and forgets those that it does not reach. Directories that both scopes
    /// reach keep their watches throughout.
    func change(to scope: WatchScope, number: Int) {
        self.scope = scope
        let paths = Set(scope.roots.map(\.path))
        for index in roots.innerFirst where !paths.contains(roots[index].path) {
            polling.reported.remove(roots[index].path)
            for watch in roots.retire(index) { release(watch) }
        }
        addRoots()
        // Listings that were started for the old scope are repeated for the new one.
        listings.dropScans()
        if progress.isRescan { (progress.isRescan, progress.isRescanWanted) = (false, true) }
        progress.start = nil
        progress.isReady = false
        reports.append(.changed(number: number))
        for root in roots.innerFirst { check(root, because: .start) }
    }

    // MARK: Roots

    /// Checks whether the root exists and is the same directory, and updates its state.
    ///
    /// Roots are compared by identity, not by existence: a root that was moved away and
    /// created again immediately is a different one. After an unmount nothing is
    /// compared, since the path is then a different directory below the mount point, and
    /// nothing was deleted.
    func check(_ index: Int, because cause: Cause) {
        guard !roots.retired.contains(index) else { return }
        let ancestors = AncestorWatch(following: roots[index].path, kernel.inotify)
        for watch in roots.ancestors.set(ancestors, of: index) { release(watch) }
        if !ancestors.isReliable { scheduleRoot(index) }
        let root = roots[index]
        switch ancestors.end {
        case .directory(let identity, let physical):
            let isSame = root.presence == .present && !root.isLost && holds(root, identity)
            if isSame, cause != .start, cause != .rescan {
                roots[index].physical = physical
                if let directory = root.directory { retry(directory) }
                return
            }
            if !isSame { replace(index, by: (identity, physical), because: cause) }
            guard let directory = roots[index].directory else { return }
            let origin: EventOrigin = cause == .start ? .scan : isSame ? .rescan : .live
            switch cause {
            case .start, .unmounted: break
            default: hints.append(Hint(path: root.path, signs: .subtree, origin: origin))
            }
            let visit = ListingQueue.Visit(directory: directory, origin: origin, isScan: true)
            listings.scans.append(ListingQueue.Scan(root: index, origin: origin, visits: [visit]))
        case .missing(let nearest, let isOther):
            guard root.presence != .missing else { return }
            if case .unmounted(let point) = cause, root.presence == .present {
                reports.append(.unmounted(root.path, point: point))
            }
            drop(index)
            roots[index].presence = .missing
            if isOther { reports.append(.failure(.notDirectory(root.path))) }
            reports.append(.rootMissing(root.path, watching: nearest))
        case .denied(let errno):
            // A root that can't be read is not missing.
            guard root.presence != .denied, root.presence != .present || !root.isLost else { return }
            // Behind a link that is not followed, no path of the root can be opened any more.
            if errno == ELOOP { drop(index) }
            if root.presence != .present || errno == ELOOP { roots[index].presence = .denied }
            reports.append(.failure(.refused(root.path, errno: errno)))
        }
    }

    /// Whether a present root is the directory with this identity.
    ///
    /// On overlayfs, the first change to a directory of a lower layer changes its birth time. While the directory is
    /// watched, no other directory has its inode.
    private func holds(_ root: RootState, _ identity: FileIdentity) -> Bool {
        let isWatched = root.directory.flatMap { tree.watch(of: $0) } != nil
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
        roots.setTop(tree.addRoot(root.path), of: index)
        roots[index].presence = .present
        (roots[index].identity, roots[index].physical) = found
    }

    /// Forgets the tree of a root.
    func drop(_ index: Int) {
        roots[index].isLost = false
        roots[index].identity = nil
        roots[index].physical = nil
        openedRoot = nil
        guard let directory = roots[index].directory else { return }
        roots.setTop(nil, of: index)
        forget(directory)
    }

    private func scheduleRoot(_ index: Int) {
        guard !roots[index].isScheduled else { return }
        roots[index].isScheduled = true
        polling.schedule.add(.root(index), every: roots[index].interval, after: .now)
    }

    // MARK: Watches

    /// Removes a watch that is no longer needed.
    func release(_ watch: WatchDescriptor) {
        if !roots.ancestors.contains(watch), tree.directories(of: watch).isEmpty { kernel.inotify?.remove(watch) }
    }

    /// Sets or removes the watch of a directory, and releases the previous one.
    func setWatch(_ watch: WatchDescriptor?, of directory: DirectoryTree.ID) {
        if let freed = tree.setWatch(watch, of: directory) { release(freed) }
    }

    /// Forgets a directory and everything below it.
    ///
    /// - Parameters:
    ///   - directory: The directory.
    ///   - keepingItself: Whether only the directories below it are forgotten.
    /// - Returns: Whether some of them were polled, so that the kernel has not reported everything that vanished there.
    @discardableResult func forget(_ directory: DirectoryTree.ID, keepingItself: Bool = false) -> Bool {
        let forgotten = tree.forget(directory, keepingItself: keepingItself)
        for watch in forgotten.watches { release(watch) }
        for directory in forgotten.polled { polling.contents[directory] = nil }
        return !forgotten.polled.isEmpty
    }

    /// Forgets a directory that has vanished from its path, and hints its subtree where events may be missing.
    ///
    /// A btrfs subvolume, which has a device number of its own, is deleted without events for its contents. There are
    /// no events either for the contents of a directory that has not been listed since it appeared.
    func lose(_ directory: DirectoryTree.ID) {
        let path = tree.path(of: directory)
        let device = tree.device(of: directory)
        let isOwnDevice = device != 0 && tree.parent(of: directory).map { tree.device(of: $0) != device } ?? false
        let wasListed = tree.flags(of: directory).contains(.listed)
        if forget(directory) || isOwnDevice || !wasListed {
            hints.append(Hint(path: path, signs: .subtree, origin: .live))
        }
    }

    // MARK: Mounts

    /// Compares the mount table with the last one, and updates the watched directories that are affected.
    func compareMounts() {
        guard let changes = mounts?.changes(), !changes.came.isEmpty || !changes.went.isEmpty else { return }
        polling.devices.forgetTypes()
        scope.recorder?.recording.forgetDevices()
        for point in changes.went { remount(point, isMounted: false) }
        for point in changes.came { remount(point, isMounted: true) }
    }

    private func remount(_ point: PathBytes, isMounted: Bool) {
        polling.reported = polling.reported.filter { path in
            !path.isInside(point) || roots.index(of: path).map { roots[$0].wantsPoll } ?? false
        }
        for index in roots.innerFirst {
            guard let physical = roots[index].physical, let top = roots[index].directory, !physical.isInside(point),
                let relative = point.relative(to: physical)
            else {
                // A symbolic link may lead through any directory, so a root behind one is always checked.
                if roots[index].physical != roots[index].path || roots[index].path.isInside(point) {
                    check(index, because: isMounted ? .mounted : .unmounted(point))
                }
                continue
            }
            var directory: DirectoryTree.ID? = top
            for name in relative.split(separator: .slash) {
                directory = directory.flatMap { inner in name.withUnsafeBytes { tree.child(of: inner, named: $0) } }
            }
            if let directory { remount(directory, isMounted: isMounted) }
        }
    }

    /// Handles a mount over a directory, or an unmount that uncovers it.
    private func remount(_ directory: DirectoryTree.ID, isMounted: Bool) {
        let path = tree.path(of: directory)
        reports.append(isMounted ? .mounted(path) : .unmounted(path, point: path))
        polling.contents[directory] = nil
        forget(directory, keepingItself: true)
        setWatch(nil, of: directory)
        tree.remove([.polled, .short, .failed], of: directory)
        // After an unmount, only the mount point itself is a different directory.
        hints.append(Hint(path: path, signs: isMounted ? .subtree : .listed, origin: .live))
        listings.add(ListingQueue.Visit(directory: directory, origin: .live))
    }

    /// Handles the kernel's report that the file system of a watched directory was unmounted.
    ///
    /// Without a mount table this event is the only source; otherwise the mount table is compared instead.
    func unmounted(_ watch: WatchDescriptor) {
        guard mounts == nil else { return compareMounts() }
        for directory in tree.directories(of: watch) where tree.contains(directory) {
            var top = directory
            while let parent = tree.parent(of: top), tree.device(of: parent) == tree.device(of: top) { top = parent }
            if let root = roots.index(ofTop: top) {
                roots[root].isLost = true
                check(root, because: .unmounted(roots[root].path))
            } else {
                remount(top, isMounted: false)
            }
        }
    }
}
