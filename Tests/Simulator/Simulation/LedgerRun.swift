import FileEvents
import Globbing
import Pipeline
package import Reconciling
import Rules
import Settling
import Storage
package import System
import Watching

/// A run of the reconciler of `Sources/Pipeline` in a simulated world, with actions that maintain mirrors of the files.
package final class LedgerRun: CoreRun {
    package let world: World
    package let rules: [SimulatedRule]
    let views: [Reconciling.View]
    private let host: Host
    private let store = SimulatedStore()
    var reconciler: Reconciling.Reconciler?
    var watcher: SimulatedWatcher?
    private var hints: HintQueue?
    var activities: [Activity] = []
    private var fails: Bool?
    private var lastOffer: UInt64 = 0
    /// The number of frozen events.
    var rows: UInt64 = 0
    /// The number of changes between two inspections by the program before the current step.
    private var racesBefore = 0
    /// The files with several names that were changed, each with the name used.
    private var changedByName: [(file: FileIdentity, path: PathBytes)] = []
    private var hasStarted = false
    /// A rule of the core that is left out.
    private let omitted: CoreRule?
    /// Whether files have birth times.
    let hasBirth: Bool
    var mirrors: [Mirror]
    package internal(set) var history: [String] = []
    package internal(set) var fault: String?
    /// Whether a step of an action that does not run is an error.
    var isStrict = false
    package var trace: (@Sendable (String) -> Void)?

    /// The state that the action of one rule knows.
    struct Mirror {
        var contents: [PathBytes: Int] = [:]
        var untracked: Set<PathBytes> = []
        var archive: [UInt64: Snapshot] = [:]
        /// The trees of directories handled as one unit, as the action has read them.
        var trees: [PathBytes: [PathBytes: Int]] = [:]
        var noted: Set<UInt64> = []
        /// The failed offers that are not committed yet.
        var failed: [UInt64: Offer?] = [:]
        /// The files as the sum of the events whose actions have succeeded.
        var received: [PathBytes: Snapshot] = [:]
        /// The paths that an event has named and that the action may still know.
        var named: Set<PathBytes> = []
        /// The files that `copy` has written, by offer.
        var outputs: [UInt64: Set<PathBytes>] = [:]
        /// The offers of moves from a path that an action has written since.
        var rewritten: Set<UInt64> = []
        var isForgiven = false
        /// The text received for each followed file.
        var texts: [FileIdentity: [UInt8]] = [:]
        /// The files of which an action has given up a piece of text.
        var lost: Set<FileIdentity> = []
        /// The rows of frozen events, first in, first out.
        ///
        /// They survive a kill.
        var frozen: [Offer] = []
    }

    struct Activity {
        var view: Int
        var offer: UInt64
        var stage = ActionStage.leased
        var hasEffect = false
        /// Whether the action runs for a frozen event.
        var isFrozen = false
    }

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
        mirrors = Array(repeating: Mirror(), count: rules.count)
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

    package var actions: [(stage: ActionStage, path: PathBytes?)] { activities.map { ($0.stage, offer($0)?.path) } }

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
            hasWork: { [unowned self] view, offer in mirrors[view].archive[offer.number] != nil })
        reconciler?.number = lastOffer
        reconciler?.omitted = omitted
        let scope = Ruleset(rules.map { $0.rule(in: world.base) }).scope
        watcher = SimulatedWatcher(world: world, scope: scope, queue: queue)
        hints = queue
        for index in views.indices {
            reconciler?.restore(index, store.offers(of: views[index].id), at: now)
            reconciler?.restoreFrozen(index, mirrors[index].frozen.map(\.event))
            reconciler?.restoreDue(index, store.duePaths(of: views[index].id), at: now)
        }
        while watcher?.list() == true {}
        turn()
    }

    private func halt(afterEffects: Bool) {
        guard reconciler != nil else { return }
        for index in activities.indices
        where activities[index].stage == .begun && afterEffects && !rules[activities[index].view].isRemote {
            effect(index)
        }
        for activity in activities where activity.isFrozen && activity.stage != .leased { interrupt(activity) }
        activities.removeAll { !rules[$0.view].isRemote || $0.stage == .leased || $0.isFrozen }
        for index in rules.indices where !rules[index].catchUp { mirrors[index].isForgiven = true }
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
    private var hasUnread = false

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
            changes.rows[id] = reconciler?.ledger.changes[id]
            changes.due[id] = reconciler?.dueChanges[id]
            changes.offers[id] = reconciler?.changedOffers(of: index)
            changes.failed[id] = mirrors[index].failed
            mirrors[index].failed = [:]
        }
        store.commit(changes)
        reconciler?.markCommitted()
        // Turns visit active views only.
        for view in views.indices where reconciler?.active.contains(view) == reconciler?.isIdle(view) {
            fault = fault ?? "\(rules[view].name): the view is active without work, or has work and is not active"
        }
        reconciler?.dueChanges = [:]
        for report in reconciler?.reports ?? [] {
            if case .gone(let view, let path, _) = report {
                history.append("\(prefix(view))skipped \(world.name(of: path))")
            }
            if case .superseded(let view, let offer) = report { mirrors[view].noted.insert(offer.number) }
            if case .busy(let view, let path) = report { recordBusy(view, path) }
        }
        reconciler?.reports = []
        reconciler?.accepted = []
        recordFrozen()
        stopOvertaken()
        watcher?.hintAgain(reconciler?.doubted ?? [])
        reconciler?.doubted = []
    }

    func prefix(_ view: Int) -> String { view == 0 ? "" : "\(rules[view].name): " }

    private func lease(only path: PathBytes? = nil) {
        if omitted != .readFirst {
            watcher?.drainAll()
            turn()
        }
        for view in views.indices {
            while activities.count(where: { $0.view == view }) < rules[view].concurrency,
                let candidate = reconciler?.nextCandidate(view, at: now)
            {
                guard path == nil || candidate.event.path == path else {
                    reconciler?.hold(candidate, for: .init("only"), until: now + .milliseconds(1))
                    continue
                }
                guard let offer = reconciler?.lease(candidate) else { continue }
                trace?(
                    "  lease \(offer.number) \(offer.event.kind) \(world.name(of: offer.path)) attempt \(offer.attempt)"
                )
                activities.append(Activity(view: view, offer: offer.number))
                lastOffer = max(lastOffer, offer.number)
                reconciler?.update(view, offer.number) { [self] in $0.mayRemoveInput = step(view, $0) == .take }
                if fault == nil { fault = wrong(view, offer) }
                mirrors[view].named.formUnion(offer.paths)
            }
        }
        commit()
        for view in views.indices { leaseFrozen(view, only: path) }
    }

    func step(_ view: Int, _ offer: Offer) -> Behaviour {
        rules[view].steps[min(offer.steps, rules[view].steps.count - 1)]
    }

    /// Returns the error if the offer must never be leased.
    private func wrong(_ view: Int, _ offer: Offer) -> String? {
        let event = offer.event
        let name = world.name(of: offer.path)
        let mirror = mirrors[view]
        if !views[view].mask.takes(event.kind, changed: event.changed) {
            return "\(event.kind) \(name) is not in the mask"
        }
        if event.kind != .deleted, !rules[view].wants(event.snapshot) { return "\(event.kind) \(name) is refused" }
        let others = reconciler?.offers(of: view).filter { $0.number != offer.number }.flatMap(\.paths) ?? []
        if let twice = offer.paths.first(where: others.contains) {
            return "\(world.name(of: twice)) is named by two jobs"
        }
        // A change may put an open file at the path after the last check for writers.
        if event.kind != .moved, event.kind != .deleted, world.isBeingWritten(offer.path), offer.steps == 0,
            !offer.isInterrupted, world.raceCount == racesBefore
        {
            return "\(name) leased while it is being written"
        }
        if event.kind != .moved, rules.count == 1, offer.attempt == 1, reconciler?.isSettling(offer.path) == true {
            return "\(name) leased before it has settled"
        }
        let isPlain = offer.attempt == 1 && !offer.isUncertain && !mirror.isForgiven
        if isPlain, event.kind == .created || event.kind == .modified, let received = mirror.received[offer.path],
            received.isSame(as: event.snapshot), received.changed == event.snapshot.changed,
            received.digest == event.snapshot.digest
        {
            return "\(event.kind) \(name) again, as it was received"
        }
        guard event.kind == .deleted, isPlain, !rules[view].isTree, !mirror.named.contains(offer.path) else {
            return nil
        }
        let asks: EventMask = [.created, .modified, .moved, .attributes]
        return views[view].mask.isSuperset(of: asks) ? "deleted \(name), which the action never knew" : nil
    }

    /// Records the output of a step after it has succeeded.
    private func recordOutputs(_ view: Int, _ offer: Offer) {
        for output in mirrors[view].outputs.removeValue(forKey: offer.number) ?? [] {
            guard world.snapshot(output) != nil else { continue }
            reconciler?.recordOwnWrite(view, output)
            guard let present = world.snapshot(output), rules[view].wants(present) else { continue }
            for other in reconciler?.offers(of: view) ?? [] where other.event.from == output {
                mirrors[view].rewritten.insert(other.number)
            }
            mirrors[view].contents[output] = world.content(output)
            mirrors[view].received[output] = present
            mirrors[view].named.insert(output)
        }
    }

    func recordSuccess(_ view: Int, _ offer: Offer) {
        if let from = offer.event.from, !mirrors[view].rewritten.contains(offer.number) {
            mirrors[view].received[from] = nil
        }
        mirrors[view].received[offer.path] = offer.hasRemovedInput ? nil : offer.offered
    }

    /// Checks between two steps that the ledger equals the sum of the events whose actions have finished.
    ///
    /// Every difference from the disk must still be in progress.
    private func invariantFault() -> String? {
        guard reconciler != nil else { return nil }
        for view in views.indices where rules[view].isPlain && !rules[view].isRemote {
            let present = files(of: view)
            let rows = store.rows(of: views[view].id)
            for path in Set(rows.keys).union(present.keys).union(mirrors[view].received.keys).sorted() {
                if isOutOfSight(path) || mirrors[view].untracked.contains(path) {
                    continue
                }
                let name = world.name(of: path)
                let handled = rows[path]?.handled
                if !Snapshot.areSame(handled, mirrors[view].received[path]) {
                    return "\(name): the ledger is not what the action has received"
                }
                if let file = present[path],
                    file.links > 1 || changedByName.contains(where: { $0.file == file.identity })
                {
                    continue
                }
                let isOnItsWay =
                    world.waitingEvents > 0 || world.isLosing || watcher?.hasWork == true || hasUnread
                    || reconciler?.isSettling(path) == true || reconciler?.isDue(path) == true
                if !Snapshot.areSame(handled, present[path]), !isOnItsWay {
                    return "\(name) differs from the ledger, and nothing waits for it"
                }
            }
        }
        return nil
    }

    package func checkInvariant() {
        if fault == nil, omitted == nil { fault = invariantFault() }
    }

    private func isOutOfSight(_ path: PathBytes) -> Bool {
        world.mountedOnce.contains { path.isInside($0) }
            || path.parent.andParents.contains { world.snapshot($0).map { $0.mode & 0o444 == 0 } ?? false }
    }

    private func files(of view: Int) -> [PathBytes: Snapshot] {
        world.files(below: world.base).filter { path, snapshot in
            views[view].types.contains(snapshot.type) && views[view].filter.root(taking: path.bytes) != nil
        }
    }

    private func offer(_ activity: Activity) -> Offer? {
        (activity.isFrozen ? mirrors[activity.view].frozen : reconciler?.offers(of: activity.view) ?? [])
            .first { $0.number == activity.offer }
    }

    private func index(_ stage: ActionStage, _ path: PathBytes?) -> Int? {
        let wanted = path.map { world.base.appending($0.bytes) }
        return activities.firstIndex { $0.stage == stage && (wanted == nil || offer($0)?.path == wanted) }
    }

    private func begin(_ index: Int) {
        let activity = activities[index]
        if activity.isFrozen {
            activities[index].stage = .begun
        } else if start(activity) {
            activities[index].stage = .begun
            if rules[activity.view].isRemote { reconciler?.update(activity.view, activity.offer) { $0.isSent = true } }
        } else {
            activities.remove(at: index)
        }
        commit()
    }

    /// Checks the path once more, immediately before the action starts.
    private func start(_ activity: Activity) -> Bool {
        guard let offer = offer(activity) else { return false }
        let mayBeDone =
            offer.hasRemovedInput || offer.isInterrupted && offer.mayRemoveInput && omitted != .reenter
        if offer.event.kind == .deleted || mayBeDone || world.snapshot(offer.path) != nil { return true }
        if omitted == .gone {
            reconciler?.finish(activity.view, activity.offer, .succeeded, at: now)
        } else {
            reconciler?.withdraw(activity.view, activity.offer, at: now)
        }
        return false
    }

    private func effect(_ index: Int) {
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
            history.append("\(prefix(view))note \(name)")
            return true
        case .take:
            if mirrors[view].archive[offer.number] != nil { return true }
            guard let present = world.snapshot(path), present.hasSameContent(as: event.snapshot) else { return false }
            mirrors[view].archive[offer.number] = present
            world.apply(.delete(name))
            history.append("\(prefix(view))take \(name)")
            return true
        case .copy
        where event.kind != .deleted && world.content(path) != nil && !name.bytes.starts(with: "o/".utf8):
            let output = PathBytes("o/").appending(path.lastComponent)
            let written = world.base.appending(output.bytes)
            reconciler?.declareOutput(view, offer.number, written)
            if world.apply(.create(output)) || world.apply(.write(output)) {
                mirrors[view].outputs[offer.number, default: []].insert(written)
            }
        default: break
        }
        history.append("\(prefix(view))\(event.kind) \(event.from.map { "\(world.name(of: $0))>" } ?? "")\(name)")
        if rules[view].isTree {
            if let from = event.from { mirrors[view].trees[from] = nil }
            mirrors[view].trees[path] = event.kind == .deleted ? nil : world.tree(path)
        }
        if rules[view].follows { recordText(view, offer) }
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

    private func end(_ index: Int, succeeded: Bool, isFinal: Bool = false) {
        var activity = activities[index]
        guard let offer = offer(activity) else { return }
        let view = activity.view
        guard !activity.isFrozen else { return endFrozen(index, offer, succeeded: succeeded, isFinal: isFinal) }
        let step = step(view, offer)
        if activity.hasEffect, succeeded, offer.steps + 1 < rules[view].steps.count {
            recordOutputs(view, offer)
            reconciler?.finishStep(view, offer.number, removedInput: step == .take)
            reconciler?.update(view, offer.number) { [self] in $0.mayRemoveInput = self.step(view, $0) == .take }
            (activity.stage, activity.hasEffect) = (.begun, false)
            activities[index] = activity
            return commit()
        }
        activities.remove(at: index)
        if activity.hasEffect, step == .take {
            reconciler?.update(view, offer.number) {
                if succeeded { $0.hasRemovedInput = true } else { $0.isInterrupted = true }
            }
        }
        receiveAll()
        if !(activity.hasEffect && succeeded) { mirrors[view].outputs[offer.number] = nil }
        let hasFoundNothing =
            step == .take && !activity.hasEffect && offer.event.kind != .deleted
            && mirrors[view].archive[offer.number] == nil && world.snapshot(offer.path) == nil && offer.attempt > 1
        if activity.hasEffect, succeeded {
            reconciler?.update(view, offer.number) { recordSuccess(view, $0) }
            recordOutputs(view, offer)
            reconciler?.finish(view, offer.number, .succeeded, at: now)
            if offer.event.kind == .deleted, reconciler?.ledger.row(of: views[view].id, at: offer.path) == LedgerRow() {
                mirrors[view].named.remove(offer.path)
            }
        } else if hasFoundNothing {
            reconciler?.finish(view, offer.number, .gone, at: now)
        } else if offer.attempt < 3, !isFinal {
            reconciler?.finish(view, offer.number, .retry(at: now + .seconds(1 << (offer.attempt - 1))), at: now)
        } else {
            reconciler?.update(view, offer.number) {
                mirrors[view].failed[offer.number] = $0
                recordSuccess(view, $0)
            }
            reconciler?.finish(view, offer.number, .gaveUp, at: now)
            mirrors[view].untracked.formUnion(offer.paths)
            mirrors[view].noted.insert(offer.number)
            history.append("\(prefix(view))failed \(world.name(of: offer.path))")
        }
        commit()
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
            guard let index = index(.leased, path) ?? index(.leased, nil) else { return false }
            begin(index)
        case .run(let path), .miss(let path):
            guard let index = index(.begun, path) else { return false }
            if case .run = step { effect(index) }
            activities[index].stage = .done
        case .ok(let path), .fail(let path), .giveUp(let path):
            guard let index = index(.done, path) ?? index(.begun, path) else { return false }
            if case .ok = step {
                end(index, succeeded: true)
            } else if case .fail = step {
                end(index, succeeded: false)
            } else {
                end(index, succeeded: false, isFinal: true)
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
        case .undo(let name):
            world.endRace()
            let path = world.base.appending(name.bytes)
            // A rewritten file can't be distinguished from one that has grown.
            let change: Operation = rules.contains(where: \.follows) ? .append(name) : .write(name)
            guard world.content(path) != nil, !world.isBeingWritten(path), !isOutOfSight(path),
                let view = views.indices.first,
                !mirrors[view].frozen.contains(where: { $0.event.snapshot.identity == world.snapshot(path)?.identity }),
                views[view].filter.root(taking: path.bytes) != nil,
                reconciler?.undo(view, path, { world.apply(change) }) == true
            else { return false }
            mirrors[view].untracked.insert(path)
            mirrors[view].named.insert(path)
            mirrors[view].received[path] = world.snapshot(path)
            if let file = world.snapshot(path)?.identity { mirrors[view].texts[file] = world.text(path) }
            commit()
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
            for offer in reconciler?.offers(of: view) ?? [] where offer.isRepeat {
                let isChanged = offer.paths.contains { path in
                    changed.contains { path.isInside($0) }
                        || world.snapshot(path).map { files.contains($0.identity) } ?? false
                }
                if isChanged { mirrors[view].untracked.formUnion(offer.paths) }
            }
        }
    }

    private func retryFailed(_ view: Int) {
        guard reconciler != nil else { return }
        for offer in store.failedOffers(of: views[view].id) {
            reconciler?.retry(view, offer, at: now)
            mirrors[view].failed.updateValue(nil, forKey: offer.number)
            if reconciler?.offer(of: view, number: offer.number) != nil { mirrors[view].noted.remove(offer.number) }
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
            if !activities.isEmpty {
                idle = 0
                while !activities.isEmpty {
                    if activities[0].stage == .leased {
                        begin(0)
                    } else {
                        if activities[0].stage == .begun { effect(0) }
                        end(0, succeeded: fails != true)
                    }
                }
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
        fault = fault ?? verdict()
        return fault
    }

    // MARK: Verdict

    private func verdict() -> String? {
        for view in views.indices {
            if let fault = verdict(of: view) { return rules.count == 1 ? fault : "\(rules[view].name): \(fault)" }
        }
        return nil
    }

    private func treeVerdict(of view: Int) -> String? {
        guard world.mountedOnce.isEmpty, views[view].mask.isSuperset(of: .differences), !mirrors[view].isForgiven else {
            return nil
        }
        let present = world.entries(of: world.base).map { world.base.appending($0.bytes) }.filter {
            world.snapshot($0)?.type == .directory && views[view].filter.root(taking: $0.bytes) != nil
        }
        let known = mirrors[view].trees
        for path in Set(present).union(known.keys).sorted() where !mirrors[view].untracked.contains(path) {
            if (present.contains(path) ? world.tree(path) : [:]) != known[path] ?? [:] {
                return "\(world.name(of: path)): the mirror has another tree than the disk"
            }
        }
        return nil
    }

    private func verdict(of view: Int) -> String? {
        let rule = rules[view]
        let mirror = mirrors[view]
        let mask = views[view].mask
        if let offer = reconciler?.offers(of: view).first {
            return "job at rest: \(offer.event.kind) \(world.name(of: offer.path))"
        }
        if let row = mirror.frozen.first { return "frozen at rest: \(row.event.kind) \(world.name(of: row.path))" }
        let rows = store.rows(of: views[view].id)
        if rule.isTree { return treeVerdict(of: view) }
        let present = files(of: view)
        for (path, row) in rows.sorted(by: { $0.key < $1.key }) {
            let name = world.name(of: path)
            if world.mountedOnce.contains(where: { path.isInside($0) }) { continue }
            if row.trust == .uncertain { return "\(name) is uncertain at rest" }
            if present[path] == nil, row.handled != nil { return "\(name) is in the ledger, and is gone" }
        }
        if rule.steps == [.take, .note], !mirror.noted.isSuperset(of: mirror.archive.keys) {
            return "a file was taken, and is not noted"
        }
        for (path, snapshot) in present.sorted(by: { $0.key < $1.key }) {
            let name = world.name(of: path)
            guard let handled = rows[path]?.handled else { return "\(name) is not in the ledger" }
            // No hint reports a write through a name that no rule matches.
            if snapshot.links > 1, present.count(where: { $0.value.identity == snapshot.identity }) < snapshot.links {
                continue
            }
            guard handled.hasSameContent(as: snapshot) else { return "\(name) is not in the ledger as it is" }
            guard !mirror.isForgiven, !mirror.untracked.contains(path), rule.wants(snapshot) else { continue }
            if rule.follows {
                let text = mirror.texts[snapshot.identity] ?? []
                let isPromised = !mirror.lost.contains(snapshot.identity) && mask.isSuperset(of: [.created, .modified])
                if isPromised, text != world.text(path) ?? [] {
                    return "\(name): the mirror has another text than the disk"
                }
                continue
            }
            if rule.steps.contains(.take) {
                if mask.contains(.attributes) { return "\(name) was not taken" }
                continue
            }
            guard mask.isSuperset(of: [.created, .modified]) else { continue }
            if mirror.contents[path] != world.content(path) {
                return "\(name): the mirror has \(mirror.contents[path].map(String.init) ?? "nothing"), the disk "
                    + "\(world.content(path).map(String.init) ?? "nothing")"
            }
        }
        guard mask.contains(.deleted), !mirror.isForgiven else { return nil }
        let ghosts = mirror.contents.keys.filter { path in
            present[path] == nil && !mirror.untracked.contains(path)
                && !world.mountedOnce.contains { path.isInside($0) }
        }
        return ghosts.min().map { "\(world.name(of: $0)) is in the mirror, and is gone" }
    }
}

extension Snapshot {
    fileprivate func isSame(as other: Snapshot) -> Bool {
        hasSameContent(as: other) && mode == other.mode && links == other.links
    }

    fileprivate static func areSame(_ one: Snapshot?, _ other: Snapshot?) -> Bool {
        guard let one, let other else { return one == nil && other == nil }
        return one.hasSameContent(as: other)
    }
}
