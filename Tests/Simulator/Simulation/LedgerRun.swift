import FileEvents
import Pipeline
package import Reconciling
import Rules
import Settling
package import System
import Watching

/// A run of the reconciler of `Sources/Pipeline` in a simulated world, with actions that maintain mirrors of the files.
package final class LedgerRun: CoreRun {
    package let world: World
    package let rules: [SimulatedRule]
    let views: [Reconciling.View]
    private let host: Host
    let store = SimulatedStore()
    var reconciler: Reconciling.Reconciler?
    var watcher: SimulatedWatcher?
    private var hints: HintQueue?
    private var fails: Bool?
    /// The number of changes between two inspections by the program before the current step.
    private(set) var racesBefore = 0
    /// The files with several names that were changed, each with the name used.
    private(set) var changedByName: [(file: FileIdentity, path: PathBytes)] = []
    private var hasStarted = false
    /// A rule of the core that is left out.
    let omitted: CoreRule?
    /// Whether files have birth times.
    let hasBirth: Bool
    /// The actions, with the state that they know.
    private(set) lazy var runner = LedgerActionRunner(for: self)
    package internal(set) var history: [String] = []
    package internal(set) var fault: String?
    /// Whether a step of an action that does not run is an error.
    var isStrict = false
    package var trace: (@Sendable (String) -> Void)?

    /// Creates a world without files and starts the program.
    package init(
        _ rules: [SimulatedRule], seed: UInt64 = 0, delays: Bool = false, hasBirth: Bool = true,
        foldsCase: Bool = false, omitting omitted: CoreRule? = nil
    ) {
        let world = World(seed: seed, delays: delays)
        self.world = world
        self.rules = rules
        self.omitted = omitted
        self.hasBirth = hasBirth
        views = rules.enumerated().map { index, simulated in
            let rule = simulated.rule(in: world.base)
            return Reconciling.View(
                id: RuleID(Int64(index + 1)), filter: rule.filter, types: rule.types, mask: rule.events,
                settle: rule.settle, initialScan: simulated.catchUp ? .compare(since: nil) : .replace(since: nil),
                storesDuePaths: !simulated.catchUp, isPolled: simulated.isPolled,
                mayChangeInput: simulated.steps.contains(.edit), tailBytes: rule.tail?.maximumBytes,
                whileBusy: View.WhileBusy(rule.whileBusy))
        }
        let clock = Clock(
            now: { SimulatedRun.origin + world.elapsed }, time: { world.time },
            fileTime: { world.time.advanced(by: .milliseconds(-2)) })
        host = Host(fileSystem: world, clock: clock, random: { 0.5 })
        for directory in ["x/", "y/", "o/"] { world.apply(.mkdir(PathBytes(directory))) }
        if foldsCase { world.foldCase(in: "") }
        if !hasBirth { world.dropBirthTimes(in: "") }
        boot()
        settle()
    }

    package var actions: [(stage: ActionStage, path: PathBytes?)] {
        runner.activities.map { ($0.stage, runner.offer($0)?.path) }
    }

    var now: ContinuousClock.Instant { host.clock.now() }

    // MARK: The program

    private func boot() {
        guard reconciler == nil else { return }
        let wanted = rules
        let queue = HintQueue {}
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
            hasWork: { [unowned self] view, offer in runner.mirrors[view].archive[offer.number] != nil })
        reconciler?.shared.number = runner.lastOffer
        reconciler?.shared.omitted = omitted
        let scope = Ruleset(rules.map { $0.rule(in: world.base) }).scope
        watcher = SimulatedWatcher(world: world, scope: scope, queue: queue)
        hints = queue
        for index in views.indices {
            reconciler?.views[index].restore(store.offers(of: views[index].id), at: now)
            reconciler?.views[index].restoreFrozen(runner.mirrors[index].frozen.map(\.event))
            reconciler?.views[index].restoreDue(store.duePaths(of: views[index].id), at: now)
        }
        while watcher?.list() == true {}
        turn()
    }

    private func halt(afterEffects: Bool) {
        guard reconciler != nil else { return }
        runner.halt(afterEffects: afterEffects)
        reconciler = nil
        watcher = nil
        hints = nil
    }

    private func turn() {
        receive()
        reconciler?.settle(at: now)
        if reconciler?.mayFreeze == true {
            watcher?.drainAll()
            receive()
            reconciler?.freezeDue()
        }
        commit()
    }

    /// Whether the watcher has hints that were not received yet.
    private(set) var hasUnread = false

    /// Receives the hints that existed when the result of an action arrived.
    func receiveAll() {
        guard omitted != .drain else { return }
        watcher?.drainAll()
        receive()
    }

    private func receive() {
        hasUnread = false
        guard let batch = hints?.take() else { return }
        for hint in batch.hints {
            trace?("  hint \(world.name(of: hint.path)) \(hint.signs.rawValue) \(hint.origin)")
        }
        for report in batch.reports { trace?("  report \(report)") }
        reconciler?.receive(batch, at: now)
    }

    func commit() {
        guard reconciler != nil else { return }
        var changes = StoreChanges()
        for index in views.indices {
            let id = views[index].id
            changes.rows[id] = reconciler?.shared.ledger.changes[id]
            changes.due[id] = reconciler?.shared.dueChanges[id]
            changes.offers[id] = reconciler?.views[index].changedOffers
            changes.failed[id] = runner.mirrors[index].failed
            runner.mirrors[index].failed = [:]
        }
        store.commit(changes)
        reconciler?.markCommitted()
        // Turns visit active views only.
        for view in views.indices where reconciler?.shared.active.contains(view) == reconciler?.views[view].isIdle {
            fault = fault ?? "\(rules[view].name): the view is active without work, or has work and is not active"
        }
        reconciler?.shared.dueChanges = [:]
        for report in reconciler?.shared.reports ?? [] {
            if case .gone(let view, let path, _) = report {
                history.append("\(runner.prefix(view))skipped \(world.name(of: path))")
            }
            if case .superseded(let view, let offer) = report { runner.mirrors[view].noted.insert(offer.number) }
            if case .busy(let view, let path) = report { runner.recordBusy(view, path) }
        }
        reconciler?.shared.reports = []
        reconciler?.shared.accepted = []
        runner.recordFrozen()
        runner.stopOvertaken()
        watcher?.hintAgain(reconciler?.shared.doubted ?? [])
        reconciler?.shared.doubted = []
    }

    private func lease(only path: PathBytes? = nil) {
        if omitted != .readFirst {
            watcher?.drainAll()
            turn()
        }
        runner.lease(only: path)
        commit()
        for view in views.indices { runner.leaseFrozen(view, only: path) }
    }

    package func checkInvariant() {
        if fault == nil, omitted == nil { fault = LedgerCheck(run: self).invariantFault() }
    }

    func isOutOfSight(_ path: PathBytes) -> Bool {
        world.mountedOnce.contains { path.isInside($0) }
            || path.parent.andParents.contains { world.snapshot($0).map { $0.mode & 0o444 == 0 } ?? false }
    }

    // MARK: Steps

    /// Performs one step.
    ///
    /// Returns false if it is not applicable.
    @discardableResult
    package func take(_ step: Step) -> Bool {
        if trace != nil { trace?("\(step)") }
        racesBefore = world.raceCount
        // The change happens in this step or later.
        if let operation = world.race { note(operation) }
        switch step {
        case .world(let operation, let isHintLost):
            note(operation)
            guard world.apply(operation, isHintLost: isHintLost) else { return false }
        case .race(let operation, let inspections):
            world.race(operation, afterInspections: inspections)
        case .drain: return watch { $0.read() }
        case .read: return watch { $0.drainAll() }
        case .list(let path):
            if path != nil, rules.contains(where: \.isPolled) { watcher?.poll() }
            return watch { [world] in $0.list(path.map { world.base.appending($0.bytes).normalized }) }
        case .poll: watcher?.poll()
        case .wait(let milliseconds): world.advance(by: .milliseconds(milliseconds))
        case .turn: turn()
        case .lease: lease()
        case .leaseOnly(let path): lease(only: world.base.appending(path.bytes))
        case .settle: settle()
        case .begin(let path):
            guard let index = runner.index(.leased, path) ?? runner.index(.leased, nil) else { return false }
            runner.begin(index)
        case .run(let path), .miss(let path):
            guard let index = runner.index(.begun, path) else { return false }
            if case .run = step { runner.effect(index) }
            runner.activities[index].stage = .done
        case .ok(let path), .fail(let path), .giveUp(let path):
            guard let index = runner.index(.done, path) ?? runner.index(.begun, path) else { return false }
            if case .ok = step {
                runner.end(index, succeeded: true)
            } else if case .fail = step {
                runner.end(index, succeeded: false)
            } else {
                runner.end(index, succeeded: false, isFinal: true)
            }
        case .kill, .crash:
            halt(afterEffects: step == .crash)
            boot()
        case .halt: halt(afterEffects: false)
        case .boot: boot()
        case .hint(let path):
            hasUnread = true
            hints?.add([Hint(path: world.base.appending(path.bytes), signs: .written)])
        case .rescan: watcher?.rescan()
        case .retry:
            for view in views.indices { retryFailed(view) }
            commit()
        case .undo(let name): return runner.undo(name)
        case .reload:
            reload(rules)
            watcher?.change(to: Ruleset(rules.map { $0.rule(in: world.base) }).scope, number: 1)
        case .hold, .release: return false
        case .rest, .failing:
            fails = step == .failing
            let problem = rest()
            fails = nil
            fault = fault ?? problem
        }
        return true
    }

    private func watch(_ work: (SimulatedWatcher) -> Bool) -> Bool {
        hasUnread = true
        return watcher.map(work) ?? false
    }

    /// Records that another process changes files.
    private func note(_ operation: Operation) {
        // A change by another process during a repeat may be mistaken for the program's own change.
        let changed = operation.paths.map { world.base.appending($0.bytes) }
        let files = changed.compactMap { world.snapshot($0)?.identity }
        for path in changed {
            if let file = world.snapshot(path), file.links > 1 { changedByName.append((file.identity, path)) }
        }
        for view in views.indices {
            for offer in reconciler?.views[view].sortedOffers ?? [] where offer.isRepeat {
                let isChanged = offer.paths.contains { path in
                    changed.contains { path.isInside($0) }
                        || world.snapshot(path).map { files.contains($0.identity) } ?? false
                }
                if isChanged { runner.mirrors[view].untracked.formUnion(offer.paths) }
            }
        }
    }

    private func retryFailed(_ view: Int) {
        guard reconciler != nil else { return }
        for offer in store.failedOffers(of: views[view].id) {
            reconciler?.views[view].retry(offer, at: now)
            runner.mirrors[view].failed.updateValue(nil, forKey: offer.number)
            if reconciler?.views[view].offer(offer.number) != nil {
                runner.mirrors[view].noted.remove(offer.number)
            }
        }
    }

    private func settle() {
        watcher?.drainAll()
        turn()
        for _ in 0..<12 where reconciler?.isSettled == false {
            let pause = reconciler?.nextDeadline.map { $0 - now } ?? .zero
            world.advance(by: min(max(pause, .zero), .seconds(1)) + .milliseconds(1))
            turn()
        }
    }

    private func rest() -> String? {
        world.endRace()
        boot()
        for (path, _) in world.files(below: world.base).sorted(by: { $0.key < $1.key }) {
            while world.isBeingWritten(path) { world.apply(.close(world.name(of: path))) }
        }
        for directory in ["x/", "y/", "z/", "o/"] { world.apply(.show(PathBytes(directory))) }
        // A change through a removed name is noticed with the next hint of the file.
        let gone = Set(changedByName.filter { world.snapshot($0.path)?.identity != $0.file }.map(\.file))
        let others = world.files(below: world.base).filter { gone.contains($0.value.identity) }.keys.sorted()
        hints?.add(others.map { Hint(path: $0, signs: .attributes) })
        var idle = 0
        for _ in 0..<3_000 {
            watcher?.drainAll()
            while watcher?.list() == true {}
            lease()
            if !runner.activities.isEmpty {
                idle = 0
                runner.finishAll(succeeding: fails != true)
                continue
            }
            if let wake = reconciler?.nextDeadline {
                if wake > now { world.advance(by: wake - now + .milliseconds(1)) }
                continue
            }
            guard watcher?.hasWork != true else { continue }
            idle += 1
            if idle > 4 { return nil }
            watcher?.poll()
            world.advance(by: .milliseconds(200))
        }
        return "it does not become idle"
    }

    /// Performs the steps and all remaining work, and checks the result.
    package func run(_ steps: [Step]) -> String? {
        for step in steps where fault == nil {
            if !take(step), step.isOfAction, isStrict { fault = "nothing to \(step)" }
            checkInvariant()
        }
        take(.rest)
        fault = fault ?? LedgerCheck(run: self).verdict()
        return fault
    }

    // MARK: Queries and rules

    /// Replaces the rules.
    package func reload(_ rules: [SimulatedRule]) {
        commit()
        let changed = views.indices.map { index in
            var view = views[index]
            view.filter = rules[index].rule(in: world.base).filter
            view.initialScan = .compare(since: nil)
            return view
        }
        reconciler?.change(to: changed, at: now)
        commit()
    }

    /// Whether an event was leased whose action has not finished.
    package var hasOffers: Bool { views.indices.contains { reconciler?.views[$0].sortedOffers.isEmpty == false } }

    /// The files that have been open for writing for a long time.
    package var held: [PathBytes] { (reconciler?.held ?? [:]).keys.map { world.name(of: $0) }.sorted() }
}

extension Reconciling.View.WhileBusy {
    init(_ word: Rule.WhileBusy) {
        switch word {
        case .coalesce: self = .merge
        case .queue: self = .queue
        case .restart: self = .restart
        case .drop: self = .drop
        }
    }
}
