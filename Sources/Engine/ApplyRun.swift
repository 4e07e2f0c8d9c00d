package import FileEvents
package import Handling
package import Journaling
package import Logging
package import Rules
import Settling
import Synchronization

/// Runs a rule for files that a person names, and watches nothing.
///
/// It takes the place of the engine for a moment: the journal is its own, and all
/// of it happens on the thread that calls ``run(_:)``, but for the actions. Jobs
/// of the rule that were pending before may be run along with its own.
package final class ApplyRun: Sendable {
    private let ruleset: Ruleset
    private let limit: Int
    private let journal: any Journal
    private let perform: @Sendable (Action, [Invocation]) -> [Outcome]
    private let log: Logger
    private let report: @Sendable (EngineReport) -> Void
    private let host = Host.machine
    private let mailbox = Mailbox<Attempt.Result>()
    private let stopSignal = StopSignal()

    /// How long to wait before the journal is tried again, and before a file that has changed is looked at again.
    private static let pause = Duration.seconds(1)
    /// How often a file that changes before its action begins is looked at again.
    private static let mostReturns = 10

    /// How a run ended.
    package struct Summary: Sendable {
        /// Files whose jobs have not ended.
        package var open: Set<PathBytes>
        /// Files that changed every time before their action began.
        package var restless: Set<PathBytes> = []
        /// Why the journal did not keep what was done last.
        package var fault: JournalFault?
    }

    /// Makes a run for one rule.
    ///
    /// - Parameters:
    ///   - rule: The rule.
    ///   - limit: Most actions at once.
    ///   - journal: Where the jobs live; nobody else has it.
    ///   - perform: Does one action, as for the engine.
    ///   - log: For what handlers and plugins say.
    ///   - report: Called on the thread of the run, in order.
    package init(
        _ rule: Rule, limit: Int, journal: any Journal,
        perform: @escaping @Sendable (Action, [Invocation]) -> [Outcome], log: Logger,
        report: @escaping @Sendable (EngineReport) -> Void
    ) {
        ruleset = Ruleset([rule])
        self.limit = limit
        self.journal = journal
        self.perform = perform
        self.log = log
        self.report = report
    }

    /// Begins nothing more, and ends ``run(_:)`` when what runs has ended.
    ///
    /// Callable from any thread.
    package func stop() { mailbox.post(.stop) }

    /// Ends ``run(_:)`` and all actions at once.
    package func stopAtOnce() { mailbox.post(.stopAtOnce) }

    /// Runs until the jobs of all files have ended, or until stopped; blocks, call it once.
    ///
    /// What has not ended by then is in the journal, for an engine.
    ///
    /// - Parameter requests: The files, each once.
    /// - Returns: What is left undone.
    package func run(_ requests: [JobRequest]) -> Summary {
        _ = journal.begin(ruleset.records, isWatching: false, at: host.clock.time())
        let ended = Mutex<Set<PathBytes>>([])
        var dispatcher = Dispatcher(
            ruleset: ruleset, journal: journal, mailbox: mailbox, limit: limit, isPatient: false, host: host,
            perform: perform,
            stop: stopSignal, log: log
        ) { [report] event in
            for attempt in event.attempts where attempt.state != .pending {
                ended.withLock { _ = $0.insert(attempt.path) }
            }
            report(event)
        }
        dispatcher.isWatching = false
        var summary = Summary(open: Set(requests.map(\.path)))
        var returns: [PathBytes: Int] = [:]
        var isStopping = false
        var retry: ContinuousClock.Instant?
        var now = host.clock.now()
        JobCommand.apply(requests).carryOut(ruleset, in: journal, on: host, at: now)
        while true {
            // By their paths, since a job that was pending may take in the one that is asked for.
            summary.open.subtract(ended.withLock { $0 })
            let isOver = isStopping || summary.open.isEmpty
            if !isOver, summary.fault == nil { dispatcher.fill(at: now, isGathering: false) }
            if retry.map({ $0 <= now }) ?? true {
                let fault = journal.commit(at: host.clock.time())
                if fault != summary.fault { report(.journal(fault)) }
                summary.fault = fault
                retry = fault.map { _ in now + Self.pause }
                if fault == nil { dispatcher.launch() }
            }
            let isLost = summary.fault.map { !$0.mayPass } ?? false
            if dispatcher.running == 0, isLost || isOver && (summary.fault == nil || isStopping) { return summary }
            let wakes = [dispatcher.nextDeadline(after: now), journal.nextDue(after: now), retry].compactMap(\.self)
            mailbox.wait(until: isOver ? retry : wakes.min())
            let messages = mailbox.take()
            dispatcher.wakeRest()
            now = host.clock.now()
            for message in messages {
                switch message {
                case .ended(let result):
                    for job in dispatcher.end(result, at: now).returned {
                        let path = job.event.path
                        guard summary.open.contains(path) else { continue }
                        returns[path, default: 0] += 1
                        if returns[path, default: 0] > Self.mostReturns {
                            summary.open.remove(path)
                            summary.restless.insert(path)
                        } else if let again = ruleset.job(
                            for: JobRequest(id: job.id, rule: job.rule, path: path), on: host)
                        {
                            journal.accept([again], [], now: now + Self.pause)
                        }
                    }
                case .stop: isStopping = true
                case .stopAtOnce:
                    isStopping = true
                    stopSignal.raise()
                case .advanced(let job, let steps): journal.note(steps, of: job)
                case .rescan, .command, .reload, .pause, .resume, .declared: break
                }
            }
        }
    }
}

extension EngineReport {
    /// The attempts that it tells of.
    package var attempts: [AttemptReport] {
        switch self {
        case .attempt(let attempt): [attempt]
        case .batch(let attempts): attempts
        default: []
        }
    }
}
