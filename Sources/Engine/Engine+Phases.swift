import FileEvents
import FileWatching
import Handling
import Journaling
import Rules
import Settling

// How far a run is, what the journal has of it, and when it ends.
extension Engine {
    /// How long running actions are left alone after a stop is asked for.
    package static let drainLimit = Duration.seconds(60)
    /// How long actions have to end after they are told to: a little more than programs get.
    private static let endLimit = Duration.seconds(15)
    /// How long they have when everything is to end at once; their programs die with this one.
    static let endAtOnceLimit = Duration.seconds(1)

    enum Phase: Int {
        case running, draining, ending

        var status: EngineStatus.Phase {
            switch self {
            case .running: .running
            case .draining: .draining
            case .ending: .ending
            }
        }
    }

    struct RunState {
        /// As in ``Options/ignored``, for the rules that run.
        var ignored: [PathBytes]
        /// The rules that take other paths than when they ran last.
        var reselected: [Rule]
        /// From where it is known who did something.
        var authors: AuthorSource
        /// The rules that are to run when the watcher watches for them, the newest last.
        var next: [NextRules] = []
        /// How often rules were exchanged, or were to be.
        var reloads = 0
        var phase = Phase.running
        var isReady = false
        /// Whether all that was there at the start has been compared.
        var hasStarted = false
        var isForced = false
        /// When the present phase ends by itself.
        var limit: ContinuousClock.Instant?
        var fault: WatchError?
        /// Why the journal keeps nothing at present, and when to try again.
        var journalFault: JournalFault?
        var journalRetry: ContinuousClock.Instant?
        /// When what is secured is to be committed; nil for nothing.
        var commitDue: ContinuousClock.Instant?
        /// When the next sign of life is due; nil before the first.
        var nextSign: ContinuousClock.Instant?
    }

    /// How long nothing may have run or happened before the journal's file follows what is secured; at the latest it does
    /// so when the journal says.
    private static let lull = Duration.milliseconds(3)

    /// How long to wait before the journal is tried again.
    private static let journalPause = Duration.seconds(1)

    func begin(_ phase: Phase, _ state: inout RunState, _ now: ContinuousClock.Instant) {
        guard phase.rawValue > state.phase.rawValue else { return }
        state.phase = phase
        switch phase {
        case .running: break
        case .draining:
            // There may be room by now, and what can be kept is no failure.
            state.journalRetry = nil
            state.limit = now + Self.drainLimit
            report(.draining(jobs: due(at: now)))
        case .ending:
            state.limit = now + Self.endLimit
            stopSignal.raise()
        }
    }

    /// When the next turn has to be, at the latest.
    ///
    /// `last` is the time of the turn before: what became due since then was not looked at.
    func nextWake(
        _ settled: ContinuousClock.Instant?, _ gathered: ContinuousClock.Instant?, _ state: RunState,
        after last: ContinuousClock.Instant
    ) -> ContinuousClock.Instant? {
        let settled = state.phase == .running ? settled : nil
        let due = journal.nextDue(after: last)
        let others = [state.commitDue, state.limit, state.journalRetry, state.nextSign]
        return ([settled, gathered, due] + others).compactMap(\.self).min()
    }

    /// Has the journal secure what the turn brought, begins what was leased, and lets others see it from time to time.
    ///
    /// While it can't be committed nothing more is begun. What was accepted and what
    /// has ended is noted, or waits in memory; should the program die, the next start finds it again.
    func keep(_ dispatcher: inout Dispatcher, _ state: inout RunState, at now: ContinuousClock.Instant) {
        let wall = host.clock.time()
        if let retry = state.journalRetry, retry > now {
            journal.note(at: wall)
            return
        }
        if let fault = state.journalFault == nil ? journal.secure(at: wall) : journal.commit(at: wall) {
            note(fault, &state, now)
            return
        }
        state.journalRetry = nil
        if state.journalFault != nil {
            report(.journal(nil))
            state.journalFault = nil
            // Nothing was leased in this turn, and what has been due for long wakes nobody.
            state.journalRetry = now
        }
        dispatcher.launch()
        guard let due = journal.commitDue else {
            state.commitDue = nil
            return
        }
        guard min(state.commitDue ?? due, due) <= now else {
            state.commitDue = dispatcher.running == 0 ? min(due, now + Self.lull) : due
            return
        }
        state.commitDue = nil
        if let fault = journal.commit(at: wall) { note(fault, &state, now) }
    }

    private func note(_ fault: JournalFault, _ state: inout RunState, _ now: ContinuousClock.Instant) {
        // It is tried again in its own time.
        state.commitDue = nil
        if state.journalFault != fault { report(.journal(fault)) }
        state.journalFault = fault
        state.journalRetry = now + Self.journalPause
        if !fault.mayPass { begin(.ending, &state, now) }
    }

    func isDone(
        _ state: RunState, isSettled: Bool, running: Int, _ now: ContinuousClock.Instant
    ) -> Bool {
        switch state.phase {
        case .running:
            guard options.isOnce, state.isReady, isSettled, running == 0 else { return false }
            // What waits for its hours, or for other files, is left to the next run.
            let open = journal.counts.open
            return open == 0 || open == journal.held
        case .draining:
            // What is due runs by now; jobs that rest before another attempt are not waited for.
            return running == 0 && (state.journalRetry == nil || state.journalFault != nil)
        case .ending:
            return running == 0 || state.limit.map { $0 <= now } ?? false
        }
    }

    func summary(_ state: RunState, unsettled: [PathBytes]) -> EngineSummary {
        let counts = journal.counts
        return EngineSummary(
            succeeded: counts.succeeded, skipped: counts.skipped, dead: counts.dead, unfinished: counts.open,
            unsettled: unsettled, isForced: state.isForced, fault: state.fault, journalFault: state.journalFault)
    }
}
