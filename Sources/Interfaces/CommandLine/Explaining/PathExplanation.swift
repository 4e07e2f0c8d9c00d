import ActionAPI
import Configuration
import FileEvents
import Globbing
import JSON
import PluginProtocol
import Plugins
import Records
import Rules
import Settling
import Storage
import System
import Watching

/// The explanation of what all rules do with one path, as text and as JSON.
struct PathExplanation {
    struct OfRule {
        var explanation: Explanation
        /// The name of the path below the rule's roots, if symbolic links lead there under another name.
        var alias: PathBytes?
        /// The next event; nil if the rule does not match the path by name.
        var next: NextEvent?
        /// The reasons why the action would wait.
        var waitReasons: [WaitReason] = []
        /// The command of `ready`, which would run first.
        var question: ActionPlan?
        /// The plans of each action, in order.
        var steps: [(action: Action, plans: [ActionPlan])] = []
        /// The journal's record of the path.
        var record = PathRecord()
        /// Whether the file is as it was recorded, so that nothing is reported of it.
        var isUnchanged = false
    }

    /// The inputs of an explanation other than the path and the disk.
    struct Environment {
        /// All rules that are loaded.
        var ruleset: Ruleset
        var runner: ActionRunner
        /// The journal; nil if there is none.
        var journal: JournalReader?
        /// The event that the user named; nil for the event that would happen next.
        var choice: EventChoice?
        /// The slots of the running instance; nil if one is free.
        var slots: RunningSlots?
    }

    let path: PathBytes
    let inspected: DiskProbe.StatResult
    let coverage: Coverage
    let rules: [OfRule]
    let now: Timestamp

    /// The maximum number of finished jobs to list.
    private static let history = 5

    /// Inspects the disk and the journal.
    ///
    /// - Throws: A `StorageError` when the journal cannot be read.
    init(_ path: PathBytes, rules: [Rule], _ environment: Environment) throws(StorageError) {
        self.path = path
        now = DiskProbe.now()
        inspected = KernelFileSystem().stat(path)
        coverage = Coverage(of: Self.alias(of: path, below: environment.ruleset.roots) ?? path, environment.ruleset)
        let inspection = Self.inspection(of: path, inspected, rules, now)
        var entries: [OfRule] = rules.map { rule in
            let alias = Self.alias(of: path, below: rule.roots)
            let isEnabled = !environment.ruleset.isDisabled(rule.name)
            let explanation = Explanation(rule, isEnabled: isEnabled, path: alias ?? path, inspection: inspection)
            return OfRule(explanation: explanation, alias: alias)
        }
        if let journal = environment.journal {
            for (reportedPath, indices) in Dictionary(grouping: entries.indices, by: { entries[$0].reportedPath }) {
                let names = indices.map { entries[$0].explanation.rule.name }
                let records = try journal.records(of: reportedPath, rules: names, limit: Self.history)
                let query = JournalQuery(states: [.pending], paths: .inside(reportedPath))
                let due = DueEntries.ofInstance(journal.path, query).filter { $0.path == reportedPath }
                for (index, name) in zip(indices, names) {
                    entries[index].record = records[name] ?? PathRecord()
                    let open = entries[index].record.open.explained(by: due)
                    entries[index].record.open = open + due.filter { !$0.hasJob && $0.rule == name }
                }
            }
        }
        let pauses = try environment.journal?.pauses() ?? Pauses()
        for index in entries.indices {
            // A root is polled for all of its rules if one of them sets that.
            if case .matched(let location) = entries[index].explanation.verdict {
                let root = coverage.roots.first { $0.path == location.root }
                entries[index].explanation.polling = entries[index].explanation.polling ?? root?.polling
            }
            let isPaused = pauses.hold(entries[index].explanation.rule.name)
            entries[index].lookAhead(environment, isPaused: isPaused, now)
        }
        self.rules = entries
    }

