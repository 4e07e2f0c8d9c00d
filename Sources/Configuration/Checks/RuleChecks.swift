import FileEvents
import Globbing
import RegularExpressions
import Rules
import System

/// Checks the keys of a decoded rule against each other, and against the machine.
struct RuleChecks: NodeReading {
    let decoder: RuleDecoder
    let draft: DecodedRule
    /// The globs of `path`.
    let patterns: [PathPattern]
    /// The uses of regular expression groups in the rule.
    let captures: ArraySlice<CaptureUse>

    var source: SourceText { decoder.source }
    var hostEnvironment: RuleLoader.Environment { decoder.hostEnvironment }
    var problems: DiagnosticCollector { decoder.problems }

    func run() {
        for step in draft.steps { checkLimits(of: step) }
        for step in draft.onFailure { checkLimits(of: step, onFailure: true) }
        checkCommands()
        checkTypes()
        checkCaptures()
        checkWhileBusy()
        checkConfinement()
        checkDirectory()
        checkGroup()
        for pattern in patterns {
            if !warnOfLiteralName(pattern.glob.pattern, mark(pattern.node)) { checkReach(of: pattern) }
        }
        checkRelativeGlobs()
        checkKinds()
        checkDestinations()
    }

    /// Warns about a plugin's destination that is the same for files of the same name in different directories.
    private func checkDestinations() {
        guard patterns.contains(where: { $0.glob.depth != 0 }) else { return }
        for step in draft.steps + draft.onFailure {
            guard case .use(_, let with) = step.action.work, case .object(let members) = with,
                members["on_conflict"] == nil
            else { continue }
            for destination in step.destinations where destination.losesDirectory {
                problems.warning(
                    "files of the same name in different directories have the same destination "
                        + quoted(destination.written),
                    at: destination.range,
                    help: "put '${relative}' into it, which contains the directory, or set 'on_conflict'")
            }
        }
    }

    /// Whether programs run as root if Alight does.
    private var runsAsAlight: Bool {
        !draft.hasInvalidUser && draft.rule.confinement.user.map { $0.uid == 0 } ?? true
    }

    /// Refuses commands that another user could change, unless they run as a user other than root.
    private func checkCommands() {
        guard runsAsAlight else { return }
        for step in draft.steps + draft.onFailure {
            guard let mark = step.commandMark else { continue }
            switch step.action.work {
            case .exec(let templates): checkCommand(templates, at: mark)
            case .shell(let line): checkCommand(["/bin/sh", "-c", line].map { Template(literal: $0) }, at: mark)
            case .use: break
            }
        }
        if let command = draft.rule.ready?.command, let entry = draft["ready"]?.value.entry("command") {
            checkCommand(command, at: programMark(entry))
        }
    }

    /// Checks a command; an argument with a placeholder counts as empty, and is checked when the command runs.
    private func checkCommand(_ templates: [Template], at mark: Range<Int>) {
        let arguments = templates.dropFirst().map { $0.literal ?? [] }
        let searchPath = draft.rule.environment.last { $0.name == "PATH" }?.value.literal
        guard let program = templates.first?.literal,
            let problem = hostEnvironment.distrustCommand(
                PathBytes(program), arguments, searchPath ?? Array(Action.searchPath.utf8))
        else { return }
        problems.error(problem.message, at: mark, help: problem.help)
    }

    /// Reports keys that are valid only with certain types.
    private func checkTypes() {
        let types = draft.rule.types
        report(
            "tree", if: draft.rule.settle.isTree && types != [.directory],
            "'tree' handles a directory with its contents, and accepts only the type 'directory'",
            help: "write 'types: [directory]', or remove 'tree'")
        report(
            "tail", if: draft.rule.tail != nil && types != [.file],
            "'tail' follows the text of a file, and accepts only the type 'file'",
            help: "write 'types: [file]', or remove 'tail'")
    }

