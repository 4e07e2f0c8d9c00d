package import JSON
import Rules
package import System

/// A requirement of the protocol, and the verdict on it.
package struct ConformanceCheck: Sendable, Hashable {
    /// The verdict of a check, which a step throws to stop a sequence of steps.
    package struct Verdict: Error, Hashable {
        package enum Word: String, Sendable {
            case ok, failed, skipped
        }

        package var word: Word
        /// A detail of a check that passed, or the reason why it failed or was skipped.
        package var message: String?
        /// The remedy, for a check that failed.
        package var help: String?

        static func passed(_ seen: String?) -> Verdict { Verdict(word: .ok, message: seen) }
        package static func failed(_ why: String, help: String) -> Verdict {
            Verdict(word: .failed, message: why, help: help)
        }
        static func skipped(_ why: String) -> Verdict { Verdict(word: .skipped, message: why) }
    }

    /// The name for programs, such as `hostile-name`.
    package var name: String
    /// The requirement, for users.
    package var title: String
    package var verdict: Verdict

    package init(_ name: String, _ title: String, _ verdict: Verdict) {
        self.name = name
        self.title = title
        self.verdict = verdict
    }
}

/// The record of the checks of one plugin.
final class ConformanceReport {
    private let receive: (ConformanceCheck) -> Void
    private(set) var failures = 0
    /// Whether the plugin does its work for a plain name, without which little else can be judged.
    var isSound = false

    /// The verdict on other checks if it does not.
    static let unsound = ConformanceCheck.Verdict.skipped("it doesn't do its work for a plain name")

    init(_ receive: @escaping (ConformanceCheck) -> Void) { self.receive = receive }

    func record(_ name: String, _ title: String, _ verdict: ConformanceCheck.Verdict) {
        if verdict.word == .failed { failures += 1 }
        receive(ConformanceCheck(name, title, verdict))
    }

    /// Runs a check, or skips it for a plugin that does not do its work for a plain name.
    func recordIfSound(
        _ name: String, _ title: String, _ verdict: (_ name: String) throws(HandlerProblem) -> ConformanceCheck.Verdict
    ) throws(HandlerProblem) {
        record(name, title, isSound ? try verdict(name) : Self.unsound)
    }
}

/// The options of a conformance test.
package struct ConformanceOptions: Sendable {
    /// Parameters that replace those of `request.json`; `@SCRATCH@` in a string stands for the directory with the
    /// files.
    package var parameters: [String: JSONValue] = [:]
    /// A file that the plugin can work with; by default that of `request.json`, or else a text file.
    package var sample: PathBytes?
    /// How long one answer may take; nil for the timeout in the description, or else 60 s.
    package var timeout: Duration?
    /// How long the plugin may continue after SIGTERM.
    package var grace: Duration = .seconds(10)

    package init() {}
}

/// The token `@SCRATCH@` in `request.json`, `response.json` and parameters.
enum ConformanceToken {
    static let text = "@SCRATCH@"

    static func replaced(in value: JSONValue, by directory: PathBytes) -> JSONValue {
        switch value {
        case .string(let string): .string(string.replacing(text, with: directory.description))
        case .array(let elements): .array(elements.map { replaced(in: $0, by: directory) })
        case .object(let members): .object(members.mapValues { replaced(in: $0, by: directory) })
        default: value
        }
    }
}
