import PluginProtocol
import Programs
import Rules
import System

/// The reply of a plugin to one request.
struct ConformanceReply {
    /// The title of the case, for the checks that inspect all replies.
    let title: String
    let ended: ProgramResult
    /// The response that it printed; nil if it printed nothing, or something else.
    private(set) var response: PluginResponse?
    /// The reason why its output is not a response.
    private(set) var defect: String?
    /// Descriptions of what it wrote to, created or removed without being allowed to.
    var strayWrites: [String] = []
    /// The timeout of the request.
    private let limit: Duration

    init(title: String, ended: ProgramResult, directory: PathBytes, limit: Duration) {
        self.title = title
        self.ended = ended
        self.limit = limit
        var reader = ResponseReader(directory: directory)
        switch reader.read(ended.output) {
        case .nothing: break
        case .response(let response): self.response = response
        case .unreadable(let reason): defect = reason
        }
        if defect == nil, let notice = reader.notices.first { defect = "is only partly usable: \(notice)" }
    }

    /// The outcome that Alight would derive from it.
    var outcome: PluginResponse.Outcome {
        let table = OutcomeTable(
            program: "the plugin", isIdempotent: true, answers: true, directory: "/", timeout: .seconds(60))
        return table.outcomes(of: ended, count: 1).outcomes.first?.result ?? .failed
    }

    var outputs: [PathBytes] { (response?.outputs ?? []).map { PathBytes($0.bytes) } }

    var isDone: Bool { outcome.isDone }

    /// The contradiction between the exit status and the response; nil when there is none.
    var contradiction: String? {
        guard case .exited(let status) = ended.termination, status != 0, let response, response.outcome.isDone else {
            return nil
        }
        return "it answers \(response.outcome.rawValue) and exits with \(status)"
    }

    /// Returns the reason why it cannot be compared with what is expected: it is not an answer, or has a check of its
    /// own.
    ///
    /// - Parameter help: The help when it is not an answer; nil for that of the fault.
    /// - Returns: The verdict; nil when it can be compared.
    func objection(help: String? = nil) -> ConformanceCheck.Verdict? {
        if let problem { return .failed(problem.why, help: help ?? problem.help) }
        if defect != nil { return .skipped("its output is not a response, see below") }
        return contradiction.map { _ in .skipped("its exit status contradicts its response, see below") }
    }

    /// The reason why it is not an answer, with help; nil when it is one, even if it is a refusal.
    var problem: (why: String, help: String)? {
        switch ended.termination {
        case .exited(status: 0): return nil
        // It has a check of its own.
        case .exited where contradiction != nil: return nil
        case .exited(let status) where (64...78).contains(status): return nil
        case .exited(let status):
            return (
                "it exited with status \(status)\(lastLine)",
                "answer with an outcome and status 0, or exit with 75 to be retried and with 65 to fail permanently; "
                    + "any other status counts as a crash"
            )
        case .signalled(let number):
            return ("it was killed by signal \(number)\(lastLine)", "find the crash: the request is as documented")
        case .timedOut:
            return ("it gave no answer within \(Self.shown(limit))", "set a longer --timeout if it needs one")
        case .outputTooLarge:
            return ("it printed more than 1 MiB", "print one JSON object to standard output, and log to standard error")
        case .couldNotStart(let reason), .notLaunched(let reason):
            return ("it can't be started: \(reason)", "check its first line, and 'run' in its plugin.yaml")
        case .stopped: return ("it was stopped", "run the test again")
        }
    }

    /// The last line of its log, for messages.
    var lastLine: String { ended.lastLine.map { ": \(ResponseReader.line($0))" } ?? "" }

    /// The outcome with its message, for users.
    var shown: String {
        let message = response?.message ?? (outcome == .succeeded ? nil : ended.lastLine)
        return outcome.rawValue + (message.map { ", \"\(ResponseReader.line($0))\"" } ?? "")
    }

    static func shown(_ duration: Duration) -> String {
        let seconds = duration / .seconds(1)
        return seconds == seconds.rounded() ? "\(Int(seconds)) s" : "\(Int(seconds * 1000)) ms"
    }
}

extension PluginResponse.Outcome {
    /// Whether there is nothing more to do.
    var isDone: Bool { self == .succeeded || self == .skipped }
}
