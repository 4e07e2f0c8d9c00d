import FileEvents
package import Gates
package import Jobs
import Reconciling
package import Records
package import Rules
import Settling
import System

// The leases of `group`: each file of a set has its own job, as in a batch.
extension Dispatcher {
    /// Leases the next due file and all files of its set, once the set is complete.
    package mutating func nextSet(_ state: RuleState, _ group: Grouping, at time: GateTime) -> [OpenJob] {
        let stored = nextStored(state, 1, at: time)
        guard stored.isEmpty else { return stored }
        while let candidate = state.view.nextCandidate(at: time.now) {
            let inputs = set(of: candidate, state, group, at: time)
            if !inputs.isEmpty { return inputs }
        }
        return []
    }

    private mutating func set(
        of candidate: Reconciler.Candidate, _ state: RuleState, _ group: Grouping, at time: GateTime
    ) -> [OpenJob] {
        let event = candidate.event
        // An interrupted action may have removed files of the set, also one that a user retries.
        let hasStarted =
            candidate.retried.map { state.jobs[$0.number]?.hasStarted ?? false || $0.isInterrupted } ?? false
        let members =
            event.kind == .deleted
            ? [] : sets.members(of: event, state, group, jobs, hasStarted: hasStarted)
        guard members.contains(where: { $0.path == event.path }) else {
            return take(candidate, state, at: time).map { [$0] } ?? []
        }
        let job = DueJob(
            event: event, hasStartedBefore: hasStarted, isInterrupted: candidate.retried?.isInterrupted ?? false)
        guard mayRun(candidate, job, state, at: time) else { return [] }
        if !hasStarted, let (waiting, pause) = sets.obstacle(to: members, of: event, state, group, jobs) {
            let gate = state.rule.groupGate(of: event.path)
            let wait = GateWait(gate: gate, until: pause.map { time.now + $0 }, waiting: waiting)
            hold(candidate, wait, state)
            return []
        }
        guard let candidates = candidates(members, with: candidate, hasStarted, group, at: time) else {
            return []
        }
        let name = group.name(of: event.path)
        state.reportedSets.remove(name)
        return lease(candidates, named: name, state, at: time.now)
    }

    /// Returns the candidates of all files of a set, in its order; nil if one of them is not free, so that the first
    /// one waits.
    private func candidates(
        _ members: [FileSets.Member], with first: Reconciler.Candidate, _ hasStarted: Bool, _ group: Grouping,
        at time: GateTime
    ) -> [Reconciler.Candidate]? {
        let state = jobs.rules[first.view]
        var candidates = [first]
        let kind: EventKind = first.event.kind == .moved ? .created : first.event.kind
        for member in members where member.path != first.event.path {
            let candidate = state.view.candidate(member.path, at: time.now)
            if let candidate, candidate.event.paths.allSatisfy({ uses.allows($0, state.rule.sharesFile) }) {
                // Files that are new since the first attempt belong to the next run of the set.
                if !hasStarted || candidate.retried != nil { candidates.append(candidate) }
                continue
            }
            let offer = state.view.offer(at: member.path)
            guard !hasStarted else {
                // Files that failed together are retried together: this one has not settled yet.
                if case .retrying(let due) = offer?.state, due <= time.now {
                    let until = time.now + .milliseconds(50)
                    hold(
                        first, GateWait(gate: Self.busy(member.path), until: until, waiting: .busy), state)
                    return nil
                }
                continue
            }
            guard candidate == nil, uses.allows(member.path, false), offer == nil else {
                let waiting = Waiting(.group, "it waits for '\(member.path)', which is running or waits for a retry")
                let wait = GateWait(gate: Self.busy(member.path), until: time.now + .seconds(2), waiting: waiting)
                hold(first, wait, state)
                return nil
            }
            let event = member.event(kind, time.time, origin: first.event.origin)
            candidates.append(Reconciler.Candidate(view: state.index, event: event))
        }
        let paths = group.sorted(candidates.map(\.event.path))
        return candidates.sorted { paths.firstIndex(of: $0.event.path) ?? 0 < paths.firstIndex(of: $1.event.path) ?? 0 }
    }

    private mutating func lease(
        _ candidates: [Reconciler.Candidate], named name: PathBytes, _ state: RuleState, at now: ContinuousClock.Instant
    ) -> [OpenJob] {
        var inputs: [OpenJob] = []
        var leased: Set<PathBytes> = []
        for candidate in candidates {
            var candidate = candidate
            // Of several new names of a file, one is its move, and the others are new.
            if let from = candidate.event.from, leased.contains(from) {
                candidate.event.kind = .created
                (candidate.event.from, candidate.event.before) = (nil, nil)
            }
            leased.formUnion(candidate.event.paths)
            inputs.append(jobs.lease(candidate, state))
        }
        guard candidates.contains(where: { $0.retried == nil }) else { return inputs }
        guard isOneTooMany(name, of: inputs[0].job.event.path, state, at: now) else {
            sets.recordCount(name, inputs[0].job.id)
            return inputs
        }
        state.gates.loop.suspend(inputs.map(\.job.event.path), at: now)
        for input in inputs where !input.hasStartedBefore {
            jobs.endUnrun(input.job, state, .loop("set", LoopGuard.limit), at: now)
        }
        for input in inputs where input.hasStartedBefore {
            state.jobs.update(input.job.number) { $0.attempt -= 1 }
            state.view.postpone(input.job.number, for: LoopGuard.gate, until: now + LoopGuard.period)
        }
        return []
    }
}
