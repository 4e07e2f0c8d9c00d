package import FileEvents
package import Rules

/// Who may run: an attempt takes a slot of the program, a slot of its rule, and its paths for itself.
///
/// Pure: it counts, and starts nothing.
package struct Lanes {
    private let limit: Int
    /// By the first job of each attempt.
    private var running: [JobID: (rule: String, paths: [PathBytes], former: [PathBytes])] = [:]
    private var perRule: [String: Int] = [:]
    /// The attempts, by the paths that their actions work on.
    private var owners: [PathBytes: JobID] = [:]
    /// The paths that an action works on, and those from which they were moved.
    package private(set) var busy: Set<PathBytes> = []
    /// The rule that was served last, after which the next round begins.
    private var last = ""
    /// Of rules with another priority than 0.
    var priorities: [String: Int]
    /// How many attempts were begun, and of each rule the number of its last one.
    private var begun = 0
    private var lastBegun: [String: Int] = [:]
    /// How many were begun when a rule had its turn last that had waited the longest.
    private var lastOwed = 0

    /// One attempt of so many goes to the rule that has waited for the longest time, whatever its priority.
    package static let share = 10

    package init(limit: Int, priorities: [String: Int] = [:]) {
        self.limit = limit
        self.priorities = priorities
    }

    package var count: Int { running.count }

    /// How many attempts the rule runs.
    package func count(of rule: String) -> Int { perRule[rule, default: 0] }

    /// The attempt of the rule that works on the path, by its first job.
    package func attempt(of rule: String, at path: PathBytes) -> JobID? {
        guard let owner = owners[path], running[owner]?.rule == rule else { return nil }
        return owner
    }

    /// How many more attempts the rule may run.
    package func room(for rule: Rule) -> Int {
        min(limit - running.count, rule.concurrency - count(of: rule.name))
    }

    /// Notes an attempt at jobs of one rule, several in a batch.
    package mutating func start(_ jobs: [Job]) {
        guard let first = jobs.first else { preconditionFailure("an attempt without a job") }
        let former = jobs.compactMap(\.event.from)
        running[first.id] = (first.rule, jobs.map(\.event.path), former)
        perRule[first.rule, default: 0] += 1
        busy.formUnion(jobs.map(\.event.path) + former)
        for job in jobs { owners[job.event.path] = first.id }
        last = first.rule
        guard !priorities.isEmpty else { return }
        begun += 1
        lastBegun[first.rule] = begun
    }

    /// Notes the end of the attempt whose first job this is.
    ///
    /// - Returns: The name that its rule has now.
    @discardableResult
    package mutating func end(_ id: JobID) -> String {
        guard let (rule, paths, former) = running.removeValue(forKey: id) else {
            preconditionFailure("an end without a start")
        }
        perRule[rule, default: 1] -= 1
        busy.subtract(paths + former)
        for path in paths { owners[path] = nil }
        return rule
    }

    /// Counts what runs for rules under the names that these have now.
    package mutating func rename(_ names: [String: String]) {
        guard !names.isEmpty else { return }
        for (id, attempt) in running { running[id]?.rule = names[attempt.rule] ?? attempt.rule }
        for (old, name) in names {
            if let count = perRule.removeValue(forKey: old) { perRule[name, default: 0] += count }
            if let number = lastBegun.removeValue(forKey: old) {
                lastBegun[name] = max(number, lastBegun[name, default: 0])
            }
        }
        last = names[last] ?? last
    }

    /// The rules in the order in which they get their turn: those after the last one served first.
    package func round(_ rules: Set<String>) -> [String] {
        let sorted = rules.sorted()
        return sorted.filter { $0 > last } + sorted.filter { $0 <= last }
    }

    /// The rules by priority, the highest first, and those of one priority together.
    package func levels(_ rules: Set<String>) -> [Set<String>] {
        if priorities.isEmpty { return [rules] }
        return Dictionary(grouping: rules) { priorities[$0, default: 0] }.sorted { $0.key > $1.key }
            .map { Set($0.value) }
    }

    /// The rules in the order in which they have waited, when it is one of their turns; else none.
    ///
    /// So a rule of low priority is slow beside a busy one, and never stands still.
    package mutating func owed(_ rules: Set<String>) -> [String] {
        guard !priorities.isEmpty, begun - lastOwed >= Self.share else { return [] }
        lastOwed = begun
        return rules.sorted { (lastBegun[$0, default: 0], $0) < (lastBegun[$1, default: 0], $1) }
    }
}
