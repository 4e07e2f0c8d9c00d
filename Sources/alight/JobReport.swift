import Dashboard
import FileEvents
import Glibc
import Journaling
import PluginProtocol
import Rules

/// The text of `alight show`.
struct JobReport {
    let details: JobDetails
    let hasColor: Bool

    /// Most bytes of a program's log that are shown.
    private static let logLimit = 64 << 10

    var lines: [String] { head + attempts + last }

    private var head: [String] {
        let job = details.job
        let story = EventStory(details.facts)
        let word = job.undone == nil ? job.state.rawValue : "\(job.state.rawValue), \(job.stateWord)"
        let state = hasColor ? Reporter.colored(word, job.state) : word
        var lines = [
            "job \(job.id): \(state)", "  rule: \(Display.text(job.rule))", "  path: \(Display.path(job.path))",
        ]
        var event = Display.text(job.event)
        let words =
            story.changed.map { Display.text($0) } + (story.isReplaced ? ["replaced"] : [])
            + (story.isByMove ? ["by a move"] : [])
        if !words.isEmpty { event += " (\(words.joined(separator: ", ")))" }
        let found = story.found.map { " at \(TimeText.long($0))" } ?? ""
        lines.append("  event: \(event); \(Self.origin(story.origin))\(found)")
        if let writer = story.writer { lines.append("  by: \(writer)") }
        if let from = story.from { lines.append("  from: \(Display.path(from))") }
        if let size = story.size, story.type == "file" {
            let before = story.sizeBefore.map { ", before \(Reporter.count($0, "byte"))" } ?? ""
            lines.append("  size: \(Reporter.count(size, "byte"))\(before)")
        }
        lines.append("  made: \(TimeText.long(job.created))")
        if job.state == .pending, let due = job.due { lines.append("  due: \(TimeText.long(due))") }
        if let ended = job.ended { lines.append("  ended: \(TimeText.long(ended))") }
        if details.isInterrupted, job.state == .pending { lines.append("  interrupted: the last attempt was cut off") }
        if let message = job.message, !message.isEmpty {
            lines.append("  message: \(Display.text(message))\(Self.code(job.code))")
        }
        return lines + job.outputs.map { "  output: \(Display.path($0))" }
    }

    private static func origin(_ word: String?) -> String {
        switch word {
        case "live": "the kernel told of it"
        case "scan": "found at a start"
        case "rescan": "found by comparing everything"
        case "poll": "found by polling"
        case "manual": "asked for by hand"
        case let word?: "found by '\(Display.text(word))'"
        case nil: "found"
        }
    }

    private static func code(_ code: String?) -> String { code.map { " (\(Display.text($0)))" } ?? "" }

    // MARK: Attempts

    private var attempts: [String] {
        details.attempts.enumerated().flatMap { index, attempt in
            // After the last one of a dead letter there was no other.
            let isFinal = details.job.state == .dead && index == details.attempts.count - 1
            let outcome = isFinal && attempt.outcome == "retry" ? "failed" : attempt.outcome
            var line = "attempt \(attempt.number): \(TimeText.long(attempt.started)), "
            line += "\(Reporter.seconds(attempt.duration)): \(Display.text(outcome))"
            if let status = attempt.status { line += ", exit status \(status)" }
            if let signal = attempt.signal { line += ", killed by signal \(signal)\(Self.name(signal))" }
            if !attempt.message.isEmpty { line += ": \(Display.text(attempt.message))" }
            return [line + Self.code(attempt.code)] + Self.changes(of: attempt)
        }
    }

    /// What an attempt did that can be taken back, and whether it has been.
    private static func changes(of attempt: AttemptEntry) -> [String] {
        attempt.changes.enumerated().flatMap { index, change -> [String] in
            let line = "  did: \(change.words)"
            guard let undo = attempt.undo else { return [line] }
            let moment = TimeText.long(undo.time)
            guard let reason = undo.reasons[index] else { return [line, "    undone: \(moment)"] }
            return [line, "    not undone: \(moment): \(Display.text(reason))"]
        }
    }

    private static func name(_ signal: Int32) -> String {
        strsignal(signal).map { " (\(String(cString: $0)))" } ?? ""
    }

    /// What the last attempt was asked, and what it wrote.
    private var last: [String] {
        guard let attempt = details.attempts.last else { return [] }
        var lines: [String] = []
        if let request = attempt.request {
            lines.append("request of attempt \(attempt.number):")
            let text = EventStory.json(request).map { JSONText.lines(of: $0) } ?? request
            lines += text.split(separator: "\n", omittingEmptySubsequences: false).map {
                "  \(Display.text(String($0)))"
            }
        }
        if let log = attempt.log, !log.isEmpty {
            lines.append("log of attempt \(attempt.number):")
            lines += Self.logLines(log)
        }
        return lines
    }

    /// The end of a log, each line made safe.
    private static func logLines(_ log: String) -> [String] {
        var bytes = log.utf8.suffix(logLimit)
        var lines: [String] = []
        if bytes.count < log.utf8.count {
            // It begins with a whole line, if there is one.
            if let newline = bytes.firstIndex(of: 0x0A), newline < bytes.endIndex {
                bytes = bytes[newline...].dropFirst()
            }
            lines.append("  [\(log.utf8.count - bytes.count) bytes left out]")
        }
        if bytes.last == 0x0A { bytes = bytes.dropLast() }
        lines += bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map { line in
            // A tab moves no further than blanks do.
            "  "
                + line.split(separator: 0x09, omittingEmptySubsequences: false).map { Display.text($0) }
                .joined(separator: "    ")
        }
        return lines
    }
}