    /// Reports `while_busy: restart` where it conflicts with the rule's other keys.
    private func checkWhileBusy() {
        let isRestarted = draft.rule.whileBusy == .restart
        let isTail = draft.rule.tail != nil
        report(
            "while_busy", if: isRestarted && isTail, "'while_busy: restart' cannot be combined with 'tail'",
            help: "remove it: text that is added while the action runs is delivered with the next event")
        report(
            "while_busy", if: isRestarted && draft.rule.batch != nil && !isTail,
            "'while_busy: restart' cannot be combined with 'batch'",
            help: "write 'coalesce': stopping a run for one file would stop it for all others")
    }

    /// Reports a key at its value, if the rule has the key and the condition is true.
    private func report(_ key: String, if isWrong: Bool, _ message: String, help: String) {
        if isWrong, let entry = draft[key] { problems.error(message, at: mark(entry), help: help) }
    }

    /// Reports keys that can't be combined with a group.
    private func checkGroup() {
        let rule = draft.rule
        guard let group = draft["group"] else {
            return report(
                "require", if: !draft.required.isEmpty, "'require' needs 'group'",
                help: "add 'group: ${stem}', or remove 'require'")
        }
        let mark = mark(group)
        if draft["require"] == nil {
            problems.error("'group' needs 'require'", at: mark, help: "add the kinds of files, such as [mkv, nfo]")
        }
        let others = [
            (rule.batch != nil, "'batch'"), (rule.tail != nil, "'tail'"),
            (rule.sameContent == .ignore, "'same_content: ignore'"),
            (rule.whileBusy == .restart, "'while_busy: restart'"),
        ]
        for (isSet, key) in others where isSet {
            problems.error("'group' cannot be combined with \(key)", at: mark, help: "remove one of them")
        }
        let taken: EventMask = [.created, .modified, .moved, .attributes]
        let excess = rule.events.subtracting(taken.union(.content).union(.anyAttribute))
        if let word = EventSpelling.words(of: excess).first {
            problems.error(
                "'group' handles existing files, but '\(word)' reports something else", at: mark,
                help: "remove '\(word)' from 'events'")
        }
    }

    /// Warns about limits that have no effect.
    private func checkConfinement() {
        guard machine.isRoot, runsAsAlight,
            draft.rule.confinement.limits?.processes != nil, let entry = draft["limits"]?.value.entry("processes")
        else { return }
        problems.warning(
            "'processes' has no effect on programs that run as root", at: mark(entry),
            help: "add 'run_as' with another user, or remove it")
    }

    /// Warns about a default working directory in which the user of the rule's commands cannot create files.
    private func checkDirectory() {
        let confinement = draft.rule.confinement
        guard let user = confinement.user, let entry = draft["run_as"], draft["directory"] == nil,
            confinement.sandbox?.confinesFiles != true,
            (draft.steps + draft.onFailure).contains(where: { $0.commandMark != nil }),
            case .present(let snapshot) = KernelFileSystem().stat(
                KernelFileSystem().resolve(decoder.directory) ?? decoder.directory),
            !user.canCreateFiles(in: snapshot)
        else { return }
        problems.warning(
            "user \(quoted(user.text)) cannot create files in the working directory '\(decoder.directory)'",
            at: mark(entry),
            help: "write 'directory:' with a directory of this user, or use only absolute paths")
    }

    /// Reports placeholders for groups that do not exist or need not have a value.
    private func checkCaptures() {
        guard draft.rule.condition != nil || draft["where"] == nil else { return }
        let condition = draft.rule.condition
        let certain = condition?.certainExpressions ?? []
        let all = condition?.expressions ?? []
        for use in captures {
            guard let placeholder = Placeholder(word: use.word) else { continue }
            let hasGroup = certain.contains { placeholder.isIn($0) }
            if use.isInShell {
                // Numbers are also the shell's own parameters.
                if hasGroup {
                    problems.error(
                        "'shell' accepts no placeholders, such as '${\(escaped(use.word, limit: 80))}'", at: use.range,
                        help: "write 'exec: [sh, -c, COMMAND, sh, \"${\(use.word)}\"]', and \"$1\" in the command")
                }
                continue
            }
            guard !hasGroup else { continue }
            problems.error(
                "'${\(escaped(use.word, limit: 80))}' is not a group of a 'regex' in 'where'", at: use.range,
                help: Self.help(for: placeholder, certain: certain, all: all))
        }
    }

