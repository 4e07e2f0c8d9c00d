import FileEvents
import FileWatching
import Handling
import Reconciling
import Rules
import Settling
import Storage
import System

/// The progress of a run.
struct RunState {
    /// Rules that run once the watcher watches for them.
    struct NextRules {
        var ruleset: Ruleset
        var ignored: [PathBytes]
        /// The number by which the watcher reports that.
        var number: Int
    }

    /// As in ``Engine/Options/ignored``, for the rules that run.
    var ignored: [PathBytes]
    /// The indexes of the rules that match other paths than when they ran last.
    var reselected: [Int] = []
    /// The newest last.
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
    /// The reason for which the store cannot be written, and the time of the next attempt.
    var storeFault: JournalFault?
    var storeRetry: ContinuousClock.Instant?
    /// The time of the next report ``EngineReport/alive``.
    var nextSign: ContinuousClock.Instant?

    init(ignored: [PathBytes]) { self.ignored = ignored }
}

extension EngineLoop {
    /// How long running actions may go on after a stop was requested.
    static let drainLimit = Duration.seconds(60)
    /// How long actions have to stop: a little more than programs get.
    static let endLimit = Duration.seconds(15)
    /// How long they have if everything is to end at once; their programs die with this one.
    static let endAtOnceLimit = Duration.seconds(1)
    /// The pause before the store is tried again.
    static let storePause = Duration.seconds(1)

    mutating func enter(_ phase: EngineStatus.Phase) {
        guard phase != run.phase, run.phase != .ending else { return }
        run.phase = phase
        switch phase {
        case .running: break
        case .draining:
            // There may be space by now, and what can be stored is not a failure.
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

    /// Takes over the pauses of the last run, except in one that ends by itself.
    mutating func restorePauses(_ stored: Pauses) {
        guard !engine.options.isOnce, !engine.options.isDry else { return }
        dispatcher.pauses = stored.renamed(for: dispatcher.ruleset)
        if dispatcher.pauses != stored { dispatcher.changes.pauses = dispatcher.pauses }
        engine.monitor.note(dispatcher.pauses)
        if !dispatcher.pauses.isEmpty { engine.report(.paused(dispatcher.pauses)) }
    }

    // MARK: Mounts

    /// Stores the mount points of the roots, beside those whose file system is not mounted now.
    mutating func recordMounts(_ known: [MountRecord]) {
        let away = known.filter { $0.isAway(in: engine.host.fileSystem) }
        reconciler.setAway(away.map(\.point))
        let points = Set(away.map(\.point))
        let present = MountRecord.present(for: dispatcher.ruleset.roots, in: engine.host.fileSystem)
        dispatcher.changes.mounts = away + present.filter { !points.contains($0.point) }
    }
}
