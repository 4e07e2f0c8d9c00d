import FileEvents
import FileWatching
import Handling
import Logging
import PluginProtocol
import RuleLoading
import Rules
import Settling
import Storage
import System

/// What all rules do with one path, as text and as JSON.
struct PathExplanation {
    struct OfRule {
        var explanation: Explanation
        /// The name that the rule has for the path, when symbolic links lead to another one.
        var alias: PathBytes?
        /// What it would be told; nil when its name already keeps the path from it.
        var next: NextEvent?
        /// What would hold its action up.
        var holdups: [Holdup] = []
        /// The command of `ready`, which would be asked first.
        var question: ActionPlan?
        /// What each of its actions would do, in order.
        var steps: [(action: Action, plans: [ActionPlan])] = []
        /// What the journal says of it.
        var record = PathRecord()
    }

    /// What is looked at besides the disk.
    struct Surroundings {
        /// All rules that are in force.
        var ruleset: Ruleset
        var isDisabled: (String) -> Bool
        var runner: ActionRunner
        /// The journal; nil if there is none.
        var journal: JournalReader?
        /// The event that was asked for; nil for what would happen next.
        var choice: EventChoice?
        /// The slots of the running instance; nil while one is free.
        var slots: RunningSlots?
    }

    let path: PathBytes
    let sight: DiskProbe.Sight
    let coverage: Coverage
    let rules: [OfRule]
    let now: Timestamp

    /// How many of the jobs that have ended are told.
    private static let history = 5

    /// Looks at the disk and at the journal.
    ///
    /// - Throws: When the journal can't be read.
    init(_ path: PathBytes, rules: [Rule], _ surroundings: Surroundings) throws(JournalFault) {
        self.path = path
        now = DiskProbe.now()
        sight = DiskProbe.look(at: path)
        coverage = Coverage(of: Self.alias(of: path, below: surroundings.ruleset.roots) ?? path, surroundings.ruleset)
        let sights = Self.sights(of: path, sight, rules, now)
        var entries: [OfRule] = rules.map { rule in
            let alias = Self.alias(of: path, below: rule.roots)
            return OfRule(
                explanation: Explanation(
                    rule, isEnabled: !surroundings.isDisabled(rule.name), path: alias ?? path, sights: sights),
                alias: alias)
        }
        if let journal = surroundings.journal {
            for (told, indices) in Dictionary(grouping: entries.indices, by: { entries[$0].told }) {
                let names = indices.map { entries[$0].explanation.rule.name }
                let records = try journal.records(of: told, rules: names, limit: Self.history)
                let due = DueEntries.ofInstance(
                    journal.path, JournalQuery(states: [.pending], paths: .inside(told)))
                for index in indices {
                    let name = entries[index].explanation.rule.name
                    var record = records[name] ?? PathRecord()
                    record.open += due.filter { $0.path == told && $0.rule == name }
                    entries[index].record = record
                }
            }
        }
        for index in entries.indices where entries[index].explanation.polling == nil {
            // A root is polled for all of its rules, if any of them asks for that.
            guard case .taken(let place) = entries[index].explanation.verdict else { continue }
            entries[index].explanation.polling = coverage.roots.first { $0.path == place.root }?.polling
        }
        let pauses = try surroundings.journal?.pauses() ?? Pauses()
        for index in entries.indices {
            let isPaused = pauses.hold(entries[index].explanation.rule.name)
            entries[index].lookAhead(surroundings, isPaused: isPaused, now)
        }
        self.rules = entries
    }

    private static func sights(
        of path: PathBytes, _ sight: DiskProbe.Sight, _ rules: [Rule], _ now: Timestamp
    ) -> Explanation.Sights {
        var sights = Explanation.Sights(
            path: sight, folder: { DiskProbe.look(at: $0) },
            root: { DiskProbe.look(at: DiskProbe.resolve($0) ?? $0) },
            polling: { PollingReason.untoldFileSystem(of: $0) })
        let root = rules.compactMap { $0.root(taking: path) }.max { $0.bytes.count < $1.bytes.count }
        sights.content = { ConditionFacts.Content(lookingAt: path, below: root ?? path.parent) }
        sights.now = now
        if case .present(let snapshot) = sight, snapshot.type == .file {
            sights.writers = DiskProbe.writers(of: path)
            sights.companion = PartialFile.companion(of: DiskProbe.Place(path), size: snapshot.size, in: .kernel)
            if rules.contains(where: { $0.settle.locks == .wait }) {
                sights.locks = DiskProbe.locks(of: DiskProbe.Place(path))
            }
        }
        return sights
    }

