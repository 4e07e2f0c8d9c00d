package import FileEvents
import Rules

/// Reads the file of the configuration, and tells all that is wrong with it at once.
package struct ConfigurationLoader: Sendable {
    private let surroundings: RuleLoader.Surroundings

    package init(surroundings: RuleLoader.Surroundings) { self.surroundings = surroundings }

    /// Reads a file.
    ///
    /// - Parameters:
    ///   - path: The absolute path.
    ///   - shown: The file as the user named it.
    /// - Returns: What it says, and what is wrong with it; with an error in it nothing of it is for use.
    package func load(_ path: PathBytes, shown: String) -> (configuration: Configuration, diagnostics: [Diagnostic]) {
        if let problem = surroundings.distrust(path) {
            let diagnostic = Diagnostic(.error, file: shown, message: problem.message, help: problem.help)
            return (Configuration(), [diagnostic])
        }
        let source: SourceText
        do throws(FileReading.Problem) {
            let bytes = try FileReading.read(path, limit: surroundings.maximumFileSize)
            switch TextCheck.source(file: shown, bytes: bytes) {
            case .success(let text): source = text
            case .failure(let diagnostic): return (Configuration(), [diagnostic])
            }
        } catch {
            return (Configuration(), [Diagnostic(.error, file: shown, message: error.message, help: error.help)])
        }
        let problems = DiagnosticCollector(source)
        do throws(YAMLProblem) {
            let document = try YAMLParser.parse(source)
            for problem in document.problems { problems.error(problem.message, at: problem.range, help: problem.help) }
            let decoder = ConfigurationDecoder(
                source: source, surroundings: surroundings, problems: problems, folder: path.parent)
            return (decoder.configuration(from: document.root), problems.sorted())
        } catch {
            problems.error(error.message, at: error.range, help: error.help)
            return (Configuration(), problems.sorted())
        }
    }
}
