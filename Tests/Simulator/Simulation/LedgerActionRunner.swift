import FileEvents
import Globbing
import Reconciling
import Settling
import System

/// The actions of a run of the reconciler, with the mirrors that they maintain.
final class LedgerActionRunner {
    // The run owns its runner.
    private unowned let run: LedgerRun
    var activities: [Activity] = []
    var mirrors: [LedgerMirror]
    private(set) var lastOffer: UInt64 = 0
    /// The number of frozen events.
    private var rows: UInt64 = 0

    struct Activity {
        var view: Int
        var offer: UInt64
        var stage = ActionStage.leased
        var hasEffect = false
        /// Whether the action runs for a frozen event.
        var isFrozen = false
    }

    init(for run: LedgerRun) {
        self.run = run
        mirrors = Array(repeating: LedgerMirror(), count: run.rules.count)
    }

    private var world: World { run.world }
    private var rules: [SimulatedRule] { run.rules }
    private var views: [Reconciling.View] { run.views }
    private var now: ContinuousClock.Instant { run.now }
    private var trace: (@Sendable (String) -> Void)? { run.trace }

    func prefix(_ view: Int) -> String { view == 0 ? "" : "\(rules[view].name): " }

    func offer(_ activity: Activity) -> Offer? {
        (activity.isFrozen ? mirrors[activity.view].frozen : run.reconciler?.views[activity.view].sortedOffers ?? [])
            .first { $0.number == activity.offer }
    }

    func index(_ stage: ActionStage, _ path: PathBytes?) -> Int? {
        let wanted = path.map { world.base.appending($0.bytes) }
        return activities.firstIndex { $0.stage == stage && (wanted == nil || offer($0)?.path == wanted) }
    }

    /// Starts the actions that may start.
    func lease(only path: PathBytes?) {
        for view in views.indices {
            while activities.count(where: { $0.view == view }) < rules[view].concurrency,
                let candidate = run.reconciler?.views[view].nextCandidate(at: now)
            {
                guard path == nil || candidate.event.path == path else {
                    run.reconciler?.views[candidate.view].hold(candidate, for: .init("only"), until: now + .milliseconds(1))
                    continue
                }
                guard let offer = run.reconciler?.views[candidate.view].lease(candidate) else { continue }
                trace?(
                    "  lease \(offer.number) \(offer.event.kind) \(world.name(of: offer.path)) attempt \(offer.attempt)"
                )
                activities.append(Activity(view: view, offer: offer.number))
                lastOffer = max(lastOffer, offer.number)
                run.reconciler?.views[view].update(offer.number) { [self] in $0.mayRemoveInput = step(view, $0) == .take }
                if run.fault == nil { run.fault = LedgerCheck(run: run).wrong(view, offer) }
                mirrors[view].named.formUnion(offer.paths)
            }
        }
    }

    private func step(_ view: Int, _ offer: Offer) -> Behaviour {
        rules[view].steps[min(offer.steps, rules[view].steps.count - 1)]
    }

    func begin(_ index: Int) {
        let activity = activities[index]
        if activity.isFrozen {
            activities[index].stage = .begun
        } else if start(activity) {
            activities[index].stage = .begun
            if rules[activity.view].isRemote {
                run.reconciler?.views[activity.view].update(activity.offer) { $0.isSent = true }
            }
        } else {
            activities.remove(at: index)
        }
        run.commit()
    }

    /// Checks the path once more, immediately before the action starts.
    private func start(_ activity: Activity) -> Bool {
        guard let offer = offer(activity) else { return false }
        let mayBeDone =
            offer.hasRemovedInput || offer.isInterrupted && offer.mayRemoveInput && run.omitted != .reenter
        if offer.event.kind == .deleted || mayBeDone || world.snapshot(offer.path) != nil { return true }
        if run.omitted == .gone {
            run.reconciler?.views[activity.view].finish(activity.offer, .succeeded, at: now)
        } else {
            run.reconciler?.views[activity.view].withdraw(activity.offer, at: now)
        }
        return false
    }

    func effect(_ index: Int) {
        guard let offer = offer(activities[index]), !activities[index].hasEffect else { return }
        activities[index].hasEffect = perform(activities[index].view, offer)
    }

