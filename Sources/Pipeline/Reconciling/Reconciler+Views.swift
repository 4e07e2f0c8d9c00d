package import FileEvents
import Globbing
import Settling
package import System

extension Reconciler {
    /// Serves other views from now on, without restarting the watcher.
    ///
    /// Views with an existing id continue with their due paths and offers; those of removed views remain only in the
    /// store. Paths that are settling continue to settle for each view that matches. Call this after a commit, when
    /// the watcher has reported that it watches for the new views and lists their existing files.
    package mutating func change(to views: [View], at now: ContinuousClock.Instant) {
        let waiting = settler.keys.compactMap { key in
            settler.waiting(key).map { (path: key.path, policy: self.policies[key.policy], entry: $0) }
        }
        let policies = Self.policies(of: views)
        var former = Dictionary(uniqueKeysWithValues: states.map { ($0.view.id, $0) })
        var compared: [(view: Int, paths: [PathBytes])] = []
        states = views.enumerated().map { index, view in
            let policy = policies.firstIndex(of: view.settle) ?? 0
            guard var state = former.removeValue(forKey: view.id) else { return ViewState(view: view, policy: policy) }
            if state.view.mask != view.mask || state.view.types != view.types || state.view.freezes != view.freezes {
                compared.append((index, state.due.entries.paths))
            }
            (state.view, state.policy) = (view, policy)
            return state
        }
        active = Set(states.indices)
        settler = Settler()
        scans = ScanTable()
        heldKeys = [:]
        unreadable = []
        isStarting = true
        self.policies = policies
        filters = PathFilterIndex(views.map(\.filter))
        files = WatchedPaths(roots: views.flatMap(\.roots), in: host.fileSystem)
        for (path, policy, entry) in waiting { takeOver(path, policy, entry, at: now) }
        for view in states.indices { dropUnmatched(view) }
        for (view, paths) in compared {
            for path in paths where root(view, path) != nil { markDirty(path, .listed, .live, [view], at: now) }
        }
        unlisted.formIntersection(views.flatMap(\.roots))
        if unlisted.isEmpty { for view in active { states[view].due.wake(.listing) } }
    }

    /// Makes a path continue to settle for all views that match it.
    private mutating func takeOver(
        _ path: PathBytes, _ former: SettlePolicy, _ entry: Settler<Key, Note>.Waiting, at now: ContinuousClock.Instant
    ) {
        var entry = entry
        entry.note.scan = nil
        let matches = matches(path)
        if matches.isEmpty { setDirtyFile(nil, at: path) }
        for index in Set(matches.map { states[$0].policy }) {
            let policy = policies[index]
            let isPolled = entry.note.signs.contains(.polled) || isPolled(path)
            // With an equal policy it does not settle again, so a series of reloads causes no delay.
            let due = policy == former ? nil : now + policy.quiet(isPolled: isPolled)
            settler.takeOver(Key(path: path, policy: index), entry, due: due) { $0.merge(entry.note) }
        }
    }

    /// Removes the due paths that a view no longer matches; those of an offer stay, and the offer runs unchanged.
    private mutating func dropUnmatched(_ view: Int) {
        let paths = Set(states[view].due.entries.paths).union(states[view].offerOfPath.keys).sorted()
        for path in paths where root(view, path) == nil {
            if states[view].offerOfPath[path] == nil {
                removeDue(view, path)
                states[view].due.wake(.path(path))
            } else if states[view].due[path] == nil {
                addDue(view, path, settled: .some(nil), Note(signs: .listed, origin: .live))
            } else {
                states[view].due.requeue(path)
            }
        }
    }

    /// Sets the mount points of files that are not visible now, since nothing is mounted there.
    package mutating func setAway(_ points: [PathBytes]) { away.formUnion(points) }

    /// The number of paths that settle, counted once for each policy.
    package var settling: Int { settler.count }

    /// The paths that a process has had open for writing or locked for a minute, and the time since which they
    /// settle.
    package var held: [PathBytes: ContinuousClock.Instant] {
        var held: [PathBytes: ContinuousClock.Instant] = [:]
        for (key, since) in heldKeys where settler.contains(key) { held[key.path] = since }
        return held
    }

    /// Returns the paths that have not settled, and those of late hints that differ from the ledger of a view.
    ///
    /// Paths found by the first listing count only if a view reports existing files.
    package func unsettled(and late: [Hint]) -> [PathBytes] {
        let reportsExisting = states.contains { $0.view.reportsExisting }
        let others = Set(late.filter { reportsExisting || $0.origin != .scan }.map(\.path)).filter { path in
            matches(path).contains { view in
                guard let now = present(view, path) else { return false }
                return row(view, path).handled.map { !$0.hasSameContent(as: now) } ?? true
            }
        }
        return others.union(settler.keys.map(\.path)).sorted()
    }
}
