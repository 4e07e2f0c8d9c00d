package import FileEvents
import Settling
package import System

// Queries about paths and offers for the owner of the reconciler.
extension Reconciler {
    /// The files of the views; directories stay open until the end of the call that opened them.
    package var openedFiles: WatchedPaths { files }

    /// Whether a path of the view is due and waits for nothing.
    package func hasDue(_ view: Int) -> Bool { states[view].due.hasNext }

    /// Returns the position of the first path in the view's order; nil if there is none.
    package func nextDuePosition(_ view: Int) -> UInt64? { states[view].due.nextPosition }

    /// Returns the last position in the view's order.
    package func lastDuePosition(_ view: Int) -> UInt64 { states[view].due.lastPosition }

    /// Whether nothing of the view is due or unfinished.
    package func isIdle(_ view: Int) -> Bool {
        states[view].due.isEmpty && states[view].offers.all.isEmpty && states[view].frozen.isEmpty
    }

    /// Returns the number of due paths without an unfinished offer.
    package func dueCount(_ view: Int) -> Int {
        states[view].due.count - states[view].offerOfPath.keys.count { states[view].due[$0] != nil }
    }

    /// Whether a path of the view is due or has an unfinished offer.
    package func isDue(_ view: Int, _ path: PathBytes) -> Bool {
        states[view].due[path] != nil || states[view].offerOfPath[path] != nil
    }

    /// Whether a path has settled before a time and waits for nothing.
    package func isDue(_ view: Int, _ path: PathBytes, before time: Timestamp) -> Bool {
        guard let entry = states[view].due[path] else { return false }
        return entry.settled != nil && entry.wait == nil && entry.time < time
    }

    /// Whether a path of the view settles, is due or has an unfinished offer.
    package func isUnfinished(_ view: Int, _ path: PathBytes) -> Bool {
        guard root(view, path) != nil else { return false }
        return isDirty(view, path) || isDue(view, path)
    }

    package func offer(of view: Int, number: UInt64) -> Offer? { states[view].offers[number] }

    package func offer(of view: Int, at path: PathBytes) -> Offer? { offer(view, path) }

    /// Whether the offered file has been at its path since the first lease.
    ///
    /// Another of its names may have been put there: the kernel reports that, polling shows another change time, and
    /// an interrupted attempt has left its output.
    package func hasKeptFile(_ view: Int, of number: UInt64) -> Bool {
        guard let offer = states[view].offers[number], !offer.wasNamed, let now = present(view, offer.path),
            !offer.isInterrupted || !hasWork(view, offer)
        else { return false }
        guard let offered = offer.offered else { return true }
        let mayBeBack = offered.links > 1 && isPolled(view, offer.path) && now.changed != offer.changed
        return offered.identity == now.identity && !mayBeBack
    }

    /// Whether a file has settled in its current state: it is due, or the action has received it.
    package func hasSettled(_ view: Int, _ path: PathBytes, _ snapshot: Snapshot) -> Bool {
        guard !isDirty(view, path) else { return false }
        if let entry = states[view].due[path] { return entry.settled == DueTable.Stamp(snapshot) }
        let known = offer(view, path)?.offered ?? row(view, path).handled
        return known.map { $0.hasSameContent(as: snapshot) } ?? false
    }

    /// Makes the next attempt of an offer due now.
    package mutating func hasten(_ view: Int, _ number: UInt64, at now: ContinuousClock.Instant) {
        guard let offer = states[view].offers[number], case .retrying = offer.state else { return }
        states[view].offers[number]?.state = .retrying(now)
        for path in offer.paths { compare(view, path) }
        states[view].due.requeue(offer.path)
    }

    /// Returns the due paths of a view that wait for something to the order.
    package mutating func wakeAll(_ view: Int) { states[view].due.wakeAll() }
}

extension Reconciler {
    /// Returns the number of offers that wait for their next attempt.
    package func retryingCount(_ view: Int) -> Int { states[view].offers.all.values.count { !$0.isRunning } }

    /// Returns the number of due paths that wait for something that may take long.
    package func heldCount(_ view: Int) -> Int {
        states[view].due.entries.values.count { $0.reason.map { !$0.passesSoon } ?? false }
    }

    /// Returns the number of due paths that wait for nothing.
    package func readyCount(_ view: Int) -> Int { states[view].due.readyCount }

    /// Deletes the row of a path.
    package mutating func forget(_ view: Int, _ path: PathBytes) { set(view, path, LedgerRow()) }

    /// Returns the directory and the paths inside it that the view knows, or that exist and match.
    package mutating func knownPaths(_ view: Int, inside directory: PathBytes) -> [PathBytes] {
        var paths: Set<PathBytes> = []
        ledger.visit(states[view].view.id, inside: directory) { path, _ in paths.insert(path) }
        var open = [directory]
        while let path = open.popLast() {
            guard case .present(let snapshot) = files.look(at: path) else { continue }
            if root(view, path) != nil { paths.insert(path) }
            guard snapshot.type == .directory else { continue }
            open += ((try? files.names(in: path)) ?? []).map { path.appending($0.bytes) }
        }
        return paths.filter { root(view, $0) != nil }.sorted()
    }
}

// The due paths as shown to users.
extension Reconciler {
    /// A path that waits to be leased.
    package struct DuePath: Sendable {
        package var path: PathBytes
        /// The kind of the event that it would have now.
        package var kind: EventKind
        /// The time at which it last settled.
        package var time: Timestamp
        /// The condition of the owner for which it waits.
        package var gate: Gate?
        package var reason: Reason?
        /// The other path for which it waits.
        package var other: PathBytes?
        /// The latest time at which the wait ends.
        package var until: ContinuousClock.Instant?
    }

    /// Returns due paths of a view without the job of an earlier attempt, the latest first.
    ///
    /// - Parameters:
    ///   - view: The view.
    ///   - limit: The maximum number of paths.
    ///   - isWanted: Whether a path is included.
    /// - Returns: The paths.
    package mutating func duePaths(_ view: Int, limit: Int, where isWanted: (PathBytes) -> Bool) -> [DuePath] {
        var paths: [DuePath] = []
        for path in states[view].due.entries.latest where paths.count < limit && isWanted(path) {
            guard let entry = states[view].due[path] else { continue }
            guard offer(view, path)?.isRunning ?? true, let kind = kind(view, path) else { continue }
            var due = DuePath(path: path, kind: kind, time: entry.time)
            (due.until, due.reason) = (states[view].due.limit(of: path), entry.reason)
            switch entry.wait {
            case .gate(let gate): due.gate = gate
            case .path(let other) where other != path: due.other = other
            case .time(let time): due.until = time
            case .path, .listing, nil: break
            }
            paths.append(due)
        }
        return paths
    }

    /// Returns the kind of the event that a due path would have now; nil if it needs none.
    private func kind(_ view: Int, _ path: PathBytes) -> EventKind? {
        switch judge(view, path) {
        case .event(let event): event.kind
        case .nothing, .unreported: nil
        case .wait, .unreadable:
            row(view, path).handled == nil ? .created : present(view, path) == nil ? .deleted : .modified
        }
    }
}
