package import Gates
package import Records
package import Rules
package import System

/// The numbers of finished jobs by state.
package protocol JobCounts {
    var succeeded: Int { get set }
    var skipped: Int { get set }
    var failed: Int { get set }
}

extension JobCounts {
    /// The number of finished jobs.
    package var ended: Int { succeeded + skipped + failed }

    mutating func count(_ state: JobState) {
        switch state {
        case .succeeded: succeeded += 1
        case .skipped: skipped += 1
        case .failed: failed += 1
        case .pending, .running: break
        }
    }
}

/// The status of a running engine at one time.
package struct EngineStatus: Sendable {
    package enum Phase: String, Sendable, Hashable {
        case running
        /// A stop was requested: running and runnable jobs are finished.
        case draining
        /// Actions were asked to stop.
        case ending
    }

    /// Counters since the start, as `docs/operating.md` defines them.
    package struct Counts: JobCounts, Sendable, Hashable {
        /// Dirty paths reported by the watcher.
        package var hints = 0
        /// Events whose jobs have finished, or have finished an attempt.
        package var events = 0
        /// Finished attempts whose actions have started.
        package var attempts = 0
        package var succeeded = 0
        package var skipped = 0
        /// Failed attempts, including those that are retried.
        package var failedAttempts = 0
        /// Failed jobs.
        package var failed = 0

        package init() {}
    }

    /// The numbers of unfinished jobs.
    package struct Queue: Sendable, Hashable {
        /// Jobs that wait for an attempt, and due paths.
        package var pending = 0
        package var running = 0

        package init() {}

        package var count: Int { pending + running }
    }

    /// A running attempt.
    package struct RunningAttempt: Sendable, Hashable {
        /// The first job, if several run together.
        package var job: JobID
        package var jobs: Int
        package var rule: String
        package var action: String
        package var path: PathBytes
        package var since: Timestamp
        /// Whether it uses a slot.
        package var takesSlot: Bool

        package init(
            job: JobID, jobs: Int, rule: String, action: String, path: PathBytes, since: Timestamp, takesSlot: Bool
        ) {
            (self.job, self.jobs, self.rule, self.action) = (job, jobs, rule, action)
            (self.path, self.since, self.takesSlot) = (path, since, takesSlot)
        }
    }

    /// The slots, and the rules that wait for one.
    package struct Slots: Sendable, Hashable {
        package var limit: Int
        /// The number of slots beyond the limit, for rules that have waited.
        package var extra: Int
        package var used = 0
        package var extraUsed = 0
        /// The rules with due work and no running attempt, and since when they have waited.
        package var waiting: [String: ContinuousClock.Instant] = [:]

        package init(limit: Int, extra: Int) { (self.limit, self.extra) = (limit, extra) }
    }

    /// A finished job, with the values that are shown.
    package struct EndedJob: Sendable, Hashable {
        package var job: JobID
        package var rule: String
        package var path: PathBytes
        package var time: Timestamp
        package var outcome: String
        package var message: String
    }

    /// The results of a rule's jobs since the start.
    package struct RuleTally: JobCounts, Sendable, Hashable {
        package var succeeded = 0
        package var skipped = 0
        package var failed = 0
        package var last: EndedJob?

        package init() {}
    }

    /// A comparison of all roots with the ledger.
    package struct Rescan: Sendable, Hashable {
        package enum Cause: String, Sendable, Hashable {
            /// A user requested it.
            case asked
            /// The kernel queue overflowed.
            case overflow
        }
        package var cause: Cause
        /// The time at which it finished; nil while it is running.
        package var ended: Timestamp?
        /// The number of paths that differed from the ledger, for which no event was received.
        package var found = 0
    }

    package var phase = Phase.running
    /// Whether every watch is active.
    package var isReady = false
    /// The rules in effect.
    package var ruleset: Ruleset
    /// The pauses in effect; they are stored in the journal, which has an error if that fails.
    package var pauses = Pauses()
    package var counts = Counts()
    /// The number of paths that wait until they have settled.
    package var settling = 0
    /// The settling paths that a process has had open for writing or locked for a minute, and since when they have
    /// waited.
    package var held: [PathBytes: ContinuousClock.Instant] = [:]
    /// The jobs that wait for long, or for a file that cannot be read.
    package var waits: [LongWait] = []
    package var queue = Queue()
    /// The numbers of pending jobs by rule.
    package var pending: [String: Int] = [:]
    package var running: [RunningAttempt] = []
    package var slots = Slots(limit: 0, extra: 0)
    package var rules: [String: RuleTally] = [:]
    /// The latest failed jobs, the newest first.
    package var failures: [EndedJob] = []
    /// The error that currently prevents the journal from storing anything.
    package var journalError: StorageError?
    /// The number of overflows of the kernel queue.
    package var overflows = 0
    package var rescan: Rescan?
    /// The previous rescan.
    package var lastRescan: Rescan?
    /// Rules whose attempts all fail, by name, and the last message.
    package var slowed: [String: String] = [:]
    /// The numbers of events and of finished jobs in the last minute.
    package var lastMinute: (events: Int, jobs: Int) = (0, 0)
}
