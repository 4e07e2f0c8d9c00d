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
        do throws(Diagnostic) {
            let file = try YAMLFile(path, shown: shown, surroundings)
            if let root = file.root {
                let decoder = ConfigurationDecoder(
                    source: file.source, surroundings: surroundings, problems: file.problems, directory: path.parent)
                decoder.read(root, into: &configuration)
            }
            return file.problems.sorted()
        } catch { return [error] }
    }
}