    private static func inspection(
        of path: PathBytes, _ inspected: DiskProbe.StatResult, _ rules: [Rule], _ now: Timestamp
    ) -> Explanation.Inspection {
        var inspection = Explanation.Inspection(
            path: inspected, directory: { KernelFileSystem().stat($0) },
            root: { root in
                if case .refused(_, let errno) = WatchError.obstacle(at: root) { return .unreadable(errno: errno) }
                return KernelFileSystem().stat(KernelFileSystem().resolve(root) ?? root)
            },
            polling: { PollingReason.unreliableFileSystem(of: $0) })
        let root = rules.compactMap { $0.root(matching: path) }.max { $0.bytes.count < $1.bytes.count }
        inspection.content = { ConditionInput.Content(of: path, below: root ?? path.parent) }
        inspection.now = now
        if case .present(let snapshot) = inspected, snapshot.type == .file {
            inspection.writers = KernelFileSystem().writers(of: path)
            inspection.companion = PartialFile.companion(of: DiskProbe.Location(path), size: snapshot.size, in: .kernel)
            if rules.contains(where: { $0.settle.locks == .wait }) {
                inspection.locks = KernelFileSystem().locks(of: DiskProbe.Location(path))
            }
        }
        return inspection
    }

    /// Returns the name of a path below one of the roots, if it is outside of them by name but not after resolving
    /// links.
    static func alias(of path: PathBytes, below roots: [PathBytes]) -> PathBytes? {
        roots.contains(where: path.isInside) ? nil : path.aliases(below: roots).first
    }
}

extension PathBytes {
    /// Returns the names of the path below roots from which it can be reached, which may be symbolic links.
    func aliases(below roots: [PathBytes]) -> [PathBytes] {
        let real = resolvingDirectory
        return roots.compactMap { root in
            guard let realRoot = KernelFileSystem().resolve(root), real != realRoot else { return nil }
            return real.relative(to: realRoot).map { root.appending($0) }
        }
    }

    /// The path with the symbolic links in its deepest existing directory resolved.
    private var resolvingDirectory: PathBytes {
        var directory = parent
        while directory != "/" {
            if let real = KernelFileSystem().resolve(directory), let rest = relative(to: directory) {
                return real.appending(rest)
            }
            directory = directory.parent
        }
        return self
    }
}

extension PathExplanation.OfRule {
    /// The path of the event that the rule receives.
    fileprivate var reportedPath: PathBytes {
        if case .matched(let location) = explanation.verdict, let unit = location.unit { return unit }
        return explanation.path
    }

    /// Determines the next event, the reasons to wait, and the plans of the actions.
    fileprivate mutating func lookAhead(_ environment: PathExplanation.Environment, isPaused: Bool, _ now: Timestamp) {
        guard case .matched(let location) = explanation.verdict else { return }
        let rule = explanation.rule
        let snapshot = KernelFileSystem().stat(reportedPath).snapshot
        let next = NextEvent(
            environment.choice, rule, root: location.root, path: reportedPath, inspected: snapshot,
            isKnown: record.recorded != nil, now: now)
        self.next = next
        if !rule.settle.isTree, let snapshot { isUnchanged = record.recorded?.isUnchanged(snapshot) ?? false }
        let event = next.event
        guard rule.events.takes(event.kind, changed: event.changed) else {
            explanation.verdict = .unmatched(.event(environment.choice?.word ?? event.kind.rawValue))
            return
        }
        let ruleset = environment.ruleset
        let stopper = ruleset.index(of: rule.name).flatMap { index in
            ruleset.stopper(of: event, to: index, reading: { ConditionInput.Content(of: $0) })
        }
        if let stopper { return explanation.verdict = .unmatched(.stopped(by: stopper.name)) }
        // The running instance has already given the reason why a due path waits.
        if !record.open.contains(where: { !$0.hasJob && $0.message != nil }) {
            waitReasons = WaitReason.all(rule, event, record, isPaused: isPaused, among: ruleset, now: now)
            if let slots = environment.slots?.reason(of: rule) { waitReasons.append(slots) }
        }
        plan(rule, event, environment, now)
    }

    private mutating func plan(
        _ rule: Rule, _ event: FileEvent, _ environment: PathExplanation.Environment, _ now: Timestamp
    ) {
        let runner = environment.runner
        var job = Job(id: record.open.last(where: \.hasJob)?.id ?? JobID(now: now), rule: rule.name, event: event)
        job.attempt = (record.open.last?.attempt ?? 0) + 1
        var jobs = [job]
        for member in rule.members(with: event.path, among: environment.ruleset) where member != event.path {
            guard let snapshot = KernelFileSystem().stat(member).snapshot else { continue }
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
                log: Reporter(format: .text).logger)
        }
        if let action = rule.question { question = runner.plan(action, [invocations[0]]).first }
        for action in rule.actions {
            let plans = runner.plan(action, invocations)
            steps.append((action, plans))
            for index in invocations.indices {
                let outputs = plans.first { $0.events.contains(invocations[index].job.event) }?.outputs ?? []
                invocations[index].steps.append(Outcome(.succeeded, code: DryRun.code, outputs: outputs))
                invocations[index].stepOutputs.append(outputs)
            }
        }
    }
}

