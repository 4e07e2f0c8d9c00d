import ArgumentParser
import FileEvents
import Glibc
import JSON
import Records
import Rules
import Storage
import System

/// `alight show`: prints all details of a job.
struct ShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "show", "Show a job: its event, its attempts, and the last request and output.",
        discussion: "Secret parameters are not stored in the journal; they are shown as ***.")

    @Argument(help: .value("id", "The id of the job, or a prefix of it."), completion: OfferedWords.jobs())
    var id: String

    @Flag(help: "Print one JSON object, with the requests and logs of all attempts.")
    var json = false

    @OptionGroup var journal: JournalOptions

    func validate() throws {
        try JobName.validate([id])
        try journal.check()
    }

    func run() throws {
        Signals.useDefaultActions()
        let reader = try journal.open()
        guard let job = try JobName.find(id, in: reader), let details = try reader.details(of: job.id) else {
            throw Exit(.runtimeError)
        }
        let kept = KeptFiles(journal: try journal.file()).files(of: job.id.description)
        guard json else {
            let report = JobReport(details: details, kept: kept, hasColor: Output.standard.hasColor)
            Output.standard.write(report.lines.joined(separator: "\n"))
            return
        }
        var object = details.object
        if !kept.isEmpty { object["kept"] = .array(kept.map { JSONValue(bytes: $0.bytes) }) }
        Output.standard.write(object.line)
    }
}

/// The text output of `alight show`.
struct JobReport {
    let details: JobDetails
    /// The files that its program left behind.
    let kept: [PathBytes]
    let hasColor: Bool

    /// The maximum number of bytes of a program's log to show.
    private static let logLimit = 64 << 10

    var lines: [String] { head + attempts + last }

    private var head: [String] {
        let (job, event) = (details.job, details.event)
        let word = job.undone == nil ? job.state.rawValue : "\(job.state.rawValue), \(job.stateWord)"
        let state = Reporter.colored(word, job.state, hasColor)
        var lines = [
            "job \(job.id): \(state)", "  rule: \(Display.text(job.rule))", "  path: \(Display.path(job.path))",
        ]
        var line = "  event: \(Display.text(job.event))"
        let words =
            (event?.changed.map { Display.text($0) } ?? []) + (event?.isReplaced == true ? ["replaced"] : [])
            + (event?.isByMove == true ? ["by a move"] : [])
        if !words.isEmpty { line += " (\(words.joined(separator: ", ")))" }
        line += event.map { "; \(Self.words(for: $0.origin)) at \(TimeText.long($0.time))" } ?? "; found"
        lines.append(line)
        if let process = event?.writer.process { lines.append("  by: \(process.words)") }
        if let from = event?.from { lines.append("  from: \(Display.path(from))") }
        if let event, event.snapshot.type == .file {
            let before = event.before.map { ", before \(Reporter.count($0.size, "byte"))" } ?? ""
            lines.append("  size: \(Reporter.count(event.snapshot.size, "byte"))\(before)")
        }
        lines.append("  created: \(TimeText.long(job.created))")
        if job.state == .pending, let due = job.due { lines.append("  due: \(TimeText.long(due))") }
        if let ended = job.ended { lines.append("  finished: \(TimeText.long(ended))") }
        if details.isInterrupted, job.state == .pending {
            lines.append("  interrupted: the last attempt did not finish")
        }
        if let message = job.message, !message.isEmpty {
            lines.append("  message: \(Display.text(message))\(Self.code(job.code))")
        }
        return lines + job.outputs.map { "  output: \(Display.path($0))" }
            + kept.map { "  kept: \(Display.path($0))" }
    }

    private static func words(for origin: EventOrigin) -> String {
        switch origin {
        case .live: "reported by the kernel"
        case .scan: "found at startup"
        case .rescan: "found by a rescan"
        case .poll: "found by polling"
        case .manual: "requested by hand"
        }
    }

    private static func code(_ code: String?) -> String { code.map { " (\(Display.text($0)))" } ?? "" }

    // MARK: Attempts

    private var attempts: [String] {
        details.attempts.enumerated().flatMap { index, attempt in
            // The last attempt of a failed job was not followed by a retry.
            let isFinal = details.job.state == .failed && index == details.attempts.count - 1
            let outcome = isFinal && attempt.outcome == "retry" ? "failed" : attempt.outcome
            var line = "attempt \(attempt.number): \(TimeText.long(attempt.started)), "
            line += "\(Reporter.seconds(attempt.duration)): \(Display.text(outcome))"
            if let status = attempt.status { line += ", exit status \(status)" }
            if let signal = attempt.signal { line += ", killed by signal \(signal)\(Self.name(signal))" }
            if !attempt.message.isEmpty { line += ": \(Display.text(attempt.message))" }
            return [line + Self.code(attempt.code)] + Self.changes(of: attempt)
        }
    }

    /// Returns lines for the changes of an attempt that can be undone, and whether they were.
    private static func changes(of attempt: AttemptEntry) -> [String] {
        attempt.changes.enumerated().flatMap { index, change -> [String] in
            let line = "  did: \(change.words)"
            guard let undo = attempt.undo else { return [line] }
            let undoneAt = TimeText.long(undo.time)
            guard let reason = undo.reasons[index] else { return [line, "    undone: \(undoneAt)"] }
            return [line, "    not undone: \(undoneAt): \(Display.text(reason))"]
        }
    }

    private static func name(_ signal: Int32) -> String { strsignal(signal).map { " (\(String(cString: $0)))" } ?? "" }

    /// The request and the log of the last attempt.
    private var last: [String] {
        guard let attempt = details.attempts.last else { return [] }
        var lines: [String] = []
        if let request = attempt.request {
            lines.append("request of attempt \(attempt.number):")
            let text = JSONValue(record: request.utf8)?.lines() ?? request
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

    /// Returns the last lines of a log, escaped for a terminal.
    private static func logLines(_ log: String) -> [String] {
        var bytes = log.utf8.suffix(logLimit)
        var lines: [String] = []
        if bytes.count < log.utf8.count {
            // Starts with a whole line, if there is one.
            if let newline = bytes.firstIndex(of: 0x0A), newline < bytes.endIndex {
                bytes = bytes[newline...].dropFirst()
            }
            lines.append("  [\(log.utf8.count - bytes.count) bytes left out]")
        }
        if bytes.last == 0x0A { bytes = bytes.dropLast() }
        // A tab advances no further than spaces do.
        return lines
            + bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map { line in
                let parts = line.split(separator: 0x09, omittingEmptySubsequences: false)
                return "  " + parts.map { Display.text($0) }.joined(separator: "    ")
            }
    }
}

extension WritingProcess {
    /// Formats the process: `cp (process 811, uid 1000, /usr/bin/cp)`.
    fileprivate var words: String {
        var known = ["process \(pid)"]
        if let uid { known.append("uid \(uid)") }
        if let executable { known.append(Display.path(executable)) }
        return "\(name.map { "\(Display.path($0)) " } ?? "")(\(known.joined(separator: ", ")))"
    }
}