    /// Performs one step of an action, which reads the disk as it is now.
    private func perform(_ view: Int, _ offer: Offer) -> Bool {
        let event = offer.event
        let path = event.path
        let name = world.name(of: path)
        let step = step(view, offer)
        trace?("  \(step.rawValue) \(offer.number) \(event.kind) \(name)")
        switch step {
        case .note:
            mirrors[view].noted.insert(offer.number)
            run.history.append("\(prefix(view))note \(name)")
            return true
        case .take:
            if mirrors[view].archive[offer.number] != nil { return true }
            guard let present = world.snapshot(path), present.hasSameContent(as: event.snapshot) else { return false }
            mirrors[view].archive[offer.number] = present
            world.apply(.delete(name))
            run.history.append("\(prefix(view))take \(name)")
            return true
        case .copy
        where event.kind != .deleted && world.content(path) != nil && !name.bytes.starts(with: "o/".utf8):
            let output = PathBytes("o/").appending(path.lastComponent)
            let written = world.base.appending(output.bytes)
            run.reconciler?.views[view].declareOutput(offer.number, written)
            if world.apply(.create(output)) || world.apply(.write(output)) {
                mirrors[view].outputs[offer.number, default: []].insert(written)
            }
        default: break
        }
        run.history.append("\(prefix(view))\(event.kind) \(event.from.map { "\(world.name(of: $0))>" } ?? "")\(name)")
        if rules[view].isTree {
            if let from = event.from { mirrors[view].trees[from] = nil }
            mirrors[view].trees[path] = event.kind == .deleted ? nil : world.tree(path)
        }
        if rules[view].follows { mirrors[view].recordText(offer, run) }
        let content = world.content(path)
        switch event.kind {
        case .deleted: mirrors[view].contents[path] = nil
        case .moved:
            let isRewritten = mirrors[view].rewritten.contains(offer.number)
            let held = isRewritten ? nil : event.from.flatMap { mirrors[view].contents.removeValue(forKey: $0) }
            mirrors[view].contents[path] =
                offer.attempt == 1 && !views[view].freezes ? held ?? content : content ?? held
        default: if let content { mirrors[view].contents[path] = content }
        }
        let isStale = event.from.map { mirrors[view].untracked.contains($0) } ?? false
        mirrors[view].untracked.subtract(offer.paths)
        if isStale { mirrors[view].untracked.insert(path) }
        if step == .edit, content != nil, event.kind != .deleted {
            world.apply(.write(name))
            mirrors[view].contents[path] = world.content(path)
        }
        return true
    }

    func end(_ index: Int, succeeded: Bool, isFinal: Bool = false) {
        var activity = activities[index]
        guard let offer = offer(activity) else { return }
        let view = activity.view
        guard !activity.isFrozen else { return endFrozen(index, offer, succeeded: succeeded, isFinal: isFinal) }
        let step = step(view, offer)
        if activity.hasEffect, succeeded, offer.steps + 1 < rules[view].steps.count {
            recordOutputs(view, offer)
            run.reconciler?.views[view].finishStep(offer.number, removedInput: step == .take)
            run.reconciler?.views[view].update(offer.number) { [self] in $0.mayRemoveInput = self.step(view, $0) == .take }
            (activity.stage, activity.hasEffect) = (.begun, false)
            activities[index] = activity
            return run.commit()
        }
        activities.remove(at: index)
        if activity.hasEffect, step == .take {
            run.reconciler?.views[view].update(offer.number) {
                if succeeded { $0.hasRemovedInput = true } else { $0.isInterrupted = true }
            }
        }
        run.receiveAll()
        if !(activity.hasEffect && succeeded) { mirrors[view].outputs[offer.number] = nil }
        let hasFoundNothing =
            step == .take && !activity.hasEffect && offer.event.kind != .deleted
            && mirrors[view].archive[offer.number] == nil && world.snapshot(offer.path) == nil && offer.attempt > 1
        if activity.hasEffect, succeeded {
            run.reconciler?.views[view].update(offer.number) { recordSuccess(view, $0) }
            recordOutputs(view, offer)
            run.reconciler?.views[view].finish(offer.number, .succeeded, at: now)
            if offer.event.kind == .deleted,
                run.reconciler?.shared.ledger.row(of: views[view].id, at: offer.path) == LedgerRow()
            {
                mirrors[view].named.remove(offer.path)
            }
        } else if hasFoundNothing {
            run.reconciler?.views[view].finish(offer.number, .gone, at: now)
        } else if offer.attempt < 3, !isFinal {
            run.reconciler?.views[view].finish(offer.number, .retry(at: now + .seconds(1 << (offer.attempt - 1))), at: now)
        } else {
            run.reconciler?.views[view].update(offer.number) {
                mirrors[view].failed[offer.number] = $0
                recordSuccess(view, $0)
            }
            run.reconciler?.views[view].finish(offer.number, .gaveUp, at: now)
            mirrors[view].untracked.formUnion(offer.paths)
            mirrors[view].noted.insert(offer.number)
            run.history.append("\(prefix(view))failed \(world.name(of: offer.path))")
        }
        run.commit()
    }

