import FileEvents
import GRDB
import JSON
import Reconciling
import Rules
import System

extension StoreState {
    /// Writes the changes in one transaction.
    ///
    /// - Returns: The error after which nothing was written; nil on success, and if nothing has changed.
    func commit(_ changes: TurnChanges, _ clocks: ClockPair) -> StorageError? {
        reading.end()
        if fault == nil, let error = errors.take() { fault = StorageError(error, at: path, isReading: true) }
        if let fault { return fault }
        receive(changes)
        guard hasChanges || !changes.isEmpty else { return nil }
        guard lock == nil || identity == DiskProbe.identity(of: path) else {
            let fault = StorageError(
                mayPass: false, description: "the journal '\(path)' was removed or replaced while Alight had it open",
                help: "put it back if it was moved; later work is not in it, and may be repeated")
            self.fault = fault
            return fault
        }
        do {
            try writeMakingRoom(changes, clocks)
            return nil
        } catch {
            let fault = StorageError(error, at: path)
            if !fault.mayPass { self.fault = fault }
            return fault
        }
    }

    /// Applies the changes that are also stored in memory; after a failed commit the same changes are passed again.
    private func receive(_ changes: TurnChanges) {
        if changes.hasStarted { rules.noteStarted() }
        if let pauses = changes.pauses { self.pauses = pauses }
        if let mounts = changes.mounts {
            self.mounts.note(mounts)
            ledger.devices = self.mounts.devices
        }
    }

    private var hasChanges: Bool {
        rules.isChanged || mounts.hasChanges || pauses != storedPauses || isStopping && facts["is_clean"] != 1
    }

