import PluginProtocol
import Rules
import System

/// A decoded action, with the description of its handler.
struct DecodedStep {
    var action: Action
    var handler: HandlerDescription?
    /// The range of the handler's name in the file.
    var handlerMark: Range<Int>?
    /// The destinations to which it writes.
    var destinations: [Destination] = []
    /// The way in which it removes the file from its path.
    var removal: Removal?
    /// The range of the program of `exec` or the line of `shell`.
    var commandMark: Range<Int>?
}

// The actions of a rule.
extension RuleDecoder {
    /// Returns the actions of a rule: one, or a list of them.
    func steps(from entry: YAMLNode.Entry) -> [DecodedStep] {
        let values = values(entry)
        if values.isEmpty { problems.error("\(quoted(entry.name)) is empty", at: mark(entry), help: Self.actionHelp) }
        return values.enumerated().compactMap { step($1.node, at: $1.range, number: $0) }
    }

    private static let actionHelp = "write 'use: NAME', 'exec: [PROGRAM, \"${path}\"]' or 'shell: \"…\"'"

    private func step(_ node: YAMLNode, at range: Range<Int>, number: Int) -> DecodedStep? {
        if reportPlaceholder(node, at: range) { return nil }
        if let name = node.text, !node.isNull { return use(name, node, with: nil, number: number) }
        guard let entries = node.entries else {
            let message = node.isNull ? "the action has no value" : "an action must be a mapping, not \(node.noun)"
            return reject(message, at: range, help: Self.actionHelp)
        }
        checkKeys(
            entries, known: RuleDecoder.actionKeys, noun: "keys of an action", misplaced: RuleDecoder.keys.names
        ) { "'\($0)' is a key of the rule, not of 'action'" }
        let kinds = entries.filter { ["use", "exec", "shell"].contains($0.name) }
        guard let kind = kinds.first else {
            if let with = node.entry("with") {
                return reject("'with' needs 'use'", at: with.key.range, help: "add 'use:' with a handler's name")
            }
            return reject("the action is missing 'use', 'exec' or 'shell'", at: range, help: Self.actionHelp)
        }
        for other in kinds.dropFirst() {
            problems.error(
                "'\(other.name)' cannot be combined with '\(kind.name)'", at: other.key.range,
                help: "write a list of actions to run one after the other")
        }
        let with = node.entry("with")
        if let with, kind.name != "use", node.entry("use") == nil {
            problems.error(
                "'with' needs 'use'", at: with.key.range,
                help: kind.name == "exec" ? "write arguments in the list of 'exec'" : "write the values in the command")
        }
        var step = step(kind, with: with, number: number)
        if let entry = node.entry("shares_file") {
            if kind.name == "use" {
                problems.error(
                    "'shares_file' cannot be combined with 'use'", at: entry.key.range,
                    help: "remove it: built-in handlers and plugin descriptions set it themselves")
            } else if let sharesFile = bool(entry), sharesFile {
                step?.action.traits.insert(.sharesFile)
            }
        }
        return step
    }

    private func step(_ kind: YAMLNode.Entry, with: YAMLNode.Entry?, number: Int) -> DecodedStep? {
        func command(_ work: Action.Work, at range: Range<Int>) -> DecodedStep {
            DecodedStep(
                action: Action(work, location: source.location(at: kind.key.range.lowerBound)), commandMark: range)
        }
        switch kind.name {
        case "use": return text(kind).flatMap { use($0, kind.value, with: with, number: number) }
        case "exec": return exec(kind, number: number).map { command(.exec($0), at: programMark(kind)) }
        default: return shell(kind).map { command(.shell($0), at: mark(kind)) }
        }
    }

    // MARK: - use

    private func use(_ name: String, _ node: YAMLNode, with: YAMLNode.Entry?, number: Int) -> DecodedStep? {
        var name = name
        if name.hasPrefix("~/") {
            guard let home = home(for: node) else { return nil }
            name = String(decoding: home, as: UTF8.self) + name.dropFirst()
        }
        let parameters = parameters(with, number: number)
        let description: HandlerDescription
        switch catalog.find(name, from: directory) {
        case .success(let found): description = found
        case .failure(let problem):
            if let origin = problem.origin {
                problems.error(origin.message, in: origin.position, help: problem.help)
                return nil
            }
            let help =
                problem.help
                ?? Spelling.help(for: name, candidates: catalog.names(from: directory), noun: "handlers")
            return reject(problem.message, at: node.range, help: help)
        }
        if let schema = description.parameters, let with { hideSecrets(in: with.value, schema) }
        guard var parameters else { return nil }
        if let schema = description.parameters {
            for (index, problem) in ParameterCheck.problems(in: parameters, schema: schema).enumerated() {
                // Beyond the number of shown problems, the exact location is not worth the search.
                let with = index < DiagnosticCollector.shownLimit ? with?.value : nil
                problems.error(
                    problem.message, at: mark(problem, with: with, otherwise: node.range), help: problem.help)
            }
            parameters = ParameterCheck.fillingDefaults(parameters, schema: schema)
        }
        checkTrustedFiles(parameters, schema: description.parameters, node: with?.value)
        var action = Action(
            .use(description.reference, with: parameters), location: source.location(at: node.range.lowerBound),
            events: description.covered)
        action.traits = description.traits
        var step = DecodedStep(
            action: action, handler: description, handlerMark: node.range,
            destinations: destinations(parameters, schema: description.parameters, node: with?.value, of: description))
        step.removal = removal(step, parameters, at: node.range)
        return step
    }

