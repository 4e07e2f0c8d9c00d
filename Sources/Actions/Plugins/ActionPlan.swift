package import ActionAPI
package import FileEvents
package import JSON
import PluginProtocol
package import Programs
package import Rules
package import System

/// The planned work of an action for one event or a batch, computed without doing any of it.
package struct ActionPlan: Sendable {
    package enum Work: Sendable {
        /// A built-in handler, with its parameters, without secrets.
        case builtIn(String, JSONValue)
        case program(Program)
        /// The action would finish with this outcome before it did any work.
        case impossible(Outcome)
    }

    /// A process that would be started.
    package struct Program: Sendable {
        /// The plugin's name; nil for `exec` and `shell`.
        package var plugin: String?
        /// Whether a shell interprets the last argument.
        package var isShell: Bool
        /// Whether a persistent process would receive the request.
        package var isServed: Bool
        package var executable: PathBytes
        /// The arguments, without the executable.
        package var arguments: [[UInt8]]
        /// The parameters, without secrets; nil for `exec` and `shell`.
        package var parameters: JSONValue?
        /// The request that the process would read, without secrets and marked as a dry run.
        package var request: JSONValue
        /// Its standard input.
        package var input: StandardInput
        /// The environment variables that the rule sets.
        package var environment: [(name: String, value: [UInt8])]
        /// The working directory; nil for a scratch directory.
        package var directory: PathBytes?
        /// The resources, files and network that the process may access, and the user it would run as.
        package var confinement: ProgramConfinement
    }

    package var work: Work
    /// The events that the plan covers.
    package var events: [FileEvent]
    /// The placeholders of the action, in order, with their values for the first event.
    package var values: [(placeholder: Placeholder, value: [UInt8])]
    /// The paths that the action would write, as far as they are known.
    package var outputs: [PathBytes] = []

    init(_ work: Work, _ action: Action, _ invocations: some Collection<Invocation>) {
        self.work = work
        events = invocations.map(\.job.event)
        let first = invocations.first?.placeholders
        values = action.placeholders.compactMap { each in first.map { (each, $0.value(of: each)) } }
    }

    static func impossible(
        _ message: String, code: String = Outcome.cannotStartCode, _ action: Action,
        _ invocations: some Collection<Invocation>
    ) -> ActionPlan { ActionPlan(.impossible(Outcome(.failed, message, code: code)), action, invocations) }
}

extension ActionRunner {
    /// Plans the action without running it.
    ///
    /// A value that an earlier step would have to produce first, such as an output path, appears as the placeholder
    /// itself.
    ///
    /// - Parameters:
    ///   - action: The action to plan.
    ///   - invocations: One invocation per job; several in a batch.
    /// - Returns: One plan for each process or call. Together, the plans contain the events in order.
    package func plan(_ action: Action, _ invocations: [Invocation]) -> [ActionPlan] {
        var invocations = invocations
        for index in invocations.indices { invocations[index].nameUnknownOutputs(in: action) }
        do throws(Problem) {
            switch try prepare(action, invocations) {
            case .plugin(let handler, let invocations): return handler.plan(action, invocations)
            case .builtIn(let handler, let invocations):
                let summary = handler.summary
                return invocations.map { invocation in
                    var parameters = invocation.parameters.json
                    if let schema = summary.parameters {
                        parameters = schema.withoutSecrets(parameters)
                        parameters = schema.resolvingDestinations(of: parameters, from: invocation.baseDirectory)
                    }
                    var plan = ActionPlan(.builtIn(summary.reference.name, parameters), action, [invocation])
                    plan.outputs = handler.plannedOutputs(of: invocation)
                    return plan
                }
            case .command(let call, let invocations):
                return host.plan(action, invocations, most: invocations.first?.batch ?? 1, call)
            }
        } catch {
            return [.impossible(error.message, action, invocations)]
        }
    }
}

extension ParameterSchema {
    /// Returns the parameters with absolute paths as destinations.
    func resolvingDestinations(of value: JSONValue, from directory: PathBytes) -> JSONValue {
        switch value {
        case .string(let text) where role == Self.destination && !text.isEmpty:
            let path = directory.resolving(text.utf8).normalized.description
            return .string(text.hasSuffix("/") ? path + "/" : path)
        case .object(var members):
            for (key, schema) in properties ?? [:] {
                members[key] = members[key].map { schema.resolvingDestinations(of: $0, from: directory) }
            }
            return .object(members)
        case .array(let elements):
            return .array(elements.map { items?.resolvingDestinations(of: $0, from: directory) ?? $0 })
        default: return value
        }
    }
}

extension Invocation {
    /// Fills outputs of steps that have not run yet with their placeholders.
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
