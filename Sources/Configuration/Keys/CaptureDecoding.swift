import RegularExpressions
import Rules

/// A use of a placeholder for a regular expression group in an action.
struct CaptureUse {
    var word: String
    var range: Range<Int>
    /// Whether the use is in a shell line, where `${1}` may belong to the shell.
    var isInShell: Bool
}

/// Collects uses of group placeholders while actions are decoded; `where` determines whether they have a value.
final class CaptureLog {
    private(set) var uses: [CaptureUse] = []

    func note(_ use: CaptureUse) { uses.append(use) }

    /// Returns the uses recorded while the closure runs.
    func noted<Value>(during body: () -> Value) -> (Value, [CaptureUse]) {
        let before = uses.count
        let value = body()
        return (value, Array(uses[before...]))
    }
}

extension RuleDecoder {
    /// Records the placeholders of a string that stand for groups.
    func noteCaptures(in text: String, _ node: YAMLNode, isInShell: Bool = false) {
        guard text.contains("${") else { return }
        for token in PlaceholderScan.tokens(in: text) where Placeholder(word: token.word)?.isCapture == true {
            captures.note(
                CaptureUse(
                    word: token.word, range: mark(node, offset: token.range.lowerBound, length: token.range.count),
                    isInShell: isInShell))
        }
    }

    /// Reports placeholders for groups that do not exist or need not have a value.
    func checkCaptures(_ uses: [CaptureUse], condition: Condition?) {
        let certain = condition?.certainExpressions ?? []
        let all = condition?.expressions ?? []
        for use in uses {
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
