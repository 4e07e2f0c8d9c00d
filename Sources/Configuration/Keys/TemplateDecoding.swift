import JSON
import Rules

// Strings with placeholders, and the parameters that contain them.
extension RulePart {
    /// The maximum number of errors per string, so that the time stays proportional to its length.
    static var errorsPerText: Int { 20 }

    /// Parses a scalar as a template, with a leading `~/` replaced by the home directory.
    ///
    /// The step is the index of the action in its list: `${steps.N…}` refers only to earlier steps.
    func template(_ text: String, _ node: YAMLNode, step: Int) -> Template? {
        var parts: [Template.Part] = []
        var start = text.startIndex
        if text == "~" || text.hasPrefix("~/") {
            guard let home = home(for: node) else { return nil }
            parts.append(.literal(home))
            start = text.index(after: start)
        }
        var isComplete = true
        var errors = 0
        while start < text.endIndex, errors < Self.errorsPerText {
            let base = text.utf8.distance(from: text.startIndex, to: start)
            do throws(TemplateError) {
                parts += try Template(String(text[start...]), environment: surroundings.environment).parts
                break
            } catch {
                isComplete = false
                errors += 1
                guard let next = report(error, in: text, node, base: base) else { break }
                start = text.utf8.index(text.startIndex, offsetBy: min(next, text.utf8.count))
            }
        }
        recordCaptures(in: text, node)
        guard checkSteps(in: text, node, step: step), isComplete else { return nil }
        return Template(parts: parts)
    }

    /// Reports an error; returns the offset after it, at which to continue.
    private func report(_ error: TemplateError, in text: String, _ node: YAMLNode, base: Int) -> Int? {
        switch error {
        case .unclosed(let offset):
            reportUnclosed(text, at: mark(node, offset: base + offset, length: 2))
            return nil
        case .unknownPlaceholder(let word, let offset):
            let length = word.utf8.count + 3
            problems.error(
                "unknown placeholder '${\(escaped(word, limit: 80))}'",
                at: mark(node, offset: base + offset, length: length), help: placeholderHelp(for: word))
            return base + offset + length
        case .unsetVariable(let name, let offset):
            let length = name.utf8.count + 7
            reportUnset(name, at: mark(node, offset: base + offset, length: length))
            return base + offset + length
        }
    }

    private func placeholderHelp(for word: String) -> String? {
        let synonyms = [
            "file": "path", "filename": "name", "basename": "stem", "ext": "extension", "suffix": "extension",
            "dir": "directory", "folder": "directory", "parent": "directory", "home": "env:HOME",
            "date": "now:%Y-%m-%d", "time": "now:%H:%M:%S",
        ]
        let list = "the placeholders are \(Placeholder.words.joined(separator: ", "))"
        if let meant = synonyms[word.lowercased()] { return "write '${\(meant)}'" }
        if surroundings.environment(word) != nil { return "write '${env:\(word)}' for the environment variable" }
        guard let near = Spelling.nearest(to: word, in: Placeholder.words) else {
            return "write '$${' for a literal '${'; \(list)"
        }
        return "write '${\(near)}'"
    }

    private func checkSteps(in text: String, _ node: YAMLNode, step: Int) -> Bool {
        guard text.contains("${steps.") else { return true }
        var errors = 0
        for token in PlaceholderScan.tokens(in: text) where errors < Self.errorsPerText {
            guard case .stepOutput(let named, _) = Placeholder(word: token.word), named >= step else { continue }
            errors += 1
            problems.error(
                "step \(named) doesn't come before this one",
                at: mark(node, offset: token.range.lowerBound, length: token.range.count),
                help: step == 0
                    ? "no step comes before this one"
                    : "this is step \(step), counted from 0; write ${steps.\(step - 1).outputs.0} for the one before")
        }
        return errors == 0
    }

    /// Records the placeholders of a string that stand for groups.
    func recordCaptures(in text: String, _ node: YAMLNode, isInShell: Bool = false) {
        guard text.contains("${") else { return }
        for token in PlaceholderScan.tokens(in: text) where Placeholder(word: token.word)?.isCapture == true {
            let range = mark(node, offset: token.range.lowerBound, length: token.range.count)
            decoder.captures.uses.append(CaptureUse(word: token.word, range: range, isInShell: isInShell))
        }
    }

    // MARK: - Parameters

    /// Decodes the value of `with:` or a part of it.
    func parameters(_ node: YAMLNode, step: Int) -> ParameterTemplate? {
        if node.isFaulty { return nil }
        switch node.content {
        case .scalar(let text, _):
            return node.isPlain
                ? plainParameter(text, node, step: step) : template(text, node, step: step).map { .text($0) }
        case .sequence(let elements): return elements.map { parameters($0, step: step) }.complete().map { .array($0) }
        case .mapping(let entries):
            if reportPlaceholder(node, at: node.range) { return nil }
            var members: [String: ParameterTemplate] = [:]
            for entry in entries { if let value = parameters(entry.value, step: step) { members[entry.name] = value } }
            return members.count == entries.count ? .object(members) : nil
        }
    }

    private func plainParameter(_ text: String, _ node: YAMLNode, step: Int) -> ParameterTemplate? {
        let scalar = PlainScalar(text)
        if scalar == .text { return template(text, node, step: step).map { .text($0) } }
        return converted(at: node.range) { () throws(HandlerProblem) in .value(try scalar.json()) }
    }
}

/// A use of a placeholder for a regular expression group in an action.
struct CaptureUse {
    var word: String
    var range: Range<Int>
    /// Whether the use is in a shell line, where `${1}` may belong to the shell.
    var isInShell: Bool
}

/// Collects uses of group placeholders while actions are decoded; `where` determines whether they have a value.
final class CaptureLog {
    var uses: [CaptureUse] = []
}

extension PlainScalar {
    /// Returns the value in JSON; strings are not handled here.
    ///
    /// - Throws: The reason why there is none.
    func json() throws(HandlerProblem) -> JSONValue {
        let help = "put it into quotes for a string"
        switch self {
        case .null, .text: return .null
        case .bool(let isTrue): return .bool(isTrue)
        case .integer(let integer): return .integer(integer)
        case .number(let number): return .number(number)
        case .tooLarge: throw HandlerProblem(message: "the number is too large for 64 bits", help: help)
        case .notFinite: throw HandlerProblem(message: "infinity and nan are not allowed here", help: help)
        case .leadingZero:
            throw HandlerProblem(
                message: "a number cannot start with 0, which could mean octal",
                help: help + ", or write 0o in front of an octal number")
        }
    }
}
