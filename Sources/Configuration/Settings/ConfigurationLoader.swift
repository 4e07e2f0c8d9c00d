package import Rules
package import System

/// Reads the configuration: the file, of which all problems are reported at once, and the environment.
package struct ConfigurationLoader: Sendable {
    private let hostEnvironment: RuleLoader.Environment

    package init(hostEnvironment: RuleLoader.Environment) { self.hostEnvironment = hostEnvironment }

    /// Reads a file.
    ///
    /// - Parameters:
    ///   - path: The absolute path.
    ///   - shown: The file as the user named it.
    ///   - configuration: Receives the settings; not usable if the file has errors.
    /// - Returns: The diagnostics.
    package func load(_ path: PathBytes, shown: String, into configuration: inout Configuration) -> [Diagnostic] {
        do throws(Diagnostic) {
            let file = try YAMLFile(path, shown: shown, hostEnvironment)
            if let root = file.root {
                let decoder = ConfigurationDecoder(
                    source: file.source, hostEnvironment: hostEnvironment, problems: file.problems,
                    directory: path.parent)
                decoder.read(root, into: &configuration)
            }
            return file.problems.sorted()
        } catch { return [error] }
    }

    /// Reads the settings in environment variables.
    ///
    /// Their names are `ALIGHT_` and the key in upper case. They are read like the value of that key in the file; an
    /// empty variable sets nothing. Several paths are separated by colons, as in `PATH`, and several URLs by commas.
    ///
    /// - Throws: The problem of the first variable that can't be read.
    package func read(_ variables: [String: String], into configuration: inout Configuration) throws(Problem) {
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
            throw Problem("\(name): \(problem.message)", help: problem.help)
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
