import FileEvents
import GRDB
import Records
import System

/// The stored state of rules: their numbers, their first start, and the paths that they matched in their last run.
struct StoredRules {
    struct Row: Codable, FetchableRecord, PersistableRecord {
        static let databaseTableName = "rules"
        static let databaseColumnDecodingStrategy = DatabaseColumnDecodingStrategy.convertFromSnakeCase
        static let databaseColumnEncodingStrategy = DatabaseColumnEncodingStrategy.convertToSnakeCase

        var id: Int64
        var name: String
        /// The path that identifies a rule without a name; nil for a rule with a name.
        var path: String?
        /// The selection of the rule when all existing files were last recorded.
        var selection: String
        var started: Int64
        var isComplete: Bool
        /// The time since which the rule has another selection whose files are not all recorded.
        var reselected: Int64?
    }

    private(set) var rows: [String: Row] = [:]
    /// The names of the rules, by number.
    private var names: [Int64: String] = [:]
    /// The selections of the running rules.
    private var inForce: [String: String] = [:]
    private var lastID: Int64 = 0

    /// The rules whose rows have to be written.
    private var changed: Set<String> = []
    /// The rows that have to be deleted before other rules take their names.
    private var removed: [Int64] = []
    /// The rules whose jobs now belong to another rule.
    private var renamed: [(from: String, to: String)] = []

    /// The start time of a rule that was only run manually.
    private static let never: Int64 = 0

    init(_ database: Database) throws {
        for row in try Row.fetchAll(database) {
            rows[row.name] = row
            lastID = max(lastID, row.id)
            names[row.id] = row.name
        }
    }

    /// Returns the name of the rule with a number; nil if there is none.
    func name(of id: Int64) -> String? { names[id] }

    /// Whether the rule runs.
    func isRunning(_ name: String) -> Bool { inForce[name] != nil }

    /// Returns the rule that owns the jobs stored under a name until the next commit.
    func owner(ofJobsUnder name: String) -> String {
        renamed.reduce(name) { name, change in name == change.from ? change.to : name }
    }

    /// Returns the names under which the jobs of a rule are stored until the next commit.
    func storedNames(of name: String) -> [String] {
        Set(renamed.map(\.from) + [name]).filter { owner(ofJobsUnder: $0) == name }.sorted()
    }

    var isChanged: Bool { !changed.isEmpty || !removed.isEmpty || !renamed.isEmpty }

    // MARK: Starting

    /// Sets the running rules.
    ///
    /// - Parameters:
    ///   - rules: The rules.
    ///   - now: The current time; nil if nothing is watched, so that the rules are not started.
    ///   - lastCommit: The time of the last earlier commit.
    /// - Returns: The stored state of each rule, in the order of the rules.
    mutating func register(_ rules: [RuleRecord], now: Int64?, lastCommit: Int64) -> [StoredRule] {
        inForce = Dictionary(rules.map { ($0.name, $0.selection) }) { first, _ in first }
        setNames(of: rules)
        for rule in rules { takeFormer(of: rule) }
        let starts = rules.map { register($0, now: now, lastCommit: lastCommit) }
        names = Dictionary(uniqueKeysWithValues: rows.map { ($1.id, $0) })
        return zip(rules, starts).compactMap { rule, start in
            rows[rule.name].map { StoredRule(id: RuleID($0.id), start: start) }
        }
    }

    private mutating func set(_ row: Row, of name: String) {
        rows[name] = row
        rows[name]?.name = name
        changed.insert(name)
    }

    /// Gives each stored rule without a name its current name, and rules that are not loaded another name if a rule has
    /// theirs now.
    private mutating func setNames(of rules: [RuleRecord]) {
        for rule in rules {
            guard let row = rows[rule.name], row.path != rule.path else { continue }
            var name = row.path ?? rule.name
            while rows[name] != nil { name += "'" }
            rename(rule.name, to: name)
        }
        guard rules.contains(where: { $0.path != nil }) else { return }
        let stored = Dictionary(rows.compactMap { name, row in row.path.map { ($0, name) } }) { first, _ in first }
        for rule in rules {
            if let path = rule.path, let name = stored[path], name != rule.name { rename(name, to: rule.name) }
        }
    }

    /// Gives a row another name; deletes it if that rule has a row, which is the newer one.
    private mutating func rename(_ name: String, to other: String) {
        guard let row = rows.removeValue(forKey: name) else { return }
        if rows[other] == nil { set(row, of: other) } else { removed.append(row.id) }
        changed.remove(name)
        renamed.append((name, other))
    }

    private mutating func takeFormer(of rule: RuleRecord) {
        // The name of a running rule is not a former name.
        for former in rule.formerly where inForce[former] == nil {
            rename(former, to: rule.name)
            rows[rule.name]?.path = rule.path
        }
    }

    private mutating func register(_ rule: RuleRecord, now: Int64?, lastCommit: Int64) -> RuleStart {
        if rows[rule.name] == nil {
            lastID += 1
            let row = Row(
                id: lastID, name: rule.name, path: rule.path, selection: rule.selection, started: Self.never,
                isComplete: false)
            set(row, of: rule.name)
        }
        guard let now, var row = rows[rule.name] else { return .resumed }
        if row.started == Self.never {
            row.started = now
            set(row, of: rule.name)
            return .fresh
        }
        guard row.isComplete else { return .unfinished(since: Timestamp(columnValue: row.started)) }
        let reselected = row.selection == rule.selection ? nil : row.reselected ?? lastCommit
        if reselected != row.reselected {
            row.reselected = reselected
            set(row, of: rule.name)
        }
        return reselected.map { .reselected(since: Timestamp(columnValue: $0), from: row.selection) } ?? .resumed
    }

    /// Records that all existing files have been compared, or taken as handled.
    mutating func markStarted() {
        for (name, selection) in inForce {
            guard var row = rows[name], !row.isComplete || row.reselected != nil || row.selection != selection else {
                continue
            }
            (row.isComplete, row.reselected, row.selection) = (true, nil, selection)
            set(row, of: name)
        }
    }

    // MARK: Writing

    func write(_ database: Database) throws {
        for id in removed { try database.execute(sql: "DELETE FROM rules WHERE id = ?", arguments: [id]) }
        for (from, to) in renamed {
            try database.execute(sql: "UPDATE jobs SET rule = ? WHERE rule = ?", arguments: [to, from])
        }
        let changed = changed.compactMap { rows[$0] }
        if !renamed.isEmpty {
            // Names are unique, and a rule may take the name that another one has in the table, so all get temporary
            // names.
            let unname = try SQLStatement("UPDATE rules SET name = char(1) || id WHERE id = ?", in: database)
            for row in changed { try unname.run { $0.bind(row.id) } }
        }
        for row in changed { try row.save(database) }
    }

    mutating func markCommitted() { (changed, removed, renamed) = ([], [], []) }
}
