import Monitoring
import Records
import Rules
import Watching

/// The progress of a run.
struct RunState {
    /// The remaining work for the rules that have started.
    var starts: RuleStarts
    /// The rules that run once the watcher watches for them, and the number with which it reports that; the newest are
    /// last.
    var next: [(ruleset: Ruleset, number: Int)] = []
    /// The number of reloads that were requested.
    var reloads = 0
    var phase = EngineStatus.Phase.running
    var isReady = false
    /// Whether all existing files have been compared.
    var hasStarted = false
    var isForced = false
    /// The time at which the phase ends by itself.
    var limit: ContinuousClock.Instant?
    /// The first root that a run that ends by itself could not watch.
    var error: WatchError?
    /// The reason why the store cannot be written, and the time of the next attempt.
    var storeError: StorageError?
    var storeRetry: ContinuousClock.Instant?
    /// The time of the next report ``EngineReport/alive``.
    var nextSign: ContinuousClock.Instant?

    /// The time for which running actions may continue after a stop was requested.
    static let drainLimit = Duration.seconds(60)
    /// The time for actions to stop: a little more than programs have.
    static let endLimit = Duration.seconds(15)
    /// The time for actions to stop if everything ends immediately; their programs are killed with this process.
    static let endAtOnceLimit = Duration.seconds(1)
    /// The pause before the store is retried.
    static let storePause = Duration.seconds(1)
}
