import FileEvents
import Reconciling
import Rules
package import System

// Frozen events, and changes while an action runs, handled as in the engine.
extension LedgerRun {
    /// The number of the first row, above the numbers of offers.
    private static let firstRow: UInt64 = 1_000_000

    /// Stores the events that the reconciler has frozen, with the commit of the ledger.
    func recordFrozen() {
        for (view, event, isUncertain) in reconciler?.frozen ?? [] {
            rows += 1
            trace?("  freeze \(rows) \(event.kind) \(world.name(of: event.path))")
            var row = Offer(number: Self.firstRow + rows, event: event)
            row.isUncertain = isUncertain
            if !views[view].mask.takes(event.kind, changed: event.changed) {
                fault = fault ?? "\(event.kind) \(world.name(of: event.path)) is not in the mask"
            }
            if event.kind.isDifference {
                recordSuccess(view, row)
                mirrors[view].named.formUnion(row.paths)
            }
            mirrors[view].frozen.append(row)
        }
        reconciler?.frozen = []
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
            reconciler?.beginFrozen(view, row.event)
        }
    }

    private func paths(of activity: Activity) -> [PathBytes] {
        let all = activity.isFrozen ? mirrors[activity.view].frozen : reconciler?.offers(of: activity.view) ?? []
        return all.first { $0.number == activity.offer }?.paths ?? []
    }

    private func change(_ view: Int, _ number: UInt64, _ body: (inout Offer) -> Void) {
        guard let index = mirrors[view].frozen.firstIndex(where: { $0.number == number }) else { return }
        body(&mirrors[view].frozen[index])
    }

    func interrupt(_ activity: Activity) {
        change(activity.view, activity.offer) {
            $0.attempt += 1
            $0.isInterrupted = true
        }
    }

    /// Finishes a step or an attempt of the action for a frozen event.
    func endFrozen(_ index: Int, _ row: Offer, succeeded: Bool, isFinal: Bool) {
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
            history.append("\(prefix(view))failed \(world.name(of: row.path))")
        }
        receiveAll()
        reconciler?.endFrozen(view, row.event, isDone ? .succeeded : .gaveUp, at: now)
        commit()
    }

    /// Appends a piece of text to the text received so far; the text of a failed row is lost.
    func recordText(_ view: Int, _ offer: Offer) {
        let event = offer.event
        let file = event.snapshot.identity
        // Rows of different paths run at the same time.
        if mirrors[view].frozen.contains(where: { $0.event.snapshot.identity == file && $0.path != event.path }) {
            mirrors[view].lost.insert(file)
        }
        let isDoubtful =
            !hasBirth || mirrors[view].isForgiven || mirrors[view].lost.contains(file)
            || offer.paths.contains { mirrors[view].untracked.contains($0) }
        guard let tail = event.tail else { return }
        let isOther = event.kind == .created || event.kind == .modified && event.isReplaced
        if tail.isReset || isOther && tail.offset == 0 { mirrors[view].texts[file] = nil }
        let start = Int(tail.offset)
        let known =
            isDoubtful
            ? text(of: file) ?? Array(repeating: 0, count: start) : mirrors[view].texts[file] ?? []
        if !isDoubtful, start > known.count || start < known.count && offer.attempt == 1 {
            fault = fault ?? "\(world.name(of: event.path)): text from \(start) after \(known.count) bytes"
        }
        mirrors[view].texts[file] = known.prefix(start) + tail.bytes
    }

    private func text(of file: FileIdentity) -> [UInt8]? {
        world.files(below: world.base).filter { $0.value.identity == file }.keys.min().flatMap { world.text($0) }
    }

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
    package var hasOffers: Bool { views.indices.contains { reconciler?.offers(of: $0).isEmpty == false } }

    /// The files that have been open for writing for a long time.
    package var held: [PathBytes] { (reconciler?.held ?? [:]).keys.map { world.name(of: $0) }.sorted() }

    /// Records a change that the rule drops.
    func recordBusy(_ view: Int, _ path: PathBytes) {
        mirrors[view].untracked.insert(path)
        mirrors[view].received[path] = reconciler?.ledger.row(of: views[view].id, at: path).handled
    }

    /// Stops the actions whose files have changed.
    func stopOvertaken() {
        let overtaken = reconciler?.overtaken ?? []
        guard !overtaken.isEmpty else { return }
        reconciler?.overtaken = []
        for (view, number) in overtaken {
            trace?("  stop \(number)")
            activities.removeAll { $0.view == view && $0.offer == number && !$0.isFrozen }
            mirrors[view].outputs[number] = nil
            reconciler?.finish(view, number, .overtaken, at: now)
        }
        commit()
    }
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