    /// Finishes all actions.
    func finishAll(succeeding: Bool) {
        while !activities.isEmpty {
            if activities[0].stage == .leased {
                begin(0)
            } else {
                if activities[0].stage == .begun { effect(0) }
                end(0, succeeded: succeeding)
            }
        }
    }

    /// Ends the actions that a kill ends.
    func halt(afterEffects: Bool) {
        for index in activities.indices
        where activities[index].stage == .begun && afterEffects && !rules[activities[index].view].isRemote {
            effect(index)
        }
        for activity in activities where activity.isFrozen && activity.stage != .leased { interrupt(activity) }
        activities.removeAll { !rules[$0.view].isRemote || $0.stage == .leased || $0.isFrozen }
        for index in rules.indices where !rules[index].catchUp { mirrors[index].isForgiven = true }
    }

    /// Undoes a change of a file.
    ///
    /// Returns false if it is not applicable.
    func undo(_ name: PathBytes) -> Bool {
        world.endRace()
        let path = world.base.appending(name.bytes)
        // A rewritten file can't be distinguished from one that has grown.
        let change: Operation = rules.contains(where: \.follows) ? .append(name) : .write(name)
        guard world.content(path) != nil, !world.isBeingWritten(path), !run.isOutOfSight(path),
            let view = views.indices.first,
            !mirrors[view].frozen.contains(where: { $0.event.snapshot.identity == world.snapshot(path)?.identity }),
            views[view].filter.root(taking: path.bytes) != nil,
            run.reconciler?.views[view].undo(path, { world.apply(change) }) == true
        else { return false }
        mirrors[view].untracked.insert(path)
        mirrors[view].named.insert(path)
        mirrors[view].received[path] = world.snapshot(path)
        if let file = world.snapshot(path)?.identity { mirrors[view].texts[file] = world.text(path) }
        run.commit()
        return true
    }

    /// Records the output of a step after it has succeeded.
    private func recordOutputs(_ view: Int, _ offer: Offer) {
        for output in mirrors[view].outputs.removeValue(forKey: offer.number) ?? [] {
            guard world.snapshot(output) != nil else { continue }
            run.reconciler?.views[view].recordOwnWrite(output)
            guard let present = world.snapshot(output), rules[view].wants(present) else { continue }
            for other in run.reconciler?.views[view].sortedOffers ?? [] where other.event.from == output {
                mirrors[view].rewritten.insert(other.number)
            }
            mirrors[view].contents[output] = world.content(output)
            mirrors[view].received[output] = present
            mirrors[view].named.insert(output)
        }
    }

    private func recordSuccess(_ view: Int, _ offer: Offer) {
        if let from = offer.event.from, !mirrors[view].rewritten.contains(offer.number) {
            mirrors[view].received[from] = nil
        }
        mirrors[view].received[offer.path] = offer.hasRemovedInput ? nil : offer.offered
    }

    // MARK: Frozen events, and changes while an action runs

    /// The number of the first row, above the numbers of offers.
    private static let firstRow: UInt64 = 1_000_000

