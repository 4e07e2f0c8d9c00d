import Globbing
import RegularExpressions
import Rules
import System

// The values of single conditions.
extension RuleDecoder {
    // MARK: - Numbers

    static func sizeValue(_ text: String) throws(Problem) -> UInt64 { UInt64(try SizeText.parse(text)) }

    /// Parses an age; it can exceed any delay in Alight, so the maximum is a century.
    static func ageValue(_ text: String) throws(Problem) -> Duration {
        do throws(Problem) {
            return try DurationText.parse(text, days: 36_500)
        } catch {
            guard Int(text) != nil else { throw error }
            throw Problem("the duration '\(text)' has no unit", help: "write one, such as '\(text)d' for days")
        }
    }

    static func depthValue(_ text: String) throws(Problem) -> Int {
        guard text.utf8.allSatisfy(\.isDigit), let depth = Int(text), depth <= 1_000 else {
            throw Problem(
                "invalid depth \(quoted(text))", help: "write how many directories are above the file, 0 to 1000")
        }
        return depth
    }

    // MARK: - Content types

    /// Common short forms of content types.
    private static let mediaSynonyms = [
        "pdf": "application/pdf", "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif",
        "webp": "image/webp", "svg": "image/svg+xml", "zip": "application/zip", "json": "application/json",
        "txt": "text/plain", "html": "text/html", "csv": "text/csv", "mp3": "audio/mpeg", "mp4": "video/mp4",
        "image": "image/*", "images": "image/*", "video": "video/*", "audio": "audio/*", "text": "text/*",
        "directory": "inode/directory", "folder": "inode/directory", "empty": "inode/x-empty",
        "image/jpg": "image/jpeg", "image/svg": "image/svg+xml", "audio/mp3": "audio/mpeg",
        "application/x-pdf": "application/pdf", "application/x-zip-compressed": "application/zip",
    ]

    func mediaPattern(_ text: String, _ node: YAMLNode) -> Condition.MediaPattern? {
        let lower = text.lowercased()
        let parts = lower.split(separator: "/", omittingEmptySubsequences: false)
        let isWord = { (part: Substring) in
            !part.isEmpty && part.utf8.allSatisfy { $0.isAlphanumeric || "!#$&-^_.+".utf8.contains($0) }
        }
        let isPattern = parts.count == 2 && parts.allSatisfy { $0 == "*" || isWord($0) }
        if let meant = Self.mediaSynonyms[lower] {
            return reject(
                isPattern ? "no file has the content type \(quoted(text))" : "invalid content type \(quoted(text))",
                at: mark(node), help: "write '\(meant)'")
        }
        guard isPattern else {
            let help =
                lower.contains(";")
                ? "remove the ';' and what follows it"
                : text.contains("*")
                    ? "write 'TYPE/*' for all of a type, such as image/*"
                    : "write TYPE/SUBTYPE, as `file --mime-type` prints it, such as application/pdf or image/*"
            return reject("invalid content type \(quoted(text))", at: mark(node), help: help)
        }
        return Condition.MediaPattern(
            type: parts[0] == "*" ? nil : String(parts[0]), subtype: parts[1] == "*" ? nil : String(parts[1]))
    }

    // MARK: - Owners

    func owner(_ text: String, _ node: YAMLNode) -> Condition.Owner? {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let group = parts.count == 2 ? String(parts[1]) : ""
        guard !(parts[0].isEmpty && group.isEmpty) else {
            return reject(
                "\(quoted(text)) is not a user or group", at: mark(node), help: "write 'USER', 'USER:GROUP' or ':GROUP'"
            )
        }
        let user = String(parts[0])
        let uid = user.isEmpty ? nil : UInt32(user) ?? machine.accounts.named(user)?.uid
        if uid == nil, !user.isEmpty { return unknown("user", user, at: mark(node)) }
        let gid = group.isEmpty ? nil : UInt32(group) ?? Accounts.group(named: group)
        if gid == nil, !group.isEmpty { return unknown("group", group, at: mark(node)) }
        return Condition.Owner(uid: uid, gid: gid, text: text)
    }

    // MARK: - Globs and regular expressions

    /// Parses a glob for the last path component.
    func nameGlob(_ text: String, _ node: YAMLNode) -> Glob? {
        guard checkIsGlob(text, node, key: "name") else { return nil }
        warnOfMistake(text, node, key: "name")
        guard !text.contains("/") else {
            return reject(
                "\(quoted(text)) contains '/', but 'name' matches only the last component of a path", at: mark(node),
                help: "write 'path' to match the path relative to the root")
        }
        return parsed(Array(text.utf8), written: text, node)
    }

