import JSON
import Rules

// Strings with placeholders, and the parameters that contain them.
extension RuleDecoder {
    /// The maximum number of errors per string, so that the time stays proportional to its length.
    static var errorsPerText: Int { 20 }

    /// Parses a scalar as a template, with a leading `~/` replaced by the home directory.
    ///
    /// The step is the index of the action in its list: `${steps.N…}` refers only to earlier steps.
    func template(_ text: String, _ node: YAMLNode, step: Int) -> Template? {
        var home: [UInt8]?
        if text == "~" || text.hasPrefix("~/") {
            home = self.home(for: node)
            guard home != nil else { return nil }
        }
        let errorsBefore = problems.errorCount
        var (unknown, early) = (0, 0)
        let scan = PlaceholderScan(text)
        let template = Template(scan, home: home) { token in
            func range() -> Range<Int> { mark(node, offset: token.range.lowerBound, length: token.range.count) }
            let placeholder = Placeholder(word: token.word)
            recordCapture(token, placeholder, at: range())
            if let value = token.variable.flatMap(hostEnvironment.environment) { return .literal(Array(value.utf8)) }
            guard let placeholder else {
                if unknown < Self.errorsPerText { reportUnknown(token, at: range()) }
                unknown += 1
                return nil
            }
            if case .stepOutput(let named, _) = placeholder, named >= step {
                if early < Self.errorsPerText { reportStep(named, in: step, at: range()) }
                early += 1
            }
            return .placeholder(placeholder)
        }
        if let unclosed = scan.unclosed, unknown < Self.errorsPerText {
            reportUnclosed(text, at: mark(node, offset: unclosed, length: 2))
        }
        return problems.errorCount == errorsBefore ? template : nil
    }

    private func reportUnknown(_ token: PlaceholderToken, at range: Range<Int>) {
        if let name = token.variable { return reportUnset(name, at: range) }
        problems.error(
            "unknown placeholder '${\(escaped(token.word, limit: 80))}'", at: range,
            help: placeholderHelp(for: token.word))
    }

    private func reportStep(_ named: Int, in step: Int, at range: Range<Int>) {
        problems.error(
            "step \(named) doesn't come before this one", at: range,
            help: step == 0
                ? "no step comes before this one"
                : "this is step \(step), counted from 0; write ${steps.\(step - 1).outputs.0} for the one before")
    }

    private func placeholderHelp(for word: String) -> String? {
        let synonyms = [
            "file": "path", "filename": "name", "basename": "stem", "ext": "extension", "suffix": "extension",
            "dir": "directory", "folder": "directory", "parent": "directory", "home": "env:HOME",
            "date": "now:%Y-%m-%d", "time": "now:%H:%M:%S",
        ]
        let list = "the placeholders are \(Placeholder.words.joined(separator: ", "))"
        if let meant = synonyms[word.lowercased()] { return "write '${\(meant)}'" }
        if hostEnvironment.environment(word) != nil { return "write '${env:\(word)}' for the environment variable" }
        guard let near = Spelling.nearest(to: word, in: Placeholder.words) else {
            return "write '$${' for a literal '${'; \(list)"
        }
        return "write '${\(near)}'"
    }

    /// Records a placeholder that stands for a group.
    func recordCapture(
        _ token: PlaceholderToken, _ placeholder: Placeholder?, at range: @autoclosure () -> Range<Int>,
        isInShell: Bool = false
    ) {
        guard placeholder?.isCapture == true else { return }
        captures.uses.append(CaptureUse(word: token.word, range: range(), isInShell: isInShell))
    }

    // MARK: - Parameters

    /// Decodes the value of `with:` or a part of it.
    func parameters(_ node: YAMLNode, step: Int) -> ParameterTemplate? {
        if node.isInvalid { return nil }
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
        return converted(at: node.range, .value(try scalar.json()))
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
    func json() throws(Problem) -> JSONValue {
        let help = "put it into quotes for a string"
        switch self {
        case .null, .text: return .null
        case .bool(let isTrue): return .bool(isTrue)
        case .integer(let integer): return .integer(integer)
        case .number(let number): return .number(number)
        case .tooLarge: throw Problem("the number is too large for 64 bits", help: help)
        case .notFinite: throw Problem("infinity and nan are not allowed here", help: help)
        case .leadingZero:
            throw Problem(
                "a number cannot start with 0, which could mean octal",
                help: help + ", or write 0o in front of an octal number")
        }
    }
}
