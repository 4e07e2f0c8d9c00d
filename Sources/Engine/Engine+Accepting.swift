import FileEvents
import FileWatching
import Journaling
import Reconciling
import Rules
import Settling

// How what was seen becomes jobs.
extension Engine {
    /// Takes what has settled, and has looked at again what is in doubt.
    func settle(
        _ reconciler: inout Reconciler, _ watcher: any HintProducer, _ authors: AuthorSource,
        _ dispatcher: inout Dispatcher,
        at now: ContinuousClock.Instant
    ) {
        let turn = reconciler.takeSettled(at: now)
        watcher.hintAgain(turn.doubted)
        accept(turn, authors, &dispatcher, at: now)
    }

    /// Makes jobs of what has become certain, and commits them with what they rest on.
    private func accept(
        _ turn: Reconciler.Turn, _ authors: AuthorSource, _ dispatcher: inout Dispatcher,
        at now: ContinuousClock.Instant
    ) {
        guard !turn.isEmpty else { return }
        let ruleset = dispatcher.ruleset
        var turn = turn
        authors.attribute(&turn, for: ruleset)
        var withholding = Withholding(ruleset)
        let jobs = dispatcher.admit(
            turn.events.compactMap { view, event in
                let rule = ruleset.rules[view]
                guard var event = withholding.received(event, by: view, where: { rule.lets($0, log: log) }) else {
                    return nil
                }
                if !rule.needsAuthor { event.author = .notAsked }
                return Job(id: JobID(now: event.time), rule: rule.name, event: event, mask: rule.events)
            })
        journal.accept(jobs, withholding.noting(in: turn.entries), now: now)
        monitor.noteEvents(turn.events.map(\.event), jobs.map { ($0.rule, $0.event) }, at: now)
        if !jobs.isEmpty { report(.accepted(jobs)) }
        dispatcher.wakeChanged(jobs, at: now)
        dispatcher.note(jobs, at: now)
    }

    /// The mount points that another file system is at now, or none.
    var away: [MountRecord] { journal.mounts.filter { $0.isAway(in: host.fileSystem) } }

    /// Notes through which mount points the roots are seen now, beside those where another file system is awaited.
    func noteMounts(of ruleset: Ruleset, keeping away: [MountRecord]) {
        let points = Set(away.map(\.point))
        journal.noteMounts(
            away + MountRecord.present(for: ruleset.roots, in: host.fileSystem).filter { !points.contains($0.point) })
    }

    func take(_ watching: WatchReport, _ ruleset: Ruleset, _ state: inout RunState) {
        switch watching {
        case .ready(let folders):
            state.isReady = true
            let rules = ruleset.rules.count
            report(
                state.reloads == 0 ? .ready(folders: folders, rules: rules) : .reloaded(folders: folders, rules: rules))
            return
        case .failure(let error) where !state.isReady && state.reloads == 0 && isFatal(error):
            // A rule that can't be watched from the start would be silent for ever.
            state.fault = error
            state.phase = .draining
            return
        default: break
        }
        report(.watching(watching))
    }

    private func isFatal(_ error: WatchError) -> Bool {
        switch error {
        case .notFolder(let path), .refused(let path, _): ruleset.roots.contains(path)
        }
    }
}
