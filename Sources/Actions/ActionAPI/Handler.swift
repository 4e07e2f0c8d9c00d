import FileEvents
package import Logging
package import PluginProtocol
package import Rules
package import System

/// Does the work of one action for one settled file.
///
/// `run` blocks: it is called on a thread of the engine's bounded pool, never on
/// Swift's cooperative pool, because a child process or a copy may take hours.
///
/// A handler may run twice for the same job, because the program can lose power
/// between the work and the entry that records it. Make the second run harmless.
package protocol Handler: Sendable {
    /// What rules are checked against.
    var summary: HandlerDescription { get }

    /// Does the work and says how it ended; it never throws.
    ///
    /// A file that has vanished is an outcome, not an error. Look at
    /// ``Invocation/stop`` at every step that can take long, and answer
    /// `Outcome.interrupted` when it is raised.
    func run(_ invocation: Invocation) -> Outcome

    /// Does the work for several files that were gathered, and says for each how it ended, in order.
    ///
    /// Without a way of its own a handler runs for one after another; each has
    /// the time-out for itself.
    func run(_ invocations: [Invocation]) -> [Outcome]

    /// Whether an interrupted attempt has come to its end, as the identity of the file at its new place shows.
    ///
    /// It is asked because the file is not at its path any more, or another one is. False if that cannot be known.
    func isDone(_ invocation: Invocation) -> Bool
}

extension Handler {
    package func isDone(_ invocation: Invocation) -> Bool { false }

    package func run(_ invocations: [Invocation]) -> [Outcome] {
        invocations.map { invocation in
            invocation.stop.isRaised ? .interrupted("Alight stops") : run(invocation)
        }
    }
}

/// What an action receives for one attempt.
package struct Invocation: Sendable {
    package var job: Job
    /// The rule's name, file and line.
    package var rule: SourcePlace
    /// The absolute folder of the rules file, against which relative paths in parameters are meant.
    package var folder: PathBytes
    package var maximumAttempts: Int
    /// The rule's `with:`, expanded by ``ActionRunner``; an empty object for `exec` and `shell`.
    package var parameters: Parameter
    /// Of each parameter with text the folder that it names before its first placeholder: what the rule's author wrote.
    package var literalHeads: [String: PathBytes] = [:]
    /// Whether the file has to be the one that was looked at just before: nothing has been done to it yet.
    package var expectsSettled = false
    /// The files that the rule takes.
    package var selection: FileSelection
    /// When the attempt began.
    package var now: Timestamp
    /// What the groups of the rule's regular expressions took.
    package var captures: Captures
    /// What the steps before this one have written, for placeholders.
    package var stepOutputs: [[PathBytes]]
    /// How long the action may take, from the call of `run`; of a batch each request has it for itself.
    package var timeout: Duration
    /// Most events in one request, for rules that gather them; nil for all others.
    package var batch: Int?
    /// How the steps before this one ended.
    package var steps: [Outcome]
    /// Further variables of programs, instead of those of the same name.
    package var environment: [(name: String, value: [UInt8])]
    /// Where programs work; nil for their scratch folder.
    package var directory: ProgramPath?
    /// Whether `environment`, `directory` and `confinement` are the same for all events of the rule, and for many in a row.
    package var hasFixedSurroundings = true
    /// What programs may use and reach, and as whom they run.
    package var confinement = Confinement()
    /// Raised when Alight stops.
    package var stop: StopSignal
    package var log: Logger
    /// Called before the first effect: blocks until the action may start, and returns whether it may.
    package var mayStart: @Sendable () -> Bool = { true }
    /// Called before a path is written: its new state is the action's own work.
    package var willWrite: @Sendable (PathBytes) -> Void = { _ in }
    /// Takes how far the work is, 0 to 1, with a line for people; may be called often.
    package var progress: @Sendable (Double, String?) -> Void

    package init(
        job: Job, rule: SourcePlace, folder: PathBytes = "/", maximumAttempts: Int, parameters: Parameter,
        selection: FileSelection, now: Timestamp, captures: Captures = Captures(), timeout: Duration,
        batch: Int? = nil, steps: [Outcome] = [],
        environment: [(name: String, value: [UInt8])] = [], directory: ProgramPath? = nil, stop: StopSignal,
        log: Logger,
        progress: @escaping @Sendable (Double, String?) -> Void = { _, _ in }
    ) {
        self.job = job
        self.rule = rule
        self.folder = folder
        self.maximumAttempts = maximumAttempts
        self.parameters = parameters
        self.selection = selection
        self.now = now
        self.captures = captures
        stepOutputs = steps.map(\.outputs)
        self.timeout = timeout
        self.batch = batch
        self.steps = steps
        self.environment = environment
        self.directory = directory
        self.stop = stop
        self.log = log
        self.progress = progress
    }
}

extension Invocation {
    /// Where placeholders take their values from, made anew each time: a batch of a thousand events need not have all twice.
    package var facts: PlaceholderFacts {
        PlaceholderFacts(
            event: job.event, rule: job.rule, job: job.id.description, attempt: job.attempt, now: now,
            stepOutputs: stepOutputs, captures: captures)
    }

    /// Fills in the parameters as the rule has them, with the facts of this invocation.
    ///
    /// - Parameters:
    ///   - with: The parameters.
    ///   - schema: What they are, if that is known.
    package mutating func fillIn(_ with: ParameterTemplate, schema: ParameterSchema? = nil) {
        // What has no placeholder is the same without.
        if case .object(let members) = with, members.isEmpty {
            (parameters, literalHeads) = (.object([:]), [:])
            return
        }
        parameters = with.expanded(with: facts, schema: schema)
            .completingDestinations(schema, name: job.event.path.lastComponent)
        literalHeads = [:]
        guard case .object(let members) = with else { return }
        for (name, member) in members {
            if case .text(let template) = member { literalHeads[name] = template.literalHead(in: folder) }
        }
    }
}
