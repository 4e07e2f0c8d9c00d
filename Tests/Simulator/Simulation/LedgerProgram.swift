import FileEvents
import Pipeline
import Reconciling
import Rules
import System
import Watching

/// The reconciler with its watcher and its store in a simulated world, and the mirrors that its actions maintain.
final class LedgerProgram {
    let world: World
    let rules: [SimulatedRule]
    let views: [Reconciling.View]
    private let host: Host
    let store = SimulatedStore()
    var reconciler: Reconciling.Reconciler?
    private(set) var watcher: SimulatedWatcher?
    /// Whether the watcher has hints that were not received yet.
    var hasUnread = false
    private var hasStarted = false
    /// A rule of the core that is left out.
    let omitted: CoreRule?
    /// The mirror of each rule's action, which survives a kill.
    var mirrors: [LedgerMirror]
    /// The highest number of an offer that was leased.
    var lastOffer: UInt64 = 0
    var history: [String] = []
    var failure: String?
    var trace: (@Sendable (String) -> Void)?

    /// Creates a world without files.
    init(
        _ rules: [SimulatedRule], seed: UInt64, delays: Bool, hasBirth: Bool, foldsCase: Bool,
        omitting omitted: CoreRule?
    ) {
        let world = World(seed: seed, delays: delays)
        self.world = world
        self.rules = rules
        self.omitted = omitted
        mirrors = Array(repeating: LedgerMirror(texts: TextMirror(hasBirth: hasBirth)), count: rules.count)
        views = rules.enumerated().map { index, simulated in
            let rule = simulated.rule(in: world.base)
            var view = Reconciling.View(
                id: RuleID(Int64(index + 1)), filter: rule.filter, types: rule.types, mask: rule.events,
                settle: rule.settle, initialScan: simulated.catchUp ? .compare(since: nil) : .replace(since: nil))
            (view.storesDuePaths, view.isPolled) = (!simulated.catchUp, simulated.isPolled)
            view.mayChangeInput = simulated.steps.contains(.edit)
            view.whileBusy = rule.whileBusy
            view.tail = rule.tail.map { Reconciling.View.Tail(maximumBytes: $0.maximumBytes, lineWait: nil) }
            return view
        }
        host = world.host
        world.prepare(hasBirth: hasBirth, foldsCase: foldsCase)
    }

    var now: ContinuousClock.Instant { host.clock.now() }

    /// Starts the program.
    func boot() {
        let wanted = rules
        // A rule that starts for the first time takes existing files as handled.
        let views =
            hasStarted
            ? views
            : views.map { view in
                var view = view
                view.initialScan = .ignore
                return view
            }
        hasStarted = true
        reconciler = Reconciling.Reconciler(
            views: views, ledger: store, isPatient: true, on: host,
            admits: { view, event in event.kind == .deleted || wanted[view].wants(event.snapshot) },
            hasWork: { [unowned self] view, offer in mirrors[view].archive[offer.number] != nil })
        reconciler?.shared.number = lastOffer
        reconciler?.shared.omitted = omitted
        let scope = Ruleset(rules.map { $0.rule(in: world.base) }).scope
        watcher = SimulatedWatcher(world: world, scope: scope, queue: HintQueue {})
        for index in views.indices {
            reconciler?.views[index].restore(store.offers(of: views[index].id), at: now)
            reconciler?.views[index].restoreFrozen(mirrors[index].frozen.map(\.event))
            reconciler?.views[index].restoreDue(store.duePaths(of: views[index].id), at: now)
        }
        while watcher?.list() == true {}
    }

    /// Kills the program.
    func halt() {
        reconciler = nil
        watcher = nil
    }

    /// Receives the hints that existed when the result of an action arrived.
    func receiveAll() {
        guard omitted != .drain else { return }
        watcher?.drainAll()
        receive()
    }

    func receive() {
        hasUnread = false
        guard let batch = watcher?.queue.take() else { return }
        for hint in batch.hints {
            trace?("  hint \(world.name(of: hint.path)) \(hint.signs.rawValue) \(hint.origin)")
        }
        for report in batch.reports { trace?("  report \(report)") }
        reconciler?.receive(batch, at: now)
    }

    /// Fails with the first error.
    func record(failure: String?) { self.failure = self.failure ?? failure }

    func prefix(_ view: Int) -> String { view == 0 ? "" : "\(rules[view].name): " }

    func isOutOfSight(_ path: PathBytes) -> Bool {
        world.mountedOnce.contains { path.isInside($0) }
            || path.parent.andParents.contains { world.snapshot($0).map { $0.mode & 0o444 == 0 } ?? false }
    }
}
