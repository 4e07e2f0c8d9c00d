package import FileEvents
package import FileWatching
package import Journaling
package import Rules

// What others may ask of a running engine, from any thread.
extension Engine {
    /// Begins nothing more of a rule, or of all with nil, until ``resume(_:)``.
    ///
    /// What happens goes on being settled and accepted, and actions that run end. Of nil and a name each is kept for
    /// itself, and by the journal for later runs.
    package func pause(_ rule: String?) { mailbox.post(.pause(rule)) }

    /// Lets a rule go on that was paused by its name; with nil all rules, whatever paused them.
    package func resume(_ rule: String?) { mailbox.post(.resume(rule)) }

    /// Carries out what a person asks for jobs, in the next turn.
    ///
    /// - Parameters:
    ///   - command: What is asked for.
    ///   - whenKept: Called on the engine's thread when the journal has it, or can't be written.
    package func carryOut(_ command: JobCommand, whenKept: @escaping @Sendable () -> Void) {
        mailbox.post(.command(command, whenKept))
    }

    /// How it stands.
    package func status(at now: ContinuousClock.Instant) -> EngineStatus { monitor.status(at: now) }

    /// What has happened in the last half hour, in points of five seconds.
    package func history(at now: ContinuousClock.Instant, wall: Timestamp) -> [ActivityHistory.Point] {
        monitor.history(at: now, wall: wall)
    }

    /// How it stands with the watching; nil when the watcher's thread does not say so in time.
    package func survey(within limit: Duration) -> WatchStatus? { monitor.survey(within: limit) }

    /// How many jobs are pending of each rule that has any.
    package var pendingCounts: [String: Int] { journal.pendingCounts }

    /// How many jobs run, or would begin if there were room.
    func due(at now: ContinuousClock.Instant) -> Int {
        let counts = journal.counts
        let pauses = journal.pauses
        if pauses.all { return counts.running }
        let pending = journal.pendingCounts
        let held = pauses.rules.reduce(0) { $0 + (pending[$1] ?? 0) }
        return max(counts.running, counts.open - journal.resting(at: now) - held)
    }

    /// Takes up what a person wants to rest, or to go on.
    func change(_ rule: String?, isPause: Bool, _ dispatcher: inout Dispatcher) {
        let before = dispatcher.pauses
        if isPause { dispatcher.pauses.pause(rule) } else { dispatcher.pauses.resume(rule) }
        guard dispatcher.pauses != before else { return }
        // Others are told at the end of the turn, when it is kept.
        journal.notePauses(dispatcher.pauses)
        report(.paused(dispatcher.pauses))
    }

    /// Lets rules rest that rested when an engine ran with this journal last.
    func restorePauses(_ dispatcher: inout Dispatcher) {
        // A run that ends by itself was begun to get something done.
        guard !options.isOnce, !options.isDry else { return }
        let kept = journal.pauses
        dispatcher.pauses = kept.renamed(for: dispatcher.ruleset)
        if dispatcher.pauses != kept { journal.notePauses(dispatcher.pauses) }
        monitor.note(dispatcher.pauses)
        if !dispatcher.pauses.isEmpty { report(.paused(dispatcher.pauses)) }
    }
}

extension Pauses {
    /// The same by the names that rules have now.
    package func renamed(for ruleset: Ruleset) -> Pauses {
        var renamed = self
        for rule in ruleset.rules {
            for former in rule.formerly where ruleset.index(of: former) == nil {
                if renamed.rules.remove(former) != nil { renamed.rules.insert(rule.name) }
            }
        }
        return renamed
    }
}
