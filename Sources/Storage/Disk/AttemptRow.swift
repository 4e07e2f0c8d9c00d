import JSON
import PluginProtocol
import Rules

/// A finished attempt.
struct EndedAttempt {
    var job: JobID
    var record: AttemptRecord
    /// The job with whose attempt its log is stored: the first one of a batch, or the job itself; nil if there is no
    /// log.
    var logOwner: JobID?
}

extension [EndedAttempt] {
    /// Adds an attempt; consecutive attempts of a batch share a log.
    mutating func append(_ record: AttemptRecord, of job: JobID) {
        var ended = EndedAttempt(job: job, record: record)
        let log = record.outcome.log
        if !log.isEmpty {
            ended.logOwner = job
            if let last, last.record.started == record.started, last.record.outcome.log == log {
                ended.logOwner = last.logOwner
            }
        }
        append(ended)
    }
}

/// The values of an attempt's row, and of its log.
struct AttemptRow {
    static let insert = """
        INSERT OR REPLACE INTO attempts
            (job, started, number, duration, outcome, message, code, status, signal, log_of, request, changes)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """
    static let insertLog = "INSERT OR REPLACE INTO logs (job, started, text) VALUES (?, ?, ?)"
    /// Deletes all but the last attempts at a job that is repeatedly not ready, except those that can be undone.
    static let forget = """
        DELETE FROM attempts WHERE job = ?1 AND changes IS NULL AND started <
            (SELECT started FROM attempts WHERE job = ?1 ORDER BY started DESC LIMIT 1 OFFSET 19)
        """

    private let job: JobID
    private let record: AttemptRecord
    private let logOwner: JobID?

    init(_ attempt: EndedAttempt) {
        job = attempt.job
        record = attempt.record
        logOwner = attempt.logOwner
    }

    /// Whether older attempts of this kind may be deleted.
    var isOneOfMany: Bool { record.outcome.ending == .notReady }

    /// Binds the parameters of ``insert``.
    func bind(to row: SQLStatement) {
        let outcome = record.outcome
        row.bind(job.description)
        row.bind(record.started.columnValue)
        row.bind(Int64(record.number))
        row.bind(record.duration.columnValue)
        row.bind(outcome.isInterrupted ? "interrupted" : outcome.ending.rawValue)
        row.bind(outcome.message)
        row.bind(outcome.code)
        row.bind(outcome.process?.status.map(Int64.init))
        row.bind(outcome.process?.signal.map(Int64.init))
        row.bind(logOwner?.description)
        row.bind(outcome.process?.request)
        row.bind(utf8: outcome.changes.isEmpty ? nil : outcome.changes.record)
    }

    /// Whether its log is stored with it, and not with another attempt.
    var hasLog: Bool { logOwner == job }

    /// Binds the parameters of ``insertLog``.
    func bindLog(to row: SQLStatement) {
        row.bind(job.description)
        row.bind(record.started.columnValue)
        row.bind(record.outcome.log)
    }

    /// Binds the parameter of ``forget``.
    func bindJob(to row: SQLStatement) { row.bind(job.description) }
}
