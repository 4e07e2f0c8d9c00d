import FileEvents
import FileWatching
import Journaling
import Rules
import Settling

// Jobs that wait for something, and what wakes them.
extension Dispatcher {
    /// A job, by what it is known.
    struct Waiter: Hashable {
        var rule: String
        var path: PathBytes
    }

    /// Puts a job back whose file is not ready.
    mutating func putBackWaiting(
        _ job: Job, _ rule: Rule, _ waiting: Waiting, _ pause: Duration, at now: ContinuousClock.Instant
    ) {
        var due = now + pause
        let path = job.event.path
        if waiting.cause == .doneFile, let marker = rule.ready?.marker(of: path) {
            waiters[marker, default: []].insert(Waiter(rule: rule.name, path: path))
            // It may have come since somebody looked, and nothing tells of it any more.
            if WatchedPaths(roots: rule.roots, in: host.fileSystem).look(at: marker) != .absent { due = now }
        }
        waiters[path, default: []].insert(Waiter(rule: rule.name, path: path))
        _ = journal.record(job, nil, .early(due: due, waiting), [])
    }

    /// Forgets what would wake a job that does not wait any more.
    mutating func forgetMarker(of job: Job, _ rule: Rule) {
        guard !waiters.isEmpty else { return }
        let path = job.event.path
        let waiter = Waiter(rule: rule.name, path: path)
        for key in [path, rule.ready?.marker(of: path)].compactMap(\.self) {
            waiters[key]?.remove(waiter)
            if waiters[key]?.isEmpty == true { waiters[key] = nil }
        }
    }

    /// Wakes the jobs that wait for a path, and those whose own file has gone.
    mutating func note(_ hints: [Hint], at now: ContinuousClock.Instant) {
        guard !waiters.isEmpty else { return }
        for hint in hints {
            for waiter in waiters[hint.path] ?? [] where waiter.path != hint.path || hint.signs.contains(.vanished) {
                journal.wake(rule: waiter.rule, path: waiter.path, now: now)
            }
        }
    }

    /// Wakes jobs whose files have a new state, since what was waited for may hold of that.
    func wakeChanged(_ jobs: [Job], at now: ContinuousClock.Instant) {
        for job in jobs {
            guard let rule = ruleset.rule(named: job.rule), rule.ready != nil || rule.group != nil else { continue }
            journal.wake(rule: job.rule, path: job.event.path, now: now)
        }
    }
}
