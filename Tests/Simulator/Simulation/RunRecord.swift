import ActionAPI
import Engine
import FileEvents
import Monitoring
import Rules
import System

/// A record of everything that the actions of a run have received and done, for the final check.
struct RunRecord {
    /// The state that the action of one rule knows.
    struct Mirror {
        /// The content of each path, as the action has read it.
        var contents: [PathBytes: Int] = [:]
        /// The mode of each path, as the action has seen it.
        var modes: [PathBytes: UInt16] = [:]
        /// The content of each directory handled as one unit, as the action has seen it.
        var trees: [PathBytes: [PathBytes: Int]] = [:]
        /// The text received for each file.
        var texts: TextMirror
        /// Paths with a failed job, or without guarantees for other reasons.
        var untracked: Set<PathBytes> = []
        /// The files as the sum of all events whose jobs have ended.
        var received: [PathBytes: Snapshot] = [:]
        /// The paths whose last job was only a change by its own program, as which another one may have counted.
        var repeated: Set<PathBytes> = []

        /// Adds the event of a job that has ended.
        mutating func receive(_ event: FileEvent) {
            if let from = event.from { received[from] = nil }
            received[event.path] = event.kind == .deleted ? nil : event.snapshot
        }
        /// The files as they were offered to actions that succeeded.
        var handled: [PathBytes: Snapshot] = [:]
        /// Paths for which there was a job since their deletion was last reported.
        var offered: Set<PathBytes> = []
        /// Whether nothing is guaranteed about past changes.
        var isForgiven = false
    }

    var mirrors: [Mirror]
    /// Everything received and done, in order.
    var history: [String] = []
    var failure: String?
    var failed: [JobID] = []
    /// The failed jobs that were retried manually.
    var retried: Set<JobID> = []
    /// The events of the jobs with a failed attempt.
    private var events: [JobID: FileEvent] = [:]
    /// The files that first steps have taken away, by job.
    private var archive: [JobID: Taken] = [:]
    /// The jobs whose later steps have recorded the file, or that failed.
    private var noted: Set<JobID> = []
    /// The files that `copy` has written, by job.
    private(set) var outputs: [JobID: [PathBytes]] = [:]

    /// The files that `copy` has last written, by path.
    private var written: [PathBytes: (file: FileIdentity?, time: Timestamp)] = [:]

    private struct Taken: Hashable {
        let path: PathBytes
        let file: FileIdentity
    }

    init(rules: Int, hasBirth: Bool) {
        mirrors = Array(repeating: Mirror(texts: TextMirror(hasBirth: hasBirth)), count: rules)
    }

    private func index(_ rule: String, _ run: SimulatedRun) -> Int? { run.rules.firstIndex { $0.name == rule } }

    /// Returns the error if the job is the deletion of a file for which there was no job.
    ///
    /// Directories that existed at the start are excluded.
    func checkDeletion(_ job: Job, _ run: SimulatedRun) -> String? {
        guard job.event.kind == .deleted, job.steps.isEmpty, !job.isInterrupted, job.previous == nil,
            let index = index(job.rule, run), !run.rules[index].isTree,
            run.loaded[index].events.contains(.created), !mirrors[index].isForgiven,
            !mirrors[index].offered.contains(job.event.path), !retried.contains(job.id)
        else { return nil }
        return "deleted \(run.world.name(of: job.event.path)), which was never reported"
    }

    /// Records the files for which there are jobs.
    mutating func recordAccepted(_ jobs: [Job], _ run: SimulatedRun) {
        for job in jobs where job.event.kind != .deleted {
            guard let index = index(job.rule, run) else { continue }
            mirrors[index].offered.insert(job.event.path)
            if !run.rules[index].follows, job.event.kind == .created || job.event.kind == .modified,
                job.event.snapshot.links == 1, run.world.isBeingWritten(job.event.path),
                run.world.raceCount == run.racesBefore
            {
                failure = failure ?? "\(run.world.name(of: job.event.path)) is due while it is being written"
            }
        }
    }

    /// Returns the error if the job offers a file that was already handled in its current state, without an event that
    /// reports it.
    func checkOnce(_ job: Job, _ run: SimulatedRun) -> String? {
        // A change of one file offers all files of its group, and text is offered piece by piece.
        guard let index = index(job.rule, run), run.rules[index].group.isEmpty, !run.rules[index].follows,
            job.attempt == 1,
            !job.isInterrupted, job.steps.isEmpty, job.previous == nil,
            job.event.kind == .created || job.event.kind == .modified,
            let handled = mirrors[index].handled[job.event.path]
        else { return nil }
        let offered = job.event.snapshot
        guard handled.identity == offered.identity, handled.changed == offered.changed,
            handled.hasSameContent(as: offered), handled.digest == offered.digest
        else { return nil }
        return "\(job.event.kind) \(run.world.name(of: job.event.path)) again, as it was handled"
    }

