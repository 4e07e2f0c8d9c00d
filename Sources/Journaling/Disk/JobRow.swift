import FileEvents
import PluginProtocol
import Rules
import Storage

/// What is written of a job.
struct JobRow {
    var job: Job
    var part: JobChanges.Part
    var state: JobState
    var position: UInt64?
    /// When a pending job is due; when a running one was leased.
    var due: Int64?
    var ended: Int64?
    var message: String?
    var code: String?
    var outputs: [PathBytes] = []

    /// A job that is pending or, without a place, running.
    init(_ job: Job, _ part: JobChanges.Part, place: JobPlace?, _ clocks: ClockPair) {
        self.job = job
        self.part = part
        state = place == nil ? .running : .pending
        position = part.position ?? place?.sequence
        // A running job has been leased in this moment, or nothing would be written of it.
        due = place.map { clocks.columnValue(of: $0.due) } ?? clocks.wall
        message = job.waiting?.message
        code = job.waiting?.cause.rawValue
    }

    init(_ end: JobChanges.End, _ part: JobChanges.Part, at now: Int64) {
        job = end.job
        self.part = part
        state = end.state
        position = part.position
        ended = now
        message = end.message
        code = end.code
        outputs = end.outputs
    }

    /// Binds it for ``JournalStatement/upsertJob`` if it has facts, else for ``JournalStatement/updateJob``.
    func bind(to row: some RowSink) {
        let position = position.map { Int64(bitPattern: $0) }
        row.bind(job.id.description)
        row.bind(state.rawValue)
        row.bind(Int64(job.attempt))
        row.bind(job.isInterrupted)
        row.bind(part.hasFacts ? position ?? 0 : position)
        row.bind(due)
        row.bind(ended)
        row.bind(utf8: job.previous?.record)
        // Nobody goes on with what is done.
        let hasSteps = state != .succeeded && state != .skipped && !job.steps.isEmpty
        row.bind(utf8: hasSteps ? job.steps.record : nil)
        row.bind(message)
        row.bind(code)
        guard part.hasFacts else {
            row.bind(job.isHeir)
            row.bind(utf8: outputs.isEmpty ? nil : outputs.record)
            return
        }
        row.bind(job.rule)
        row.bind(blob: job.event.path.bytes)
        row.bind(job.event.kind.rawValue)
        row.bind(utf8: job.event.record)
        row.bind(Int64(job.mask.rawValue))
        row.bind(job.event.time.columnValue)
        row.bind(job.isAlone)
        row.bind(job.isHeir)
        row.bind(utf8: outputs.isEmpty ? nil : outputs.record)
    }
}
