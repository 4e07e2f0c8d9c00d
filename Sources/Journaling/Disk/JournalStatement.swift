import GRDB
import Storage

/// The statements of nearly every commit, which the log ahead of the database names by their numbers.
///
/// A number with another meaning, or other parameters, is another ``JournalSchema/version``.
enum JournalStatement: UInt8, CaseIterable {
    case upsertJob = 1
    case updateJob
    case deleteJob
    case forgetAttempts
    case upsertEntry
    case deleteEntry
    case fact
    case attempt
    case log

    func prepare(in database: Database) throws -> SQLStatement { try SQLStatement(sql, in: database) }

    /// The columns of the ledger behind its key.
    static let entryColumns = """
        type, size, mtime, mtime_ns, ctime, ctime_ns, btime, btime_ns, device, inode, mode, uid, gid, nlink, mount, \
        run, digest, delivered, xattrs, standing
        """

    private var sql: String {
        switch self {
        case .upsertJob:
            """
            INSERT INTO jobs (id, state, attempt, is_interrupted, position, due, ended, previous, steps, message, code,
                rule, path, event, facts, mask, created, is_alone, is_heir, outputs)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, coalesce(?, 0), ?)
            ON CONFLICT (id) DO UPDATE SET
                state = excluded.state, attempt = excluded.attempt, is_interrupted = excluded.is_interrupted,
                position = excluded.position, due = excluded.due, ended = excluded.ended,
                previous = excluded.previous, steps = excluded.steps, message = excluded.message,
                code = excluded.code, rule = excluded.rule, path = excluded.path, event = excluded.event,
                facts = excluded.facts, mask = excluded.mask, is_heir = excluded.is_heir,
                outputs = excluded.outputs, undone = NULL
            """
        case .updateJob:
            """
            UPDATE jobs SET state = ?2, attempt = ?3, is_interrupted = ?4, position = coalesce(?5, position),
                due = ?6, ended = ?7, previous = ?8, steps = ?9, message = ?10, code = ?11,
                is_heir = coalesce(?12, 0), outputs = ?13, undone = NULL WHERE id = ?1
            """
        case .deleteJob: JobTable.deletion
        case .attempt: AttemptRow.insert
        case .log: AttemptRow.insertLog
        case .forgetAttempts: AttemptRow.forget
        case .upsertEntry: Self.entryUpsert
        case .deleteEntry: "DELETE FROM ledger WHERE rule = ? AND path = ?"
        case .fact: FactRow.upsert
        }
    }

    private static var entryUpsert: String {
        let names = entryColumns.split(separator: ", ")
        return """
            INSERT INTO ledger (rule, path, \(entryColumns)) VALUES (?, ?\(String(repeating: ", ?", count: names.count)))
            ON CONFLICT (rule, path) DO UPDATE SET \(names.map { "\($0) = excluded.\($0)" }.joined(separator: ", "))
            """
    }
}
