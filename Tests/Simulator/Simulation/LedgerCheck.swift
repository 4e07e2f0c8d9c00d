import FileEvents
import Globbing
import Reconciling
import System

/// The checks of a run of the reconciler: between two steps, at each lease, and when all work is done.
struct LedgerCheck {
    let runner: LedgerActionRunner

    init(_ runner: LedgerActionRunner) { self.runner = runner }

    private var program: LedgerProgram { runner.program }
    private var world: World { program.world }
    private var rules: [SimulatedRule] { program.rules }
    private var views: [Reconciling.View] { program.views }
    private var mirrors: [LedgerMirror] { program.mirrors }

    /// Checks between two steps that the ledger equals the sum of the events whose actions have finished.
    ///
    /// Every difference from the disk must still be in progress.
    func invariantFailure() -> String? {
        guard program.reconciler != nil else { return nil }
        for view in views.indices where rules[view].isPlain && !rules[view].isRemote {
            let present = files(of: view)
            let rows = program.store.rows(of: views[view].id)
            for path in Set(rows.keys).union(present.keys).union(mirrors[view].received.keys).sorted() {
                if program.isOutOfSight(path) || mirrors[view].untracked.contains(path) {
                    continue
                }
                let name = world.name(of: path)
                let handled = rows[path]?.handled
                if !Snapshot.areSame(handled, mirrors[view].received[path]) {
                    return "\(name): the ledger is not what the action has received"
                }
                if let file = present[path], file.links > 1 || runner.changedByName.contains(file.identity) { continue }
                let isPending =
                    world.waitingEvents > 0 || world.isLosing || program.watcher?.hasWork == true || program.hasUnread
                    || program.reconciler?.isSettling(path) == true || program.reconciler?.isDue(path) == true
                if !Snapshot.areSame(handled, present[path]), !isPending {
                    return "\(name) differs from the ledger, and nothing waits for it"
                }
            }
        }
        return nil
    }

    /// Returns the error if the offer must never be leased.
    func wrong(_ view: Int, _ offer: Offer) -> String? {
        let event = offer.event
        let name = world.name(of: offer.path)
        let mirror = mirrors[view]
        if !views[view].mask.takes(event.kind, changed: event.changed) {
            return "\(event.kind) \(name) is not in the mask"
        }
        if event.kind != .deleted, !rules[view].wants(event.snapshot) { return "\(event.kind) \(name) is refused" }
        let others =
            program.reconciler?.views[view].sortedOffers.filter { $0.number != offer.number }.flatMap(\.paths) ?? []
        if let twice = offer.paths.first(where: others.contains) {
            return "\(world.name(of: twice)) is named by two jobs"
        }
        // A change may put an open file at the path after the last check for writers.
        if event.kind != .moved, event.kind != .deleted, world.isBeingWritten(offer.path), offer.steps == 0,
            !offer.isInterrupted, world.raceCount == runner.racesBefore
        {
            return "\(name) leased while it is being written"
        }
        if event.kind != .moved, rules.count == 1, offer.attempt == 1,
            program.reconciler?.isSettling(offer.path) == true
        {
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

    func verdict() -> String? {
        for view in views.indices {
            if let failure = verdict(of: view) { return rules.count == 1 ? failure : "\(rules[view].name): \(failure)" }
        }
        return nil
    }

    private func treeVerdict(of view: Int) -> String? {
        guard world.mountedOnce.isEmpty, views[view].mask.isSuperset(of: .differences), !mirrors[view].isForgiven else {
            return nil
        }
        let mirror = mirrors[view]
        return world.verdict(onTrees: mirror.trees, except: mirror.untracked) {
            views[view].filter.root(matching: $0.bytes) != nil
        }
    }

    private func verdict(of view: Int) -> String? {
        let rule = rules[view]
        let mirror = mirrors[view]
        let mask = views[view].mask
        if let offer = program.reconciler?.views[view].sortedOffers.first {
            return "job at rest: \(offer.event.kind) \(world.name(of: offer.path))"
        }
        if let row = mirror.frozen.first { return "frozen at rest: \(row.event.kind) \(world.name(of: row.path))" }
        let rows = program.store.rows(of: views[view].id)
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
                let text = mirror.texts.texts[snapshot.identity] ?? []
                let isPromised =
                    !mirror.texts.lost.contains(snapshot.identity) && mask.isSuperset(of: [.created, .modified])
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

    private func files(of view: Int) -> [PathBytes: Snapshot] {
        world.files(below: world.base).filter { path, snapshot in
            views[view].types.contains(snapshot.type) && views[view].filter.root(matching: path.bytes) != nil
        }
    }
}

extension Snapshot {
    fileprivate func isSame(as other: Snapshot) -> Bool {
        hasSameContent(as: other) && mode == other.mode && links == other.links
    }

    /// Whether both are missing or have the same content.
    static func areSame(_ one: Snapshot?, _ other: Snapshot?) -> Bool {
        guard let one, let other else { return one == nil && other == nil }
        return one.hasSameContent(as: other)
    }
}
