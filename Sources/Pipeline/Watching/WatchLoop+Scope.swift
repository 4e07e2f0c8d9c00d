import FileEvents
import System

// Another scope, while the watching goes on.
extension WatchLoop {
    /// Watches what another scope asks for.
    ///
    /// All roots are listed again, which finds what the new scope reaches and the
    /// old one did not, and forgets what it does not reach. Folders that both reach
    /// keep their watches all the time.
    func change(to scope: WatchScope, number: Int) {
        self.scope = scope
        let wanted = RootState.wanted(by: scope)
        let paths = Set(wanted.map(\.path))
        for index in rootOrder where !paths.contains(roots[index].path) { retire(index) }
        for root in wanted { add(root) }
        // What was being listed for the old scope is listed for the new one.
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

    /// A root that nobody asks for any more.
    ///
    /// An outer root may take over its folders, which have their watches until that is done.
    private func retire(_ index: Int) {
        retired.insert(index)
        rootOfPath[roots[index].path] = nil
        toldPolling.remove(roots[index].path)
        for watch in ways.set(Way(), of: index) { release(watch) }
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
            // The backend of a tree is decided when its folders are entered.
            drop(index)
            let isScheduled = roots[index].isScheduled
            roots[index] = wanted
            roots[index].isScheduled = isScheduled
        }
        tellAsked(wanted)
    }

    /// Forgets what only the old scope asked for, when the new one is watched.
    func dropRetired() {
        for index in innerFirst(retired) { drop(index) }
    }
}