    /// Parses a glob for the path below the root, or an absolute one.
    func conditionGlob(_ text: String, _ node: YAMLNode) -> Glob? {
        guard checkIsGlob(text, node, key: "path") else { return nil }
        warnOfMistake(text, node, key: "where")
        return expanded(text, node).flatMap { parsed($0, written: text, node) }
    }

    /// Parses a glob for a program's name or for the path of its executable.
    func program(_ text: String, _ node: YAMLNode) -> Condition.Program? {
        guard checkIsGlob(text, node, key: "by") else { return nil }
        guard text.contains("/") else {
            if let uid = UInt32(text) {
                problems.warning(
                    "\(quoted(text)) is interpreted as a program name, not as a process or a user", at: mark(node),
                    help: "write 'owner: \(uid)' for files of that user")
            }
            return parsed(Array(text.utf8), written: text, node).map { Condition.Program($0) }
        }
        guard let pattern = expanded(text, node) else { return nil }
        guard pattern.first == .slash || pattern.starts(with: Array("**/".utf8)) else {
            return reject(
                "\(quoted(text)) is neither a program name nor an absolute path", at: mark(node),
                help: "write the name alone, such as rsync, or a path such as /usr/bin/rsync or **/rsync")
        }
        return parsed(pattern, written: text, node).map { Condition.Program($0) }
    }

    /// Reports a regular expression in place of a glob.
    private func checkIsGlob(_ text: String, _ node: YAMLNode, key: String) -> Bool {
        let isAnchored = text.hasPrefix("^") || (text.hasSuffix("$") && !text.hasSuffix(#"\$"#))
        let hasClass = [#"\d"#, #"\w"#, #"\s"#, #"\D"#, #"\W"#, #"\S"#, "(?", ".*\\."].contains { text.contains($0) }
        guard isAnchored || hasClass else { return true }
        let literal = text.hasPrefix("^") ? #"; for a literal '^' write '\^'"# : ""
        let help =
            switch key {
            case "name": "write 'regex: \(doubleQuoted(text))'"
            case "by": "write a glob, such as 'rsync*'"
            default: "write a glob, such as '2026/**', and 'regex' for the name alone"
            }
        problems.error(
            "\(quoted(text)) is a regular expression, but '\(key)' expects globs", at: mark(node), help: help + literal)
        return false
    }

    func regex(_ entry: YAMLNode.Entry) -> Condition? {
        guard entry.value.elements == nil else {
            return mistyped(
                entry, "a string", help: "write one expression with '|' for alternatives, or 'any' or 'all'")
        }
        guard let text = text(entry, help: #"write a regular expression, such as '^IMG_(\d+)'"#) else { return nil }
        guard !text.isEmpty else {
            return reject("'regex' is empty", at: mark(entry), help: "remove it: it matches every name")
        }
        do throws(RegularExpressionError) {
            let expression = try RegularExpression(text)
            warnOfGlob(text, entry.value)
            return .regex(expression)
        } catch {
            // Globs often start with a quantifier without an operand.
            let isGlob = text.hasPrefix("*") || text.hasPrefix("?") || text.contains("*.{")
            let help =
                isGlob && (try? Glob(text)) != nil
                ? "'\(escaped(text, limit: 80))' is a glob: write 'name: \(doubleQuoted(text))'"
                : "use PCRE2 syntax; '\\' before a character makes it literal"
            return reject(
                "invalid regex \(quoted(text)): \(error.message)",
                at: mark(entry.value, offset: max(0, min(error.offset, text.utf8.count - 1)), length: 1), help: help)
        }
    }

    /// Warns about a glob such as `IMG_*.jpg` in place of a regular expression, although it is also a valid
    /// expression.
    func warnOfGlob(_ text: String, _ node: YAMLNode) {
        guard let star = text.lastIndex(of: "*") else { return }
        let head = text[..<star].utf8
        let tail = text[star...].utf8.dropFirst()
        let isWord = { (byte: UInt8) in Unicode.Scalar(byte).properties.isAlphabetic || byte.isDigit }
        guard !head.isEmpty, head.allSatisfy({ isWord($0) || "_- ".utf8.contains($0) }), tail.first == .dot,
            (2...6).contains(tail.count), tail.dropFirst().allSatisfy(isWord)
        else { return }
        problems.warning(
            "\(quoted(text)) looks like a glob, but 'regex' expects regular expressions", at: mark(node),
            help: "write 'name: \"\(escaped(text, limit: 80))\"'")
    }
}