// The explanation as JSON.
extension PathExplanation {
    /// One JSON object for each rule.
    var objects: [[String: JSONValue]] {
        rules.map { entry in
            let explanation = entry.explanation
            let rule = explanation.rule
            var object = [String: JSONValue]([
                "rule": rule.name, "location": rule.location.description, "matches": explanation.isMatch,
                "type": JSONValue.text(inspected.snapshot?.type.rawValue), "known": entry.record.recorded != nil,
                "open": entry.record.open.map(\.object),
                "ran": entry.record.ended.map(\.object), "path": path, "alias": entry.alias,
            ])
            switch explanation.verdict {
            case .unmatched(let reason):
                let (code, message, help) = explanation.words(for: reason)
                object.merge([String: JSONValue](["reason": code, "message": message, "help": help])) { $1 }
                if case .name(let refusal) = reason { object.merge(refusal.members) { $1 } }
                if case .stopped(let stopper) = reason { object["stopped_by"] = .string(stopper) }
            case .matched(let location):
                let paths = [String: JSONValue]([
                    "root": location.root, "relative": location.relative, "unit": location.unit,
                ])
                for members in [paths, explanation.members, entry.members] { object.merge(members) { $1 } }
            }
            object.merge(coverage.members) { $1 }
            return object
        }
    }
}

extension PathExplanation.OfRule {
    /// The members about the next event, waits and actions of a match.
    fileprivate var members: [String: JSONValue] {
        .init([
            "unchanged": isUnchanged, "event": next?.event.kind.rawValue,
            "changed": next.flatMap { $0.event.changed.isEmpty ? nil : $0.event.changed },
            "wait_reasons": waitReasons.map { reason in
                JSONValue.members([
                    "cause": reason.cause, "message": reason.message, "until": reason.until?.description,
                ])
            }, "question": question?.members,
            "would": steps.enumerated().flatMap { number, step in
                step.plans.map { plan in
                    let values = plan.values.map { ($0.word, JSONValue(bytes: $1)) }
                    let members = [String: JSONValue]([
                        "step": number, "action": step.action.name,
                        "values": Dictionary(values) { first, _ in first }, "paths": plan.events.map(\.path),
                    ])
                    return plan.members.merging(members) { $1 }
                }
            },
        ])
    }
}

extension Coverage {
    fileprivate var members: [String: JSONValue] {
        .init([
            "watched": isWatched,
            "roots": roots.map { root in
                JSONValue.members([
                    "exists": root.isThere, "backend": root.polling == nil ? "inotify" : "poll", "path": root.path,
                    "unreached": root.unreached,
                ])
            },
        ])
    }
}

extension Explanation {
    fileprivate var members: [String: JSONValue] {
        let isPolled = polling != nil
        var object = [String: JSONValue]([
            "events": EventSpelling.words(of: rule.events), "backend": isPolled ? "poll" : "inotify",
            "settle_ms": rule.settle.quiet(isPolled: isPolled).milliseconds, "writers": rule.settle.writers.rawValue,
            "locks": rule.settle.locks.rawValue, "existing": (rule.existing ?? .ignore).rawValue,
            "held_by": holds.map(\.rawValue), "where": findings.isEmpty ? nil : findings,
            "where_unknown": unknownCondition, "poll_ms": isPolled ? rule.pollInterval.milliseconds : nil,
            "stable": rule.settle.stable(isPolled: isPolled).map { stable in
                JSONValue.members(["every_ms": stable.every.milliseconds, "rounds": stable.rounds])
            }, "max_wait_ms": rule.settle.maximumWait?.milliseconds,
        ])
        if case .fileSystem(let name) = polling { object["file_system"] = .string(name) }
        return object.merging(rule.runningMembers) { $1 }
    }
}

extension PathFilter.Refusal {
    /// The glob, and the part of the path that it refers to.
    fileprivate var members: [String: JSONValue] {
        let glob = JSONValue.string(glob.description)
        return switch reason {
        case .outside, .above, .depth: ["glob": glob]
        case .glob(let part), .hidden(let part): .init(["glob": glob, "part": PathBytes(part)])
        case .excluded(_, let pattern, let part):
            .init(["glob": glob, "pattern": pattern.description, "part": PathBytes(part)])
        }
    }
}
