import FileEvents
import FileWatching
import Reconciling

/// The work of an observer's thread: hints in, settled events to the consumers.
///
/// It sleeps until there are hints, orders or a deadline, and holds all state
/// that no other thread needs.
struct ObservationLoop: ~Copyable {
    private let core: ObservationCore
    private let source: Source
    private let ledger: MemoryLedger
    private var reconciler: Reconciler
    private var isReady = false
    /// Roots whose listing has been told to begin and not to end.
    private var openScans: Set<PathBytes> = []

    init(_ core: ObservationCore, _ source: Source) {
        self.core = core
        self.source = source
        let options = core.plan.options
        let ledger = MemoryLedger(options.resuming)
        self.ledger = ledger
        reconciler = Reconciler(
            views: [core.plan.observed], ledger: ledger, isPatient: true
        ) { remark in options.notify?(ObservationNotice(remark)) }
    }

    /// Runs until it is told to stop or can't go on; returns why.
    mutating func run() -> Ending {
        let clock = core.plan.options.clock
        clock.add(core.wake)
        defer {
            clock.remove(core.wake)
            source.stop()
        }
        while true {
            core.wake.wait(until: clock.deadline(reconciler.nextDeadline))
            let orders = core.takeOrders()
            if orders.isStopped {
                finish(orders)
                return .finished
            }
            if orders.isRescanWanted { source.rescan() }
            let batch = core.queue.take()
            let now = clock.now
            reconciler.take(batch, at: now)
            commit(reconciler.takeSettled(at: now))
            for report in batch.reports {
                if let error = take(report) {
                    finish(orders)
                    return .failed(error)
                }
            }
            for newcomer in orders.newcomers { welcome(newcomer) }
            answer(orders, isDone: reconciler.nextDeadline.map { $0 > now } ?? true)
        }
    }

    private func answer(_ orders: ObservationCore.Orders, isDone: Bool) {
        for waiter in orders.snapshots { waiter.resume(returning: ObservationSnapshot(facts: ledger.facts)) }
        guard !orders.barriers.isEmpty else { return }
        if isDone {
            for waiter in orders.barriers { waiter.resume() }
        } else {
            core.putBack(orders.barriers)
            core.wake.signal()
        }
    }

    /// Answers what was asked of a turn that does not come.
    private func finish(_ orders: ObservationCore.Orders) {
        for newcomer in orders.newcomers { core.admit(newcomer) }
        for waiter in orders.barriers { waiter.resume() }
        for waiter in orders.snapshots { waiter.resume(returning: ObservationSnapshot(facts: ledger.facts)) }
    }

    private mutating func commit(_ turn: Reconciler.Turn) {
        ledger.apply(turn.entries)
        source.hintAgain(turn.doubted)
        for (_, event) in turn.events {
            switch event.kind {
            case .scanBegan: openScans.insert(event.path)
            case .scanEnded: openScans.remove(event.path)
            default: break
            }
        }
        core.deliver(turn.events.map(\.event))
    }

    /// Passes on what the watcher says; an error when the observation can't go on.
    private mutating func take(_ report: WatchReport) -> ObservationError? {
        switch report {
        case .ready(let folders):
            isReady = true
            core.setReady(folders: folders)
        case .failure(let error) where !isReady:
            let error = ObservationError(error)
            switch error {
            // A root that can't be watched from the start would be silent for ever.
            case .notFolder(let path), .refused(let path, _):
                if core.plan.roots.contains(path) { return error }
            default: break
            }
        case .rootMissing(let root, _) where !isReady && core.plan.options.missing == .fail:
            return .missingRoot(root)
        default: break
        }
        if let notice = ObservationNotice(report) { core.plan.options.notify?(notice) }
        return nil
    }

    /// Tells a new consumer what is known, and lets it in.
    private func welcome(_ consumer: Consumer) {
        let mask = core.plan.options.events
        let time = Timestamp.present
        var events: [FileEvent] = []
        func add(_ kind: EventKind, _ path: PathBytes, _ snapshot: Snapshot) {
            guard mask.takes(kind) else { return }
            let root = core.plan.root(of: path) ?? path
            events.append(
                FileEvent(kind: kind, path: path, root: root, snapshot: snapshot, origin: .scan, time: time))
        }
        for root in core.plan.roots { add(.scanBegan, root, .present(root)) }
        for fact in ledger.facts { add(.created, fact.path, fact.snapshot) }
        // A listing that still goes on is told to end when it does.
        for root in core.plan.roots where !openScans.contains(root) { add(.scanEnded, root, .present(root)) }
        consumer.deliver(events)
        core.admit(consumer)
    }
}
