import FileEvents
import GRDB
import Reconciling
import Rules

/// What other processes ask for, in the order in which they did.
///
/// Whoever holds the journal's lock may use it.
final class RequestTable {
    enum Request {
        case retry(JobID)
        case discard(JobID)
        case apply(JobRequest)
        case undo(JobID)
    }

    private let select: SQLStatement
    private let delete: SQLStatement
    /// The last request that was taken.
    private var taken: Int64 = 0
    private var deleted: Int64 = 0

    init(_ database: Database) throws {
        select = try SQLStatement(
            "SELECT id, verb, job, rule, path FROM requests WHERE id > ? ORDER BY id", in: database)
        delete = try SQLStatement("DELETE FROM requests WHERE id <= ?", in: database)
    }

    /// Whether requests have been taken that are still in the table.
    var hasTaken: Bool { taken > deleted }

    func take() throws -> [Request] {
        var requests: [Request] = []
        try select.each {
            $0.bind(taken)
        } _: { row in
            taken = row.integer(0)
            let job = JobID(row.text(2))
            switch row.text(1) {
            case "retry": requests.append(.retry(job))
            case "discard": requests.append(.discard(job))
            case "undo": requests.append(.undo(job))
            case "apply":
                guard let rule = row.optionalText(3), let path = row.optionalBlob(4).map({ PathBytes($0) }),
                    path.isAbsoluteName
                else { return }
                requests.append(.apply(JobRequest(id: job, rule: rule, path: path)))
            // Of a newer version; nobody waits for it to be understood.
            default: return
            }
        }
        return requests
    }

    func deleteTaken() throws {
        guard hasTaken else { return }
        try delete.run { $0.bind(taken) }
    }

    func noteCommitted() { deleted = taken }
}

extension DiskState {
    /// Does what is asked for jobs, and returns what is asked for files.
    mutating func takeRequests(at now: ContinuousClock.Instant) -> [JobRequest] {
        var files: [JobRequest] = []
        // What was asked for since a look at the ledger is to be seen, too.
        queue.files.endReading()
        do {
            for request in try requests.take() {
                switch request {
                case .retry(let id):
                    if !queue.hasten(id, due: now), let job = try dead(id) { queue.revive(job, due: now) }
                case .discard(let id):
                    // What has become of it since the last commit counts, not its row.
                    if !queue.discard(id), queue.changes?.jobs[id] == nil, try jobs.isDead(id) {
                        queue.changes?.noteGone(id)
                    }
                case .apply(let request): files.append(request)
                case .undo(let id): undos.append(id)
                }
            }
        } catch {
            note(error, isReading: true)
        }
        return files
    }

    /// What is to be taken back, each attempt once.
    mutating func takeUndos() -> [KeptChanges] {
        defer { undos = [] }
        queue.files.endReading()
        var kept: [KeptChanges] = []
        do {
            for id in undos { kept += try jobs.changes(of: id).filter { !kept.contains($0) } }
        } catch {
            note(error, isReading: true)
        }
        return kept
    }

    /// Notes what has become of it.
    mutating func note(_ undo: UndoRecord, of changes: KeptChanges, _ ownWrites: [LedgerEntry]) {
        queue.changes?.note(undo, of: changes)
        queue.noteOwn(ownWrites.filter { rules.ids[$0.view] != nil })
    }

    /// A job that will not be tried again by itself.
    private func dead(_ id: JobID) throws -> Job? {
        // What has become of it since the last commit counts, not its row.
        guard queue.changes?.jobs[id] == nil, let row = try jobs.job(id), row.state == .dead else { return nil }
        return row.job
    }
}
