import FileEvents
import Journaling
import Reconciling
import Rules
import Settling

// Files that are handled together when all of them are there.
//
// Each file of a set has a job of its own, as in a batch. What belongs to a set is
// found on the disk each time, what of it has settled in the ledger, and what `ready`
// has refused in the journal, so nothing of a set has to be remembered.
extension Dispatcher {
    /// How often a set is looked at that stays incomplete; whatever belongs to it wakes it by itself.
    private static var rest: Duration { .seconds(3_600) }

    /// Leases a job and all that belong to it, if the set is complete; false when no job is due.
    mutating func beginSet(_ rule: Rule, _ group: Grouping, at now: ContinuousClock.Instant, busy: Set<PathBytes>)
        -> Bool
    {
        let busy = busy.union(passedOver)
        let due = journal.lease(rule: rule.name, limit: 1, busy: busy, now: now)
        guard !due.isEmpty else { return false }
        guard let job = putBackCooling(endCutOff(due, rule), at: now).first else { return true }
        let path = job.event.path
        let members = self.members(of: job, rule, group)
        guard job.event.origin != .manual, members.contains(where: { $0.path == path }) else {
            prepare([job], rule, at: now)
            return true
        }
        let others = members.filter { $0.path != path }
        if !job.hasBegunBefore {
            if let (waiting, pause) = obstacle(to: members, of: job, rule, group) {
                _ = journal.record(job, nil, .early(due: now + pause, waiting), [])
                passedOver.insert(path)
                return true
            }
            accept(others, with: job, rule, at: now)
        }
        var jobs = journal.lease(rule: rule.name, paths: others.map(\.path), busy: busy, now: now)
        let leased = Set(jobs.map(\.event.path))
        if !job.hasBegunBefore, let missing = others.first(where: { !leased.contains($0.path) })?.path {
            let waiting = Waiting(.group, "it waits for '\(missing)', which is being worked on or rests")
            // One that rests takes the others along when it is due.
            let pause =
                busy.contains(missing)
                ? .seconds(2)
                : rule.retry.pause(whileNotReady: .seconds(2), age: host.clock.time().since(job.event.time))
            for job in [job] + jobs {
                _ = journal.record(job, nil, .early(due: now + pause, waiting), [])
                passedOver.insert(job.event.path)
            }
            return true
        }
        if job.hasBegunBefore {
            // What is new among them belongs to the next time that the whole set is handled.
            for new in jobs where !new.hasBegunBefore {
                _ = journal.record(new, nil, .early(due: now), [])
                passedOver.insert(new.event.path)
            }
            jobs.removeAll { !$0.hasBegunBefore }
        }
        jobs.append(job)
        let order = group.sorted(jobs.map(\.event.path))
        jobs.sort { order.firstIndex(of: $0.event.path) ?? 0 < order.firstIndex(of: $1.event.path) ?? 0 }
        toldSets.remove(name(of: path, group))
        let fed = stopFeeding(set: jobs, named: name(of: path, group), rule, at: now)
        if !fed.isEmpty { prepare(fed, rule, at: now) }
        return true
    }

    /// Lets a set that was only looked at, and put back as a whole, not count as one that was run.
    mutating func noteEnd(ofSet first: JobID, _ result: Attempt.Result) {
        guard let name = countedSets.removeValue(forKey: first), !result.parts.contains(where: \.hasBegun) else {
            return
        }
        brake.takeBack(rule: result.rule.name, path: name)
    }

    /// One name for all files of a set.
    private func name(of path: PathBytes, _ group: Grouping) -> PathBytes { path.parent.appending(group.key(of: path)) }

    /// Why a set can't be handled yet, and when to look at it again.
    private mutating func obstacle(
        to members: [SetMember], of job: Job, _ rule: Rule, _ group: Grouping
    ) -> (Waiting, pause: Duration)? {
        let age = host.clock.time().since(job.event.time)
        let missing = group.missing(in: members.map(\.path))
        guard missing.isEmpty else {
            let kinds = missing.map { "'\($0)'" }.joined(separator: ", ")
            let waiting = Waiting(.group, "its set lacks \(kinds)")
            guard age >= patience else { return (waiting, patience - age) }
            if toldSets.insert(name(of: job.event.path, group)).inserted {
                report(.incomplete(rule: rule.name, path: job.event.path, missing: missing, for: age))
            }
            return (waiting, Self.rest)
        }
        for member in members {
            let known = journal.snapshot(view: rule.name, path: member.path)
            if known.map({ $0.hasSameContent(as: member.snapshot) }) ?? false { continue }
            let pause = rule.retry.pause(whileNotReady: .seconds(1), age: age)
            return (Waiting(.group, "it waits for '\(member.path)' to settle"), pause)
        }
        return refusal(of: members.filter { $0.path != job.event.path }, rule).map { member, refusal in
            let message = "it waits for '\(member.path)', which has been refused: \(refusal.message)"
            return (Waiting(.group, message), rule.retry.pause(whileNotReady: .seconds(1), age: age))
        }
    }

    /// Makes jobs of those files of a set that nothing has happened to since it was handled last.
    private func accept(
        _ others: [SetMember], with job: Job, _ rule: Rule, at now: ContinuousClock.Instant
    ) {
        let kind = job.event.kind == .moved ? .created : job.event.kind
        let jobs = others.compactMap { member -> Job? in
            guard !journal.hasPending(view: rule.name, path: member.path) else { return nil }
            var event = member.event(host.clock.time(), origin: job.event.origin)
            event.kind = kind
            return Job(id: JobID(now: event.time), rule: rule.name, event: event, mask: rule.events)
        }
        if !jobs.isEmpty { journal.accept(jobs, [], now: now) }
    }
}
