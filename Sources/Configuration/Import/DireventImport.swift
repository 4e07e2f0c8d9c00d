package import System

/// Converts a configuration of direvent(8) into a rules file.
///
/// The conversion follows direvent.conf(5) and, where that is silent, the behavior of direvent 5.2: a macro in single
/// quotes is not expanded unless a shell reads the line, and one matching pattern of `file` is enough, including
/// those with `!`.
package struct DireventImport {
    private let nature: (PathBytes) -> PathNature
    private let lines: [Substring]
    private var names = ImportedNames()

    /// Writes the rules file.
    ///
    /// - Parameters:
    ///   - bytes: The configuration.
    ///   - source: Its name, for the comment at the top.
    ///   - nature: Returns what a path names; a directory is watched together with its files.
    /// - Returns: The text of the rules file.
    package static func rules(
        from bytes: [UInt8], source: String, nature: @escaping (PathBytes) -> PathNature = PathNature.now
    ) -> String {
        let text = String(decoding: bytes, as: UTF8.self)
        var reader = DireventReader(text)
        let statements = reader.read()
        var importer = DireventImport(
            nature: nature, lines: text.split(omittingEmptySubsequences: false) { $0.isNewline })
        var entries = statements.map { importer.entry($0) }
        if String(validating: bytes, as: UTF8.self) == nil {
            let reason = "bytes that are not UTF-8, which YAML cannot represent; each is replaced by U+FFFD"
            entries.insert(.dropped(origin: [], reason: reason), at: 0)
        }
        entries += reader.notices.map { .dropped(origin: ["line \($0.line)"], reason: $0.text) }
        return ImportedFile(
            head: [
                "Rules converted from the direvent configuration '\(source)' by 'alight import direvent'.",
                "Each rule follows its watcher. Review what is marked 'not converted' or 'differs',",
                "then run 'alight check'.",
                "",
                "Differences that apply to all rules: Alight reports changes on the disk. It may report several",
                "writes as one, and does not report a file that is created and deleted at once. A command's changes",
                "to its own file do not start it again. A name with spaces stays one argument. Extensions are",
                "compared without case. env(1) runs the command in the directory of the file and sets direvent's",
                "variables; the command also gets HOME, LANG, PATH, TZ and ALIGHT_…, and runs as the user who runs",
                "Alight.",
            ],
            program: "direvent",
            defaults: [
                ("concurrency", "16", "without 'option wait', commands run at the same time"),
                ("timeout", "5s", "the default of direvent"),
                ("retry", "false", "nothing is retried; 'alight jobs --state failed' lists what failed"),
            ], entries: entries
        ).text
    }

    private func origin(_ statement: DireventStatement) -> [String] {
        let first = min(max(statement.line, 1), lines.count)
        let last = min(max(statement.lastLine, first), lines.count)
        return lines[(first - 1)..<last].enumerated().map { offset, line in
            (offset == 0 ? "line \(first): " : "  ") + line
        }
    }

    private mutating func entry(_ statement: DireventStatement) -> ImportedEntry {
        let origin = origin(statement)
        guard statement.keyword == "watcher", let block = statement.block else {
            return .dropped(
                origin: origin, reason: "'\(statement.keyword)' configures the daemon; see the options of 'alight run'")
        }
        return watcher(block, line: statement.line, origin: origin)
    }

    // MARK: - A watcher

    private mutating func watcher(_ block: [DireventStatement], line: Int, origin: [String]) -> ImportedEntry {
        func texts(_ keyword: String) -> [String] { block.filter { $0.keyword == keyword }.flatMap(\.texts) }
        let paths = block.filter { $0.keyword == "path" && !$0.texts.isEmpty }
        func dropped(_ reason: String) -> ImportedEntry { .dropped(origin: origin, reason: reason) }
        guard let first = paths.first?.texts.first else { return dropped("it has no 'path'") }
        guard let command = texts("command").last else { return dropped("it has no 'command'") }
        let relative = paths.compactMap(\.texts.first).filter { !$0.hasPrefix("/") }
        guard relative.isEmpty else { return dropped("'\(relative[0])' is not absolute") }
        var rule = ImportedRule(origin: origin, name: names.name(for: Array(first.utf8), line: line))
        let events = DireventEvents(texts("event"))
        let isFile = paths.allSatisfy { nature(PathBytes($0.texts[0]).normalized) == .file }
        rule.changes += events.unknown.map { "'\($0)' is not an event; it is ignored" }
        rule.events = events.words(ofFile: isFile)
        guard !rule.events.isEmpty else { return dropped("it has no event that Alight reports") }
        rule.types = events.mask.coversDirectories && !isFile ? ["any"] : ["file"]
        rule.changes += events.mask.changes(ofFile: isFile)
        addPaths(paths, patterns: texts("file"), to: &rule)
        addOptions(block, to: &rule)
        addCommand(command, block, events: events, to: &rule)
        return .rule(rule)
    }

    private func addPaths(_ paths: [DireventStatement], patterns: [String], to rule: inout ImportedRule) {
        let globs = globs(for: patterns, in: &rule)
        for path in paths {
            let texts = path.texts
            let directory = PathBytes(texts[0]).normalized
            let nature = nature(directory)
            let glob = YAMLText.literal(YAMLText.glob(directory.bytes))
            if nature == .file {
                rule.paths.append(glob)
                continue
            }
            if nature == .missing { rule.changes.append("'\(texts[0])' does not exist; it is treated as a directory") }
            let isRecursive = texts.dropFirst().first == "recursive"
            let base = glob == "/" ? "" : glob
            rule.paths += globs.map { base + (isRecursive ? $0 == "*" ? "/**" : "/**/\($0)" : "/\($0)") }
            if isRecursive, let word = texts.dropFirst(2).first {
                if let depth = Int(word), (0...1_000).contains(depth) {
                    let isSame = rule.depth == nil || rule.depth == depth
                    if !isSame { rule.changes.append("the largest depth applies to all paths") }
                    rule.depth = max(rule.depth ?? 0, depth)
                } else {
                    rule.changes.append("invalid depth 'recursive \(word)'; the depth is not limited")
                }
            }
        }
        rule.converted.append(rule.paths.count == 1 ? "the path" : "the paths")
    }

    /// Returns globs of the last path component for the patterns of `file`.
    private func globs(for patterns: [String], in rule: inout ImportedRule) -> [String] {
        guard !patterns.isEmpty else { return ["*"] }
        func isRegex(_ pattern: String) -> Bool { pattern.drop { $0 == "!" }.hasPrefix("/") }
        let negative = patterns.filter { $0.hasPrefix("!") }
        func off(_ reason: String) -> [String] {
            rule.isEnabled = false
            rule.changes.append("the rule is disabled, since it would match all names: \(reason)")
            return ["*"]
        }
        if let regex = patterns.first(where: isRegex) {
            return off("'\(regex)' is a regular expression; write equivalent globs in 'path'")
        }
        if negative.isEmpty { return patterns.map { YAMLText.wildGlob(Array($0.utf8)) } }
        guard patterns.count == 1 else {
            return off("several patterns with a '!' match nearly every name; write the intended globs in 'path'")
        }
        let pattern = YAMLText.wildGlob(Array(negative[0].dropFirst().utf8))
        rule.exclude.append("**/\(pattern)")
        rule.changes.append("files in directories that match '\(negative[0].dropFirst())' are also excluded")
        return ["*"]
    }

    private func addOptions(_ block: [DireventStatement], to rule: inout ImportedRule) {
        for statement in block {
            switch statement.keyword {
            case "path", "file", "event", "command", "environ": break
            case "timeout":
                if let text = statement.texts.first, let seconds = Int(text), (1...86_400).contains(seconds) {
                    rule.keys.append(("timeout", "\(seconds)s"))
                } else {
                    rule.changes.append("'timeout' is not a number of seconds; the default of 5s applies")
                }
            case "option":
                for option in statement.texts where !["shell", "wait", "stdout", "stderr"].contains(option) {
                    rule.changes.append("unknown option '\(option)'")
                }
                if statement.texts.contains("wait") { rule.keys.append(("concurrency", "1")) }
                if statement.texts.contains("stdout") || statement.texts.contains("stderr") {
                    rule.changes.append(
                        "the output of the command is stored in the journal ('alight show'), not in syslog")
                }
            case "user":
                rule.changes.append(
                    "the command runs as the user who runs Alight, not as '\(statement.texts.first ?? "")'")
            default: rule.changes.append("unknown keyword '\(statement.keyword)'; it is ignored")
            }
        }
    }

    // MARK: - Commands

    private func addCommand(
        _ command: String, _ block: [DireventStatement], events: DireventEvents, to rule: inout ImportedRule
    ) {
        let isShell = block.contains { $0.keyword == "option" && $0.texts.contains("shell") }
        let pieces = events.pieces(of: command, isShell: isShell, for: &rule)
        let name = events.only.map { YAMLText.literal($0.name) } ?? "${event}"
        var environment = ["DIREVENT_FILE=${name}", "DIREVENT_GENEV_NAME=\(name)"]
        for text in block.filter({ $0.keyword == "environ" }).flatMap(\.texts) {
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !text.hasPrefix("-"), !parts[0].hasSuffix("+"), !parts[1].hasPrefix("+") else {
                rule.addChange("'environ \(text)' is ignored; the environment is described above")
                continue
            }
            let value = events.pieces(of: String(parts[1]), for: &rule)
            environment.append(YAMLText.literal(parts[0] + "=") + CommandPiece.template(value))
        }
        rule.arguments = ["/usr/bin/env", "-C", "${directory}"] + environment
        if isShell {
            rule.arguments += ["/bin/sh", "-c", YAMLText.literal(CommandPiece.shellLine(pieces))]
            rule.converted.append("the shell command, which receives the name in a variable")
        } else {
            let words = CommandWords(pieces)
            if words.isOpen { rule.addChange("a quote is not closed") }
            rule.arguments += words.arguments
            rule.converted.append("the arguments")
        }
    }
}
