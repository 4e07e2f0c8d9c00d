import FileEvents
import Rules
import System

extension RuleDecoder {
    /// Returns the entries of `defaults:`, which apply where a rule does not set the key; errors in them are
    /// reported.
    func defaults(_ entry: YAMLNode.Entry) -> [YAMLNode.Entry] {
        if entry.value.isNull { return [] }
        guard let entries = entry.value.entries else {
            return mistyped(entry, "a mapping", help: "write the keys that all rules of the file share under it") ?? []
        }
        let own = Self.keys.keys.filter { !$0.isShared }.map(\.name)
        checkKeys(entries, known: Self.sharedKeys.names, noun: "keys of 'defaults'", misplaced: own + Self.actionKeys) {
            "each rule has its own '\($0)'"
        }
        let shared = entries.filter { Self.sharedKeys[$0.name] != nil }
        // Possibly no rule uses an invalid value; if a rule also reports it, it is the same finding.
        var unused = RuleDraft()
        Self.keys.read(shared, by: self, into: &unused)
        return shared
    }

    // MARK: - Choices and mappings

    /// Adjusts a time and its maximum to each other: one that isn't set follows the other.
    func fit(
        _ time: inout Duration, _ name: String, _ longest: inout Duration, _ longestName: String, in node: YAMLNode
    ) {
        switch (node.entry(name), node.entry(longestName)) {
        case (_?, let entry?) where longest < time:
            problems.error(
                "'\(longestName)' is shorter than '\(name)'", at: mark(entry), help: "write a longer one, or remove it")
        case (_?, _?): break
        case (nil, _?): time = min(time, longest)
        default: longest = max(longest, time)
        }
    }

    func backend(_ entry: YAMLNode.Entry) -> Backend? {
        if entry.value.text == "fanotify" {
            return reject(
                "'backend' can't be 'fanotify': files are watched with inotify, which reports more",
                at: entry.value.range,
                help: "write 'auto', and 'by: true' to receive the process that wrote, which only fanotify reports")
        }
        return choice(entry)
    }

    // MARK: - Events and types

    func eventWords(_ entry: YAMLNode.Entry) -> [(node: YAMLNode, mask: EventMask)]? {
        list(entry, of: "an event", example: "created, modified") { text, node in
            if let mask = EventMask(word: text) { return (node, mask) }
            return reject("unknown event \(quoted(text))", at: node.range, help: EventSpelling.help(for: text))
        }
    }

    /// The words in `types:`.
    static let typeNames = ["file", "directory", "symlink", "any"]

    func typeWords(_ entry: YAMLNode.Entry) -> [(node: YAMLNode, types: Set<FileType>)]? {
        let known = Self.typeNames
        return list(entry, of: "a type", example: "file, directory") { text, node in
            if text == "any" { return (node, Set(FileType.allCases)) }
            if known.contains(text), let type = FileType(rawValue: text) { return (node, [type]) }
            let synonyms = [
                "files": "file", "dir": "directory", "folder": "directory", "link": "symlink", "all": "any",
            ]
            let list = "the types are \(known.joined(separator: ", "))"
            return reject(
                "unknown type \(quoted(text))", at: node.range,
                help: synonyms[text].map { "write '\($0)'; \(list)" }
                    ?? Spelling.help(for: text, candidates: known, noun: "types"))
        }
    }
}
