import FileEvents
import PluginProtocol
import Rules
import System

/// The values of a job's row in a ``DiskStore``.
struct StoredJobRow {
    static let upsert = """
        INSERT INTO jobs (id, state, attempt, is_interrupted, due, ended, previous, steps, progress, message, code,
            outputs, position, rule, path, event, facts, created)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (id) DO UPDATE SET
            state = excluded.state, attempt = excluded.attempt, is_interrupted = excluded.is_interrupted,
            due = excluded.due, ended = excluded.ended, previous = excluded.previous, steps = excluded.steps,
            progress = excluded.progress, message = excluded.message, code = excluded.code,
            outputs = excluded.outputs, position = excluded.position, rule = excluded.rule, path = excluded.path,
            event = excluded.event, facts = excluded.facts, undone = NULL
        """
    static let update = """
        UPDATE jobs SET state = ?2, attempt = ?3, is_interrupted = ?4, due = ?5, ended = ?6, previous = ?7, steps = ?8,
            progress = ?9, message = ?10, code = ?11, outputs = ?12, undone = NULL WHERE id = ?1
        """

    private let stored: StoredJob
    let isNew: Bool
    /// The time at which a pending job is due, or at which a running one was leased.
    private var due: Int64?
    private var ended: Int64?
    private let message: String?
    private let code: String?
    private var outputs: [PathBytes] = []

    /// Creates the row of an unfinished job.
    init(_ stored: StoredJob, isNew: Bool, _ clocks: ClockPair) {
        self.stored = stored
        self.isNew = isNew
        due = stored.due.map { clocks.columnValue(of: $0) } ?? clocks.wall
        message = stored.job.waiting?.message
        code = stored.job.waiting?.cause.rawValue
    }

    /// Creates the row of a finished job.
    init(_ stored: StoredJob, _ outcome: Outcome, isNew: Bool, _ clocks: ClockPair) {
        self.stored = stored
        self.isNew = isNew
        ended = clocks.wall
        message = outcome.message
        code = outcome.code
        outputs = outcome.outputs
    }

    /// Binds the parameters of ``upsert`` if the row is new, of ``update`` otherwise.
    func bind(to row: SQLStatement) {
        let job = stored.job
        // No attempt follows one that has succeeded or was skipped.
        let isDone = stored.state == .succeeded || stored.state == .skipped
        row.bind(job.id.description)
        row.bind(stored.state.rawValue)
        row.bind(Int64(job.attempt))
        row.bind(job.isInterrupted)
        row.bind(due)
        row.bind(ended)
        row.bind(utf8: job.previous?.record)
        row.bind(utf8: isDone || job.steps.isEmpty && job.failure == nil ? nil : JobSteps(of: job).record)
        row.bind(utf8: isDone ? nil : stored.offer?.record)
        row.bind(message)
        row.bind(code)
        row.bind(utf8: outputs.isEmpty ? nil : outputs.record)
        guard isNew else { return }
        row.bind(Int64(bitPattern: stored.number))
        row.bind(job.rule)
        row.bind(blob: job.event.path.bytes)
        row.bind(job.event.kind.rawValue)
        row.bind(utf8: job.event.record)
        row.bind(job.event.time.columnValue)
    }
}
