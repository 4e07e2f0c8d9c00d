import ActionAPI
import FileEvents
import Gates
import Jobs
import Monitoring
import Reconciling
import Records
import Rules
import System

/// The sets of files of `group`, which are handled together once all of them exist.
///
/// The files of a set are found on the disk each time, so nothing about a set has to be stored.
struct FileSets {
    /// A file that belongs to a set.
    struct Member {
        let path: PathBytes
        let root: PathBytes
        var snapshot: Snapshot

        /// Returns the event that offers the file although it has not changed.
        func event(_ kind: EventKind, _ time: Timestamp, origin: FileEvents.EventOrigin) -> FileEvent {
            FileEvent(kind: kind, path: path, root: root, snapshot: snapshot, origin: origin, time: time)
        }
    }

    /// The time for which a set may be incomplete before that is reported.
    let timeout: Duration
    /// The names under which the loop guard has counted running sets, by the first job of each.
    private var counted: [JobID: PathBytes] = [:]
    /// The names in directories that were listed in this turn.
    private var listings: [PathBytes: [PathBytes]] = [:]

    init(timeout: Duration) { self.timeout = timeout }

    mutating func forgetListings() { listings = [:] }

    /// Records the name under which the loop guard has counted a set.
    mutating func recordCount(_ name: PathBytes, _ first: JobID) { counted[first] = name }

    /// Removes the count of a set that was only checked.
    mutating func takeBackCount(of result: AttemptResult, _ state: RuleState) {
        guard let name = counted.removeValue(forKey: result.parts[0].job.id),
            !result.parts.contains(where: \.hasStarted)
        else { return }
        state.gates.loop.takeBack(name)
    }

    /// Returns the file of an event and the existing files of its set.
    ///
    /// Files that the rule does not match, by its conditions or by `stop` of an earlier rule, do not belong to the
    /// set. Once an action has started, the conditions are no longer checked: the action may be the reason why they
    /// do not match.
    mutating func members(
        of event: FileEvent, _ state: RuleState, _ group: Grouping, _ jobs: borrowing JobRegistry, hasStarted: Bool
    ) -> [Member] {
        let rule = state.rule
        let directory = event.path.parent
        let key = group.key(of: event.path)
        let files = WatchedPaths(roots: rule.roots + [event.root], in: jobs.host.fileSystem)
        if listings[directory] == nil { listings[directory] = (try? files.names(in: directory)) ?? [] }
        // The event's own file may be briefly absent. A move shows the file as the action knows it.
        var own = Member(path: event.path, root: event.root, snapshot: event.snapshot)
        if event.kind == .moved, case .present(let now) = files.inspect(at: event.path) { own.snapshot = now }
        let others = (listings[directory] ?? []).compactMap { name -> Member? in
            let path = directory.appending(name.bytes)
            guard path != event.path, group.mayBelong(name, to: key), group.key(of: path) == key,
                let root = rule.root(matching: path), case .present(let snapshot) = files.inspect(at: path),
                rule.types.contains(snapshot.type)
            else { return nil }
            return Member(path: path, root: root, snapshot: snapshot)
        }
        let ruleset = jobs.rules.ruleset
        let time = jobs.host.clock.time()
        let read: Rule.ContentReader = { ConditionInput.Content(of: $0) }
        return ([own] + others).filter { member in
            let isOwn = member.path == event.path
            if hasStarted || !isOwn && state.view.isDue(member.path) { return true }
            let event = isOwn ? event : member.event(.created, time, origin: event.origin)
            let answer = rule.admits(event, reading: read)
            // The attempt waits until the condition can be read.
            if case .unreadable = answer { return true }
            return answer == .holds
                && (isOwn || ruleset.stopper(of: event, to: state.index, reading: read) == nil)
        }
    }

    /// Returns the reason why a set cannot be handled yet, and the pause before it is checked again.
    ///
    /// Without a pause, the next file of the set wakes it.
    func obstacle(
        to members: [Member], of event: FileEvent, _ state: RuleState, _ group: Grouping, _ jobs: borrowing JobRegistry
    ) -> (Waiting, pause: Duration?)? {
        let age = jobs.host.clock.time().since(event.time)
        let missing = group.missing(in: members.map(\.path))
        guard missing.isEmpty else {
            let waiting = Waiting.set(missing: missing)
            guard age >= timeout else { return (waiting, timeout - age) }
            if state.reportedSets.insert(group.name(of: event.path)).inserted {
                jobs.report(.incomplete(rule: state.rule.name, path: event.path, missing: missing, for: age))
            }
            return (waiting, nil)
        }
        let pause = state.rule.retry.pause(whileNotReady: .seconds(1), age: age)
        for member in members where !state.view.hasSettled(member.path, member.snapshot) {
            return (Waiting(.group, "it waits for '\(member.path)' to settle"), pause)
        }
        guard state.rule.ready?.command != nil else { return nil }
        for member in members where member.path != event.path {
            guard let refusal = jobs.refusal(of: member, state.rule.name),
                refusal.id.description >= state.readyChange?.description ?? ""
            else { continue }
            let message = "it waits for '\(member.path)', which was skipped: \(refusal.message)"
            return (Waiting(.group, message), pause)
        }
        return nil
    }
}

extension JobRegistry {
    /// Returns the job that `ready` has refused for the current content of a file, committed or not; nil if there is
    /// none.
    fileprivate func refusal(of member: FileSets.Member, _ rule: String) -> Refusal? {
        for change in changes.jobs.values {
            guard case .ended(let open, _, let outcome, _) = change.fate, outcome.code == Outcome.readyCode,
                open.job.rule == rule, open.job.event.path == member.path,
                open.job.event.snapshot.hasSameContent(as: member.snapshot)
            else { continue }
            return Refusal(id: open.job.id, snapshot: member.snapshot, message: outcome.message)
        }
        return journal.refusal(rule: rule, path: member.path, snapshot: member.snapshot)
    }
}
