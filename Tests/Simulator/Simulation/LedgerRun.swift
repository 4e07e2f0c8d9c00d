import FileEvents
import Globbing
import Pipeline
package import Reconciling
import Rules
package import System
import Watching

/// A run of the reconciler of `Sources/Pipeline` in a simulated world, with actions that maintain mirrors of the files.
package final class LedgerRun: CoreRun {
    let program: LedgerProgram
    /// The actions.
    let runner: LedgerActionRunner
    /// Whether a step of an action that does not run is an error.
    var isStrict = false
    private var fails: Bool?

    /// Creates a world without files and starts the program.
    package init(
        _ rules: [SimulatedRule], seed: UInt64 = 0, delays: Bool = false, hasBirth: Bool = true,
        foldsCase: Bool = false, omitting omitted: CoreRule? = nil
    ) {
        program = LedgerProgram(
            rules, seed: seed, delays: delays, hasBirth: hasBirth, foldsCase: foldsCase, omitting: omitted)
        runner = LedgerActionRunner(program)
        boot()
        settle()
    }

    package var actions: [(stage: ActionStage, path: PathBytes?)] {
        runner.activities.map { ($0.stage, runner.offer($0)?.path) }
    }

    package var world: World { program.world }
    package var rules: [SimulatedRule] { program.rules }
    private var views: [Reconciling.View] { program.views }
    private var watcher: SimulatedWatcher? { program.watcher }
    private var now: ContinuousClock.Instant { program.now }
    package var history: [String] { program.history }
    package var failure: String? { program.failure }
    package var trace: (@Sendable (String) -> Void)? {
        get { program.trace }
        set { program.trace = newValue }
    }

    // MARK: The program

    private func boot() {
        guard program.reconciler == nil else { return }
        program.boot()
        runner.turn()
    }

    private func halt(afterEffects: Bool) {
        guard program.reconciler != nil else { return }
        runner.halt(afterEffects: afterEffects)
        program.halt()
    }

    private func lease(only path: PathBytes? = nil) {
        if program.omitted != .readFirst {
            watcher?.drainAll()
            runner.turn()
        }
        runner.lease(only: path)
        runner.commit()
        for view in views.indices { runner.leaseFrozen(view, only: path) }
    }

    package func checkInvariant() {
        if failure == nil, program.omitted == nil { program.failure = LedgerCheck(runner).invariantFailure() }
    }

    // MARK: Steps

    /// Performs one step.
    ///
    /// Returns false if it is not applicable.
    @discardableResult
    package func take(_ step: Step) -> Bool {
        if trace != nil { trace?("\(step)") }
        runner.racesBefore = world.raceCount
        // The change happens in this step or later.
        if let operation = world.race { record(operation) }
        switch step {
        case .world(let operation, let isHintLost):
            record(operation)
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
        case .turn: runner.turn()
        case .lease: lease()
        case .leaseOnly(let path): lease(only: world.base.appending(path.bytes))
        case .settle: settle()
        case .begin(let path):
            guard let index = runner.index(.leased, path) ?? runner.index(.leased, nil) else { return false }
            runner.begin(index)
        case .run(let path), .miss(let path):
            guard let index = runner.index(.started, path) else { return false }
            if case .run = step { runner.effect(index) }
            runner.activities[index].stage = .done
        case .ok(let path): return end(path, succeeded: true)
        case .fail(let path): return end(path, succeeded: false)
        case .giveUp(let path): return end(path, succeeded: false, isFinal: true)
        case .kill, .crash:
            halt(afterEffects: step == .crash)
            boot()
        case .halt: halt(afterEffects: false)
        case .boot: boot()
        case .hint(let path):
            program.hasUnread = true
            watcher?.queue.add([Hint(path: world.base.appending(path.bytes), signs: .written)])
        case .rescan: watcher?.rescan()
        case .retry:
            for view in views.indices { retryFailed(view) }
            runner.commit()
        case .undo(let name): return undo(name)
        case .reload:
            reload(rules)
            watcher?.change(to: Ruleset(rules.map { $0.rule(in: world.base) }).scope, number: 1)
        case .hold, .release: return false
        case .rest, .failing:
            fails = step == .failing
            let problem = rest()
            fails = nil
            program.record(failure: problem)
        }
        return true
    }

    /// Finishes the action for a path.
    ///
    /// Returns false if there is none.
    private func end(_ path: PathBytes?, succeeded: Bool, isFinal: Bool = false) -> Bool {
        guard let index = runner.index(.done, path) ?? runner.index(.started, path) else { return false }
        runner.end(index, succeeded: succeeded, isFinal: isFinal)
        return true
    }

    private func watch(_ work: (SimulatedWatcher) -> Bool) -> Bool {
        program.hasUnread = true
        return watcher.map(work) ?? false
    }

    /// Records that another process changes files.
    private func record(_ operation: Operation) {
        // A change by another process during a repeat may be mistaken for the program's own change.
        let changed = operation.paths.map { world.base.appending($0.bytes) }
        let files = changed.compactMap { world.snapshot($0)?.identity }
        runner.changedByName.record(changed, in: world)
        for view in views.indices {
            for offer in program.reconciler?.views[view].sortedOffers ?? [] where offer.isRepeat {
                let isChanged = offer.paths.contains { path in
                    changed.contains { path.isInside($0) }
                        || world.snapshot(path).map { files.contains($0.identity) } ?? false
                }
                if isChanged { program.mirrors[view].untracked.formUnion(offer.paths) }
            }
        }
    }

    /// Undoes a change of a file.
    ///
    /// Returns false if it is not applicable.
    private func undo(_ name: PathBytes) -> Bool {
        world.endRace()
        let path = world.base.appending(name.bytes)
        // A rewritten file can't be distinguished from one that has grown.
        let change: Operation = rules.contains(where: \.follows) ? .append(name) : .write(name)
        guard world.content(path) != nil, !world.isBeingWritten(path), !program.isOutOfSight(path),
            let view = views.indices.first,
            !program.mirrors[view].frozen.contains(where: {
                $0.event.snapshot.identity == world.snapshot(path)?.identity
            }),
            views[view].filter.root(matching: path.bytes) != nil,
            program.reconciler?.views[view].undo(path, { world.apply(change) }) == true
        else { return false }
        program.mirrors[view].untracked.insert(path)
        program.mirrors[view].named.insert(path)
        program.mirrors[view].received[path] = world.snapshot(path)
        if let file = world.snapshot(path)?.identity { program.mirrors[view].texts.texts[file] = world.text(path) }
        runner.commit()
        return true
    }

    private func retryFailed(_ view: Int) {
        guard program.reconciler != nil else { return }
        for offer in program.store.failedOffers(of: views[view].id) {
            program.reconciler?.views[view].retry(offer, at: now)
            program.mirrors[view].failed.updateValue(nil, forKey: offer.number)
            if program.reconciler?.views[view].offer(offer.number) != nil {
                program.mirrors[view].noted.remove(offer.number)
            }
        }
    }

    private func settle() {
        watcher?.drainAll()
        runner.turn()
        for _ in 0..<12 where program.reconciler?.isSettled == false {
            let pause = program.reconciler?.nextDeadline.map { $0 - now } ?? .zero
            world.advance(by: min(max(pause, .zero), .seconds(1)) + .milliseconds(1))
            runner.turn()
        }
    }

    private func rest() -> String? {
        world.endRace()
        boot()
        world.releaseAll()
        watcher?.queue.add(runner.changedByName.hints(in: world))
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
            if let wake = program.reconciler?.nextDeadline {
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
        for step in steps where failure == nil {
            if !take(step), step.isOfAction, isStrict { program.failure = "nothing to \(step)" }
            checkInvariant()
        }
        take(.rest)
        program.record(failure: failure ?? LedgerCheck(runner).verdict())
        return failure
    }

    // MARK: Queries and rules

    /// Replaces the rules.
    package func reload(_ rules: [SimulatedRule]) {
        runner.commit()
        let changed = views.indices.map { index in
            var view = views[index]
            view.filter = rules[index].rule(in: world.base).filter
            view.initialScan = .compare(since: nil)
            return view
        }
        program.reconciler?.change(to: changed, at: now)
        runner.commit()
    }

    /// Whether an event was leased whose action has not finished.
    package var hasOffers: Bool {
        views.indices.contains { program.reconciler?.views[$0].sortedOffers.isEmpty == false }
    }

    /// The files that have been open for writing for a long time.
    package var held: [PathBytes] { (program.reconciler?.held ?? [:]).keys.map { world.name(of: $0) }.sorted() }
}