    /// The name below one of the roots by which a path is seen that is outside of them by name.
    static func alias(of path: PathBytes, below roots: [PathBytes]) -> PathBytes? {
        guard !roots.contains(where: { path.isInside($0) }) else { return nil }
        let real = resolvingFolder(of: path)
        for root in roots {
            guard let realRoot = DiskProbe.resolve(root), real != realRoot, let relative = real.relative(to: realRoot)
            else { continue }
            return root.appending(relative)
        }
        return nil
    }

    /// The path with the links in its deepest existing folder resolved.
    private static func resolvingFolder(of path: PathBytes) -> PathBytes {
        var folder = path.parent
        while folder != "/" {
            if let real = DiskProbe.resolve(folder), let rest = path.relative(to: folder) {
                return real.appending(rest)
            }
            folder = folder.parent
        }
        return path
    }
}

extension PathExplanation.OfRule {
    /// The path that the rule is told of.
    fileprivate var told: PathBytes {
        if case .taken(let place) = explanation.verdict, let unit = place.unit { return unit }
        return explanation.path
    }

    /// Works out what the rule would be told, what would hold it up, and what would be done.
    fileprivate mutating func lookAhead(
        _ surroundings: PathExplanation.Surroundings, isPaused: Bool, _ now: Timestamp
    ) {
        guard case .taken(let place) = explanation.verdict else { return }
        let rule = explanation.rule
        var snapshot: Snapshot?
        if case .present(let present) = DiskProbe.look(at: told) { snapshot = present }
        let next = NextEvent(
            surroundings.choice, rule, place, path: told, sight: snapshot, isKnown: record.isKnown, now: now)
        self.next = next
        let event = next.event
        guard rule.events.takes(event.kind, changed: event.changed) else {
            explanation.verdict = .left(.event(surroundings.choice?.word ?? event.kind.rawValue))
            return
        }
        if let index = surroundings.ruleset.index(of: rule.name),
            let stopper = surroundings.ruleset.stopper(
                of: event, to: index, looking: { ConditionFacts.Content(lookingAt: $0) })
        {
            explanation.verdict = .left(.stopped(by: stopper.name))
            return
        }
        holdups = (isPaused ? [.paused] : []) + Holdup.all(rule, event, record, among: surroundings.ruleset, now: now)
        if let slots = surroundings.slots?.holdup(of: rule) { holdups.append(slots) }
        plan(rule, event, surroundings, now)
    }

    private mutating func plan(
        _ rule: Rule, _ event: FileEvent, _ surroundings: PathExplanation.Surroundings, _ now: Timestamp
    ) {
        let runner = surroundings.runner
        var job = Job(
            id: record.open.last(where: \.hasJob)?.id ?? JobID(now: now), rule: rule.name, event: event)
        job.attempt = (record.open.last?.attempt ?? 0) + 1
        var jobs = [job]
        for member in rule.members(with: event.path, among: surroundings.ruleset) where member != event.path {
            guard case .present(let snapshot) = DiskProbe.look(at: member) else { continue }
            var other = job
            other.id = JobID(now: now)
            other.event.path = member
            other.event.snapshot = snapshot
            jobs.append(other)
        }
        if let group = rule.group {
            let order = group.sorted(jobs.map(\.event.path))
            jobs = order.compactMap { path in jobs.first { $0.event.path == path } }
        }
        var invocations = jobs.map { job in
            rule.invocation(
                for: job, now: now, timeout: rule.timeout, count: jobs.count, stop: StopSignal(),
                log: Logger(label: "alight") { _ in ActionLog(reporter: Reporter(format: .text)) })
        }
        if let command = rule.ready?.command {
            question = runner.plan(Action(.exec(command), place: rule.place), [invocations[0]]).first
        }
        for action in rule.actions {
            let plans = runner.plan(action, invocations)
            steps.append((action, plans))
            for index in invocations.indices {
                let plan = plans.first { $0.events.contains(invocations[index].job.event) }
                let outcome = Outcome(.succeeded, code: "would-run", outputs: plan?.outputs ?? [])
                invocations[index].steps.append(outcome)
                invocations[index].stepOutputs.append(outcome.outputs)
            }
        }
    }
}
