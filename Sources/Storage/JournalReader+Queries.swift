import FileEvents
import Foundation
import GRDB
import JSON
package import Records
package import Rules
package import System

/// The entries of a journal for one path and one rule.
package struct PathRecord: Sendable, Hashable {
    /// The file in the ledger of the rule: its action received it, or it was recorded as existing.
    package var recorded: RecordedFile?
    /// The pending and running jobs, in the order of their creation.
    package var open: [JobEntry] = []
    /// The finished jobs, the newest first.
    package var ended: [JobEntry] = []

    package init() {}
}

/// The state in which a file was recorded.
package struct RecordedFile: Sendable, Hashable {
    fileprivate let inode: UInt64
    fileprivate let size: UInt64
    fileprivate let changed: Timestamp
    /// Whether it is compared, and all of its text was read.
    fileprivate let isComplete: Bool

    /// Whether nothing is reported of a file until it changes.
    package func isUnchanged(_ now: Snapshot) -> Bool {
        isComplete && now.identity.inode == inode && now.size == size && now.changed == changed
    }
}

// The queries.
extension JournalReader {
    private static let columns =
        "id, rule, path, event, state, attempt, created, due, ended, message, code, outputs, undone, superseded_by"

    /// Returns the jobs that match the query, in descending order of the time at which they finished or were created.
    ///
    /// - Parameter query: The query.
    /// - Returns: The jobs, and whether there are more than the query's limit.
    /// - Throws: An error if the journal can't be read.
    package func jobs(_ query: JournalQuery) throws(StorageError) -> (jobs: [JobEntry], hasMore: Bool) {
        try read { database in
            let rows = try SQLRequest<Row>(literal: Self.select(query)).fetchCursor(database)
            var jobs: [JobEntry] = []
            while let row = try rows.next() {
                if query.paths != nil, !query.takes(Self.path(row)) { continue }
                if let limit = query.limit, jobs.count >= limit { return (jobs, true) }
                jobs.append(Self.job(row))
            }
            return (jobs, false)
        }
    }

    /// Returns the number of jobs in each state that has any.
    package func counts() throws(StorageError) -> [JobState: Int] {
        try read { database in
            var counts: [JobState: Int] = [:]
            for row in try Row.fetchAll(database, sql: "SELECT state, count(*) FROM jobs GROUP BY state") {
                if let state = JobState(rawValue: row[0]) { counts[state] = row[1] }
            }
            return counts
        }
    }

    /// Returns the jobs whose ids start with a prefix, the oldest first.
    ///
    /// - Parameters:
    ///   - prefix: The prefix in upper case; ids contain only digits and capital letters.
    ///   - limit: The maximum number of jobs.
    /// - Returns: The jobs.
    /// - Throws: An error if the journal can't be read.
    package func jobs(beginningWith prefix: String, limit: Int) throws(StorageError) -> [JobEntry] {
        // A tilde sorts after all characters of an id.
        try read { try Self.jobs($0, "id >= ? AND id < ? ORDER BY id LIMIT ?", [prefix, prefix + "~", limit]) }
    }

    /// Returns the details of a job; nil for an unknown id.
    package func details(of id: JobID) throws(StorageError) -> JobDetails? {
        try read { database in
            let sql = "SELECT \(Self.columns), is_interrupted, event_json FROM jobs WHERE id = ?"
            guard let row = try Row.fetchOne(database, sql: sql, arguments: [id.description]) else { return nil }
            let attempts = try Row.fetchAll(
                database,
                sql: """
                    SELECT number, started, duration, outcome, message, code, status, signal,
                        (SELECT text FROM logs WHERE logs.job = log_of AND logs.started = attempts.started),
                        request, changes, undone
                    FROM attempts WHERE job = ? ORDER BY started, number
                    """,
                arguments: [id.description])
            return JobDetails(
                job: Self.job(row), isInterrupted: row[14], event: FileEvent(record: (row[15] as String).utf8),
                attempts: attempts.map(Self.attempt))
        }
    }

