import Glibc
import Globbing
import Rules
import System

/// An absolute glob of `path:`, and its node in the source.
struct PathPattern {
    var glob: Glob
    var node: YAMLNode
}

extension RuleDecoder {
    /// The maximum length in bytes of a glob before expansion, longer than any path.
    static var maximumPathLength: Int { 16_384 }

    /// Parses the globs of `path:`, one or a list.
    func patterns(from entry: YAMLNode.Entry, options: Glob.Options) -> [PathPattern] {
        let nodes = entry.value.elements == nil ? [entry.value] : elements(entry, noun: "~/inbox/*.pdf") ?? []
        return nodes.compactMap { node in
            let range = node.isEmpty ? mark(entry) : mark(node)
            guard let text = text(node, name: "'path'", at: range, help: "write a glob, such as ~/inbox/*.pdf") else {
                return nil
            }
            warnOfMistake(text, node, key: "path")
            return glob(from: text, node, options: options).map { PathPattern(glob: $0, node: node) }
        }
    }

    /// Parses the globs of `exclude:` or `outputs:`, which are relative to the root and match hidden names.
    func relativeGlobs(_ entry: YAMLNode.Entry) -> [Glob]? {
        let example = entry.name == "outputs" ? "thumbs" : "**/drafts"
        return list(entry, of: quoted(entry.name), example: "\"\(example)/**\"", allowsEmpty: true) { text, node in
            guard !text.hasPrefix("/"), !text.hasPrefix("~") else {
                return reject(
                    "\(quoted(text)) in \(quoted(entry.name)) must be relative", at: node.range,
                    help: "write it relative to the directory before the first wildcard of 'path', such as '\(example)'"
                )
            }
            guard !text.hasSuffix("/") else {
                return reject(
                    "\(quoted(text)) ends with '/'", at: mark(node, offset: text.utf8.count - 1, length: 1),
                    help: "remove it: a directory is excluded with everything below it")
            }
            warnOfMistake(text, node, key: entry.name)
            return expanded(text, node).flatMap { parsed($0, written: text, node) }
        }
    }

    // MARK: - From string to glob

    private func glob(from text: String, _ node: YAMLNode, options: Glob.Options) -> Glob? {
        guard var pattern = expanded(text, node) else { return nil }
        // The pattern is first checked as written, so that a message quotes it and not the directory of the file.
        let bytes = Array(text.utf8)
        let skipped = PathPrefix.parentsLength(of: bytes)
        let written = PathPrefix.unescapingDollars(bytes[skipped...])
        var isAbsolute = pattern.first == .slash
        if !written.isEmpty || skipped == 0 {
            guard let glob = parsed(written, written: text, node, options: options) else { return nil }
            if isAbsolute, written == pattern, PathPrefix.normalized(pattern) == pattern { return glob }
            isAbsolute = isAbsolute || (skipped == 0 && glob.root.first == .slash)
        }
        if !isAbsolute {
            pattern = Glob.escaped(directory.bytes) + (directory.bytes == [.slash] ? [] : [.slash]) + pattern
        }
        return parsed(PathPrefix.normalized(pattern), written: text, node, options: options)
    }

    /// Parses an expanded pattern; by default, wildcards match hidden names.
    func parsed(
        _ pattern: [UInt8], written text: String, _ node: YAMLNode,
        options: Glob.Options = Glob.Options(matchesHidden: true)
    ) -> Glob? {
        do throws(GlobError) {
            return try Glob(pattern, options: options)
        } catch {
            // Expansion changes only the start of the pattern, so the offset counts from the end.
            let offset = max(0, text.utf8.count - (pattern.count - error.offset))
            return reject(error.message, at: mark(node, offset: offset, length: 1), help: error.help)
        }
    }

