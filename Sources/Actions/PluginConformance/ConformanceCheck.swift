import FileEvents
package import PluginProtocol
package import System

/// One thing that the protocol asks of a plugin, and what was found.
package struct ConformanceCheck: Sendable, Hashable {
    /// Thrown by a step to end a sequence of steps.
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

    /// The word for programs, as `hostile-name`.
    package var name: String
    /// What is asked, for people.
    package var title: String
    package var verdict: Verdict

    package init(_ name: String, _ title: String, _ verdict: Verdict) {
        self.name = name
        self.title = title
        self.verdict = verdict
    }
}

/// What a conformance test takes from whoever asks for it.
package struct ConformanceOptions: Sendable {
    /// Parameters that replace those of `request.json`; `@SCRATCH@` in a text stands for the folder with the files.
    package var parameters: [String: JSONValue] = [:]
    /// A file that the plugin can work with; without it that of `request.json`, else a text.
    package var sample: PathBytes?
    /// How long one answer may take; nil for what the description says, else 60 s.
    package var timeout: Duration?
    /// How long the plugin may go on after SIGTERM.
    package var grace: Duration = .seconds(10)

    package init() {}
}

/// `@SCRATCH@` in `request.json`, `response.json` and parameters.
enum ConformanceToken {
    static let text = "@SCRATCH@"

    static func replaced(in value: JSONValue, by folder: PathBytes) -> JSONValue {
        switch value {
        case .string(let string): .string(string.replacing(text, with: folder.description))
        case .array(let elements): .array(elements.map { replaced(in: $0, by: folder) })
        case .object(let members): .object(members.mapValues { replaced(in: $0, by: folder) })
        default: value
        }
    }
}