    /// Returns the error if the rule does not ask for the event or refuses the file, an earlier rule stops it, the time is outside the rule's hours,
    /// or the group is incomplete.
    func checkAdmission(_ job: Job, with others: [Job], _ run: SimulatedRun) -> String? {
        guard let index = index(job.rule, run), job.attempt == 1, !job.isInterrupted, job.steps.isEmpty else {
            return nil
        }
        let (rule, event) = (run.rules[index], job.event)
        let name = run.world.name(of: event.path)
        if let window = run.loaded[index].window, !window.isOpen(at: run.world.time, LocalClock { _ in 0 }) {
            return "\(event.kind) \(name) outside of its window"
        }
        if !run.loaded[index].events.takes(event.kind, changed: event.changed) {
            return "\(event.kind) \(name) is not an event of the rule"
        }
        let isShared = run.activities.flatMap(\.invocations).contains { other in
            other.job.id != job.id && other.job.rule == job.rule
                && !event.paths.allSatisfy { !other.job.event.paths.contains($0) }
        }
        if isShared { return "\(event.kind) \(name) while another job runs for its path" }
        guard event.kind == .created || event.kind == .modified else { return nil }
        if !rule.isComplete(event.path, among: others.map(\.event.path)) { return "\(name) without its group" }
        if !rule.wants(event.snapshot) { return "\(event.kind) \(name), which is refused" }
        if index > 0, run.rules[0].stops, run.loaded[0].root(matching: event.path) != nil,
            run.rules[0].wants(event.snapshot)
        {
            return "\(event.kind) \(name), which the rule before it stops"
        }
        return nil
    }

    mutating func recordSuccess(_ job: Job, writing outputs: [PathBytes], _ run: SimulatedRun) {
        guard let index = index(job.rule, run), !job.event.kind.isRaw else { return }
        let event = job.event
        mirrors[index].receive(event)
        mirrors[index].repeated.subtract(event.paths)
        let repeats = run.program?.repeats.filter { $0.rule == job.rule }.flatMap(\.paths) ?? []
        mirrors[index].repeated.formUnion(event.paths.filter(repeats.contains))
        switch event.kind {
        case .deleted:
            mirrors[index].handled[event.path] = nil
            // The path now belongs to another file.
            if run.program?.hasPending(job.rule, event.path) != true { mirrors[index].offered.remove(event.path) }
        case .moved:
            // A move offers the content handled under the old name; a difference from it follows.
            let handled = event.from.flatMap { mirrors[index].handled.removeValue(forKey: $0) }
            let isSame = handled.map { $0.hasSameContent(as: event.snapshot) } ?? false
            mirrors[index].handled[event.path] = isSame ? event.snapshot : nil
        // If the file is missing after an action, the action counts as having removed it. It is new when it returns.
        default: mirrors[index].handled[event.path] = run.world.snapshot(event.path).map { _ in event.snapshot }
        }
        for output in outputs {
            // When the program records the output, the path may have another file that the rule wants.
            mirrors[index].offered.insert(output)
            guard let present = run.world.snapshot(output), run.rules[index].wants(present) else { continue }
            mirrors[index].contents[output] = run.world.content(output)
            mirrors[index].modes[output] = present.mode
        }
    }

    /// Forgets the output of a failed attempt, which does not count as an output.
    mutating func recordFailure(_ job: Job) {
        events[job.id] = job.event
        for output in outputs[job.id] ?? [] { written[output] = nil }
    }

    /// Performs one step of an action, which reads the files as they are now.
    ///
    /// - Returns: Whether the step had its effect.
    mutating func perform(_ behaviour: Behaviour, _ job: Job, _ run: SimulatedRun) -> Bool {
        guard let index = index(job.rule, run) else { return false }
        let prefix = index == 0 ? "" : "\(job.rule): "
        let event = job.event
        let world = run.world
        let name = world.name(of: event.path)
        switch behaviour {
        case .note:
            noted.insert(job.id)
            history.append("\(prefix)note \(name)")
            return true
        case .take:
            // An interrupted attempt did it, as the identity of the file at the target shows.
            if archive[job.id] != nil { return true }
            guard let present = world.snapshot(event.path), present.hasSameContent(as: event.snapshot) else {
                return false
            }
            archive[job.id] = Taken(path: event.path, file: present.identity)
            world.apply(.delete(name))
            history.append("\(prefix)take \(name)")
            return true
        case .copy
        where event.kind != .deleted && world.content(event.path) != nil && !name.bytes.starts(with: "o/".utf8):
            let output = PathBytes("o/").appending(event.path.lastComponent)
            guard world.apply(.create(output)) || world.apply(.write(output)) else { break }
            let path = world.base.appending(output.bytes)
            outputs[job.id, default: []].append(path)
            written[path] = (world.snapshot(path)?.identity, world.time)
        case .read, .edit, .copy: break
        }
        history.append("\(prefix)\(event.kind) \(event.from.map { "\(world.name(of: $0))>" } ?? "")\(name)")
        updateMirror(index, job, run)
        if behaviour == .edit, world.content(event.path) != nil, event.kind != .deleted {
            world.apply(.write(name))
            mirrors[index].contents[event.path] = world.content(event.path)
        }
        return true
    }