    /// Returns the states of jobs; unknown ids are omitted.
    package func states(of ids: [JobID]) throws(StorageError) -> [JobID: JobState] {
        try read { database in
            var states: [JobID: JobState] = [:]
            let statement = try database.cachedStatement(sql: "SELECT state FROM jobs WHERE id = ?")
            for id in ids {
                let word = try String.fetchOne(statement, arguments: [id.description])
                states[id] = word.flatMap(JobState.init(rawValue:))
            }
            return states
        }
    }

    /// Returns the last accepted job of a rule and path, in any state.
    package func newest(rule: String, path: PathBytes) throws(StorageError) -> JobID? {
        try read { database in
            try String.fetchOne(
                database, sql: "SELECT id FROM jobs WHERE rule = ? AND path = ? ORDER BY position DESC LIMIT 1",
                arguments: [rule, Data(path.bytes)]
            ).map { JobID($0) }
        }
    }

    /// Returns the entries for a path, by rule name; rules without any are omitted.
    ///
    /// - Parameters:
    ///   - path: The path.
    ///   - rules: The names of the rules.
    ///   - limit: The maximum number of finished jobs per rule.
    /// - Returns: The entries of each rule.
    /// - Throws: An error if the journal can't be read.
    package func records(of path: PathBytes, rules: [String], limit: Int) throws(StorageError) -> [String: PathRecord] {
        let wanted = Set(rules)
        let key = Data(path.bytes)
        return try read { database in
            var records: [String: PathRecord] = [:]
            let recorded = """
                SELECT name, inode, size, ctime, ctime_ns, trust <> ? AND ifnull(delivered = size, 1)
                FROM rules JOIN ledger ON ledger.rule = rules.id
                WHERE ledger.path = ? AND ledger.type IS NOT NULL
                """
            let arguments: StatementArguments = [LedgerRow.Trust.uncertain.rawValue, key]
            for row in try Row.fetchAll(database, sql: recorded, arguments: arguments) where wanted.contains(row[0]) {
                let changed = Timestamp(seconds: row[3], nanoseconds: row[4])
                records[row[0], default: PathRecord()].recorded = RecordedFile(
                    inode: UInt64(bitPattern: row[1]), size: UInt64(bitPattern: row[2]), changed: changed,
                    isComplete: row[5])
            }
            for job in try Self.jobs(database, "path = ? ORDER BY id DESC", [key]) where wanted.contains(job.rule) {
                var record = records[job.rule] ?? PathRecord()
                switch job.state {
                case .pending, .running: record.open.insert(job, at: 0)
                case .succeeded, .skipped, .failed: if record.ended.count < limit { record.ended.append(job) }
                }
                records[job.rule] = record
            }
            return records
        }
    }

    /// Returns the jobs with changes that can be undone, in descending order of their last attempt.
    ///
    /// - Parameters:
    ///   - since: Only attempts that finished since then.
    ///   - rule: Only jobs of the rule with that name.
    /// - Returns: Their ids.
    /// - Throws: An error if the journal can't be read.
    package func jobsWithChanges(since: Timestamp?, rule: String?) throws(StorageError) -> [JobID] {
        try read { database in
            let sql = """
                SELECT job, max(started) AS last FROM attempts JOIN jobs ON jobs.id = attempts.job
                WHERE changes IS NOT NULL AND started + duration >= ? AND (? IS NULL OR jobs.rule = ?)
                GROUP BY job ORDER BY last DESC, job DESC
                """
            let arguments: StatementArguments = [since?.columnValue ?? .min, rule, rule]
            return try String.fetchAll(database, sql: sql, arguments: arguments).map { JobID($0) }
        }
    }

    /// Returns the changes of the attempts at a job that can be undone, the last attempt first.
    package func changes(of job: JobID) throws(StorageError) -> [RecordedChanges] {
        try read { try AttemptTable($0).changes(of: job) }
    }

    /// Returns the paused rules, as recorded in the journal.
    package func pauses() throws(StorageError) -> Pauses { try read { try Pauses($0) } }

    /// Returns the number of failed jobs of each rule that has any.
    package func failedCounts() throws(StorageError) -> [String: Int] {
        try read { database in
            let sql = "SELECT rule, count(*) FROM jobs WHERE state = 'failed' GROUP BY rule"
            let rows = try Row.fetchAll(database, sql: sql)
            return Dictionary(uniqueKeysWithValues: rows.map { ($0[0], $0[1]) })
        }
    }

