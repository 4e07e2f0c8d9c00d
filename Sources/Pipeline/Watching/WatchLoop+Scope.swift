// Changing the scope of a running watcher.
extension WatchLoop {
    /// Switches to another scope.
    ///
    /// All roots are listed again, which adds the directories that only the new scope
    /// reaches and forgets those that it does not reach. Directories that both scopes
    /// reach keep their watches throughout.
    func change(to scope: WatchScope, number: Int) {
        self.scope = scope
        let wanted = RootState.wanted(by: scope)
        let paths = Set(wanted.map(\.path))
        for index in rootOrder where !paths.contains(roots[index].path) { retire(index) }
        for root in wanted { add(root) }
        // Listings that were started for the old scope are repeated for the new one.
        tours = []
        postponed.removeAll(where: \.isTour)
        if rescan.isRunning {
            rescan.isRunning = false
            rescan.isWanted = true
        }
        listingSince = nil
        isReady = false
        reports.append(.changed(number: number))
        for root in rootOrder { check(root, because: .start) }
    }

    /// Retires a root that the scope no longer contains.
    ///
    /// An outer root may take over its directories, which keep their watches until then.
    private func retire(_ index: Int) {
        retired.insert(index)
        rootOfPath[roots[index].path] = nil
        toldPolling.remove(roots[index].path)
        for watch in ways.set(AncestorWatch(), of: index) { release(watch) }
        suspects.remove(index)
    }

    private func add(_ wanted: RootState) {
        guard let index = roots.firstIndex(where: { $0.path == wanted.path }) else {
            roots.append(wanted)
            rootOfPath[wanted.path] = roots.count - 1
            tellAsked(wanted)
            return
        }
        let wasDropped = retired.remove(index) != nil && roots[index].folder == nil
        rootOfPath[wanted.path] = index
        if wasDropped || !roots[index].isWatchedAs(wanted) {
            // The backend of a tree is decided when its directories are entered.
            drop(index)
            let isScheduled = roots[index].isScheduled
            roots[index] = wanted
            roots[index].isScheduled = isScheduled
        }
        tellAsked(wanted)
    }

    /// Drops the roots of the old scope, after the new one is completely watched.
    func dropRetired() {
        for index in innerFirst(retired) { drop(index) }
    }
}
