import Rules
import System

/// Reads which files of a rule run together, and when.
struct FlowDecoder: RulePart {
    let decoder: RuleDecoder

    /// Parses tags: words of letters, digits, `-`, `_` and `.`, which need no quotes in a shell.
    func tags(_ entry: YAMLNode.Entry) -> [String]? {
        let nodes = entry.value.text == nil ? elements(entry, noun: "nightly", allowsEmpty: true) : [entry.value]
        return nodes?.compactMap { node in
            let range = entry.value.text == nil ? mark(node) : mark(entry)
            guard let tag = text(node, name: "a tag", at: range) else { return nil }
            let isPlain = tag.utf8.allSatisfy { $0.isAlphanumeric || "-_.".utf8.contains($0) }
            guard isPlain, (1...64).contains(tag.utf8.count), !tag.hasPrefix("-") else {
                return reject(
                    "invalid tag \(quoted(tag))", at: range,
                    help: "write a word of letters, digits, '-', '_' and '.', such as 'nightly'")
            }
            return tag
        }
    }

    /// Parses one string with hours, or several.
    func window(_ entry: YAMLNode.Entry) -> RunWindow? {
        let help = "write hours such as '22:00-06:00'"
        let values = values(entry)
        if values.isEmpty { return reject("'window' is empty", at: mark(entry), help: "\(help), or remove the key") }
        let spans = values.map { node, range in
            text(node, name: "'window'", at: range, help: help).flatMap { text in
                converted(at: range) { () throws(TextProblem) in try WindowText.parse(text) }
            }
        }
        return spans.complete().map { RunWindow($0) }
    }
}