    /// Writes the changes; if the disk is full, moves the log into the file and tries again.
    func writeMakingRoom(_ changes: TurnChanges, _ clocks: ClockPair) throws {
        do {
            try write(changes, clocks)
        } catch let error as DatabaseError where error.resultCode == .SQLITE_FULL {
            try access { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
            try write(changes, clocks)
        }
    }

    private func write(_ changes: TurnChanges, _ clocks: ClockPair) throws {
        let offset = clockOffset.isStale(at: clocks) ? ClockOffset(clocks) : clockOffset
        let facts = facts(offset, changes, clocks)
        var ended: [JobID] = []
        try access { database in
            try transaction.run {
                // Written before the rows of this commit, whose times and devices are current.
                let shift = offset.value &- clockOffset.value
                if shift != 0 { try jobs.moveDue(by: shift) }
                if rules.isChanged { try rules.write(database) }
                if mounts.hasChanges {
                    try jobs.map(mounts.devices, in: database)
                    try mounts.write(database, run: run)
                }
                if pauses != storedPauses { try pauses.write(database) }
                for (name, value) in facts where value != self.facts[name] {
                    try fact.run {
                        $0.bind(name)
                        $0.bind(value)
                    }
                }
                try writeLedger(changes)
                ended = try writeJobs(changes, clocks)
            }
            (clockOffset, self.facts, storedPauses) = (offset, facts, pauses)
            ledger.devices = [:]
            rules.noteCommitted()
            mounts.noteCommitted()
            history.prune(database, in: transaction, ended: ended, at: clocks.wall)
            checkpoint?.start(database)
        }
    }

    /// Returns the facts to store; those that rarely matter are not written in each commit, since that would write a
    /// page.
    private func facts(_ offset: ClockOffset, _ changes: TurnChanges, _ clocks: ClockPair) -> [String: Int64] {
        var facts = facts
        facts["run"] = run
        facts["clock_offset"] = offset.value
        facts["boot"] = offset.boot
        facts["is_clean"] = isStopping ? 1 : 0
        let last = facts["kept"] ?? 0
        if isWatching, isStopping || abs(clocks.wall - last) >= 1_000_000_000 { facts["kept"] = clocks.wall }
        let number = changes.jobs.values.reduce(0) { max($0, $1.number) }
        if number > self.number { facts["number"] = Int64(bitPattern: number + 1_000) }
        return facts
    }

    private func writeLedger(_ changes: TurnChanges) throws {
        // Another rule may have replaced one to which the changes belong.
        for (rule, rows) in changes.rows where ruleIDs.contains(rule.number) {
            // The order of the table makes many new rows several times as fast.
            for (path, row) in rows.sorted(by: { $0.key < $1.key }) { try ledger.write(row, of: rule, at: path) }
        }
        for (rule, paths) in changes.due where ruleIDs.contains(rule.number) {
            for (path, isDue) in paths { try due.write(isDue, of: rule, at: path) }
        }
    }

    /// Writes jobs, attempts and undos.
    ///
    /// - Returns: The jobs that have succeeded or were skipped.
    private func writeJobs(_ changes: TurnChanges, _ clocks: ClockPair) throws -> [JobID] {
        var ended: [JobID] = []
        for (id, change) in changes.jobs {
            switch change.fate {
            case .unfinished(let job):
                try jobs.write(StoredJobRow(withOwner(job), isNew: change.isNew, clocks))
            case .ended(let job, let outcome):
                try jobs.write(StoredJobRow(withOwner(job), outcome, isNew: change.isNew, clocks))
                // Failed jobs are not part of the pruned history.
                if job.state != .failed { ended.append(id) }
            case .deleted: try jobs.delete(id)
            }
        }
        var attempts: [EndedAttempt] = []
        for (id, record) in changes.attempts {
            if case .deleted? = changes.jobs[id]?.fate { continue }
            attempts.append(record, of: id)
        }
        for attempt in attempts { try self.attempts.write(AttemptRow(attempt)) }
        for (kept, record) in changes.undos { try self.attempts.write(record, of: kept) }
        return ended
    }

    /// Returns the job under the current name of its rule, which may have been renamed since a failed commit.
    private func withOwner(_ job: StoredJob) -> StoredJob {
        guard !rules.isRunning(job.job.rule) else { return job }
        var job = job
        job.job.rule = rules.owner(ofJobsUnder: job.job.rule)
        return job
    }
}

extension TurnChanges {
    /// Whether there is nothing to write other than mount points, pauses and the start.
    fileprivate var isEmpty: Bool {
        jobs.isEmpty && attempts.isEmpty && undos.isEmpty && rows.values.allSatisfy(\.isEmpty)
            && due.values.allSatisfy(\.isEmpty)
    }
}

extension JobChange {
    /// The number of the job; 0 if it is deleted.
    fileprivate var number: UInt64 {
        switch fate {
        case .unfinished(let job), .ended(let job, _): job.number
        case .deleted: 0
        }
    }
}

extension JobTable {
    /// Replaces the devices in the events of all jobs that may run again, within a transaction.
    fileprivate func map(_ devices: [Int64: Int64], in database: Database) throws {
        guard !devices.isEmpty else { return }
        var rows: [(id: String, facts: [UInt8], progress: [UInt8]?)] = []
        for condition in ["state IN ('pending', 'running')", "state = 'failed'"] {
            try SQLStatement("SELECT id, facts, progress FROM jobs WHERE \(condition)", in: database).each { row in
                guard var event = row.utf8(1).flatMap({ FileEvent(record: $0) }) else { return }
                var offer = row.utf8(2).flatMap { Offer(record: $0) }
                let isLeftMapped = offer?.left?.identity.map(devices) ?? false
                guard event.map(devices) || isLeftMapped else { return }
                rows.append((row.text(0), event.record, offer?.record ?? row.utf8(2)))
            }
        }
        let update = try SQLStatement("UPDATE jobs SET facts = ?2, progress = ?3 WHERE id = ?1", in: database)
        for row in rows {
            try update.run {
                $0.bind(row.id)
                $0.bind(utf8: row.facts)
                $0.bind(utf8: row.progress)
            }
        }
    }
}
