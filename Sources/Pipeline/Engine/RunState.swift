import ActionAPI
import Reconciling
import Rules
import Settling
import Storage
import System
import Watching

/// The progress of a run.
struct RunState {
    /// The rules that run once the watcher watches for them.
    struct NextRules {
        var ruleset: Ruleset
        var ignored: [PathBytes]
        /// The number with which the watcher reports that.
        var number: Int
    }

    /// The ignored files of the running rules, as in ``Engine/Options/ignored``.
    var ignored: [PathBytes]
    /// The indexes of the rules that match other paths than in their last run.
    var reselected: [Int] = []
    /// The newest is last.
    var next: [NextRules] = []
    /// The number of reloads that were requested.
    var reloads = 0
    var phase = EngineStatus.Phase.running
    var isReady = false
    /// Whether all existing files have been compared.
    var hasStarted = false
    var isForced = false
    /// The time at which the phase ends by itself.
    var limit: ContinuousClock.Instant?
    var fault: WatchError?
    /// The reason why the store cannot be written, and the time of the next attempt.
    var storeFault: StorageError?
    var storeRetry: ContinuousClock.Instant?
    /// The time of the next report ``EngineReport/alive``.
    var nextSign: ContinuousClock.Instant?

    init(ignored: [PathBytes]) { self.ignored = ignored }
}

extension EngineLoop {
    /// The time for which running actions may continue after a stop was requested.
    static let drainLimit = Duration.seconds(60)
    /// The time for actions to stop: a little more than programs have.
    static let endLimit = Duration.seconds(15)
    /// The time for actions to stop if everything ends immediately; their programs are killed with this process.
    static let endAtOnceLimit = Duration.seconds(1)
    /// The pause before the store is retried.
    static let storePause = Duration.seconds(1)

    mutating func enter(_ phase: EngineStatus.Phase) {
        guard phase != run.phase, run.phase != .ending else { return }
        run.phase = phase
        switch phase {
        case .running: break
        case .draining:
            // There may be space by now, and successfully stored changes do not count as failed.
            run.storeRetry = nil
            run.limit = now + Self.drainLimit
            engine.report(.draining(jobs: dispatcher.dueJobs(reconciler)))
        case .ending:
            run.limit = now + Self.endLimit
            engine.stopSignal.raise()
        }
    }

    // MARK: Pauses

    mutating func changePauses(_ change: (inout Pauses) -> Void) {
        let before = dispatcher.pauses
        change(&dispatcher.pauses)
        guard dispatcher.pauses != before else { return }
        dispatcher.changes.pauses = dispatcher.pauses
        engine.report(.paused(dispatcher.pauses))
    }

    /// Restores the pauses of the last run, except in a run that ends by itself.
    mutating func restorePauses(_ stored: Pauses) {
        guard !engine.options.isOnce, !engine.options.isDry else { return }
        dispatcher.pauses = stored.renamed(for: dispatcher.ruleset)
        if dispatcher.pauses != stored { dispatcher.changes.pauses = dispatcher.pauses }
        engine.monitor.note(dispatcher.pauses)
        if !dispatcher.pauses.isEmpty { engine.report(.paused(dispatcher.pauses)) }
    }

    // MARK: Mounts

    /// Stores the mount points of the roots, in addition to those whose file system is not mounted now.
    mutating func recordMounts(_ known: [MountRecord]) {
        let away = known.filter { $0.isAway(in: engine.host.fileSystem) }
        reconciler.setUnmounted(away.map(\.point))
        let points = Set(away.map(\.point))
        let present = MountRecord.present(for: dispatcher.ruleset.roots, in: engine.host.fileSystem)
        dispatcher.changes.mounts = away + present.filter { !points.contains($0.point) }
    }
}
