package import FileEvents
package import Journaling
package import Rules
package import Settling

/// A file that a person wants a rule to be run for.
package struct JobRequest: Sendable, Hashable {
    /// The id that the job is to have.
    package var id: JobID
    package var rule: String
    package var path: PathBytes

    package init(id: JobID, rule: String, path: PathBytes) {
        self.id = id
        self.rule = rule
        self.path = path
    }
}

/// What a person asks for jobs.
package enum JobCommand: Sendable {
    /// To make pending jobs due at once, and dead letters pending again.
    case retry([JobID])
    /// To end pending jobs, and to forget dead letters.
    case discard([JobID])
    /// To take back what jobs have done.
    case undo([JobID])
    /// To run a rule for files.
    case apply([JobRequest])

    /// Carries it out in a journal; of no rule with a name that is not there.
    ///
    /// - Parameters:
    ///   - rules: Those that run, or else are told nothing of what is taken back.
    ///   - journal: The journal, which is this program's own.
    ///   - host: Where the files are.
    ///   - now: The present.
    package func carryOut(
        _ rules: Ruleset, in journal: any Journal, on host: Host = .machine, at now: ContinuousClock.Instant
    ) {
        switch self {
        case .retry(let jobs): for job in jobs { journal.retry(job, now: now) }
        case .discard(let jobs): for job in jobs { journal.discard(job) }
        case .undo(let jobs):
            var attempts: [KeptChanges] = []
            for job in jobs { attempts += journal.changes(of: job).filter { !attempts.contains($0) } }
            rules.takeBack(attempts, journal, on: host)
        case .apply(let requests):
            let jobs = requests.compactMap { rules.job(for: $0, on: host) }
            if !jobs.isEmpty { journal.accept(jobs, [], now: now) }
            // A job that takes one in may wait for something that a person need not wait for.
            for job in jobs { journal.wake(rule: job.rule, path: job.event.path, now: now) }
        }
    }
}

extension Ruleset {
    /// The job that a person asks for: the rule is run for the file as it is now, whatever it is told of otherwise.
    ///
    /// A file that is not there ends as one that has gone.
    ///
    /// - Returns: Nil when there is no such rule.
    func job(for request: JobRequest, on host: Host) -> Job? {
        guard let rule = rule(named: request.rule) else { return nil }
        let root =
            rule.root(taking: request.path) ?? rule.roots.first { request.path.isInside($0) } ?? request.path.parent
        var snapshot = Snapshot.unseen
        let files = WatchedPaths(roots: [root], in: host.fileSystem)
        if case .present(let present) = files.look(at: request.path) { snapshot = present }
        let event = FileEvent(
            kind: .created, path: request.path, root: root, snapshot: snapshot, origin: .manual,
            time: host.clock.time())
        return Job(id: request.id, rule: rule.name, event: event, mask: rule.events)
    }
}
