import Globbing
import Rules
package import System

/// Converts a table of incron(8) into a rules file.
///
/// The conversion follows incrontab(5) and, where that is silent, the behavior of incron 0.5.12: directories are
/// watched recursively, except hidden ones, and only the first line of a path applies.
package struct IncrontabImport {
    /// Returns the kind of file at a path; for a path with wildcards, the kind of the paths that match it.
    private let nature: (PathBytes) -> PathNature
    private var known: [PathBytes: Int] = [:]

    /// Writes the rules file.
    ///
    /// - Parameters:
    ///   - table: The bytes of the table.
    ///   - source: Its name, for the comment at the top.
    ///   - nature: Returns what a path names; a directory is watched together with its files.
    /// - Returns: The text of the rules file.
    package static func rules(
        from table: [UInt8], source: String, nature: @escaping (PathBytes) -> PathNature = PathNature.now
    ) -> String {
        var reader = IncrontabImport(nature: nature)
        let lines = table.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        var entries = lines.enumerated().map { reader.entry(Array($1), line: $0 + 1) }
        while case .comment("") = entries.last { entries.removeLast() }
        return ImportedFile(
            head: [
                "Rules converted from the incron table '\(source)' by 'alight import incrontab'.",
                "Each rule follows its line. Review what is marked 'not converted' or 'differs',",
                "then run 'alight check'.",
                "",
                "Differences that apply to all rules: Alight reports changes on the disk. It does not report a file",
                "that is closed unchanged, or created and deleted at once, and may report several writes as one, in",
                "particular those while its command runs. A command's changes to its own file do not start it again.",
                "Commands get HOME, LANG, PATH, TZ and ALIGHT_… as environment, and run as the user who runs Alight,",
                "in the directory of this file.",
            ],
            entries: entries
        ).text
    }

    // MARK: - One line

    private mutating func entry(_ bytes: [UInt8], line: Int) -> ImportedEntry {
        let bytes = bytes.last == UInt8(ascii: "\r") ? bytes.dropLast() : bytes[...]
        let text = String(decoding: bytes, as: UTF8.self)
        let trimmed = text.drop { $0 == " " || $0 == "\t" }
        if trimmed.isEmpty { return .comment("") }
        if trimmed.hasPrefix("#") { return .comment(String(trimmed.drop { $0 == "#" || $0 == " " })) }
        var rest = bytes
        let path = Self.field(&rest)
        let mask = Self.field(&rest)
        let command = Self.trimmed(rest)
        let origin = "line \(line): \(trimmed)"
        func dropped(_ reason: String) -> ImportedEntry { .dropped(origin: origin, reason: reason) }
        guard !mask.isEmpty else { return dropped("the line has no mask and no command") }
        guard !command.isEmpty else { return dropped("the line has no command") }
        guard path.first == .slash else { return dropped("the path is not absolute") }
        guard let command = String(validating: command, as: UTF8.self) else {
            return dropped("the command contains bytes that are not UTF-8, which YAML cannot represent")
        }
        return rule(path, mask: IncronMask(String(decoding: mask, as: UTF8.self)), command, line: line, origin: origin)
    }

    /// Returns a name made of the last component of the watched path, and the number of the line.
    private static func name(for path: PathBytes, line: Int) -> String {
        let allowed = path.lastComponent.filter { $0.isAlphanumeric || "_-.".utf8.contains($0) }
        let word = String(decoding: allowed.prefix(40), as: UTF8.self)
        return (word.isEmpty || word.hasPrefix("-") ? "line" : word) + "-\(line)"
    }

    /// Returns the next field; a backslash escapes the following character.
    private static func field(_ rest: inout ArraySlice<UInt8>) -> [UInt8] {
        rest = rest.drop(while: \.isBlank)
        var field: [UInt8] = []
        while let byte = rest.first, !byte.isBlank {
            rest.removeFirst()
            field.append(byte == UInt8(ascii: "\\") ? rest.popFirst() ?? byte : byte)
        }
        return field
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        let end = bytes.lastIndex { !$0.isBlank }.map { $0 + 1 } ?? bytes.startIndex
        return Array(bytes[..<end].drop(while: \.isBlank))
    }

    private mutating func rule(
        _ written: [UInt8], mask: IncronMask, _ command: String, line: Int, origin: String
    ) -> ImportedEntry {
        let path = PathBytes(written).normalized
        let isWild = written.contains { "*?[".utf8.contains($0) } && (try? Glob(YAMLText.wildGlob(path.bytes))) != nil
        let nature = nature(path)
        let isFile = nature == .file
        let events = mask.events(ofFile: isFile)
        guard !events.isEmpty else {
            let isDirectoryEvent = isFile && !mask.events(ofFile: false).isEmpty
            let reason = isDirectoryEvent ? "a file has none of these events" : "the mask contains no event"
            return .dropped(origin: origin, reason: ([reason] + mask.unknown.map { "'\($0)'" }).joined(separator: " "))
        }
        let glob = isWild ? YAMLText.wildGlob(path.bytes) : YAMLText.glob(path.bytes)
        let below = (glob == "/" ? "" : glob) + (mask.isRecursive ? "/**" : "/*")
        var rule = ImportedRule(
            origin: origin, name: Self.name(for: path, line: line), path: isFile ? glob : below)
        if let first = known[path] {
            rule.isEnabled = false
            rule.changes.append("the rule is disabled: line \(first) has the same path, and incron uses only the first")
        } else {
            known[path] = line
        }
        if !isFile, mask.isRecursive, !mask.entersHidden { rule.exclude = ["**/.*/**"] }
        rule.events = events
        rule.types = mask.coversDirectories && !isFile ? ["any"] : ["file"]
        let extent = mask.isRecursive ? "and everything below it" : "without its subdirectories"
        rule.converted.append(isFile ? "one file" : "the directory \(extent)")
        rule.changes += mask.changes(ofFile: isFile)
        switch (isFile, isWild, nature) {
        case (true, _, _) where mask.has(IncronMask.onlyDirectories):
            rule.isEnabled = false
            rule.changes.append("the rule is disabled: the path is a file, and IN_ONLYDIR requires a directory")
        case (_, true, .missing):
            rule.changes.append("no existing path matches; later matches are treated as directories")
        case (_, true, _):
            rule.changes.append("paths that match later are also watched, not only those that match at the start")
        case (_, _, .missing):
            rule.changes.append("the path does not exist; it is treated as a directory, and waited for")
        default: break
        }
        if String(validating: path.bytes, as: UTF8.self) == nil {
            rule.changes.append("bytes of the path that are not UTF-8 are replaced by '?', which matches any")
        }
        addCommand(
            command, to: &rule, mask: mask, isFile: isFile, hasSlash: written.last == .slash && path.bytes != [.slash])
        return .rule(rule)
    }

    // MARK: - Commands

    private func addCommand(
        _ command: String, to rule: inout ImportedRule, mask: IncronMask, isFile: Bool, hasSlash: Bool
    ) {
        var pieces: [CommandPiece] = []
        func add(_ text: String) { pieces.append(.text(text)) }
        let sometimes = mask.coversDirectories && !isFile
        // An event of the watched directory has the directory itself as its path.
        let isSelf = isFile || !mask.has(IncronMask.allEvents & ~(IncronMask.deleteSelf | IncronMask.moveSelf))
        var rest = command[...]
        while let character = rest.popFirst() {
            guard character == "$", let mark = rest.first else {
                add(String(character))
                continue
            }
            rest.removeFirst()
            switch mark {
            case "$": add("$")
            case "@":
                pieces.append(.value(isSelf ? .path : .directory))
                if hasSlash { add("/") }
            case "#": if !isSelf { pieces.append(.value(.name)) }
            case "%", "&":
                let isName = mark == "%"
                if let only = mask.only {
                    add(isName ? only.name : String(only.number))
                    let extra = isName ? "',IN_ISDIR'" : "the bit of IN_ISDIR"
                    if sometimes { rule.addChange("for a directory, '$\(mark)' also had \(extra)") }
                } else {
                    pieces.append(.value(.event))
                    let reason = isName ? "not inotify's" : "since Alight has no event numbers"
                    rule.addChange("'$\(mark)' is Alight's event name, such as 'created', \(reason)")
                }
            default:
                add(String(mark))
                rule.addChange("unknown '$\(mark)'; it is replaced by '\(mark)', as in incron")
            }
        }
        pieces = CommandPiece.joined(pieces)
        let words = CommandWords(pieces)
        rule.arguments = words.arguments
        if words.isShell { rule.converted.append("the shell command, which receives the name in a variable") }
        if words.isOpen { rule.addChange("a quote is not closed") }
        if !words.syntax.isEmpty {
            let list = words.syntax.map { "'\($0)'" }.joined(separator: " ")
            rule.addChange(
                "no shell interprets \(list): it is passed literally, as in older versions of incron; "
                    + "0.5.12 runs the line in a shell")
            rule.suggestion = [
                "to use a shell, replace 'exec' by:", "  shell: \(YAMLText.scalar(CommandPiece.shellLine(pieces)))",
            ]
        } else {
            rule.converted.append("the arguments")
        }
        if rule.arguments.first?.contains("/") == true, rule.arguments.first?.hasPrefix("/") == false {
            rule.addChange("the program's path is relative to the directory of this file")
        }
    }
}

extension YAMLText {
    /// Returns a glob for a path with the wildcards of glob(7).
    static func wildGlob(_ bytes: [UInt8]) -> String {
        let text = String(decoding: bytes, as: UTF8.self).replacing("\u{FFFD}", with: "?")
        return String(text.flatMap { "{},\\".contains($0) ? ["\\", $0] : [$0] })
    }
}
