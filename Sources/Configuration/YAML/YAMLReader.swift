package import JSON
package import Rules
package import System

/// Reads YAML files with plain data, such as a plugin's description.
package enum YAMLReader {
    /// Reads the data of a file as strictly as rules.
    ///
    /// - Returns: The value, or the first problem, with its location in the message.
    package static func json(from file: PathBytes) -> Result<JSONValue, HandlerProblem> {
        let shown = file.description
        do throws(Diagnostic) {
            let source = try TextCheck.source(file, shown: shown, limit: 4 << 20)
            do throws(YAMLProblem) {
                let (root, problems) = try YAMLParser.parse(source)
                if let problem = problems.min(by: { $0.range.lowerBound < $1.range.lowerBound }) { throw problem }
                guard let root else { throw YAMLProblem("the file is empty", at: 0..<0, help: nil) }
                return .success(try value(of: root))
            } catch { throw Diagnostic(.error, in: source, at: error.range, message: error.message, help: error.help) }
        } catch {
            let location = error.location.line > 0 ? error.location.description : shown
            return .failure(HandlerProblem(message: "\(location): \(error.message)", help: error.help))
        }
    }

    private static func value(of node: YAMLNode) throws(YAMLProblem) -> JSONValue {
        switch node.content {
        case .scalar(let text, _):
            guard node.isPlain else { return .string(text) }
            let scalar = PlainScalar(text)
            if scalar == .text { return .string(text) }
            do throws(HandlerProblem) {
                return try scalar.json()
            } catch { throw YAMLProblem(error.message, at: node.range, help: error.help) }
        case .sequence(let elements): return .array(try elements.map(value))
        case .mapping(let entries):
            var members: [String: JSONValue] = [:]
            for entry in entries { members[entry.name] = try value(of: entry.value) }
            return .object(members)
        }
    }
}
