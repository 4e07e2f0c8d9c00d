import FileEvents
import GRDB
import JSON
import Records
import Rules
import System

extension StoreState {
    /// Writes the changes in one transaction.
    ///
    /// - Returns: The error after which nothing was written; nil on success, and if nothing has changed.
    func commit(_ changes: TurnChanges, _ clocks: ClockPair) -> StorageError? {
        defer { tables.transaction.endReading() }
        if failure == nil, let error = errors.take() { failure = StorageError(error, at: path, isReading: true) }
        if let failure { return failure }
        receive(changes)
        guard hasChanges || !changes.isEmpty else { return nil }
        guard lock == nil || identity == KernelFileSystem().identity(of: path) else {
            let failure = StorageError(
                "the journal '\(path)' was removed or replaced while Alight had it open",
                help: "put it back if it was moved; later work is not in it, and may be repeated")
            self.failure = failure
            return failure
        }
        do {
            try writeFreeingSpace(changes, clocks)
            return nil
        } catch {
            let failure = StorageError(error, at: path)
            if !failure.mayPass { self.failure = failure }
            return failure
        }
    }

    /// Applies the changes that are also stored in memory; after a failed commit the same changes are passed again.
    private func receive(_ changes: TurnChanges) {
        if changes.hasStarted { rules.markStarted() }
        if let pauses = changes.pauses { self.pauses = pauses }
        if let mounts = changes.mounts {
            self.mounts.record(mounts)
            tables.ledger.devices = self.mounts.devices
        }
    }

    private var hasChanges: Bool {
        rules.isChanged || mounts.hasChanges || pauses != committed.pauses
            || isStopping && committed.values["is_clean"] != 1
    }

    /// Writes the changes; if the disk is full, moves the log into the file and tries again.
    func writeFreeingSpace(_ changes: TurnChanges, _ clocks: ClockPair) throws {
        do {
            try write(changes, clocks)
        } catch let error as DatabaseError where error.resultCode == .SQLITE_FULL {
            try access { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
            try write(changes, clocks)
        }
    }

    private func write(_ changes: TurnChanges, _ clocks: ClockPair) throws {
        let offset = committed.clockOffset.isStale(at: clocks) ? ClockOffset(clocks) : committed.clockOffset
        let values = values(offset, changes, clocks)
        var ended: [JobID] = []
        try connection.writeWithoutTransaction { database in
            try tables.transaction.write {
                // Written before the rows of this commit, whose times and devices are current.
                let shift = offset.value &- committed.clockOffset.value
                if shift != 0 { try tables.jobs.moveDue(by: shift) }
                if rules.isChanged { try rules.write(database) }
                if mounts.hasChanges {
                    try tables.jobs.map(mounts.devices, in: database)
                    try mounts.write(database, run: run)
                }
                if pauses != committed.pauses { try pauses.write(database) }
                for (name, value) in values where value != committed.values[name] {
                    try tables.stateValue.run { $0.bind(name).bind(value) }
                }
                try writeLedger(changes)
                ended = try writeJobs(changes, clocks)
            }
            committed = Committed(values: values, clockOffset: offset, pauses: pauses)
            tables.ledger.devices = [:]
            rules.markCommitted()
            mounts.markCommitted()
            tables.history.removeKept(of: changes)
            tables.history.prune(database, in: tables.transaction, ended: ended, at: clocks.wall)
            checkpoint?.start(database)
        }
    }

    /// Returns the values of the table `state` to store; those that rarely matter are not written in each commit, since
    /// that would write a page.
    private func values(_ offset: ClockOffset, _ changes: TurnChanges, _ clocks: ClockPair) -> [String: Int64] {
        var values = committed.values
        values["run"] = run
        values["clock_offset"] = offset.value
        values["boot"] = offset.boot
        values["is_clean"] = isStopping ? 1 : 0
        let last = values["last_commit"] ?? 0
        if isWatching, isStopping || abs(clocks.wall - last) >= 1_000_000_000 { values["last_commit"] = clocks.wall }
        let number = changes.jobs.values.reduce(0) { max($0, $1.open?.job.number ?? 0) }
        if number > self.number { values["number"] = Int64(bitPattern: number + 1_000) }
        return values
    }

    private func writeLedger(_ changes: TurnChanges) throws {
        // Another rule may have replaced one to which the changes belong.
        for (rule, rows) in changes.rows where rules.name(of: rule.number) != nil {
            // The order of the table makes many new rows several times as fast.
            for (path, row) in rows.sorted(by: { $0.key < $1.key }) { try tables.ledger.write(row, of: rule, at: path) }
        }
        for (rule, positions) in changes.positions where rules.name(of: rule.number) != nil {
            for (file, position) in positions { try tables.ledger.write(position, of: file, rule) }
        }
        for (rule, paths) in changes.due where rules.name(of: rule.number) != nil {
            for (path, isDue) in paths { try tables.ledger.write(isDue, of: rule, at: path) }
        }
    }

    /// Writes jobs, attempts and undos.
    ///
    /// - Returns: The jobs that have succeeded or were skipped.
    private func writeJobs(_ changes: TurnChanges, _ clocks: ClockPair) throws -> [JobID] {
        var ended: [JobID] = []
        for (id, change) in changes.jobs {
            switch change.fate {
            case .unfinished(let open):
                let state = open.isRunning ? JobState.running : .pending
                try tables.jobs.write(withOwner(open), state, isNew: change.isNew, at: clocks)
            case .ended(let open, let state, let outcome, let first):
                let open = withOwner(open)
                try tables.jobs.write(open, state, outcome, isNew: change.isNew, at: clocks)
                // Failed jobs are not part of the pruned history.
                if state == .failed { try tables.failed.add(open.job, failedWith: first) } else { ended.append(id) }
            case .deleted:
                let batch = tables.failed.isEmpty ? nil : try tables.failed.batch(of: id.description)
                try tables.jobs.delete(id)
                if let batch { ended += try tables.failed.finish(batch, at: clocks.wall) }
            }
        }
        for change in changes.jobs.values where !tables.failed.isEmpty {
            guard case .ended(let open, .succeeded, _, _) = change.fate else { continue }
            let names = rules.storedNames(of: withOwner(open).job.rule)
            ended += try tables.failed.finish(supersededBy: open.job, names: names, at: clocks.wall)
        }
        try tables.attempts.write(
            changes.attempts.filter { attempt in changes.jobs[attempt.job].map { $0.open != nil } ?? true })
        for (retained, record) in changes.undos { try tables.attempts.write(record, of: retained) }
        return ended
    }

    /// Returns the job under the current name of its rule, which may have been renamed since a failed commit.
    private func withOwner(_ open: OpenJob) -> OpenJob {
        guard !rules.isRunning(open.job.rule) else { return open }
        var job = open.job
        job.rule = rules.owner(ofJobsUnder: job.rule)
        return OpenJob(job, open.offer, leased: open.leased)
    }
}

extension TurnChanges {
    /// Whether there is nothing to write other than mount points, pauses and the start.
    fileprivate var isEmpty: Bool {
        jobs.isEmpty && attempts.isEmpty && undos.isEmpty && rows.values.allSatisfy(\.isEmpty)
            && positions.isEmpty && due.values.allSatisfy(\.isEmpty)
    }
}

extension JobChange {
    /// The job; nil if it is deleted.
    var open: OpenJob? {
        switch fate {
        case .unfinished(let open), .ended(let open, _, _, _): open
        case .deleted: nil
        }
    }
}
