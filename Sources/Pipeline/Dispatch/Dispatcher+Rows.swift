import FileEvents
import PluginProtocol
import Reconciling
import Rules
import Settling
import Storage
import System

// The rows of jobs, and their numbers.
extension Dispatcher {
    /// Receives the reports of the reconciler on offers and paths, and records the rows of changed offers.
    mutating func collectJobs(_ reconciler: inout Reconciler) {
        for report in reconciler.shared.reports {
            switch report {
            case .gone(let view, let path, let wasHandled): recordGone(view, path, wasHandled ? .modified : .created)
            case .busy(let view, let path): reportBusy(view, path)
            case .superseded(let view, let offer): recordSuperseded(view, offer)
            }
        }
        reconciler.shared.reports = []
        for index in reconciler.shared.active {
            for (number, offer) in reconciler.views[index].changedOffers {
                guard let job = rules[index].jobs[number] else { continue }
                if let offer {
                    store(job, offer, number)
                } else {
                    // Its lease was undone.
                    rules[index].jobs[number] = nil
                    changes.jobs[job.id] = newJobs.remove(job.id) == nil ? JobChange(.deleted, isNew: false) : nil
                }
            }
        }
    }

    private mutating func store(_ job: Job, _ offer: Offer, _ number: UInt64) {
        var due: ContinuousClock.Instant?
        if case .retrying(let time) = offer.state { due = time }
        let stored = StoredJob(job, due == nil ? .running : .pending, offer, number: number, due: due)
        let hasNewEvent = changes.jobs[job.id]?.isNew ?? false
        changes.jobs[job.id] = JobChange(
            .unfinished(stored), isNew: hasNewEvent || newJobs.contains(job.id) || offer.isRepeat)
    }

    /// Records that a path was removed before an action received it.
    private mutating func recordGone(_ index: Int, _ path: PathBytes, _ kind: EventKind) {
        let job = unleased(kind, path, index)
        let outcome = Outcome(.skipped, "it was gone before the action started", code: "gone")
        number += 1
        changes.jobs[job.id] = JobChange(.ended(StoredJob(job, .skipped, nil, number: number), outcome), isNew: true)
        counts.skipped += 1
        reportUnrun(job, index, outcome)
    }

    /// Reports that a change that settled while its action ran was dropped.
    private func reportBusy(_ index: Int, _ path: PathBytes) {
        let outcome = Outcome(.skipped, "its action was running for an earlier state of the file", code: "busy")
        reportUnrun(unleased(.modified, path, index), index, outcome)
    }

    private func unleased(_ kind: EventKind, _ path: PathBytes, _ index: Int) -> Job {
        let rule = rules[index].rule
        let event = FileEvent(
            kind: kind, path: path, root: rule.root(taking: path) ?? path.parent, snapshot: .unseen, origin: .live,
            time: host.clock.time())
        return Job(id: JobID(now: event.time), rule: rule.name, event: event)
    }

    /// Reports the end of a job that did not run.
    func reportUnrun(_ job: Job, _ index: Int, _ outcome: Outcome, _ state: JobState = .skipped) {
        report(
            .attempt(
                AttemptReport(
                    job, rules[index].rule, attempt: max(0, job.attempt - 1), outcome, duration: .zero, state,
                    pause: nil, at: host.clock.time())))
    }

    /// Ends a job in favor of a newer event; a job without attempts leaves no row.
    private mutating func recordSuperseded(_ index: Int, _ offer: Offer) {
        guard let job = rules[index].jobs.removeValue(forKey: offer.number) else { return }
        report(.superseded(rule: rules[index].rule.name, job: job.id, path: offer.path))
        if newJobs.remove(job.id) != nil {
            changes.jobs[job.id] = nil
            return
        }
        let outcome = Outcome(.skipped, "a newer event of the file replaced it", code: "superseded")
        counts.skipped += 1
        changes.jobs[job.id] = JobChange(
            .ended(StoredJob(job, .skipped, nil, number: offer.number), outcome), isNew: false)
    }

    /// The changes to commit: of jobs, of the ledger and of due paths.
    func changes(of reconciler: borrowing Reconciler) -> TurnChanges {
        var changes = changes
        for (rule, rows) in reconciler.shared.ledger.changes { changes.rows[rule, default: [:]].merge(rows) { $1 } }
        changes.due = reconciler.shared.dueChanges
        return changes
    }

    /// The numbers of jobs by state; due paths count as pending.
    func jobCounts(_ reconciler: borrowing Reconciler) -> JobCounts {
        var counts = counts
        for index in active(reconciler) {
            let (retrying, waiting) = (reconciler.views[index].retryingCount, rules[index].frozen.waitingCount)
            counts.pending += reconciler.views[index].dueCount + retrying + waiting
            counts.running += rules[index].jobs.count - retrying + rules[index].frozen.entries.count - waiting
        }
        return counts
    }

    /// The numbers of pending jobs and due paths by rule.
    func pendingCounts(_ reconciler: borrowing Reconciler) -> [String: Int] {
        var counts: [String: Int] = [:]
        for index in active(reconciler) {
            let count =
                reconciler.views[index].dueCount + reconciler.views[index].retryingCount + rules[index].frozen.waitingCount
            if count > 0 { counts[rules[index].rule.name] = count }
        }
        return counts
    }

    /// Returns the number of jobs that run, or would start if a slot were free.
    func dueJobs(_ reconciler: borrowing Reconciler) -> Int {
        guard !pauses.all else { return running.count }
        let waiting = active(reconciler).reduce(0) { sum, index in
            guard !pauses.hold(rules[index].rule.name) else { return sum }
            return sum + reconciler.views[index].readyCount + rules[index].frozen.due.count
        }
        return waiting + runningCount
    }

    /// Returns the interrupted actions that may have removed their input, by number.
    func interrupted(_ reconciler: borrowing Reconciler) -> [UInt64: (action: Action, job: Job)] {
        reconciler.shared.active.reduce(into: [:]) { all, index in
            if rules[index].jobs.isEmpty { return }
            all.merge(interrupted(reconciler.views[index].interruptedOffers, index)) { $1 }
        }
    }

    /// Returns the interrupted actions of restored offers.
    func interrupted(_ offers: [Offer], _ index: Int) -> [UInt64: (action: Action, job: Job)] {
        let rule = rules[index].rule
        return offers.reduce(into: [:]) { all, offer in
            guard offer.mayHaveRemovedInput, let job = rules[index].jobs[offer.number],
                let action = rule.actions(of: job).dropFirst(job.finishedSteps.count).first
            else { return }
            all[offer.number] = (action, job)
        }
    }

    // MARK: Frozen jobs

    /// Appends a job whose event is not compared with the ledger.
    mutating func freeze(
        _ event: FileEvent, _ index: Int, id: JobID? = nil, isInterrupted: Bool = false, after: UInt64 = 0,
        at now: ContinuousClock.Instant
    ) {
        number += 1
        let rule = rules[index].rule
        var job = Job(id: id ?? JobID(now: event.time), rule: rule.name, event: event)
        if !rule.needsAuthor { job.event.author = .notAsked }
        job.isInterrupted = isInterrupted
        append(FrozenQueue.Entry(job: job, number: number, due: now, after: after), index)
        newJobs.insert(job.id)
        storeFrozen(number, index)
    }
}
