package import Rules
import System

/// The settings in environment variables.
///
/// Their names are `ALIGHT_` and the key in upper case. They are read like the value of that key in the file; an
/// empty variable sets nothing. Several paths are separated by colons, as in `PATH`, and several URLs by commas.
package struct ConfigurationEnvironment {
    private let variables: [String: String]
    private let hostEnvironment: RuleLoader.Environment

    package init(_ variables: [String: String], hostEnvironment: RuleLoader.Environment) {
        (self.variables, self.hostEnvironment) = (variables, hostEnvironment)
    }

    /// Reads the variables.
    ///
    /// - Throws: The problem of the first variable that can't be read.
    package func read(into configuration: inout Configuration) throws(HandlerProblem) {
        for (name, key) in ConfigurationDecoder.variables {
            guard let text = variables[name], !text.isEmpty else { continue }
            let source = SourceText(file: name, bytes: Array(text.utf8))
            let problems = DiagnosticCollector(source)
            let decoder = ConfigurationDecoder(
                source: source, hostEnvironment: hostEnvironment, problems: problems, directory: nil, variable: name)
            let entry = YAMLNode.Entry(
                key: Self.scalar(key.name, in: source), value: Self.value(text, of: key, in: source))
            key.read(decoder, entry, &configuration)
            guard let problem = problems.sorted().first else { continue }
            throw HandlerProblem(message: "\(name): \(problem.message)", help: problem.help)
        }
    }

    private static func value(_ text: String, of key: ConfigurationKey, in source: SourceText) -> YAMLNode {
        guard let separator = ConfigurationDecoder.separators[key.name] else { return scalar(text, in: source) }
        let parts = text.split(separator: separator).map { $0.drop { $0 == " " } }
        return YAMLNode(.sequence(parts.map { scalar(String($0), in: source) }), range: 0..<source.bytes.count)
    }

    private static func scalar(_ text: String, in source: SourceText) -> YAMLNode {
        YAMLNode(.scalar(text, .plain), range: 0..<source.bytes.count)
    }
}
