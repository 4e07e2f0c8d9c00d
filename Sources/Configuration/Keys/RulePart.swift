import System

/// A part of the work of a decoder, with the same file and the same diagnostics.
protocol RulePart: NodeReading {
    var decoder: RuleDecoder { get }
}

extension RulePart {
    var source: SourceText { decoder.source }
    var hostEnvironment: RuleLoader.Environment { decoder.hostEnvironment }
    var problems: DiagnosticCollector { decoder.problems }
    /// The absolute directory of the file.
    var directory: PathBytes { decoder.directory }

    /// Reports a user or a group that this machine does not have; returns nil.
    func unknown<Value>(_ kind: String, _ name: String, at range: Range<Int>) -> Value? {
        reject(
            "unknown \(kind) \(quoted(name))", at: range, help: "write a \(kind) name of this machine, or a \(kind) ID")
    }
}
