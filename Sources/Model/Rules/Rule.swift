package import FileEvents
package import FileWatching
package import Globbing
package import Settling
package import System

/// What to do for which files: one entry of a rules file, complete and checked.
package struct Rule: Sendable {
    /// What to do with files that are there when a rule starts for the first time.
    package enum Existing: String, Sendable, Hashable, CaseIterable {
        case ignore, process
    }

    /// What to do when a root does not exist at the start.
    package enum Missing: String, Sendable, Hashable, CaseIterable {
        case wait, fail, create
    }

    /// Whether something that would be an event is told.
    package enum Telling: String, Sendable, Hashable, CaseIterable {
        case report, ignore
    }

    /// What becomes of a newer event of a path whose action runs.
    package enum WhileBusy: String, Sendable, Hashable, CaseIterable {
        /// Every event is run for, one after another.
        case queue
        /// One more run, with the newest facts.
        case coalesce
        /// None: what happened meanwhile is taken as known.
        case drop
        /// The running action is ended, and run again with the newest facts.
        case restart
    }

    /// How a file that grows is followed.
    package struct Tail: Sendable, Hashable {
        /// Most bytes in one event; the rest follows.
        package var maximumBytes: Int

        package init(maximumBytes: Int = 65_536) { self.maximumBytes = maximumBytes }
    }

    /// How many events one run of the action takes.
    package struct Batch: Sendable, Hashable {
        /// Most events in one run.
        package var files: Int
        /// How long no further event may come before what has gathered is run.
        package var wait: Duration
        /// The longest that the first event waits for others.
        package var maximumWait: Duration

        package init(
            files: Int = 1_000, wait: Duration = .milliseconds(500), maximumWait: Duration = .seconds(60)
        ) {
            self.files = files
            self.wait = wait
            self.maximumWait = maximumWait
        }
    }

    /// Unique in the ruleset.
    package var name: String
    /// Where the entry begins.
    package var place: SourcePlace
    /// The absolute folder of the rules file, against which relative paths are meant.
    package var folder: PathBytes
    package var summary: String?
    /// Which paths, by name.
    package var filter: PathFilter
    package var types: Set<FileType>
    package var events: EventMask
    package var settle: SettlePolicy
    package var existing: Existing
    package var missing: Missing
    /// A rewrite with the same bytes.
    package var sameContent: Telling
    /// What the rule's own actions do to the file that they are run for.
    package var ownWrites: Telling
    package var tail: Tail?
    package var batch: Batch?
    package var backend: Backend
    /// How long to rest between two looks at a polled root.
    package var pollInterval: Duration
    /// Run in order; the list stops at the first that does not succeed.
    package var actions: [Action]
    package var timeout: Duration
    /// Most jobs of this rule at once.
    package var concurrency: Int
    package var retry: RetryPolicy
    package var whileBusy: WhileBusy = .coalesce
    /// The least time between the end of a run for a path and the next beginning.
    package var cooldown: Duration = .zero
    /// Run once when a job becomes a dead letter; empty for nothing.
    package var onFailure: [Action] = []
    /// Whether what happened while Alight did not run is told at the start.
    package var catchUp = true
    /// Names that the rule had before: what is known under them is the rule's.
    package var formerly: [String] = []
    /// What has to hold of a file besides: `where:`.
    package var condition: Condition?
    /// Whether actions are told who wrote: `by`.
    package var tellsAuthor = false
    /// Words by which `alight run --tag` chooses rules.
    package var tags: [String] = []
    /// Among rules with due jobs the higher ones go first, and they come first for `stop`.
    package var priority = 0
    /// Whether rules after it see nothing of what it takes: `stop`.
    package var isLast = false
    /// The hours in which actions begin; nil for always.
    package var window: RunWindow?
    /// What has to hold of a file besides; nil for nothing.
    package var ready: Readiness?
    /// Which files are handled together; nil for each by itself.
    package var group: Grouping?
    /// Further variables of programs.
    package var environment: [EnvironmentVariable] = []
    /// Where programs work; nil for their own scratch folder.
    package var directory: Template?
    /// What programs may use and reach, and as whom they run.
    package var confinement = Confinement()

    package init(
        name: String, place: SourcePlace, folder: PathBytes = "/", summary: String? = nil,
        filter: PathFilter = PathFilter(globs: []),
        types: Set<FileType> = [.file], events: EventMask = [.created, .modified],
        settle: SettlePolicy = SettlePolicy(), existing: Existing = .ignore, missing: Missing = .wait,
        sameContent: Telling = .report, ownWrites: Telling = .ignore, tail: Tail? = nil, batch: Batch? = nil,
        backend: Backend = .auto, pollInterval: Duration = .seconds(10), actions: [Action] = [],
        timeout: Duration = .seconds(600), concurrency: Int = 1, retry: RetryPolicy = RetryPolicy()
    ) {
        self.name = name
        self.place = place
        self.folder = folder
        self.summary = summary
        self.filter = filter
        self.types = types
        self.events = events
        self.settle = settle
        self.existing = existing
        self.missing = missing
        self.sameContent = sameContent
        self.ownWrites = ownWrites
        self.tail = tail
        self.batch = batch
        self.backend = backend
        self.pollInterval = pollInterval
        self.actions = actions
        self.timeout = timeout
        self.concurrency = concurrency
        self.retry = retry
    }

    package var globs: [Glob] { filter.globs }

    /// The folders in front of the globs' first wildcards, each once.
    package var roots: [PathBytes] { filter.roots.map { PathBytes($0) } }

    /// The root of the first glob that takes the path by name; nil when the rule leaves it.
    package func root(taking path: PathBytes) -> PathBytes? {
        filter.root(taking: path.bytes).map { PathBytes($0) }
    }

    /// Whether it has to be known who wrote.
    package var needsAuthor: Bool { tellsAuthor || condition?.asksForAuthor ?? false }

    /// Whether a path strictly below this folder could be taken.
    package func reaches(below folder: PathBytes) -> Bool { filter.reaches(below: folder.bytes) }
}

/// A variable of the environment that a rule gives to its programs.
package struct EnvironmentVariable: Sendable, Hashable {
    package var name: String
    package var value: Template

    package init(name: String, value: Template) {
        self.name = name
        self.value = value
    }
}
