import GRDB

/// The rules that a user has paused: their jobs wait and do not start.
package struct Pauses: Sendable, Hashable {
    /// Whether all rules are paused.
    package var all: Bool
    /// The rules that are paused by name, whether or not all are.
    package var rules: Set<String>

    package init(all: Bool = false, rules: Set<String> = []) { (self.all, self.rules) = (all, rules) }

    package var isEmpty: Bool { !all && rules.isEmpty }

    /// Whether the rule's jobs wait.
    package func hold(_ rule: String) -> Bool { all || rules.contains(rule) }

    /// Pauses a rule, or all for nil.
    package mutating func pause(_ rule: String?) { if let rule { rules.insert(rule) } else { all = true } }

    /// Resumes a rule; with nil all rules, including those paused by name.
    package mutating func resume(_ rule: String?) { if let rule { rules.remove(rule) } else { self = Pauses() } }
}

// Stored in the table `state`: `paused` for all rules, `paused NAME` for one.
extension Pauses {
    private static let word = "paused"

    init(_ database: Database) throws {
        self.init()
        let sql = "SELECT name FROM state WHERE name = '\(Self.word)' OR name GLOB '\(Self.word) *'"
        for name in try String.fetchAll(database, sql: sql) {
            if name == Self.word { all = true } else { rules.insert(String(name.dropFirst(Self.word.count + 1))) }
        }
    }

    func write(_ database: Database) throws {
        try database.execute(sql: "DELETE FROM state WHERE name = '\(Self.word)' OR name GLOB '\(Self.word) *'")
        let names = (all ? [Self.word] : []) + rules.sorted().map { "\(Self.word) \($0)" }
        for name in names {
            try database.execute(sql: "INSERT INTO state (name, value) VALUES (?, 1)", arguments: [name])
        }
    }
}
