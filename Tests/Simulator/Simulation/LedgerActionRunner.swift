import FileEvents
import Reconciling
import System

/// The actions of a run of the reconciler, with the mirrors that they maintain.
final class LedgerActionRunner {
    let program: LedgerProgram
    var activities: [Activity] = []
    /// The number of frozen events.
    private var rows: UInt64 = 0
    /// The number of changes between two inspections by the program before the current step.
    var racesBefore = 0
    var changedByName = ChangedNames()

    struct Activity {
        var view: Int
        var offer: UInt64
        var stage = ActionStage.leased
        var hasEffect = false
        /// Whether the action runs for a frozen event.
        var isFrozen = false
    }

    init(_ program: LedgerProgram) { self.program = program }

    private var world: World { program.world }
    private var rules: [SimulatedRule] { program.rules }
    private var views: [Reconciling.View] { program.views }
    private var now: ContinuousClock.Instant { program.now }

    // MARK: Turns

    func turn() {
        program.receive()
        program.reconciler?.settle(at: now)
        if program.reconciler?.mayFreeze == true {
            program.watcher?.drainAll()
            program.receive()
            program.reconciler?.freezeDue()
        }
        commit()
    }

    func commit() {
        guard program.reconciler != nil else { return }
        var changes = StoreChanges()
        for index in views.indices {
            let id = views[index].id
            changes.rows[id] = program.reconciler?.shared.ledger.changes[id]
            changes.due[id] = program.reconciler?.shared.dueChanges[id]
            changes.offers[id] = program.reconciler?.views[index].changedOffers
            changes.failed[id] = program.mirrors[index].failed
            program.mirrors[index].failed = [:]
        }
        program.store.commit(changes)
        program.reconciler?.markCommitted()
        program.reconciler?.closeDirectories()
        // Turns visit active views only.
        for view in views.indices
        where program.reconciler?.shared.active.contains(view) == program.reconciler?.views[view].isIdle {
            program.record(
                failure: "\(rules[view].name): the view is active without work, or has work and is not active")
        }
        let effects = program.reconciler?.shared.takeEffects() ?? []
        for report in effects {
            if case .gone(let view, let path, _) = report {
                program.history.append("\(program.prefix(view))skipped \(world.name(of: path))")
            }
            if case .superseded(let view, let offer) = report { program.mirrors[view].noted.insert(offer.number) }
            // The rule drops the change.
            if case .busy(let view, let path) = report {
                program.mirrors[view].untracked.insert(path)
                program.mirrors[view].received[path] =
                    program.reconciler?.shared.ledger.row(of: views[view].id, at: path).handled
            }
        }
        recordFrozen(effects)
        stopOvertaken(effects)
        if let doubt = program.reconciler?.shared.takeDoubted() { program.watcher?.hintAgain(doubt) }
    }

    // MARK: Actions

    func offer(_ activity: Activity) -> Offer? {
        if activity.isFrozen { return program.mirrors[activity.view].frozen.first { $0.number == activity.offer } }
        return program.reconciler?.views[activity.view].sortedOffers.first { $0.number == activity.offer }
    }

    func index(_ stage: ActionStage, _ path: PathBytes?) -> Int? {
        let wanted = path.map { world.base.appending($0.bytes) }
        return activities.firstIndex { $0.stage == stage && (wanted == nil || offer($0)?.path == wanted) }
    }

    /// Starts the actions that may start.
    func lease(only path: PathBytes?) {
        for view in views.indices {
            while activities.count(where: { $0.view == view }) < rules[view].concurrency,
                let candidate = program.reconciler?.views[view].nextCandidate(at: now)
            {
                guard path == nil || candidate.event.path == path else {
                    program.reconciler?.views[view].hold(candidate, for: .init("only"), until: now + .milliseconds(1))
                    continue
                }
                guard let offer = program.reconciler?.views[view].lease(candidate) else { continue }
                program.trace?(
                    "  lease \(offer.number) \(offer.event.kind) \(world.name(of: offer.path)) attempt \(offer.attempt)"
                )
                activities.append(Activity(view: view, offer: offer.number))
                program.lastOffer = max(program.lastOffer, offer.number)
                program.reconciler?.views[view].update(offer.number) { [self] in
                    $0.mayRemoveInput = step(view, $0) == .take
                }
                if program.failure == nil { program.failure = LedgerCheck(self).wrong(view, offer) }
                program.mirrors[view].named.formUnion(offer.paths)
            }
        }
    }

    private func step(_ view: Int, _ offer: Offer) -> Behaviour {
        rules[view].steps[min(offer.steps, rules[view].steps.count - 1)]
    }

    func begin(_ index: Int) {
        let activity = activities[index]
        if activity.isFrozen || start(activity) {
            activities[index].stage = .started
            if !activity.isFrozen, rules[activity.view].isRemote {
                program.reconciler?.views[activity.view].update(activity.offer) { $0.isSent = true }
            }
        } else {
            activities.remove(at: index)
        }
        commit()
    }