    /// Hides the values that the schema marks as secret from the lines that diagnostics show.
    private func hideSecrets(in node: YAMLNode, _ schema: ParameterSchema) {
        if schema.writeOnly == true { problems.hide(node.range) }
        for entry in node.entries ?? [] {
            if let member = schema.properties?[entry.name] { hideSecrets(in: entry.value, member) }
        }
        guard let items = schema.items else { return }
        for element in node.elements ?? [] { hideSecrets(in: element, items) }
    }

    private func parameters(_ entry: YAMLNode.Entry?, number: Int) -> ParameterTemplate? {
        guard let entry, !entry.value.isNull else { return .object([:]) }
        guard entries(of: entry.value) != nil else {
            return mistyped(entry, "a mapping", help: "write the parameters as 'name: value'")
        }
        return parameters(entry.value, step: number)
    }

    /// Returns the range of a parameter's problem, as deep as its path can be followed.
    private func mark(_ problem: ParameterProblem, with root: YAMLNode?, otherwise: Range<Int>) -> Range<Int> {
        guard var node = root else { return otherwise }
        var range = otherwise
        for (index, step) in problem.path.enumerated() {
            switch step {
            case .key(let key):
                guard let entry = node.entry(key) else { return range }
                let isLast = index == problem.path.count - 1
                range = isLast && problem.isAboutKey ? entry.key.range : mark(entry)
                node = entry.value
            case .index(let index):
                guard let elements = node.elements, elements.indices.contains(index) else { return range }
                node = elements[index]
                range = mark(node)
            }
        }
        return range
    }

    /// Refuses files that another user could change, for parameters that the schema marks as trusted.
    private func checkTrustedFiles(_ parameters: ParameterTemplate, schema: ParameterSchema?, node: YAMLNode?) {
        guard case .object(let members) = parameters else { return }
        for (name, property) in schema?.properties ?? [:] where property.role == ParameterSchema.trusted {
            guard case .text(let template)? = members[name], let path = template.literal, let entry = node?.entry(name),
                let problem = hostEnvironment.distrust(directory.resolving(path).normalized)
            else { continue }
            problems.error(problem.message, at: mark(entry), help: problem.help)
        }
    }

    // MARK: - exec

    /// Returns a program and its arguments.
    func exec(_ entry: YAMLNode.Entry, number: Int) -> [Template]? {
        guard let elements = entry.value.elements else {
            let isLine = entry.value.text?.contains(" ") == true
            return mistyped(
                entry, "a list",
                help: isLine
                    ? "write each argument as an element, [cp, \"${path}\", /srv/copies/]"
                        + (entry.name == "exec" ? ", or use 'shell'" : "")
                    : "write [\(entry.value.text.map { escaped($0, limit: 80) } ?? "PROGRAM"), \"${path}\"]")
        }
        guard let first = elements.first else {
            return reject(
                "\(quoted(entry.name)) is empty", at: mark(entry),
                help: "write a program and its arguments, [cp, \"${path}\", /srv/copies/]")
        }
        let program = program(first, number: number, key: entry.name)
        let arguments = elements.dropFirst().map { argument($0, number: number, key: entry.name) }
        guard let command = ([program] + arguments).complete() else { return nil }
        check(command, elements, key: entry.name)
        return command
    }

    /// Refuses text of files in code, and warns about shell variables, which nothing expands.
    private func check(_ command: [Template], _ elements: [YAMLNode], key: String) {
        let code = CodeArguments(of: command).found
        for (index, node) in elements.enumerated() {
            guard let text = node.text else { continue }
            if let code = code[index] {
                checkCode(text, node, code)
            } else if index > 0, !["-c", "-e"].contains(elements[index - 1].text) {
                warnOfVariable(in: text, node, key: key)
            }
        }
    }

