package import FileEvents
package import System
package import Watching

/// The state that all views of a reconciler share; it belongs to the reconciler's thread.
package final class SharedState {
    package internal(set) var ledger: Ledger
    var files: VisibleFiles
    var dirty: DirtyPaths
    let host: Host
    let callbacks: Reconciler.Callbacks
    /// The views that may have due paths, unfinished offers or frozen events.
    ///
    /// ``Reconciler/markCommitted()`` removes the others.
    package internal(set) var active: Set<Int> = []
    /// The roots that the current listing has yet to list.
    var unlisted: Set<PathBytes> = []
    /// The number of the last offer, or of the last job that has none.
    package var number: UInt64 = 0

    /// Paths that the watcher has to hint again after it has polled the directories around them.
    var doubted: [PathBytes] = []
    /// The number of the next request to hint paths again.
    private(set) var request: UInt32 = 1
    /// Whether not all roots have been listed since the start, or since the views changed.
    var isStarting = true
    /// The read positions that have changed since the last commit; nil for one that is deleted.
    package internal(set) var carriedChanges: [RuleID: [FileIdentity: ReadPosition?]] = [:]
    /// The changes of stored due paths since the last commit.
    package internal(set) var dueChanges: [RuleID: [PathBytes: DueChange]] = [:]
    /// The requirements of the transitions since the owner last took them, in their order.
    private var effects: [Reconciler.Effect] = []

    init(
        roots: [PathBytes], policies: [SettlePolicy], _ store: any LedgerStore, _ host: Host,
        _ callbacks: Reconciler.Callbacks
    ) {
        ledger = Ledger(store)
        files = VisibleFiles(roots: roots, in: host.fileSystem)
        dirty = DirtyPaths(policies: policies)
        (self.host, self.callbacks) = (host, callbacks)
    }

    package func nextNumber() -> UInt64 {
        number += 1
        return number
    }

    /// Returns the paths that the watcher has to hint again, once.
    package func takeDoubted() -> DoubtedPaths {
        defer {
            if !doubted.isEmpty { request = request == .max ? 1 : request + 1 }
            doubted = []
        }
        return DoubtedPaths(doubted, request: request)
    }

    func add(_ effect: Reconciler.Effect) { effects.append(effect) }

    /// Returns the effects of the transitions since the last call, in their order, once.
    package func takeEffects() -> [Reconciler.Effect] {
        defer { effects = [] }
        return effects
    }

    /// Makes a path settle by each of the policies.
    ///
    /// - Returns: Its hints.
    func markDirty(
        _ path: PathBytes, _ signs: Hint.Signs, _ origin: EventOrigin, _ policies: Set<Int>, wantsMove: Bool,
        quiet: Duration? = nil, hasArrived: Bool = false, request: UInt32 = 0, at now: ContinuousClock.Instant
    ) -> DirtyPaths.Hints {
        var hints = DirtyPaths.Hints(signs: signs, origin: origin)
        hints.hasArrived = hasArrived
        if signs.contains(.listed) { hints.scan = dirty.scans.innermost(holding: path) }
        if case .present(let snapshot) = files.paths.inspect(at: path) {
            if wantsMove || snapshot.hasSeveralNames { hints.file = snapshot.identity }
            if signs.isDisjoint(with: [.listed, .polled]), files.isHinted(snapshot, at: path) {
                hints.seen = Box(snapshot)
            }
            // Signs of writing bring no other file.
            if wantsMove, !signs.isSubset(of: [.written, .closed, .attributes]) {
                dirty.setFile(snapshot.identity, at: path)
            }
        }
        hints.request = request
        let isPolled = files.isPolled(path)
        for policy in policies { dirty.add(path, policy, hints, quiet: quiet, isPolled: isPolled, at: now) }
        return hints
    }
}