    /// Returns the string with `~` and `${env:NAME}` expanded; the inserted values are literal.
    func expanded(_ text: String, _ node: YAMLNode) -> [UInt8]? {
        guard text.utf8.count <= Self.maximumPathLength else {
            return reject(
                "the glob has \(text.utf8.count) bytes; the limit is \(Self.maximumPathLength)", at: mark(node),
                help: "write several globs")
        }
        guard checkExpansion(of: text, node) else { return nil }
        var pattern: [UInt8] = []
        var rest = text.utf8[...]
        if text.hasPrefix("~") {
            guard let home = home(for: node) else { return nil }
            pattern += Glob.escaped(home)
            rest = rest.dropFirst()
        }
        let bytes = Array(text.utf8)
        // Most patterns contain no placeholder.
        guard bytes.contains(UInt8(ascii: "$")) else { return pattern + rest }
        var index = bytes.count - rest.count
        let errorsBefore = problems.errorCount
        let scan = PlaceholderScan(text)
        for token in scan.tokens {
            pattern += PathPrefix.unescapingDollars(bytes[index..<token.range.lowerBound])
            index = token.range.upperBound
            let range = mark(node, offset: token.range.lowerBound, length: token.range.count)
            if let name = token.variable {
                if let value = hostEnvironment.environment(name) {
                    pattern += Glob.escaped(Array(value.utf8))
                } else {
                    reportUnset(name, at: range)
                }
                continue
            }
            let message =
                Placeholder(word: token.word) == nil
                ? "unknown placeholder '${\(escaped(token.word, limit: 80))}'"
                : "placeholder '${\(escaped(token.word))}' has no value yet when paths are watched"
            let help = "write '*' for any name; the only placeholder allowed here is ${env:NAME}"
            problems.error(message, at: range, help: help)
        }
        if let open = scan.unclosed { reportUnclosed(text, at: mark(node, offset: open, length: 2)) }
        pattern += PathPrefix.unescapingDollars(bytes[index...])
        return problems.errorCount == errorsBefore ? pattern : nil
    }

    /// Warns about a regular expression in place of a glob, although it is also a valid glob; returns whether it is
    /// one.
    func warnOfExpression(_ text: String, _ node: YAMLNode, key: String) -> Bool {
        // Most paths contain none of these characters and need no search.
        guard text.utf8.contains(where: { #"\^$("#.utf8.contains($0) }) else { return false }
        let signs = [#"\d"#, #"\w"#, #"\s"#, #"\D"#, #"\W"#, #"\S"#, "(?:", #".*\."#, #".+\."#]
        let isEnded = text.hasSuffix("$") && !text.hasSuffix(#"\$"#)
        let isMiddle = text.contains(#"\."#) || text.contains(".*") || text.contains(".+")
        guard text.hasPrefix("^") || isEnded && isMiddle || signs.contains(where: text.contains) else {
            return false
        }
        problems.warning(
            "\(quoted(text)) looks like a regular expression, but '\(key)' expects globs", at: mark(node),
            help: "write a glob, such as '~/inbox/*.jpg', and 'where: { regex: … }' to match names")
        return true
    }
}

/// Operations on the literal start of a pattern.
enum PathPrefix {
    private static let wild = Set("*?[{\\".utf8)

    /// Returns literal text of a rules file with `$${` replaced by an escaped `${`.
    static func unescapingDollars(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        guard bytes.contains(UInt8(ascii: "$")) else { return Array(bytes) }
        return Array(bytes).replacing(Array("$${".utf8), with: Array(#"$\{"#.utf8))
    }

    /// Returns the length of the literal start up to and including its last `..`.
    static func parentsLength(of pattern: [UInt8]) -> Int {
        let head = pattern.prefix { !wild.contains($0) }
        let directories = head.count == pattern.count ? head : head[...(head.lastIndex(of: .slash) ?? -1)]
        guard let parents = directories.split(separator: .slash).last(where: { $0.elementsEqual([.dot, .dot]) }) else {
            return 0
        }
        return min(parents.endIndex + 1, pattern.count)
    }

    /// Returns an absolute pattern without `..` in the directories before its first wildcard.
    static func normalized(_ pattern: [UInt8]) -> [UInt8] {
        let wildcard = pattern.indices.first {
            // Escapes at the start come from directory names and belong to the literal part.
            wild.contains(pattern[$0]) && !isEscape(pattern, at: $0)
        }
        let end = wildcard.map { pattern[..<$0].lastIndex(of: .slash) ?? 0 } ?? pattern.count
        let head = pattern[..<end]
        guard head.split(separator: .slash).contains(where: { $0.elementsEqual([.dot, .dot]) }) else { return pattern }
        let directory = PathBytes(head).normalized.bytes
        return (directory == [.slash] && end < pattern.count ? [] : directory) + pattern[end...]
    }

    /// Whether the byte is a backslash that escapes another byte, or is itself escaped.
    private static func isEscape(_ pattern: [UInt8], at index: Int) -> Bool {
        pattern[index] == UInt8(ascii: "\\") || (index > 0 && pattern[index - 1] == UInt8(ascii: "\\"))
    }
}
