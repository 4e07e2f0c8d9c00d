import JSON
package import Rules
package import System

/// A YAML file that users write: its text, its tree, and the problems of both.
struct YAMLFile {
    let source: SourceText
    let problems: DiagnosticCollector
    /// The tree; nil for a text with nothing but comments, and after a syntax error.
    private(set) var root: YAMLNode?
    /// Whether the file has no syntax error.
    private(set) var isReadable = true
    /// The offsets at which YAML errors left something out of the tree, in ascending order.
    private(set) var omissions: [Int] = []

    /// Reads a file.
    ///
    /// - Throws: The reason why there is no text.
    init(_ path: PathBytes, shown: String, _ hostEnvironment: RuleLoader.Environment) throws(Diagnostic) {
        if let problem = hostEnvironment.distrust(path) {
            throw Diagnostic(.error, file: shown, message: problem.message, help: problem.help)
        }
        source = try TextCheck.source(path, shown: shown)
        problems = DiagnosticCollector(source)
        do throws(TextProblem) {
            let document = try YAMLParser.parse(source)
            root = document.root
            omissions = document.problems.map(\.range.lowerBound).sorted()
            for problem in document.problems { problems.error(problem.message, at: problem.range, help: problem.help) }
        } catch {
            isReadable = false
            problems.error(error.message, at: error.range, help: error.help)
        }
    }
}

/// Reads YAML files with plain data, such as a plugin's description.
package enum YAMLReader {
    /// Reads the data of a file as strictly as rules.
    ///
    /// - Returns: The value, or the first problem, with its location in the message.
    package static func json(from file: PathBytes) -> Result<PositionedValue, Problem> {
        let shown = file.description
        do throws(Diagnostic) {
            let source = try TextCheck.source(file, shown: shown)
            do throws(TextProblem) {
                let (root, problems) = try YAMLParser.parse(source)
                if let problem = problems.min(by: { $0.range.lowerBound < $1.range.lowerBound }) { throw problem }
                guard let root else { throw TextProblem("the file is empty", at: 0..<0, help: nil) }
                var positions = ["": source.location(at: root.range.lowerBound)]
                addPositions(in: root, at: "", source, to: &positions)
                return .success(PositionedValue(try value(of: root), positions: positions))
            } catch { throw Diagnostic(.error, in: source, at: error.range, message: error.message, help: error.help) }
        } catch {
            let problem = Problem(error.message, help: error.help)
            return .failure(error.location.line > 0 ? problem.at(error.location) : problem.of(shown))
        }
    }

    private static func addPositions(
        in node: YAMLNode, at key: String, _ source: SourceText, to positions: inout [String: SourcePosition]
    ) {
        for entry in node.entries ?? [] {
            let inner = key.isEmpty ? entry.name : "\(key).\(entry.name)"
            positions[inner] = source.location(at: entry.key.range.lowerBound)
            addPositions(in: entry.value, at: inner, source, to: &positions)
        }
        for (index, element) in (node.elements ?? []).enumerated() {
            positions["\(key)[\(index)]"] = source.location(at: element.range.lowerBound)
            addPositions(in: element, at: "\(key)[\(index)]", source, to: &positions)
        }
    }

    private static func value(of node: YAMLNode) throws(TextProblem) -> JSONValue {
        switch node.content {
        case .scalar(let text, _):
            guard node.isPlain else { return .string(text) }
            let scalar = PlainScalar(text)
            if scalar == .text { return .string(text) }
            do throws(Problem) {
                return try scalar.json()
            } catch { throw TextProblem(error.message, at: node.range, help: error.help) }
        case .sequence(let elements): return .array(try elements.map(value))
        case .mapping(let entries):
            var members: [String: JSONValue] = [:]
            for entry in entries { members[entry.name] = try value(of: entry.value) }
            return .object(members)
        }
    }
}
