package import FileEvents
import Jobs
package import Monitoring
import Reconciling
import Rules
import Running
import Synchronization
package import System
import Watching

// Runs that watch nothing.
extension EngineLoop {
    /// Starts a run whose watcher never sends a hint.
    init(unwatched engine: Engine) {
        do {
            try self.init(engine) { _, _ in NoWatcher() }
        } catch {
            preconditionFailure("a run that watches nothing needs no root and no watch: \(error)")
        }
    }

    /// Whether nothing runs, and nothing remains to be stored.
    var isIdle: Bool { dispatcher.runningCount == 0 && run.storeError == nil }

    /// Returns the files with unfinished jobs.
    func open(_ requests: [JobRequest]) -> Set<PathBytes> {
        let unfinished = Set(dispatcher.jobs.rules.flatMap(\.jobs.jobs).map(\.id))
        return Set(requests.filter { unfinished.contains($0.id) }.map(\.path))
    }
}

// Queries of the summary and of simulations.
extension EngineLoop {
    package var queue: EngineStatus.Queue { dispatcher.jobs.count().jobs }

    /// Returns the ledger row of a path; nil if there is no such rule.
    package func row(of rule: String, at path: PathBytes) -> LedgerRow? {
        dispatcher.jobs.rules[rule].map { reconciler.shared.ledger.row(of: $0.id, at: path) }
    }

    package func visit(_ rule: String, inside directory: PathBytes, _ body: (PathBytes, LedgerRow) -> Void) {
        guard let state = dispatcher.jobs.rules[rule] else { return }
        reconciler.shared.ledger.visit(state.id, inside: directory, body)
    }

    /// The paths of jobs whose event is only a change made by their own program.
    package var repeats: [(rule: String, paths: [PathBytes])] {
        dispatcher.jobs.rules.flatMap { state in
            state.view.sortedOffers.filter(\.isRepeat).map { (state.rule.name, $0.paths) }
        }
    }

    /// Whether a job of the rule for a path runs, or its result is not recorded yet.
    package func isRunning(_ path: PathBytes, for rule: String) -> Bool {
        dispatcher.jobs.rules[rule].map { $0.view.offer(at: path)?.isRunning ?? false } ?? false
    }

    /// Whether a path has an unfinished job of the rule, or is due.
    package func isDue(_ path: PathBytes, for rule: String) -> Bool {
        dispatcher.jobs.rules[rule].map { $0.view.isDue(path) || $0.jobs.contains(path) } ?? false
    }
}

/// A watcher that never sends a hint.
private struct NoWatcher: HintProducer {
    func rescan() {}
    func change(to scope: WatchScope, number: Int) {}
    func hintAgain(_ doubt: DoubtedPaths) {}
    func drain() {}
    func stop() {}
}
