import FileEvents
import JSON
import Pipeline
import PluginProtocol
import Rules
import System

/// An attempt as text, for attempts of this process and for those that another instance reports as JSON.
struct AttemptLine {
    var time: Timestamp?
    var rule: String
    var event: String
    var path: PathBytes
    var job: String
    var attempt: Int
    var mostAttempts: Int
    var outcome: String
    /// Whether a stop interrupted the attempt.
    var isInterrupted: Bool
    var message: String
    /// The files that the action created.
    var outputs: [PathBytes]
    var state: JobState
    var duration: Duration
    var pause: Duration?

    init(_ report: AttemptReport) {
        time = report.time
        rule = report.rule
        event = report.event.rawValue
        path = report.path
        job = report.job.description
        attempt = report.attempt
        mostAttempts = report.maximumAttempts
        outcome = report.outcome.ending.rawValue
        isInterrupted = report.outcome.isInterrupted
        message = report.outcome.message
        outputs = report.outcome.outputs
        state = report.state
        duration = report.duration
        pause = report.pause
    }

    /// Parses an object written by ``Reporter/object(_:)``; returns nil if it is not an attempt.
    init?(_ object: [String: JSONValue]) {
        guard let rule = object["rule"]?.string, let event = object["event"]?.string,
            let outcome = object["outcome"]?.string,
            let state = object["state"]?.string.flatMap(JobState.init(rawValue:))
        else { return nil }
        time = object["time"]?.string.flatMap { JSONLine.time($0) }
        self.rule = rule
        self.event = event
        path = JSONLine.path(object) ?? ""
        job = object["job"]?.string ?? ""
        attempt = Int(JSONLine.bounded(object["attempt"]?.double))
        mostAttempts = Int(JSONLine.bounded(object["max_attempts"]?.double))
        self.outcome = outcome
        isInterrupted = object["code"]?.string == "interrupted"
        message = object["message"]?.string ?? ""
        outputs = object["outputs"]?.array?.compactMap { $0.bytes.map(PathBytes.init) } ?? []
        self.state = state
        duration = .milliseconds(JSONLine.bounded(object["duration_ms"]?.double))
        pause = (object["retry_ms"]?.double).map { .milliseconds(JSONLine.bounded($0)) }
    }

    /// Formats the attempt: `10:24:03 thumbnails: created /in/cat.jpg: succeeded in 0.41 s: 256x171 webp`.
    func text(hasColor: Bool) -> String {
        let clock = time.map { Reporter.clock($0) + " " } ?? ""
        return clock + story(hasColor: hasColor)
    }

    /// Formats the attempt without the time.
    func story(hasColor: Bool) -> String {
        let shown = hasColor ? Reporter.colored(word, state) : word
        var line = "\(Display.text(rule)): \(Display.text(event)) \(Display.path(path)): "
        line += "\(shown) in \(Reporter.seconds(duration))"
        if !said.isEmpty { line += ": \(said)" }
        return line + ending
    }

    /// The message, and the outputs that it does not mention: `256x171 webp -> /thumbs/cat.webp`.
    var said: String {
        let message = Display.text(message)
        let others = outputs.filter { $0 != path }.map { Display.path($0) }.filter { !message.contains($0) }
        guard let first = others.first else { return message }
        let more = others.count > 1 ? " and \(others.count - 1) more" : ""
        return (message.isEmpty ? "" : message + " ") + "-> \(first)\(more)"
    }

    /// The sort key: failed jobs first, then unfinished ones, then the others.
    var rank: Int {
        switch state {
        case .failed: 0
        case .pending, .running: 1
        case .succeeded, .skipped: 2
        }
    }

    /// The outcome as a word.
    var word: String { state == .failed ? "failed" : Display.text(outcome) }

    /// The suffix for a job that has not succeeded: its next attempt, or how to retry it.
    var ending: String {
        switch state {
        case .pending where isInterrupted: return " (not counted as an attempt)"
        case .pending:
            guard let pause else { return "" }
            if outcome == Outcome.Ending.notReady.rawValue {
                return " (not counted as an attempt; next in \(Reporter.seconds(pause)))"
            }
            return " (attempt \(attempt) of \(mostAttempts); next in \(Reporter.seconds(pause)))"
        case .failed:
            let attempts = attempt > 1 ? " after \(attempt) attempts" : ""
            return " (gave up\(attempts); retry with 'alight retry \(Display.text(job))')"
        default: return ""
        }
    }
}
