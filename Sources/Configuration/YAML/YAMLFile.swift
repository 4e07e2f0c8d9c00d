import Rules
import System

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
        source = try TextCheck.source(path, shown: shown, limit: hostEnvironment.maximumFileSize)
        problems = DiagnosticCollector(source)
        do throws(YAMLProblem) {
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