    /// Checks the path once more, immediately before the action starts.
    private func start(_ activity: Activity) -> Bool {
        guard let offer = offer(activity) else { return false }
        let mayBeDone =
            offer.hasRemovedInput || offer.isInterrupted && offer.mayRemoveInput && program.omitted != .reenter
        if offer.event.kind == .deleted || mayBeDone || world.snapshot(offer.path) != nil { return true }
        if program.omitted == .gone {
            program.reconciler?.views[activity.view].finish(activity.offer, .succeeded, at: now)
        } else {
            program.reconciler?.views[activity.view].withdraw(activity.offer, at: now)
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
        program.trace?("  \(step.rawValue) \(offer.number) \(event.kind) \(name)")
        switch step {
        case .note:
            program.mirrors[view].noted.insert(offer.number)
            program.history.append("\(program.prefix(view))note \(name)")
            return true
        case .take:
            if program.mirrors[view].archive[offer.number] != nil { return true }
            guard let present = world.snapshot(path), present.hasSameContent(as: event.snapshot) else { return false }
            program.mirrors[view].archive[offer.number] = present
            world.apply(.delete(name))
            program.history.append("\(program.prefix(view))take \(name)")
            return true
        case .copy
        where event.kind != .deleted && world.content(path) != nil && !name.bytes.starts(with: "o/".utf8):
            let output = PathBytes("o/").appending(path.lastComponent)
            let written = world.base.appending(output.bytes)
            program.reconciler?.views[view].declareOutput(offer.number, written)
            if world.apply(.create(output)) || world.apply(.write(output)) {
                program.mirrors[view].outputs[offer.number, default: []].insert(written)
            }
        default: break
        }
        let from = event.from.map { "\(world.name(of: $0))>" } ?? ""
        program.history.append("\(program.prefix(view))\(event.kind) \(from)\(name)")
        if rules[view].isTree {
            if let from = event.from { program.mirrors[view].trees[from] = nil }
            program.mirrors[view].trees[path] = event.kind == .deleted ? nil : world.tree(path)
        }
        if rules[view].follows { program.record(failure: program.mirrors[view].recordText(offer, in: world)) }
        let content = world.content(path)
        switch event.kind {
        case .deleted: program.mirrors[view].contents[path] = nil
        case .moved:
            let isRewritten = program.mirrors[view].rewritten.contains(offer.number)
            let held = isRewritten ? nil : event.from.flatMap { program.mirrors[view].contents.removeValue(forKey: $0) }
            program.mirrors[view].contents[path] =
                offer.attempt == 1 && !views[view].freezes ? held ?? content : content ?? held
        default: if let content { program.mirrors[view].contents[path] = content }
        }
        let isStale = event.from.map { program.mirrors[view].untracked.contains($0) } ?? false
        program.mirrors[view].untracked.subtract(offer.paths)
        if isStale { program.mirrors[view].untracked.insert(path) }
        if step == .edit, content != nil, event.kind != .deleted {
            world.apply(.write(name))
            program.mirrors[view].contents[path] = world.content(path)
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
            program.reconciler?.views[view].finishStep(offer.number, removedInput: step == .take)
            program.reconciler?.views[view].update(offer.number) { $0.mayRemoveInput = self.step(view, $0) == .take }
            (activity.stage, activity.hasEffect) = (.started, false)
            activities[index] = activity
            return commit()
        }
        activities.remove(at: index)
        if activity.hasEffect, step == .take {
            program.reconciler?.views[view].update(offer.number) {
                if succeeded { $0.hasRemovedInput = true } else { $0.isInterrupted = true }
            }
        }
        program.receiveAll()
        if !(activity.hasEffect && succeeded) { program.mirrors[view].outputs[offer.number] = nil }
        let hasFoundNothing =
            step == .take && !activity.hasEffect && offer.event.kind != .deleted && offer.attempt > 1
            && program.mirrors[view].archive[offer.number] == nil && world.snapshot(offer.path) == nil
        if activity.hasEffect, succeeded {
            program.reconciler?.views[view].update(offer.number) { recordSuccess(view, $0) }
            recordOutputs(view, offer)
            program.reconciler?.views[view].finish(offer.number, .succeeded, at: now)
            if offer.event.kind == .deleted,
                program.reconciler?.shared.ledger.row(of: views[view].id, at: offer.path) == LedgerRow()
            {
                program.mirrors[view].named.remove(offer.path)
            }
        } else if hasFoundNothing {
            program.reconciler?.views[view].finish(offer.number, .gone, at: now)
        } else if offer.attempt < 3, !isFinal {
            let next = now + .seconds(1 << (offer.attempt - 1))
            program.reconciler?.views[view].finish(offer.number, .retry(at: next), at: now)
        } else {
            program.reconciler?.views[view].update(offer.number) {
                program.mirrors[view].failed[offer.number] = $0
                recordSuccess(view, $0)
            }
            program.reconciler?.views[view].finish(offer.number, .gaveUp, at: now)
            program.mirrors[view].untracked.formUnion(offer.paths)
            program.mirrors[view].noted.insert(offer.number)
            program.history.append("\(program.prefix(view))failed \(world.name(of: offer.path))")
        }
        commit()
    }

    /// Finishes all actions.
    func finishAll(succeeding: Bool) {
        while !activities.isEmpty {
            if activities[0].stage == .leased {
                begin(0)
            } else {
                if activities[0].stage == .started { effect(0) }
                end(0, succeeded: succeeding)
            }
        }
    }

    /// Ends the actions that a kill ends.
    func halt(afterEffects: Bool) {
        for index in activities.indices
        where activities[index].stage == .started && afterEffects && !rules[activities[index].view].isRemote {
            effect(index)
        }
        for activity in activities where activity.isFrozen && activity.stage != .leased { interrupt(activity) }
        activities.removeAll { !rules[$0.view].isRemote || $0.stage == .leased || $0.isFrozen }
        for index in rules.indices where !rules[index].catchUp { program.mirrors[index].isForgiven = true }
    }

    /// Records the output of a step after it has succeeded.
    private func recordOutputs(_ view: Int, _ offer: Offer) {
        for output in program.mirrors[view].outputs.removeValue(forKey: offer.number) ?? [] {
            guard world.snapshot(output) != nil else { continue }
            program.reconciler?.views[view].recordOwnWrite(output)
            guard let present = world.snapshot(output), rules[view].wants(present) else { continue }
            for other in program.reconciler?.views[view].sortedOffers ?? [] where other.event.from == output {
                program.mirrors[view].rewritten.insert(other.number)
            }
            program.mirrors[view].contents[output] = world.content(output)
            program.mirrors[view].received[output] = present
            program.mirrors[view].named.insert(output)
        }
    }

    private func recordSuccess(_ view: Int, _ offer: Offer) {
        if let from = offer.event.from, !program.mirrors[view].rewritten.contains(offer.number) {
            program.mirrors[view].received[from] = nil
        }
        program.mirrors[view].received[offer.path] = offer.hasRemovedInput ? nil : offer.offered
    }

    // MARK: Frozen events, and changes while an action runs

    /// The number of the first row, above the numbers of offers.
    private static let firstRow: UInt64 = 1_000_000

    /// Stores the events that the reconciler has frozen, with the commit of the ledger.
    func recordFrozen(_ effects: [Reconciler.Effect]) {
        for case .stored(let view, let event, let isUncertain) in effects {
            rows += 1
            program.trace?("  freeze \(rows) \(event.kind) \(world.name(of: event.path))")
            var row = Offer(number: Self.firstRow + rows, event: event)
            row.isUncertain = isUncertain
            if !views[view].mask.takes(event.kind, changed: event.changed) {
                program.record(failure: "\(event.kind) \(world.name(of: event.path)) is not in the mask")
            }
            if event.kind.isDifference {
                recordSuccess(view, row)
                program.mirrors[view].named.formUnion(row.paths)
            }
            program.mirrors[view].frozen.append(row)
        }
    }

    /// Starts actions, in order, for the rows of a view whose paths are free.
    func leaseFrozen(_ view: Int, only path: PathBytes?) {
        var busy = Set(activities.filter { $0.view == view }.flatMap { offer($0)?.paths ?? [] })
        for row in program.mirrors[view].frozen {
            let isFree = busy.isDisjoint(with: row.paths)
            busy.formUnion(row.paths)
            guard isFree, path == nil || path == row.path,
                activities.count(where: { $0.view == view }) < rules[view].concurrency
            else { continue }
            activities.append(Activity(view: view, offer: row.number, isFrozen: true))
            program.reconciler?.views[view].startFrozen(row.event)
        }
    }

    private func change(_ view: Int, _ number: UInt64, _ body: (inout Offer) -> Void) {
        guard let index = program.mirrors[view].frozen.firstIndex(where: { $0.number == number }) else { return }
        body(&program.mirrors[view].frozen[index])
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
            (activities[index].stage, activities[index].hasEffect) = (.started, false)
            return
        }
        activities.remove(at: index)
        if !isDone, row.attempt < 3, !isFinal { return interrupt(activity) }
        program.mirrors[view].frozen.removeAll { $0.number == row.number }
        if !isDone {
            program.mirrors[view].texts.lost.insert(row.event.snapshot.identity)
            program.mirrors[view].untracked.formUnion(row.paths)
            program.mirrors[view].noted.insert(row.number)
            program.history.append("\(program.prefix(view))failed \(world.name(of: row.path))")
        }
        program.receiveAll()
        program.reconciler?.views[view].endFrozen(row.event, isDone ? .succeeded : .gaveUp, at: now)
        commit()
    }

    /// Stops the actions whose files have changed.
    func stopOvertaken(_ effects: [Reconciler.Effect]) {
        var stopped: Set<UInt64> = []
        for case .overtaken(let view, let number) in effects where stopped.insert(number).inserted {
            program.trace?("  stop \(number)")
            activities.removeAll { $0.view == view && $0.offer == number && !$0.isFrozen }
            program.mirrors[view].outputs[number] = nil
            program.reconciler?.views[view].finish(number, .overtaken, at: now)
        }
        if !stopped.isEmpty { commit() }
    }
}
