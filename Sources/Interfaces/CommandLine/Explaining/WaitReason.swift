import ActionAPI
import Configuration
import Engine
import FileEvents
import Gates
import Glibc
import Globbing
import Jobs
import JSON
import Rules
import Storage
import System

/// A reason why an action would not start as soon as the file has settled.
struct WaitReason {
    /// The code for programs.
    var cause: String
    /// The message for users.
    var message: String
    /// The time at which the wait ends, if known.
    var until: Timestamp?

    init(cause: String, message: String) { (self.cause, self.message) = (cause, message) }

    init(_ waiting: Waiting, until end: Timestamp? = nil) {
        (cause, message, until) = (waiting.cause.rawValue, waiting.message, end)
    }

    /// Returns the reasons to wait for a rule and an event, in the order in which they are checked.
    ///
    /// They are those of the engine's gates if it started now with this record of the path.
    static func all(
        _ rule: Rule, _ event: FileEvent, _ record: PathRecord, isPaused: Bool, among ruleset: Ruleset, now: Timestamp
    ) -> [WaitReason] {
        let clock = ContinuousClock.now
        let time = GateTime(now: clock, time: now, clock: .system, files: WatchedPaths(roots: rule.roots))
        let hold = RuleGates(rule).hold(isPaused: isPaused, at: time)
        var gates = Gates(rule)
        // A skipped job has not run.
        if let last = record.ended.filter({ $0.state != .skipped }).compactMap(\.ended).max() {
            gates.recordEnd(of: event.path, at: clock - now.since(last))
        }
        let waits = gates.waits(for: DueJob(event: event), at: time)
        let isOfFile = event.kind != .deleted && !event.kind.isRaw
        let others = isOfFile ? [unreadable(rule, event, ruleset), group(rule, event, ruleset)] : []
        return [hold.map { WaitReason($0.waiting, until: $0.end) }, busy(rule, record)].compactMap(\.self)
            + waits.map { WaitReason($0.waiting, until: $0.end) } + others.compactMap(\.self)
    }

    private static func busy(_ rule: Rule, _ record: PathRecord) -> WaitReason? {
        guard let job = record.open.first(where: { $0.state == .running }) else { return nil }
        let consequence =
            rule.whileBusy == .restart ? "would be stopped ('while_busy: restart')" : "has to finish first"
        return WaitReason(Waiting(.busy, "job \(job.id) runs for it, and \(consequence)"))
    }

    /// Returns the wait for a condition that cannot be read.
    private static func unreadable(_ rule: Rule, _ event: FileEvent, _ ruleset: Ruleset) -> WaitReason? {
        let read = { (event: FileEvent) in ConditionInput.Content(of: event) }
        if case .unreadable(let reason) = rule.admits(event, reading: read) {
            return WaitReason(.unreadable("where", reason))
        }
        if let index = ruleset.index(of: rule.name),
            let reason = ruleset.unreadableStopper(of: event, to: index, reading: read)
        {
            return WaitReason(Waiting(.unreadable, reason))
        }
        guard rule.sameContent == .ignore, event.snapshot.type == .file else { return nil }
        let descriptor = DiskProbe.openForReading(event.path, below: event.root)
        guard descriptor < 0 else {
            close(descriptor)
            return nil
        }
        return WaitReason(.unreadable("same_content", SystemError(errno: -descriptor).description))
    }

    private static func group(_ rule: Rule, _ event: FileEvent, _ ruleset: Ruleset) -> WaitReason? {
        guard let group = rule.group else { return nil }
        let missing = group.missing(in: rule.members(with: event.path, among: ruleset) + [event.path])
        return missing.isEmpty ? nil : WaitReason(.set(missing: missing))
    }
}

extension Rule {
    /// Returns the existing files that are handled together with a path; the path itself only if it exists.
    ///
    /// Files that the conditions exclude, or that an earlier rule with `stop` matches, are not included.
    func members(with path: PathBytes, among ruleset: Ruleset) -> [PathBytes] {
        guard let group else { return [] }
        let read = { (event: FileEvent) in ConditionInput.Content(of: event) }
        let key = group.key(of: path)
        let files = WatchedPaths(roots: roots)
        let names = (try? files.names(in: path.parent)) ?? []
        let members = names.map { path.parent.appending($0.bytes) }.filter { member in
            guard group.mayBelong(PathBytes(member.lastComponent), to: key), group.key(of: member) == key,
                let root = root(matching: member), case .present(let snapshot) = files.inspect(at: member),
                types.contains(snapshot.type)
            else { return false }
            if member == path { return true }
            let event = FileEvent(
                kind: .created, path: member, root: root, snapshot: snapshot, origin: .scan, time: DiskProbe.now())
            guard admits(event, reading: read) == .holds, let index = ruleset.index(of: name) else { return false }
            return ruleset.stopper(of: event, to: index, reading: read) == nil
        }
        return group.sorted(members)
    }
}

