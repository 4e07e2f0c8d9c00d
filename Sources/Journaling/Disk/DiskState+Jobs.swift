import FileEvents
import Reconciling
import Rules

// What a person asks for jobs.
extension DiskState {
    /// Makes a pending job due, and a dead letter pending again.
    mutating func retry(_ id: JobID, due: ContinuousClock.Instant) {
        guard !queue.hasten(id, due: due) else { return }
        do {
            // What has become of it since the last commit counts, not its row.
            guard queue.changes?.jobs[id] == nil, let row = try jobs.job(id), row.state == .dead else { return }
            queue.revive(row.job, due: due)
        } catch {
            note(error, isReading: true)
        }
    }

    /// Ends a pending job, and forgets a dead letter.
    mutating func discard(_ id: JobID) {
        guard !queue.discard(id), queue.changes?.jobs[id] == nil else { return }
        do {
            if try jobs.isDead(id) { queue.changes?.noteGone(id) }
        } catch {
            note(error, isReading: true)
        }
    }

    /// What a job did that can be taken back, and of which nothing is noted since the last commit.
    mutating func changes(of job: JobID) -> [KeptChanges] {
        do {
            let noted = queue.changes?.undos ?? []
            return try attempts.changes(of: job).filter { kept in !noted.contains { $0.0 == kept } }
        } catch {
            note(error, isReading: true)
            return []
        }
    }

    /// Notes what has become of it.
    mutating func note(_ undo: UndoRecord, of changes: KeptChanges, _ ownWrites: [LedgerEntry]) {
        queue.changes?.note(undo, of: changes)
        queue.noteOwn(ownWrites.filter { rules.ids[$0.view] != nil })
    }
}
