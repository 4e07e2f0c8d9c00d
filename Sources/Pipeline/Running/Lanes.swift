import Jobs
package import Monitoring
package import Rules

/// Decides which attempts may start: each needs a slot and counts toward the concurrency of its rule.
///
/// Slots are for attempts that may run a program. Attempts at brief actions use none; they are limited in the same
/// way, but separately. A free slot goes to the rule that has used the least slot time. A rule that has waited for
/// ``timeout`` with nothing running gets an extra slot, and keeps it while it has due work.
///
/// Pure: time is passed in. It only counts, and starts nothing.
package struct Lanes {
    /// The number of running attempts of one kind.
    private struct Slots {
        let limit: Int
        let extra: Int
        var used = 0
        var extraUsed = 0
        /// The rules whose attempt in an extra slot has finished since the slots were last filled.
        var vacant: Set<String> = []

        var free: Int { max(0, limit - used) }
        var hasExtra: Bool { extraUsed + vacant.count < extra }
    }

    /// The slots, and those of brief actions, whose number must also be limited: a disk may hang.
    private var slots: [Slots]
    /// The properties of the rules by name; their kind is the index of their slots.
    private var rules: [String: (position: Int, priority: Int, kind: Int)] = [:]
    private var hasPriorities = false
    /// The running attempts, by their first job.
    private var running: [JobID: (rule: String, start: ContinuousClock.Instant, kind: Int, isExtra: Bool)] = [:]
    private var perRule: [String: Int] = [:]
    /// The slot time of finished attempts by rule, or the value from which a rule starts, see ``virtualTime``.
    private var used: [String: Duration] = [:]
    /// The used time of the rule that was last given a free slot.
    ///
    /// No rule counts as having used less, so an idle rule accumulates no credit.
    private var virtualTime = Duration.zero
    /// The rules that have due work, nothing running and no slot, and the time since when.
    package private(set) var waiting: [String: ContinuousClock.Instant] = [:]
    /// The value of `waiting` when the slots were last filled.
    private var formerlyWaiting: [String: ContinuousClock.Instant] = [:]
    /// The number of attempts that have started since the last turn of the rule with the least used time.
    private var started = 0

    /// One of this many attempts goes to the rule that has used the least time, whatever its priority.
    package static let share = 10
    /// The time for which a rule waits for a slot before it gets an extra one.
    package static let timeout = Duration.seconds(1)

    /// Creates lanes in which nothing runs.
    ///
    /// - Parameters:
    ///   - limit: The number of slots.
    ///   - extra: The number of additional slots for rules that wait.
    ///   - rules: The rules in their order.
    package init(limit: Int, extra: Int = 0, rules: [Rule]) {
        slots = [Slots(limit: limit, extra: extra), Slots(limit: limit, extra: limit)]
        change(to: rules)
    }

    package mutating func change(to rules: [Rule]) {
        let entries = rules.enumerated().map { position, rule in
            (rule.name, (position: position, priority: rule.priority, kind: rule.takesSlot ? 0 : 1))
        }
        self.rules = Dictionary(entries) { first, _ in first }
        hasPriorities = rules.contains { $0.priority != 0 }
    }

    package var count: Int { running.count }

    /// Whether only extra slots are free.
    package var isFull: Bool { slots.allSatisfy { $0.free == 0 } }

    /// The maximum number of attempts that can run at the same time.
    package var limit: Int { slots.reduce(0) { $0 + $1.limit + $1.extra } }

    package var status: EngineStatus.Slots {
        var status = EngineStatus.Slots(limit: slots[0].limit, extra: slots[0].extra)
        (status.used, status.extraUsed, status.waiting) = (slots[0].used, slots[0].extraUsed, waiting)
        return status
    }

    /// Returns the number of running attempts of a rule.
    package func count(of rule: String) -> Int { perRule[rule, default: 0] }

    /// Returns the number of further attempts that the rule may start.
    package func capacity(for rule: Rule, at now: ContinuousClock.Instant) -> Int {
        let slots = slots[kind(of: rule.name)]
        let isGranted =
            slots.free == 0 && slots.hasExtra && formerlyWaiting[rule.name].map { now - $0 >= Self.timeout } ?? false
        let hasOwn = isGranted || slots.vacant.contains(rule.name)
        return min(slots.free + (hasOwn ? 1 : 0), rule.concurrency - count(of: rule.name))
    }

    /// Records the start of an attempt at jobs of one rule; a batch has several jobs.
    package mutating func start(_ jobs: [Job], at now: ContinuousClock.Instant) {
        guard let first = jobs.first else { preconditionFailure("an attempt without a job") }
        let rule = first.rule
        let kind = kind(of: rule)
        let isExtra = slots[kind].vacant.remove(rule) != nil || slots[kind].free == 0
        if isExtra { slots[kind].extraUsed += 1 } else { slots[kind].used += 1 }
        running[first.id] = (rule, now, kind, isExtra)
        perRule[rule, default: 0] += 1
        waiting[rule] = nil
        formerlyWaiting[rule] = nil
        let time = max(used[rule, default: .zero], virtualTime)
        used[rule] = time
        if !isExtra { virtualTime = time }
        started += 1
    }

    /// Records the end of an attempt, identified by its first job.
    package mutating func end(_ id: JobID, at now: ContinuousClock.Instant) {
        guard let attempt = running.removeValue(forKey: id) else { preconditionFailure("an end without a start") }
        if attempt.isExtra {
            slots[attempt.kind].extraUsed -= 1
            slots[attempt.kind].vacant.insert(attempt.rule)
        } else {
            slots[attempt.kind].used -= 1
        }
        perRule[attempt.rule, default: 1] -= 1
        used[attempt.rule, default: .zero] += now - attempt.start
    }

    /// Counts running attempts under the current names of renamed rules.
    package mutating func rename(_ names: [String: String]) {
        guard !names.isEmpty else { return }
        for (id, attempt) in running { running[id]?.rule = names[attempt.rule] ?? attempt.rule }
        for (old, name) in names {
            if let count = perRule.removeValue(forKey: old) { perRule[name, default: 0] += count }
            if let time = used.removeValue(forKey: old) { used[name] = max(time, used[name, default: .zero]) }
            if let since = waiting.removeValue(forKey: old) { waiting[name] = since }
        }
    }

    // MARK: Turns

    /// Returns the rules grouped by priority, the highest first.
    package func levels(_ rules: Set<String>) -> [Set<String>] {
        guard hasPriorities else { return [rules] }
        return Dictionary(grouping: rules) { self.rules[$0]?.priority ?? 0 }.sorted { $0.key > $1.key }
            .map { Set($0.value) }
    }

    /// Returns the rules in the order in which each may start one attempt.
    ///
    /// Those that get a slot come first, in the order of the rules, since several of them may be due for one file.
    package func round(_ names: Set<String>, at now: ContinuousClock.Instant) -> [String] {
        guard names.count > 1 else { return Array(names) }
        var times: [String: Duration] = [:]
        for name in names { times[name] = max(used[name, default: .zero], virtualTime) }
        for attempt in running.values { times[attempt.rule]? += now - attempt.start }
        var free = slots.map(\.free)
        var first: [String] = []
        var rest: [String] = []
        for name in sorted(names, by: times) {
            let kind = kind(of: name)
            if free[kind] > 0 { first.append(name) } else { rest.append(name) }
            free[kind] -= 1
        }
        return first.sorted { position($0) < position($1) } + rest
    }

    /// Returns the rules in the order of their used time if such a turn is due, otherwise none.
    ///
    /// So a rule of low priority is slow next to a busy one, but never starves.
    package mutating func fairTurn(_ rules: Set<String>) -> [String] {
        guard hasPriorities, started >= Self.share else { return [] }
        started = 0
        return sorted(rules, by: used)
    }

    private func sorted(_ names: Set<String>, by times: [String: Duration]) -> [String] {
        names.map { (times[$0, default: .zero], position($0), $0) }.sorted { $0 < $1 }.map(\.2)
    }

    private func position(_ name: String) -> Int { rules[name]?.position ?? .max }

    // MARK: Waiting

    /// Starts to fill the slots; waiting rules have to be recorded again.
    package mutating func startFilling() {
        formerlyWaiting = waiting
        waiting = [:]
    }

    /// Records that the rule has due work, nothing running, and no slot.
    package mutating func wait(_ rule: String, at now: ContinuousClock.Instant) {
        waiting[rule] = formerlyWaiting[rule] ?? waiting[rule] ?? now
    }

    /// Releases extra slots whose rules have no more due work, once nothing more can start.
    ///
    /// - Returns: Whether other rules can start something now.
    package mutating func endFilling() -> Bool {
        if running.isEmpty, waiting.isEmpty {
            used = [:]
            virtualTime = .zero
        }
        let isReleased = slots.contains { !$0.vacant.isEmpty }
        for kind in slots.indices { slots[kind].vacant = [] }
        if isReleased { formerlyWaiting = waiting }
        return isReleased && !waiting.isEmpty
    }

    /// The time at which a waiting rule gets an extra slot; nil if no rule waits, or no extra slot is left.
    package var deadline: ContinuousClock.Instant? {
        waiting.filter { slots[kind(of: $0.key)].hasExtra }.values.min().map { $0 + Self.timeout }
    }

    private func kind(of rule: String) -> Int { rules[rule]?.kind ?? 0 }
}
