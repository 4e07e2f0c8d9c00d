package import FileEvents
package import Rules

/// Who may run: a job takes a slot of the program, a slot of its rule, and its path for itself.
///
/// Pure: it counts, and starts nothing.
package struct Lanes {
    private let limit: Int
    private var running: [JobID: (rule: String, path: PathBytes)] = [:]
    private var perRule: [String: Int] = [:]
    /// The paths that an action works on.
    package private(set) var busy: Set<PathBytes> = []
    /// The rule that was served last, after which the next round begins.
    private var last = ""

    package init(limit: Int) { self.limit = limit }

    package var count: Int { running.count }

    /// How many more jobs the rule may run.
    package func room(for rule: Rule) -> Int {
        min(limit - running.count, rule.concurrency - perRule[rule.name, default: 0])
    }

    package mutating func start(_ job: Job) {
        running[job.id] = (job.rule, job.event.path)
        perRule[job.rule, default: 0] += 1
        busy.insert(job.event.path)
        last = job.rule
    }

    package mutating func end(_ id: JobID) {
        guard let (rule, path) = running.removeValue(forKey: id) else { preconditionFailure("an end without a start") }
        perRule[rule, default: 1] -= 1
        busy.remove(path)
    }

    /// The rules in the order in which they get their turn: those after the last one served first.
    package func round(_ rules: Set<String>) -> [String] {
        let sorted = rules.sorted()
        return sorted.filter { $0 > last } + sorted.filter { $0 <= last }
    }
}
