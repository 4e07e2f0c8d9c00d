import PluginProtocol
import Rules
import System

// Checks of the files that determine what root executes.
extension RuleDecoder {
    /// Refuses commands that another user could change, unless they run as a user other than root.
    func checkCommands(_ draft: RuleDraft) {
        guard !draft.hasFaultyUser, draft.rule.confinement.user.map({ $0.uid == 0 }) ?? true else { return }
        for step in draft.steps + draft.onFailure {
            guard let mark = step.commandMark else { continue }
            switch step.action.work {
            case .exec(let templates): checkCommand(templates, at: mark)
            case .shell(let line): checkCommand("/bin/sh", [Array("-c".utf8), Array(line.utf8)], at: mark)
            case .use: break
            }
        }
        if let command = draft.rule.ready?.command, let entry = draft["ready"]?.value.entry("command") {
            checkCommand(command, at: programMark(entry))
        }
    }

    /// Checks a command; an argument with a placeholder counts as empty, and is checked when the command runs.
    private func checkCommand(_ templates: [Template], at mark: Range<Int>) {
        guard let program = templates.first?.literal else { return }
        checkCommand(PathBytes(program), templates.dropFirst().map { $0.literal ?? [] }, at: mark)
    }

    private func checkCommand(_ executable: PathBytes, _ arguments: [[UInt8]], at mark: Range<Int>) {
        guard let problem = surroundings.distrustCommand(executable, arguments) else { return }
        problems.error(problem.message, at: mark, help: problem.help)
    }

    /// Refuses files that another user could change, for parameters that the schema marks as trusted.
    func checkTrustedFiles(_ parameters: ParameterTemplate, schema: ParameterSchema?, node: YAMLNode?) {
        guard case .object(let members) = parameters else { return }
        for (name, property) in schema?.properties ?? [:] where property.role == ParameterSchema.trusted {
            guard case .text(let template)? = members[name], let path = template.literal, let entry = node?.entry(name),
                let problem = surroundings.distrust(folder.resolving(path).normalized)
            else { continue }
            problems.error(problem.message, at: mark(entry), help: problem.help)
        }
    }
}
