import FileEvents
package import Logging
package import PluginProtocol
package import Rules
package import System

/// Does the work of one action for settled files.
///
/// A handler may run twice for the same job, because the program can lose power between the work and the entry that
/// records it. Make the second run harmless.
package protocol Handler: Sendable {
    /// The description that rules are checked against.
    var summary: HandlerDescription { get }

    /// Does the work and returns an outcome for each file, in order; never throws.
    ///
    /// It runs on a thread of the engine's pool, and holds none while it waits for a program.
    func perform(_ invocations: [Invocation]) async -> [Outcome]

    /// Whether an interrupted attempt finished its work, as shown by the identity of the file at its new path.
    ///
    /// Called when the file is no longer at its path, or another file is there. False if this cannot be determined.
    func isDone(_ invocation: Invocation) -> Bool

    /// Returns the paths that `run` would write, as far as they do not depend on what exists there by then.
    func plannedOutputs(of invocation: Invocation) -> [PathBytes]
}

extension Handler {
    package func isDone(_ invocation: Invocation) -> Bool { false }

    package func plannedOutputs(of invocation: Invocation) -> [PathBytes] { [] }
}

/// A handler that blocks its thread while it works: on a disk or on the network.
package protocol BlockingHandler: Handler {
    /// Does the work and returns its outcome.
    ///
    /// A file that has vanished is an outcome, not an error. Check ``Invocation/stop`` at every step that can take
    /// long, and return `Outcome.interrupted` when it is raised.
    func run(_ invocation: Invocation) -> Outcome

    /// Does the work for the files of a batch and returns an outcome for each, in order.
    ///
    /// The default implementation runs the invocations one after another, each with its own timeout.
    func run(_ invocations: [Invocation]) -> [Outcome]
}

extension BlockingHandler {
    package func run(_ invocations: [Invocation]) -> [Outcome] {
        invocations.map { invocation in invocation.stop.isRaised ? .interrupted("Alight stops") : run(invocation) }
    }

    /// Runs the invocations, and adds the directories that were created to the changes of each outcome.
    package func perform(_ invocations: [Invocation]) async -> [Outcome] {
        var invocations = invocations
        for index in invocations.indices { invocations[index].madeDirectories = MadeDirectories() }
        return zip(run(invocations), invocations).map { outcome, invocation in
            var outcome = outcome
            outcome.changes.insert(contentsOf: invocation.madeDirectories?.changes ?? [], at: 0)
            return outcome
        }
    }
}