    /// Stores the events that the reconciler has frozen, with the commit of the ledger.
    func recordFrozen() {
        for (view, event, isUncertain) in run.reconciler?.shared.frozen ?? [] {
            rows += 1
            trace?("  freeze \(rows) \(event.kind) \(world.name(of: event.path))")
            var row = Offer(number: Self.firstRow + rows, event: event)
            row.isUncertain = isUncertain
            if !views[view].mask.takes(event.kind, changed: event.changed) {
                run.fault = run.fault ?? "\(event.kind) \(world.name(of: event.path)) is not in the mask"
            }
            if event.kind.isDifference {
                recordSuccess(view, row)
                mirrors[view].named.formUnion(row.paths)
            }
            mirrors[view].frozen.append(row)
        }
        run.reconciler?.shared.frozen = []
    }

    /// Starts actions, in order, for the rows of a view whose paths are free.
    func leaseFrozen(_ view: Int, only path: PathBytes?) {
        var busy = Set(activities.filter { $0.view == view }.flatMap { paths(of: $0) })
        for row in mirrors[view].frozen {
            let isFree = busy.isDisjoint(with: row.paths)
            busy.formUnion(row.paths)
            guard isFree, path == nil || path == row.path,
                activities.count(where: { $0.view == view }) < rules[view].concurrency
            else { continue }
            activities.append(Activity(view: view, offer: row.number, isFrozen: true))
            run.reconciler?.views[view].beginFrozen(row.event)
        }
    }

    private func paths(of activity: Activity) -> [PathBytes] {
        let all = activity.isFrozen ? mirrors[activity.view].frozen : run.reconciler?.views[activity.view].sortedOffers ?? []
        return all.first { $0.number == activity.offer }?.paths ?? []
    }

    private func change(_ view: Int, _ number: UInt64, _ body: (inout Offer) -> Void) {
        guard let index = mirrors[view].frozen.firstIndex(where: { $0.number == number }) else { return }
        body(&mirrors[view].frozen[index])
    }

    private func interrupt(_ activity: Activity) {
        change(activity.view, activity.offer) {
            $0.attempt += 1
            $0.isInterrupted = true
        }
    }

    /// Finishes a step or an attempt of the action for a frozen event.
    private func endFrozen(_ index: Int, _ row: Offer, succeeded: Bool, isFinal: Bool) {
        let activity = activities[index]
        let view = activity.view
        let isDone = activity.hasEffect && succeeded
        if isDone, row.steps + 1 < rules[view].steps.count {
            change(view, row.number) { $0.steps += 1 }
            (activities[index].stage, activities[index].hasEffect) = (.begun, false)
            return
        }
        activities.remove(at: index)
        if !isDone, row.attempt < 3, !isFinal { return interrupt(activity) }
        mirrors[view].frozen.removeAll { $0.number == row.number }
        if !isDone {
            mirrors[view].lost.insert(row.event.snapshot.identity)
            mirrors[view].untracked.formUnion(row.paths)
            mirrors[view].noted.insert(row.number)
            run.history.append("\(prefix(view))failed \(world.name(of: row.path))")
        }
        run.receiveAll()
        run.reconciler?.views[view].endFrozen(row.event, isDone ? .succeeded : .gaveUp, at: now)
        run.commit()
    }

    /// Records a change that the rule drops.
    func recordBusy(_ view: Int, _ path: PathBytes) {
        mirrors[view].untracked.insert(path)
        mirrors[view].received[path] = run.reconciler?.shared.ledger.row(of: views[view].id, at: path).handled
    }

    /// Stops the actions whose files have changed.
    func stopOvertaken() {
        let overtaken = run.reconciler?.shared.overtaken ?? []
        guard !overtaken.isEmpty else { return }
        run.reconciler?.shared.overtaken = []
        for (view, number) in overtaken {
            trace?("  stop \(number)")
            activities.removeAll { $0.view == view && $0.offer == number && !$0.isFrozen }
            mirrors[view].outputs[number] = nil
            run.reconciler?.views[view].finish(number, .overtaken, at: now)
        }
        run.commit()
    }
}
