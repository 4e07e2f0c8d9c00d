import Rules
package import System

/// Reads the configuration file and reports all problems at once.
package struct ConfigurationLoader: Sendable {
    private let surroundings: RuleLoader.Environment

    package init(surroundings: RuleLoader.Environment) { self.surroundings = surroundings }

    /// Reads a file.
    ///
    /// - Parameters:
    ///   - path: The absolute path.
    ///   - shown: The file as the user named it.
    ///   - configuration: Receives the settings; not usable if the file has errors.
    /// - Returns: The diagnostics.
    package func load(_ path: PathBytes, shown: String, into configuration: inout Configuration) -> [Diagnostic] {
        if let problem = surroundings.distrust(path) {
            return [Diagnostic(.error, file: shown, message: problem.message, help: problem.help)]
        }
        let source: SourceText
        do throws(FileReading.Problem) {
            let bytes = try FileReading.read(path, limit: surroundings.maximumFileSize)
            switch TextCheck.source(file: shown, bytes: bytes) {
            case .success(let text): source = text
            case .failure(let diagnostic): return [diagnostic]
            }
        } catch {
            return [Diagnostic(.error, file: shown, message: error.message, help: error.help)]
        }
        let problems = DiagnosticCollector(source)
        do throws(YAMLProblem) {
            let document = try YAMLParser.parse(source)
            for problem in document.problems { problems.error(problem.message, at: problem.range, help: problem.help) }
            let decoder = ConfigurationDecoder(
                source: source, surroundings: surroundings, problems: problems, folder: path.parent)
            decoder.read(document.root, into: &configuration)
        } catch {
            problems.error(error.message, at: error.range, help: error.help)
        }
        return problems.sorted()
    }
}
