import ActionAPI
import FileEvents
import PluginProtocol
import Reconciling
import Rules
import Settling
import Storage
import System

// `group`: files that are handled together once all of them exist.
//
// Each file of a set has its own job, as in a batch. The files of a set are found on the disk each time, so nothing
// about a set has to be stored.
extension Dispatcher {
    /// A file that belongs to a set.
    private struct Member {
        let path: PathBytes
        let root: PathBytes
        let snapshot: Snapshot

        /// Returns the event that offers the file although it has not changed.
        func event(_ kind: EventKind, _ time: Timestamp, origin: FileEvents.EventOrigin) -> FileEvent {
            FileEvent(kind: kind, path: path, root: root, snapshot: snapshot, origin: origin, time: time)
        }
    }

    /// Returns one path for all files of a set.
    private func name(of path: PathBytes, _ group: Grouping) -> PathBytes { path.parent.appending(group.key(of: path)) }

    /// Returns the gate that the next file of the set wakes.
    func groupGate(of path: PathBytes, _ rule: Rule) -> Reconciler.Gate {
        Reconciler.Gate("group", rule.group.map { name(of: path, $0) }, mayNeverOpen: true)
    }

    /// Leases the next due file and all files of its set, once the set is complete.
    mutating func nextSet(
        _ index: Int, _ group: Grouping, _ reconciler: inout Reconciler, at time: GateTime
    ) -> [Attempt.Input] {
        let frozen = nextFrozen(index, 1, &reconciler, at: time)
        guard frozen.isEmpty else { return frozen }
        while let candidate = reconciler.views[index].nextCandidate(at: time.now) {
            let inputs = set(of: candidate, index, group, &reconciler, at: time)
            if !inputs.isEmpty { return inputs }
        }
        return []
    }

    private mutating func set(
        of candidate: Reconciler.Candidate, _ index: Int, _ group: Grouping, _ reconciler: inout Reconciler,
        at time: GateTime
    ) -> [Attempt.Input] {
        let event = candidate.event
        let retried = candidate.retried.flatMap { rules[index].jobs[$0.number] }
        let hasStarted = retried.map { $0.attempt > 0 && $0.previous?.isUnbegun != true } ?? false
        let members =
            event.kind == .deleted ? [] : members(of: event, index, group, reconciler, hasStarted: hasStarted)
        guard members.contains(where: { $0.path == event.path }) else {
            return take(candidate, index, &reconciler, at: time).map { [$0] } ?? []
        }
        guard isFree(candidate, index, &reconciler, at: time.now) else { return [] }
        let job = DueJob(
            event: event, hasStartedBefore: hasStarted, isInterrupted: candidate.retried?.isInterrupted ?? false)
        if case .wait(let gate, let until, let waiting) = rules[index].gates.verdict(for: job, at: time) {
            hold(candidate, for: gate, until: until, waiting, index, &reconciler)
            return []
        }
        if !hasStarted, let (waiting, pause) = obstacle(to: members, of: event, index, group, reconciler) {
            hold(
                candidate, for: groupGate(of: event.path, rules[index].rule), until: pause.map { time.now + $0 },
                waiting, index, &reconciler)
            return []
        }
        guard let candidates = candidates(members, with: candidate, hasStarted, index, &reconciler, at: time) else {
            return []
        }
        rules[index].reportedSets.remove(name(of: event.path, group))
        return lease(candidates, named: name(of: event.path, group), index, &reconciler, at: time.now)
    }

    /// Returns the candidates of all files of a set, in its order; nil if one of them is not free, so that the first
    /// one waits.
    private mutating func candidates(
        _ members: [Member], with first: Reconciler.Candidate, _ hasStarted: Bool, _ index: Int,
        _ reconciler: inout Reconciler, at time: GateTime
    ) -> [Reconciler.Candidate]? {
        var candidates = [first]
        let kind: EventKind = first.event.kind == .moved ? .created : first.event.kind
        for member in members where member.path != first.event.path {
            if let candidate = reconciler.views[index].candidate(member.path, at: time.now) {
                // Files that are new since the first attempt belong to the next run of the set.
                if !hasStarted || candidate.retried != nil { candidates.append(candidate) }
                continue
            }
            let offer = reconciler.views[index].offer(at: member.path)
            guard !hasStarted else {
                // Files that failed together are retried together: this one has not settled yet.
                if case .retrying(let due) = offer?.state, due <= time.now {
                    reconciler.views[first.view].hold(first, for: Self.busy(member.path), until: time.now + .milliseconds(50))
                    return nil
                }
                continue
            }
            guard uses.allows(member.path, false), offer == nil else {
                let waiting = Waiting(.group, "it waits for '\(member.path)', which is running or waits for a retry")
                hold(first, for: Self.busy(member.path), until: time.now + .seconds(2), waiting, index, &reconciler)
                return nil
            }
            let event = member.event(kind, time.time, origin: first.event.origin)
            candidates.append(Reconciler.Candidate(view: index, event: event))
        }
        let paths = rules[index].rule.group?.sorted(candidates.map(\.event.path)) ?? []
        return candidates.sorted {
            paths.firstIndex(of: $0.event.path) ?? 0 < paths.firstIndex(of: $1.event.path) ?? 0
        }
    }