/// The input of an action for one attempt.
package struct Invocation: Sendable {
    package var job: Job {
        _read { yield boxedJob.value }
        set { boxedJob = Box(newValue) }
    }
    /// By reference, because an invocation is stored several times while its program runs.
    private var boxedJob: Box<Job>
    /// The location of the rule: file, line and column.
    package var rule: SourcePosition
    /// The absolute directory of the rule file, to which relative paths in parameters are relative.
    package var baseDirectory: PathBytes
    package var maximumAttempts: Int
    /// The rule's `with:`, expanded by ``ActionRunner``; an empty object for `exec` and `shell`.
    package var parameters: Parameter
    /// For each string parameter, the directory named before its first placeholder: the part that the rule's author
    /// wrote.
    package var literalHeads: [String: PathBytes] = [:]
    /// Whether the file must be the one that was just checked, because no step has changed it yet.
    package var expectsSettled = false
    /// The directories that the rule watches.
    package var roots: [PathBytes]
    /// The start time of the attempt.
    package var now: Timestamp
    /// The values captured by the groups of the rule's regular expressions.
    package var captures: Captures
    /// The output paths of the earlier steps, for placeholders.
    package var stepOutputs: [[PathBytes]]
    /// The timeout of the action, from the call of `perform`; in a batch, each request has its own.
    package var timeout: Duration
    /// The maximum number of events per request, for rules that batch or group them; nil for all others.
    package var batch: Int?
    /// The outcomes of the earlier steps.
    package var steps: [Outcome]
    /// Additional environment variables for programs, which override those of the same name.
    package var environment: [(name: String, value: [UInt8])] = []
    /// The standard input of programs; nil if it depends on the action.
    package var input: StandardInput?
    /// The working directory of programs; nil for that of the rules file, or their scratch directory.
    package var directory: ProgramPath?
    /// Whether `environment`, `directory` and `confinement` are the same for all events of the rule and not tied to one
    /// run.
    package var hasFixedEnvironment = true
    /// The resources, files and network that programs may access, and the user they run as.
    package var confinement = Confinement()
    /// Raised when Alight stops.
    package var stop: StopSignal
    package var log: Logger
    /// Must be granted before the first effect; nil if the action may start at once.
    package var permission: StartPermission?
    /// Called before a path is written, so that its new state is known to be the action's own work.
    package var willWrite: @Sendable (PathBytes) -> Void = { _ in }
    /// The record of outputs; nil if no action runs.
    package var outputClaims: (any OutputClaims)?
    /// The directories that the handler has created; nil for all but a ``BlockingHandler``.
    package var madeDirectories: MadeDirectories?
    /// Reports the progress, from 0 to 1, with a message for the user; may be called often.
    package var progress: @Sendable (Double, String?) -> Void

    package init(
        job: Job, rule: SourcePosition, baseDirectory: PathBytes = "/", maximumAttempts: Int, parameters: Parameter,
        roots: [PathBytes], now: Timestamp, captures: Captures = Captures(), timeout: Duration,
        batch: Int? = nil, steps: [Outcome] = [], stop: StopSignal, log: Logger,
        progress: @escaping @Sendable (Double, String?) -> Void = { _, _ in }
    ) {
        boxedJob = Box(job)
        (self.rule, self.baseDirectory, self.maximumAttempts) = (rule, baseDirectory, maximumAttempts)
        (self.parameters, self.roots, self.now, self.captures) = (parameters, roots, now, captures)
        (self.timeout, self.batch, self.steps, stepOutputs) = (timeout, batch, steps, steps.map(\.outputs))
        (self.stop, self.log, self.progress) = (stop, log, progress)
    }
}

extension Invocation {
    /// The source of placeholder values, created on each access so that a batch of a thousand events does not store
    /// them twice.
    package var placeholders: PlaceholderValues {
        PlaceholderValues(
            event: job.event, rule: job.rule, job: job.id.description, attempt: job.attempt, now: now,
            stepOutputs: stepOutputs, captures: captures)
    }

    /// Expands the parameters of the rule with the values of this invocation.
    ///
    /// - Parameters:
    ///   - with: The parameters as the rule specifies them.
    ///   - schema: The schema of the parameters, if known.
    package mutating func fillIn(_ with: ParameterTemplate, schema: ParameterSchema? = nil) {
        // An empty object needs no expansion.
        if case .object(let members) = with, members.isEmpty {
            (parameters, literalHeads) = (.object([:]), [:])
            return
        }
        parameters = with.expanded(with: placeholders, schema: schema)
            .completingDestinations(schema, name: job.event.path.lastComponent)
        literalHeads = [:]
        guard case .object(let members) = with else { return }
        for (name, member) in members {
            if case .text(let template) = member { literalHeads[name] = template.literalHead(in: baseDirectory) }
        }
    }
}

extension Invocation {
    /// Waits until the action may start, and returns whether it may.
    package func mayStart() async -> Bool { await permission?.wait() ?? true }

    /// Returns the parameter as a string; nil if it is missing or not a string.
    package func text(_ name: String) -> String? { parameters[name]?.bytes.map { String(decoding: $0, as: UTF8.self) } }

    /// Returns the parameter as a boolean.
    package func flag(_ name: String, default value: Bool) -> Bool {
        guard case .value(let given)? = parameters[name] else { return value }
        return given.bool ?? value
    }
}
