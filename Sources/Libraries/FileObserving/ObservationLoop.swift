import FileEvents
import Reconciling
import System
import Watching

/// The main loop of an observer's thread: turns hints into settled events for the consumers.
///
/// It sleeps until there are hints, requests or a deadline, and owns all state that
/// no other thread needs.
struct ObservationLoop: ~Copyable {
    private let core: ObservationCore
    private let source: any HintProducer
    private let store: MemoryStore
    private var reconciler: Reconciler
    private var isReady = false
    /// Roots whose listing was reported as started but not as finished.
    private var unfinishedScans: Set<PathBytes> = []

    init(_ core: ObservationCore, _ source: any HintProducer) {
        self.core = core
        self.source = source
        let options = core.plan.options
        let clock = options.clock
        store = MemoryStore()
        var known: [PathBytes: LedgerRow] = [:]
        for var entry in options.resuming?.entries ?? [] {
            // Mount ids change at the next boot.
            entry.snapshot.mount = 0
            known[entry.path] = LedgerRow(entry.snapshot)
        }
        store.set([ObservationPlan.rule: known])
        var clocks = Clock()
        clocks.now = { clock.now }
        reconciler = Reconciler(
            views: [core.plan.view], ledger: store, isPatient: true, on: Host(clock: clocks),
            warn: { warning in options.notify?(ObservationNotice(warning)) })
    }

    /// Runs until it is stopped or can't continue; returns the reason.
    mutating func run() -> Termination {
        let clock = core.plan.options.clock
        clock.manual?.add(core.wake)
        defer {
            clock.manual?.remove(core.wake)
            source.stop()
        }
        while true {
            core.wake.wait(until: clock.deadline(reconciler.nextDeadline))
            let orders = core.takeOrders()
            if orders.isStopped {
                finish(orders)
                return .success(())
            }
            if orders.isRescanWanted { source.rescan() }
            let batch = core.queue.take()
            let now = clock.now
            reconciler.receive(batch, at: now)
            let later = takeSettled(at: now)
            for report in batch.reports + later {
                if let error = take(report) {
                    finish(orders)
                    return .failure(error)
                }
            }
            for consumer in orders.newConsumers { welcome(consumer) }
            answer(orders, isDone: reconciler.nextDeadline.map { $0 > now } ?? true)
        }
    }

    private func answer(_ orders: ObservationCore.Orders, isDone: Bool) {
        for waiter in orders.snapshots { waiter.resume(returning: snapshot) }
        guard !orders.barriers.isEmpty else { return }
        if isDone {
            for waiter in orders.barriers { waiter.resume() }
        } else {
            core.putBack(orders.barriers)
            core.wake.signal()
        }
    }

    /// Answers the pending requests when the loop stops.
    private func finish(_ orders: ObservationCore.Orders) {
        for consumer in orders.newConsumers { core.admit(consumer) }
        answer(orders, isDone: true)
    }

    /// Delivers settled events and watcher events; returns the watcher's reports from that time.
    private mutating func takeSettled(at now: ContinuousClock.Instant) -> [WatchReport] {
        var events = takeReported()
        reconciler.settle(at: now)
        // The end of a listing follows the events that it found.
        var later = takeReported()
        var reports: [WatchReport] = []
        if reconciler.views[0].hasDue {
            source.drain()
            let batch = core.queue.take()
            reconciler.receive(batch, at: now)
            events += reconciler.views[0].takeDue(at: now)
            later += takeReported()
            reports = batch.reports
        }
        commit(events + later)
        return reports
    }

    /// Returns the events that are not differences.
    private func takeReported() -> [FileEvent] {
        reconciler.shared.takeEffects().compactMap { effect in
            if case .stored(_, let event, _) = effect { event } else { nil }
        }
    }

    private mutating func commit(_ events: [FileEvent]) {
        source.hintAgain(reconciler.shared.takeDoubted())
        let changes = events.map { event in
            let isReplacing = event.kind == .moved && event.isReplaced
            let replaced = isReplacing ? store.row(of: ObservationPlan.rule, at: event.path)?.handled : nil
            return ObservedChange(event: event, replaced: replaced)
        }
        store.set(reconciler.shared.ledger.changes)
        reconciler.markCommitted()
        reconciler.closeDirectories()
        // Comparisons after the events may have had effects, none of which concerns an observer.
        _ = reconciler.shared.takeEffects()
        for event in events {
            switch event.kind {
            case .scanStarted: unfinishedScans.insert(event.path)
            case .scanEnded: unfinishedScans.remove(event.path)
            default: break
            }
        }
        core.deliver(changes)
    }

    /// The ledger, directories before their contents.
    private var snapshot: ObservationSnapshot {
        let rows = store.rows(of: ObservationPlan.rule, below: "/", after: nil)
        return ObservationSnapshot(
            entries: rows.compactMap { path, row in
                row.handled.map { ObservationSnapshot.Entry(path: path, snapshot: $0) }
            })
    }

    /// Forwards a report of the watcher; returns an error when the observation can't continue.
    private mutating func take(_ report: WatchReport) -> ObservationError? {
        switch report {
        case .ready(let directories):
            isReady = true
            core.setReady(directories: directories)
        case .failure(let error) where !isReady && core.plan.roots.contains(error.path):
            // Without an error, a root that can't be watched from the start would never cause an event.
            return ObservationError(error)
        case .rootMissing(let root, _) where !isReady && core.plan.options.missing == .fail:
            return .missingRoot(root)
        default: break
        }
        if let notice = ObservationNotice(report) { core.plan.options.notify?(notice) }
        return nil
    }

    /// Delivers the known state to a new consumer, and adds it.
    private func welcome(_ consumer: Consumer) {
        let mask = core.plan.options.events
        let time = DiskProbe.now()
        var changes: [ObservedChange] = []
        func add(_ kind: EventKind, _ path: PathBytes, _ snapshot: Snapshot) {
            guard mask.takes(kind) else { return }
            let root = core.plan.root(of: path) ?? path
            let event = FileEvent(kind: kind, path: path, root: root, snapshot: snapshot, origin: .scan, time: time)
            changes.append(ObservedChange(event: event))
        }
        for root in core.plan.roots { add(.scanStarted, root, KernelFileSystem().stat(root).snapshot ?? .unseen) }
        for entry in snapshot.entries { add(.created, entry.path, entry.snapshot) }
        // The end of an unfinished listing is delivered when it finishes.
        for root in core.plan.roots where !unfinishedScans.contains(root) {
            add(.scanEnded, root, KernelFileSystem().stat(root).snapshot ?? .unseen)
        }
        consumer.deliver(changes)
        core.admit(consumer)
    }
}