    /// Records the files as an action reads them.
    private mutating func updateMirror(_ index: Int, _ job: Job, _ run: SimulatedRun) {
        let (event, world) = (job.event, run.world)
        let content = world.content(event.path)
        if run.rules[index].follows {
            let isDoubtful = mirrors[index].isForgiven || !mirrors[index].untracked.isDisjoint(with: event.paths)
            let isRepeated = job.isInterrupted || job.attempt > 1 || retried.contains(job.id)
            let problem = mirrors[index].texts.record(event, isDoubtful: isDoubtful, isRepeated: isRepeated, in: world)
            failure = failure ?? problem
        }
        if run.rules[index].isTree {
            let held = event.from.flatMap { mirrors[index].trees.removeValue(forKey: $0) }
            let isRead = event.kind != .moved || job.attempt > 1 || job.isInterrupted
            mirrors[index].trees[event.path] =
                event.kind == .deleted ? nil : isRead ? world.tree(event.path) : held ?? world.tree(event.path)
        }
        if let from = event.from { mirrors[index].modes[from] = nil }
        mirrors[index].modes[event.path] =
            event.kind == .moved ? event.snapshot.mode : world.snapshot(event.path)?.mode
        switch event.kind {
        case .deleted: mirrors[index].contents[event.path] = nil
        case .moved:
            let held = event.from.flatMap { from in
                hasWritten(from, since: event, world) ? nil : mirrors[index].contents.removeValue(forKey: from)
            }
            mirrors[index].contents[event.path] =
                job.attempt == 1 && !job.isInterrupted ? held ?? content : content ?? held
        default: if let content { mirrors[index].contents[event.path] = content }
        }
        // A move from a path that the action has written since does not affect that file.
        if let from = event.from, hasWritten(from, since: event, world) {
            mirrors[index].contents[from] = world.content(from)
        }
        let stale = event.kind == .moved ? [event.from, job.attempt > 1 ? event.path : nil].compactMap(\.self) : []
        let isStale = stale.contains(where: mirrors[index].untracked.contains)
        mirrors[index].untracked.subtract(event.paths)
        if isStale { mirrors[index].untracked.insert(event.path) }
    }

    /// Whether the action has written another file to a path since a move from it.
    private func hasWritten(_ path: PathBytes, since event: FileEvent, _ world: World) -> Bool {
        guard let last = written[path], let file = last.file else { return false }
        return file == world.snapshot(path)?.identity && file != event.before?.identity && last.time > event.time
    }

    func hasTaken(_ job: JobID) -> Bool { archive[job] != nil }

    /// Whether the first step of a job has taken a file away and its next step never ran.
    ///
    /// A file with several names may be at the path again before the step is known to have finished; it then belongs to
    /// another job.
    var hasLostStep: Bool {
        let done = Set(archive.filter { noted.contains($0.key) }.values)
        return archive.values.contains { !done.contains($0) }
    }

    /// Records the engine's report of an attempt.
    mutating func record(_ attempt: AttemptReport, _ run: SimulatedRun) {
        guard let index = index(attempt.rule, run) else { return }
        let name = run.world.name(of: attempt.path)
        switch attempt.state {
        case .failed:
            history.append("\(index == 0 ? "" : "\(attempt.rule): ")failed \(name)")
            failed.append(attempt.job)
            noted.insert(attempt.job)
            if let event = events[attempt.job] {
                mirrors[index].receive(event)
                mirrors[index].texts.lost.insert(event.snapshot.identity)
            }
            mirrors[index].untracked.formUnion([attempt.path, attempt.from].compactMap(\.self))
        case .skipped:
            if attempt.outcome.code == "gone" { history.append("skipped \(name)") }
        default: break
        }
    }

    mutating func markUntracked(_ paths: Set<PathBytes>, _ rule: String, _ run: SimulatedRun) {
        if let index = index(rule, run) { mirrors[index].untracked.formUnion(paths) }
    }

    mutating func markUntracked(_ paths: Set<PathBytes>) {
        for index in mirrors.indices { mirrors[index].untracked.formUnion(paths) }
    }

    /// With `catch_up: false`, changes without a job at the time of a kill are not reported.
    mutating func forgive(_ run: SimulatedRun) {
        for (index, rule) in run.rules.enumerated() where !rule.catchUp { mirrors[index].isForgiven = true }
    }
}