    /// Returns the jobs that failed last, the newest first.
    package func lastFailed(_ limit: Int) throws(StorageError) -> [JobEntry] {
        try read { try Self.jobs($0, "state = 'failed' ORDER BY ended DESC, id DESC LIMIT ?", [limit]) }
    }

    // MARK: Rows

    fileprivate static func jobs(
        _ database: Database, _ condition: String, _ arguments: StatementArguments = []
    ) throws -> [JobEntry] {
        try Row.fetchAll(database, sql: "SELECT \(columns) FROM jobs WHERE \(condition)", arguments: arguments).map(job)
    }

    /// The groups of states, each with the column of the displayed time and an index in that order.
    ///
    /// The conditions must match those of the indices literally.
    private static let groups: [(states: Set<JobState>, condition: String, time: String)] = [
        ([.pending, .running], "state IN ('pending', 'running')", "created"),
        ([.succeeded, .skipped], "state IN ('succeeded', 'skipped')", "ended"),
        ([.failed], "state = 'failed'", "ended"),
    ]

    /// Returns the statement that lists the jobs.
    private static func select(_ query: JournalQuery) -> SQL {
        let parts = groups.compactMap { group -> SQL? in
            let states = query.states.isEmpty ? group.states : group.states.intersection(query.states)
            guard !states.isEmpty else { return nil }
            let conditions: [SQL?] = [
                SQL(sql: group.condition),
                states == group.states ? nil : "state IN \(states.map(\.rawValue))",
                query.rule.map { "rule = \($0)" },
                query.before.map { "(\(sql: group.time), id) < (\($0.time.columnValue), \($0.id.description))" },
                query.pathBounds.map { "path >= \(Data($0.from)) AND path < \(Data($0.below))" },
                query.since.map { "\(sql: group.time) >= \($0.columnValue)" },
            ]
            return """
                SELECT \(sql: columns), \(sql: group.time) AS shown FROM jobs
                WHERE \(conditions.compactMap(\.self).joined(separator: " AND "))
                """
        }
        let limit: SQL = query.paths == nil ? query.limit.map { " LIMIT \($0 + 1)" } ?? "" : ""
        return parts.joined(separator: " UNION ALL ") + " ORDER BY shown DESC, id DESC" + limit
    }

    private static func job(_ row: Row) -> JobEntry {
        JobEntry(
            id: JobID(row[0] as String), rule: row[1], path: path(row), event: row[3],
            state: JobState(rawValue: row[4]) ?? .pending, attempt: row[5], created: Timestamp(columnValue: row[6]),
            due: (row[7] as Int64?).map(Timestamp.init(columnValue:)),
            ended: (row[8] as Int64?).map(Timestamp.init(columnValue:)), message: row[9], code: row[10],
            outputs: (row[11] as String?).flatMap { [PathBytes](record: $0.utf8) } ?? [],
            undone: (row[12] as String?).flatMap(Undone.init), supersededBy: (row[13] as String?).map { JobID($0) })
    }

    private static func attempt(_ row: Row) -> AttemptEntry {
        let changes = (row[10] as String?).flatMap { [FileChange](record: $0.utf8) }
        let undo = (row[11] as String?).flatMap { UndoRecord(record: $0.utf8) }
        return AttemptEntry(
            number: row[0], started: Timestamp(columnValue: row[1]), duration: .nanoseconds(row[2] as Int64),
            outcome: row[3], message: row[4], code: row[5], status: row[6], signal: row[7], log: row[8],
            request: row[9], changes: changes ?? [], undo: undo?.reasons.count == changes?.count ? undo : nil)
    }

    private static func path(_ row: Row) -> PathBytes { PathBytes(row[2] as Data) }
}

extension DiskStore {
    /// The unfinished jobs, in the order of their creation.
    package func openJobs() -> [JobEntry] {
        (try? query { try JournalReader.jobs($0, "state IN ('pending', 'running') ORDER BY id") }) ?? []
    }
}
