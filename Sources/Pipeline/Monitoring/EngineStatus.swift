import FileEvents
package import Rules
package import Storage
package import System

/// How it stands with a running engine, at one moment.
package struct EngineStatus: Sendable {
    package enum Phase: String, Sendable, Hashable {
        case running
        /// A stop was requested: jobs that run or could run are finished.
        case draining
        /// Actions were asked to stop.
        case ending
    }

    /// How many of what there were since the start.
    package struct Counts: Sendable, Hashable {
        /// Dirty paths that were told by the watcher.
        package var hints = 0
        /// Events that became jobs.
        package var events = 0
        package var attempts = 0
        package var succeeded = 0
        package var skipped = 0
        /// Attempts that failed, for good or to be made again.
        package var failed = 0
        /// Jobs that have become dead letters.
        package var dead = 0
    }

    /// An attempt that runs.
    package struct RunningAttempt: Sendable, Hashable {
        /// The first job, where several are run together.
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
            self.job = job
            self.jobs = jobs
            self.rule = rule
            self.action = action
            self.path = path
            self.since = since
            self.takesSlot = takesSlot
        }
    }

    /// The slots, and the rules that wait for one.
    package struct Slots: Sendable, Hashable {
        package var limit: Int
        /// The number of slots beyond the limit, for rules that have waited.
        package var extra: Int
        package var used = 0
        package var extraUsed = 0
        /// The rules with due work that have nothing running, and since when.
        package var waiting: [String: ContinuousClock.Instant] = [:]
    }

    /// A job that ended, as far as it is shown.
    package struct EndedJob: Sendable, Hashable {
        package var job: JobID
        package var rule: String
        package var path: PathBytes
        package var time: Timestamp
        package var outcome: String
        package var message: String
    }

    /// What became of a rule's jobs since the start.
    package struct RuleTally: Sendable, Hashable {
        package var succeeded = 0
        package var skipped = 0
        package var dead = 0
        package var last: EndedJob?

        package init() {}
    }

    /// A comparison of everything with what is known.
    package struct Rescan: Sendable, Hashable {
        package enum Cause: String, Sendable, Hashable {
            /// A person wanted it.
            case asked
            /// The kernel's queue had been full.
            case overflow
        }
        package var cause: Cause
        /// When it was done; nil while it goes on.
        package var ended: Timestamp?
        /// Paths that differed from what was known: what no event had told.
        package var found = 0
    }

    package var phase = Phase.running
    /// Whether every watch is live.
    package var isReady = false
    /// The rules that run.
    package var ruleset: Ruleset
    /// What rests; the journal has been told to keep it, and has a fault if it can't.
    package var pauses = Pauses()
    package var counts = Counts()
    /// Paths that wait until they have settled.
    package var settling = 0
    /// Those that a process has had open for writing or locked for a minute, and since when they wait.
    package var held: [PathBytes: ContinuousClock.Instant] = [:]
    package var queue = JobCounts()
    /// The numbers of pending jobs by rule.
    package var pending: [String: Int] = [:]
    package var running: [RunningAttempt] = []
    package var slots = Slots(limit: 0, extra: 0)
    package var rules: [String: RuleTally] = [:]
    /// The last jobs that became dead letters, the newest first.
    package var failures: [EndedJob] = []
    /// Why the journal keeps nothing at present.
    package var journalFault: JournalFault?
    /// How often the kernel's queue was full.
    package var overflows = 0
    package var rescan: Rescan?
    /// The comparison before one that still goes on.
    package var lastRescan: Rescan?
    /// Rules whose attempts all fail, by name, and the last message.
    package var slowed: [String: String] = [:]
    /// Events and finished attempts a second, over the last minute.
    package var rates: (events: Double, jobs: Double) = (0, 0)
}