/// The slots of the running instance, when none is free.
struct RunningSlots {
    /// The actions that use the slots, as text: rule, path and running time.
    private let users: String
    /// The rules with running actions.
    private let running: Set<String>

    /// Asks the running instance that uses this journal.
    ///
    /// - Returns: Nil if no instance answers, or if a slot is free.
    init?(_ settings: Configuration) {
        guard let status = settings.journalFile.flatMap({ ControlClient.ask(instanceOf: $0, "/v1/status") }),
            let used = status["slots"]["used"].double, let limit = status["slots"]["limit"].double, used >= limit
        else { return nil }
        let jobs = status["running"].elements
        running = Set(jobs.compactMap(\.["rule"].string))
        users = jobs.filter { $0["slot"].isTrue }.map { job in
            let time = Reporter.seconds(job["since"].elapsed)
            return "rule '\(job["rule"].text)' for '\(job.path?.description ?? "")', for \(time)"
        }.joined(separator: "; ")
    }

    /// Returns the wait for a slot; nil if the rule needs none, or already has an action running.
    func reason(of rule: Rule) -> WaitReason? {
        guard rule.takesSlot, !running.contains(rule.name) else { return nil }
        return WaitReason(cause: "slots", message: "no slot is free; in use by \(users)")
    }
}

extension DuePath {
    /// The path as an entry of a list of jobs.
    var entry: JobEntry { JobEntry(due: path, rule: rule, event: event, since: since, until: until, message: reason) }
}

extension JobEntry {
    /// Returns the job with the wait that holds all jobs of its rule, if it is pending.
    func held(by hold: RuleGates.Hold?) -> JobEntry {
        guard let hold, state == .pending else { return self }
        var job = self
        job.message = hold.waiting.message
        job.due = hold.end.map { max($0, due ?? $0) }
        return job
    }
}

extension [JobEntry] {
    /// Returns the jobs, the pending ones with the reasons that the running instance gives.
    func explained(by pending: [JobEntry]) -> [JobEntry] {
        let known = Dictionary(pending.lazy.filter(\.hasJob).map { ($0.id, $0) }) { first, _ in first }
        return map { job in
            guard job.state == .pending, let known = known[job.id] else { return job }
            var job = job
            (job.message, job.due) = (known.message, known.due)
            return job
        }
    }

    /// Returns the jobs and the due paths among the pending entries, newest first.
    ///
    /// A path whose action has started in the meantime is not listed as due.
    func adding(_ pending: [JobEntry]) -> [JobEntry] {
        if pending.isEmpty { return self }
        let open = filter { $0.state == .running || $0.state == .pending }
        let due = pending.filter { due in
            !due.hasJob
                && !open.contains { $0.path == due.path && $0.rule == due.rule && $0.created >= due.created }
        }
        return (self + due).sorted { ($1.time, $1.id.description) < ($0.time, $0.id.description) }
    }
}

/// The pending jobs and the due paths of the running instance; the latter have no rows in the journal.
enum DueEntries {
    /// Returns the pending jobs of a query, each with the reason why it waits; empty if no instance uses the journal, or
    /// if it does not answer.
    static func ofInstance(_ journal: PathBytes, _ query: JournalQuery) -> [JobEntry] {
        guard query.states.isEmpty || query.states.contains(.pending),
            let answer = ControlClient.ask(instanceOf: journal, target(query))
        else { return [] }
        return answer["jobs"].elements.compactMap { entry($0, query) }
    }

    private static func target(_ query: JournalQuery) -> String {
        var target = "/v1/jobs?state=pending&limit=1000"
        if let rule = query.rule { target += "&rule=\(String(percentEncoding: rule.utf8))" }
        switch query.paths {
        case nil: break
        case .inside(let path): target += "&path=\(String(percentEncoding: path.bytes))"
        case .matching(let glob): target += "&path=\(String(percentEncoding: glob.description.utf8))"
        }
        return target
    }

    private static func entry(_ job: JSONValue, _ query: JournalQuery) -> JobEntry? {
        guard let path = job.path, query.takes(path), let rule = job["rule"].string,
            let event = EventKind(rawValue: job["event"].text),
            let created = try? TimeText.parse(job["created"].text, now: DiskProbe.now()),
            created >= query.since ?? created
        else { return nil }
        let (due, message) = (job["due"].time, job["message"].string)
        var entry = JobEntry(due: path, rule: rule, event: event, since: created, until: due, message: message)
        if let id = job["id"].string { entry.id = JobID(id) }
        return entry
    }
}