    private func checkCode(_ text: String, _ node: YAMLNode, _ code: CodeArguments.Code) {
        let tokens = PlaceholderScan(text).tokens.lazy.compactMap { token in
            Placeholder(word: token.word).map { (token, $0) }
        }
        guard let (token, placeholder) = tokens.first(where: { $1.carriesFileText }) else { return }
        let written = "${\(escaped(token.word, limit: 80))}"
        problems.error(
            "'\(written)' can't be used in code that \(quoted(code.program)) executes",
            at: mark(node, offset: token.range.lowerBound, length: token.range.count),
            help: code.help(for: placeholder, written: written))
    }

    private func argument(_ node: YAMLNode, number: Int, key: String) -> Template? {
        // In a command, `null` is the word itself; `~` is the home directory.
        if node.isEmpty || node.text == nil {
            _ = text(node, name: "an element of '\(key)'", at: mark(node), help: "write \"\" for an empty argument")
            return nil
        }
        guard let text = node.text, let template = template(text, node, step: number) else { return nil }
        if case .some(true) = template.literal?.contains(0) {
            return reject("an argument can't contain a NUL byte", at: node.range, help: "remove it")
        }
        return template
    }

    private func program(_ node: YAMLNode, number: Int, key: String) -> Template? {
        guard let template = argument(node, number: number, key: key), let text = node.text else { return nil }
        guard let bytes = template.literal else {
            return reject(
                "the program in '\(key)' can't contain a placeholder", at: node.range,
                help: "write a literal name; the program is looked up when the rules are loaded")
        }
        return converted(
            at: node.range, try ProgramSearch.find(bytes, written: text, from: directory, in: searchPath)
        ).map { Template(parts: [.literal($0.bytes)]) }
    }

    // MARK: - shell

    private func shell(_ entry: YAMLNode.Entry) -> String? {
        guard let line = text(entry) else { return nil }
        guard line.contains(where: { !$0.isWhitespace }) else {
            return reject("'shell' is empty", at: mark(entry), help: "write a command for /bin/sh")
        }
        guard !line.utf8.contains(0) else {
            return reject("a command can't contain a NUL byte", at: mark(entry), help: "remove it")
        }
        var errors = 0
        for token in PlaceholderScan(line).tokens {
            // Finding the range takes time proportional to the length of the string.
            func range() -> Range<Int> { mark(entry.value, offset: token.range.lowerBound, length: token.range.count) }
            recordCapture(token, Placeholder(word: token.word), at: range(), isInShell: true)
            guard errors < Self.errorsPerText, let help = ShellVariable.help(for: token.word) else { continue }
            errors += 1
            problems.error(
                "'shell' accepts no placeholders, such as '${\(escaped(token.word, limit: 80))}'", at: range(),
                help: help)
        }
        return errors == 0 ? line : nil
    }
}

/// The shell equivalents of placeholders.
enum ShellVariable {
    /// Returns what to write for a placeholder; nil for any other word, which belongs to the shell.
    static func help(for word: String) -> String? {
        if word.hasPrefix("env:") {
            return "write the value; a shell gets only HOME, LANG, PATH and TZ from the environment"
        }
        // `${1}` may belong to the shell; `where` determines whether it does.
        if case .group = Placeholder(word: word) { return nil }
        return Placeholder(word: word).map { "write \(expression(for: $0))" }
    }

    /// Returns the value of a placeholder, in double quotes if it is one.
    static func expression(for placeholder: Placeholder) -> String {
        switch placeholder {
        case .path: #""$ALIGHT_PATH""#
        case .name: #""${ALIGHT_PATH##*/}""#
        case .stem: #""$(basename "${ALIGHT_PATH%.*}")""#
        case .extension: #""${ALIGHT_PATH##*.}""#
        case .directory: #""${ALIGHT_PATH%/*}""#
        case .relative: #""$ALIGHT_RELATIVE""#
        case .root: #""$ALIGHT_ROOT""#
        case .rule: #""$ALIGHT_RULE""#
        case .event: #""$ALIGHT_EVENT""#
        case .from: #""$ALIGHT_FROM""#
        case .job: #""$ALIGHT_ID""#
        case .attempt: #""$ALIGHT_ATTEMPT""#
        case .size: #""$(stat -c %s "$ALIGHT_PATH")""#
        case .mode: #""$(stat -c %04a "$ALIGHT_PATH")""#
        case .nlink: #""$(stat -c %h "$ALIGHT_PATH")""#
        case .inode: #""$(stat -c %i "$ALIGHT_PATH")""#
        case .mtime(let format): #""$(date -r "$ALIGHT_PATH" '+\#(format ?? "%FT%TZ")')""#
        case .now(let format): #""$(date '+\#(format ?? "%FT%TZ")')""#
        case .type, .id, .stepOutput, .group, .namedGroup: "it as an argument of 'exec'"
        }
    }
}