    private mutating func lease(
        _ candidates: [Reconciler.Candidate], named name: PathBytes, _ index: Int, _ reconciler: inout Reconciler,
        at now: ContinuousClock.Instant
    ) -> [Attempt.Input] {
        var inputs: [Attempt.Input] = []
        for candidate in candidates { inputs.append(lease(candidate, index, &reconciler)) }
        guard candidates.contains(where: { $0.retried == nil }) else { return inputs }
        guard isOneTooMany(name, of: inputs[0].job.event.path, index, at: now) else {
            countedSets[inputs[0].job.id] = name
            return inputs
        }
        rules[index].gates.loop.rest(inputs.map(\.job.event.path), at: now)
        for input in inputs where !input.hasStartedBefore {
            endUnrun(input, index, Self.loop("set", LoopGuard.limit), &reconciler, at: now)
        }
        for input in inputs where input.hasStartedBefore {
            rules[index].jobs[input.number]?.attempt -= 1
            reconciler.views[index].postpone(input.number, for: LoopGuard.gate, until: now + LoopGuard.period)
        }
        return []
    }

    /// Removes the count of a set that was only checked.
    mutating func takeBackCount(of result: Attempt.Result, _ index: Int) {
        guard let name = countedSets.removeValue(forKey: result.parts[0].job.id),
            !result.parts.contains(where: \.hasStarted)
        else { return }
        rules[index].gates.loop.takeBack(name)
    }

    /// Returns the reason why a set cannot be handled yet, and the pause before it is checked again.
    ///
    /// Without a pause, the next file of the set wakes it.
    private mutating func obstacle(
        to members: [Member], of event: FileEvent, _ index: Int, _ group: Grouping, _ reconciler: borrowing Reconciler
    ) -> (Waiting, pause: Duration?)? {
        let rule = rules[index].rule
        let age = host.clock.time().since(event.time)
        let missing = group.missing(in: members.map(\.path))
        guard missing.isEmpty else {
            let kinds = missing.map { "'\($0)'" }.joined(separator: ", ")
            let waiting = Waiting(.group, "its set is missing \(kinds)")
            let patience = engine.options.patience
            guard age >= patience else { return (waiting, patience - age) }
            if rules[index].reportedSets.insert(name(of: event.path, group)).inserted {
                report(.incomplete(rule: rule.name, path: event.path, missing: missing, for: age))
            }
            return (waiting, nil)
        }
        let pause = rule.retry.pause(whileNotReady: .seconds(1), age: age)
        for member in members where !reconciler.views[index].hasSettled(member.path, member.snapshot) {
            return (Waiting(.group, "it waits for '\(member.path)' to settle"), pause)
        }
        guard rule.ready?.command != nil else { return nil }
        for member in members where member.path != event.path {
            let refusal =
                uncommittedRefusal(rule.name, member)
                ?? store.refusal(rule: rule.name, path: member.path, snapshot: member.snapshot)
            guard let refusal, refusal.id.description >= rules[index].pardon?.description ?? "" else { continue }
            let message = "it waits for '\(member.path)', which was skipped: \(refusal.message)"
            return (Waiting(.group, message), pause)
        }
        return nil
    }

    private func uncommittedRefusal(_ rule: String, _ member: Member) -> Refusal? {
        for change in changes.jobs.values {
            guard case .ended(let stored, let outcome) = change.fate, outcome.code == Outcome.readyCode,
                stored.job.rule == rule, stored.job.event.path == member.path,
                stored.job.event.snapshot.hasSameContent(as: member.snapshot)
            else { continue }
            return Refusal(id: stored.job.id, snapshot: member.snapshot, message: outcome.message)
        }
        return nil
    }

    /// Returns the file of an event and the existing files of its set.
    ///
    /// Files that the rule does not match, by its conditions or by `stop` of an earlier rule, do not belong to the
    /// set. Once an action has started, the conditions are no longer checked: the action may be the reason why they
    /// do not match.
    private mutating func members(
        of event: FileEvent, _ index: Int, _ group: Grouping, _ reconciler: borrowing Reconciler, hasStarted: Bool
    ) -> [Member] {
        let rule = rules[index].rule
        let directory = event.path.parent
        let key = group.key(of: event.path)
        let files = WatchedPaths(roots: rule.roots + [event.root], in: host.fileSystem)
        if listings[directory] == nil { listings[directory] = (try? files.names(in: directory)) ?? [] }
        // The event's own file may be briefly absent.
        let own = Member(path: event.path, root: event.root, snapshot: event.snapshot)
        let others = (listings[directory] ?? []).compactMap { name -> Member? in
            let path = directory.appending(name.bytes)
            guard path != event.path, group.mayBelong(name, to: key), group.key(of: path) == key,
                let root = rule.root(taking: path), case .present(let snapshot) = files.look(at: path),
                rule.types.contains(snapshot.type)
            else { return nil }
            return Member(path: path, root: root, snapshot: snapshot)
        }
        return ([own] + others).filter { member in
            let isDue = reconciler.views[index].isDue(member.path) && member.path != event.path
            return hasStarted || isDue || belongs(member, with: event, index)
        }
    }

    private func belongs(_ member: Member, with event: FileEvent, _ index: Int) -> Bool {
        let rule = rules[index].rule
        let own =
            member.path == event.path
            ? event : member.event(.created, host.clock.time(), origin: event.origin)
        let answer = rule.admits(own)
        guard
            answer == .holds
                || answer == .needsContent
                    && rule.admits(own, content: ConditionFacts.Content(lookingAt: own)) == .holds
        else { return false }
        guard member.path != event.path else { return true }
        return ruleset.stopper(of: own, to: index, looking: { ConditionFacts.Content(lookingAt: $0) }) == nil
    }
}
