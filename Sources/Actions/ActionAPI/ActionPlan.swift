package import FileEvents
package import PluginProtocol
package import Rules
package import System

/// What an action would do for one event, or for those of a batch, worked out without doing any of it.
package struct ActionPlan: Sendable {
    package enum Work: Sendable {
        /// A handler of Alight's own, with its parameters.
        case builtIn(String, Parameter)
        case program(Program)
        /// It would end so before anything began.
        case impossible(Outcome)
    }

    /// A process that would be started.
    package struct Program: Sendable {
        /// The plugin's name; nil for `exec` and `shell`.
        package var plugin: String?
        /// Whether a shell reads the last argument.
        package var isShell: Bool
        /// Whether a process that stays would get the request.
        package var isServed: Bool
        package var executable: PathBytes
        /// Without the executable.
        package var arguments: [[UInt8]]
        /// The parameters, without secrets; nil for `exec` and `shell`.
        package var parameters: JSONValue?
        /// What it would read, without secrets, and marked as a dry run.
        package var request: JSONValue
        /// The rule's own variables.
        package var environment: [(name: String, value: [UInt8])]
        /// Where it would work; nil for a scratch folder.
        package var directory: PathBytes?
        /// What it may use and reach, and as whom it would run.
        package var confinement: ProgramConfinement
    }

    package var work: Work
    /// The events that it is about.
    package var events: [FileEvent]
    /// The placeholders of the action, in their order, and what they stand for at the first event.
    package var values: [(placeholder: Placeholder, value: [UInt8])]
    /// What it would write, as far as that is known.
    package var outputs: [PathBytes] = []
}

extension ActionRunner {
    /// Works out what the action would do, and does nothing.
    ///
    /// What an earlier step would have to say first, as what it has written, stands as
    /// the placeholder itself.
    ///
    /// - Parameters:
    ///   - action: What would be done.
    ///   - invocations: For which jobs, several in a batch.
    /// - Returns: One plan for each process or call, which together have the events in their order.
    package func plan(_ action: Action, _ invocations: [Invocation]) -> [ActionPlan] {
        var invocations = invocations
        for index in invocations.indices { invocations[index].nameUnknownOutputs(in: action) }
        switch action.work {
        case .use(let reference, let with):
            switch handler(for: reference, filling: with, into: &invocations) {
            case .success(let handler as PluginHandler): return handler.plan(action, invocations)
            case .success(let handler):
                return invocations.map { invocation in
                    let parameters = invocation.parameters.hidingSecrets(handler.summary.parameters)
                    var plan = ActionPlan(.builtIn(reference.name, parameters), action, [invocation])
                    if ["copy", "move", "link"].contains(reference.name), let output = Self.output(of: invocation) {
                        plan.outputs = [output]
                    }
                    return plan
                }
            case .failure(let problem):
                return [.impossible(problem.message, code: Outcome.cannotStartCode, action, invocations)]
            }
        case .exec(let templates): return commands.plan(action, exec: templates, invocations)
        case .shell(let line): return commands.plan(action, shell: line, invocations)
        }
    }
}

extension ActionRunner {
    /// The path that `copy`, `move` or `link` would give a file; nil if what is there already decides that.
    private static func output(of invocation: Invocation) -> PathBytes? {
        guard let destination = try? Destination(invocation), case .absent = DiskProbe.look(at: destination.path)
        else { return nil }
        return destination.path
    }
}

extension ActionPlan {
    init(_ work: Work, _ action: Action, _ invocations: some Collection<Invocation>) {
        self.work = work
        events = invocations.map(\.job.event)
        values =
            invocations.first.map { first in
                action.placeholders.map { ($0, first.facts.value(of: $0)) }
            } ?? []
    }

    static func impossible(
        _ message: String, code: String, _ action: Action, _ invocations: some Collection<Invocation>
    ) -> ActionPlan {
        ActionPlan(.impossible(Outcome(.failed, message, code: code)), action, invocations)
    }
}

extension Invocation {
    /// Lets outputs that no step has had yet stand as their placeholders.
    fileprivate mutating func nameUnknownOutputs(in action: Action) {
        for placeholder in action.placeholders {
            guard case .stepOutput(let step, let output) = placeholder, (0..<1_000).contains(output) else { continue }
            while stepOutputs.count <= step { stepOutputs.append([]) }
            while stepOutputs[step].count <= output {
                stepOutputs[step].append(PathBytes("${steps.\(step).outputs.\(stepOutputs[step].count)}"))
            }
        }
    }
}
