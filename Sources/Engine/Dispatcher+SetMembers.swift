import FileEvents
import Handling
import Journaling
import Reconciling
import Rules
import Settling

/// A file that belongs to a set, as it is now.
struct SetMember {
    let path: PathBytes
    /// The root by which the rule takes it.
    let root: PathBytes
    let snapshot: Snapshot

    /// What tells of the file as if it were new.
    func event(_ time: Timestamp, origin: FileEvents.EventOrigin) -> FileEvent {
        FileEvent(kind: .created, path: path, root: root, snapshot: snapshot, origin: origin, time: time)
    }
}

// Which files belong to a set, and which of them hold it up.
extension Dispatcher {
    /// What is there of the files that belong to a job's path, with itself.
    ///
    /// What the rule's conditions leave is no member, nor what an earlier rule keeps from it. Once an
    /// action has begun with a set nobody asks any more: what it has done may be why a condition holds no more.
    mutating func members(of job: Job, _ rule: Rule, _ group: Grouping) -> [SetMember] {
        let folder = job.event.path.parent
        let key = group.key(of: job.event.path)
        let files = WatchedPaths(roots: rule.roots + [job.event.root], in: host.fileSystem)
        if listings[folder] == nil { listings[folder] = (try? files.names(in: folder)) ?? [] }
        return (listings[folder] ?? []).compactMap { name in
            let path = folder.appending(name.bytes)
            guard group.mayBelong(name, to: key), group.key(of: path) == key, let root = rule.root(taking: path),
                case .present(let snapshot) = files.look(at: path), rule.types.contains(snapshot.type)
            else { return nil }
            let member = SetMember(path: path, root: root, snapshot: snapshot)
            return job.hasBegunBefore || belongs(member, with: job, rule) ? member : nil
        }
    }

    private func belongs(_ member: SetMember, with job: Job, _ rule: Rule) -> Bool {
        // Of what has a job the rule has been told; and ages are those of that time.
        if member.path == job.event.path { return admits(job.event, rule) }
        if journal.hasPending(view: rule.name, path: member.path) { return true }
        let event = member.event(host.clock.time(), origin: job.event.origin)
        guard admits(event, rule), let index = ruleset.index(of: rule.name) else { return false }
        return ruleset.stopper(of: event, to: index, looking: { ConditionFacts.Content(lookingAt: $0) }) == nil
    }

    private func admits(_ event: FileEvent, _ rule: Rule) -> Bool {
        let answer = rule.admits(event)
        guard answer == .needsContent else { return answer == .holds }
        return rule.admits(event, content: ConditionFacts.Content(lookingAt: event)) == .holds
    }

    /// The first member with which `ready` was not content for good, and that is still what it was then.
    ///
    /// A new job of it would end in the same way. After a change of the rule's `ready` each is tried once more.
    func refusal(of members: [SetMember], _ rule: Rule) -> (SetMember, Refusal)? {
        guard rule.ready?.command != nil else { return nil }
        let pardon = pardons[rule.name]?.description ?? ""
        for member in members where !journal.hasPending(view: rule.name, path: member.path) {
            let refusal = journal.refusal(rule: rule.name, path: member.path, snapshot: member.snapshot)
            if let refusal, refusal.id.description >= pardon { return (member, refusal) }
        }
        return nil
    }
}
