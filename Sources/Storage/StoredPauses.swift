import GRDB
import Records

// Stored in the table `state`: `paused` for all rules, `paused NAME` for one.
extension Pauses {
    private static let word = "paused"

    init(_ database: Database) throws {
        let sql = "SELECT name FROM state WHERE name = '\(Self.word)' OR name GLOB '\(Self.word) *'"
        let names = try Set(String.fetchAll(database, sql: sql))
        let rules = names.subtracting([Self.word]).map { String($0.dropFirst(Self.word.count + 1)) }
        self.init(all: names.contains(Self.word), rules: Set(rules))
    }

    func write(_ database: Database) throws {
        try database.execute(sql: "DELETE FROM state WHERE name = '\(Self.word)' OR name GLOB '\(Self.word) *'")
        let names = (all ? [Self.word] : []) + rules.sorted().map { "\(Self.word) \($0)" }
        for name in names {
            try database.execute(sql: "INSERT INTO state (name, value) VALUES (?, 1)", arguments: [name])
        }
    }
}
