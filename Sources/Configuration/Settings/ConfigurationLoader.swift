package import System

/// Reads the configuration file and reports all problems at once.
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
}