    private static func help(
        for placeholder: Placeholder, certain: [RegularExpression], all: [RegularExpression]
    ) -> String {
        if all.isEmpty { return "add 'where: { regex: … }' with '(…)' in it, or write '$${' for a literal '${'" }
        if certain.isEmpty || all.contains(where: { placeholder.isIn($0) }) {
            return "a 'regex' inside 'any' or 'not' may not have matched; move it out of them"
        }
        let words = certain.flatMap { expression in
            (1..<(expression.groupCount + 1)).map(String.init) + expression.names.keys.sorted().map { "match.\($0)" }
        }
        if words.isEmpty { return "the 'regex' has no group: put '(' and ')' around a part of it" }
        return "the groups are \(words.map { "${\($0)}" }.joined(separator: ", "))"
    }
}

extension Placeholder {
    /// Whether the expression contains the group.
    fileprivate func isIn(_ expression: RegularExpression) -> Bool {
        switch self {
        case .group(let number): number <= expression.groupCount
        case .namedGroup(let name): expression.names[name] != nil
        default: true
        }
    }
}

// Compares the events and types that a handler accepts with those that a rule uses.
extension RuleChecks {
    /// Reports events and types of the rule that the handler does not accept, and events that the handler needs.
    ///
    /// A handler in `on_failure` must accept at least one of the rule's events, but not all of them.
    func checkLimits(of step: DecodedStep, onFailure: Bool = false) {
        let events = draft.rule.events
        guard let handler = step.handler, let range = step.handlerMark else { return }
        let name = quoted(handler.reference.name)
        func list(_ words: [String]) -> String { words.joined(separator: ", ") }
        /// Lists words after a noun, which is in the plural for several.
        func nouns(_ noun: String, _ words: [String]) -> String {
            "the \(noun)\(words.count == 1 ? "" : "s") \(list(words.map { "'\($0)'" }))"
        }
        /// Reports words of `events` or `types` at the first of them.
        func reportExcess(_ words: [String], _ noun: String, at node: YAMLNode?, accepted: [String]) {
            problems.error(
                "\(name) does not accept \(nouns(noun, words))", at: node.map { mark($0) } ?? range,
                help: node == nil ? "write '\(noun)s: [\(list(accepted))]'" : "it accepts \(list(accepted))")
        }
        if let taken = handler.events, let covered = handler.covered {
            let excess = events.subtracting(covered)
            let accepted = EventSpelling.words(of: taken)
            if !onFailure, !excess.isEmpty {
                let word = draft.eventWords.first { !$0.mask.isDisjoint(with: excess) }
                reportExcess(EventSpelling.words(of: excess), "event", at: word?.node, accepted: accepted)
            } else if onFailure, excess == events {
                problems.error(
                    "\(name) accepts none of the events of the rule", at: range,
                    help: "it accepts \(list(accepted)); use another action")
            }
        }
        guard let taken = handler.types else { return }
        let excess = FileType.allCases.filter { draft.rule.types.contains($0) && !taken.contains($0) }
        if !excess.isEmpty {
            let word = draft.typeWords.first { !$0.types.isDisjoint(with: excess) }
            let accepted = FileType.allCases.filter(taken.contains).map(\.rawValue)
            reportExcess(excess.map(\.rawValue), "type", at: word?.node, accepted: accepted)
        }
        // Root events report a directory.
        guard !taken.contains(.directory), !events.isDisjoint(with: .lifecycle) else { return }
        let word = draft.eventWords.first { !$0.mask.isDisjoint(with: .lifecycle) }
        let event = EventSpelling.words(of: events.intersection(.lifecycle)).first ?? ""
        problems.error(
            "\(name) does not accept the type 'directory', and '\(event)' reports a directory",
            at: word.map { mark($0.node) } ?? range,
            help: "remove '\(event)', or use a handler that accepts directories")
    }
}
