import ArgumentParser
import FileEvents
import Glibc
import JSON
import Monitoring
import PluginProtocol
import Rules
import System

/// `alight log`: follows the attempts of the running instance.
struct LogCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "log", "Follow the attempts of the running instance.",
        discussion: """
            Prints the lines that 'alight run' prints, until Ctrl-C or until the instance stops. 'alight jobs' lists \
            earlier jobs.
            """)

    @Option(name: .customShort("n"), help: .value("n", "Start with the last N attempts of this run, at most 1000."))
    var recent = 10

    @Flag(help: "Print one JSON object per line.")
    var json = false

    @OptionGroup var choice: ControlChoice

    func validate() throws {
        guard (0...1000).contains(recent) else { throw ValidationError("'-n \(recent)' is not between 0 and 1000") }
    }

    func run() throws {
        Signals.useDefaultActions()
        let client = try choice.client()
        var last = try follow(client, after: nil)
        // The instance disconnects clients that do not read for a long time, such as one on a terminal stopped with
        // Ctrl-S. Reconnect and request the remaining events.
        while let seen = last {
            do {
                last = try follow(client, after: seen)
            } catch {
                if error is Problem { break }
                throw error
            }
            // An instance that is shutting down may accept and close the connection again; do not spin.
            if last == seen { usleep(100_000) }
        }
        Output.error.write("the instance has stopped")
    }

    /// Writes the attempts that the instance reports until the connection closes.
    ///
    /// - Returns: The id of the last event received.
    private func follow(_ client: ControlClient, after seen: String?) throws -> String? {
        let hasColor = Output.standard.hasColor
        var last = seen
        let start = seen.map { "last_event_id=\($0)" } ?? "recent=\(recent)"
        try client.follow("/v1/events?only=attempt&\(start)") { kind, id, data in
            last = id ?? last
            if kind == "gap" { Output.error.write("some lines may be missing here: the output was too slow") }
            guard kind == "attempt" else { return }
            let attempt = json ? nil : JSONValue(record: data.utf8).flatMap { AttemptLine($0) }
            let line = attempt?.text(hasColor: hasColor) ?? data
            if Output.standard.write(line) != .whole { Output.standard.exit(Output.checked(.done)) }
        }
        return last
    }
}

// Access to the JSON of another Alight process, which may also be another program.
extension JSONValue {
    /// The string, safe to print.
    var displayed: String { Display.text(text) }

    /// The number, clamped to 0...10¹², which every count and duration can represent.
    var bounded: Double {
        guard let double, !double.isNaN else { return 0 }
        return max(0, min(double, 1e12))
    }

    /// The path in an object, from its bytes if it is not UTF-8.
    var path: PathBytes? { object?.bytes("path").map { PathBytes($0) } }

    var displayedPath: String { path.map { Display.path($0) } ?? "" }

    /// The timestamp in whole seconds; nil if it is invalid.
    var time: Timestamp? {
        // Fractions of a second are not displayed.
        try? TimeText.parse("\(text.prefix(19))Z", now: Timestamp(seconds: 0, nanoseconds: 0))
    }

    /// The duration since a timestamp; zero if that is invalid or later.
    var elapsed: Duration { max(.zero, time.map { DiskProbe.now().since($0) } ?? .zero) }
}

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
        (time, rule, event, path) = (report.time, report.rule, report.event.rawValue, report.path)
        (job, attempt, mostAttempts) = (report.job.description, report.attempt, report.maximumAttempts)
        (outcome, isInterrupted) = (report.outcome.result.rawValue, report.outcome.isInterrupted)
        (message, outputs) = (report.outcome.message, report.outcome.outputs)
        (state, duration, pause) = (report.state, report.duration, report.pause)
    }

    /// Parses an object written by ``Reporter/object(_:)``; returns nil if it is not an attempt.
    init?(_ object: JSONValue) {
        guard let rule = object["rule"].string, let event = object["event"].string,
            let outcome = object["outcome"].string, let state = JobState(rawValue: object["state"].text)
        else { return nil }
        (time, self.rule, self.event, path) = (object["time"].time, rule, event, object.path ?? "")
        (job, attempt, mostAttempts) = (object["job"].text, object["attempt"].count, object["max_attempts"].count)
        (self.outcome, isInterrupted) = (outcome, object["code"].text == "interrupted")
        message = object["message"].text
        outputs = object["outputs"].elements.compactMap { $0.bytes.map(PathBytes.init) }
        (self.state, duration) = (state, .milliseconds(object["duration_ms"].bounded))
        pause = object["retry_ms"].double.map { _ in .milliseconds(object["retry_ms"].bounded) }
    }

    /// Formats the attempt: `10:24:03 thumbnails: created /in/cat.jpg: succeeded in 0.41 s: 256x171 webp`.
    func text(hasColor: Bool) -> String {
        (time.map { TimeText.clock($0) + " " } ?? "") + story(hasColor: hasColor)
    }

    /// Formats the attempt without the time.
    func story(hasColor: Bool) -> String {
        let shown = Reporter.colored(word, state, hasColor)
        var line = "\(Display.text(rule)): \(Display.text(event)) \(Display.path(path)): "
        line += "\(shown) in \(Reporter.seconds(duration))"
        if !summary.isEmpty { line += ": \(summary)" }
        return line + ending
    }

    /// The message, and the outputs that it does not mention: `256x171 webp -> /thumbs/cat.webp`.
    var summary: String {
        let message = Display.text(message)
        let others = outputs.filter { $0 != path }.map { Display.path($0) }.filter { !message.contains($0) }
        guard let first = others.first else { return message }
        let more = others.count > 1 ? " and \(others.count - 1) more" : ""
        return (message.isEmpty ? "" : message + " ") + "-> \(first)\(more)"
    }

    /// The sort key: failed jobs first, then unfinished ones, then the others.
    var rank: Int { state == .failed ? 0 : state == .pending || state == .running ? 1 : 2 }

    /// The outcome as a word.
    var word: String { state == .failed ? "failed" : Display.text(outcome) }

    /// The suffix for a job that has not succeeded: its next attempt, or how to retry it.
    var ending: String {
        switch state {
        case .pending where isInterrupted: return " (not counted as an attempt)"
        case .pending:
            guard let pause else { return "" }
            if outcome == Outcome.Result.notReady.rawValue {
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
