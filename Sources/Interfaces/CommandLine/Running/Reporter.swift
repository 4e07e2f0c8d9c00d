import Configuration
import Engine
import FileEvents
import Gates
import Glibc
import JSON
import Logging
import Monitoring
import PluginProtocol
import Reconciling
import Records
import Rules
import System
import Watching

/// Prints the reports of the engine: attempts on standard output, everything else on standard error.
///
/// For the systemd journal, each line starts with its priority; see sd-daemon(3).
struct Reporter: Sendable {
    let format: LogFormat
    /// The lowest level of messages to print.
    var minimum = LogLevel.info

    // Long because the message of each report is here.
    func report(_ report: EngineReport) {
        switch report {
        case .ready(let directories, let rules): emit(.notice, "ready: \(Self.watching(directories, rules))")
        case .reloaded(let directories, let rules): emit(.notice, "reloaded: \(Self.watching(directories, rules))")
        case .notReloaded(let error):
            emit(error)
            emit(.error, "the new rules are rejected; the rules loaded before stay in effect")
        case .notCreated(let error): emit(error)
        case .accepted: break
        case .paused(let pauses): emit(.notice, Self.words(pauses))
        case .attempt, .batch: write(report)
        case .loopDetected(let rule, let path, let limit, let pause):
            emit(
                .error,
                "the rule has run \(limit) times for '\(Display.path(path))' within \(Self.seconds(pause)), like rules "
                    + "that trigger themselves or each other; it does not run for this path for \(Self.seconds(pause))",
                help: "let the action write outside of 'path:', list what it writes in 'outputs:', "
                    + "or set 'own_writes: ignore'; 'alight jobs --state failed' shows the last event",
                fields: ["rule": rule])
        case .chainDetected(let rule, let path, let limit):
            emit(
                .error,
                "the rule does not run for '\(Display.path(path))', to which \(limit) actions one after the other have "
                    + "led, as with rules that run for what they write themselves",
                help: "let the action write outside of 'path:', or list what it writes in 'outputs:'; "
                    + "'alight jobs --state failed' shows these files",
                fields: ["rule": rule])
        case .superseded(let rule, let job, let path, _):
            emit(
                .notice, "'\(Display.path(path))' changed before its action started; waiting until it settles again",
                fields: ["rule": rule, "job": job.description, "code": "superseded"])
        case .slowed(let rule, let failures, let cannotStart, let message):
            let cause = message.isEmpty ? "" : ", the last one: \(Display.text(message))"
            emit(
                .error,
                "\(failures) failures in a row\(cause); jobs are tried one at a time, every 1 s to 1 min, "
                    + "until one succeeds",
                help: cannotStart ? "check that its program exists and is executable" : nil, fields: ["rule": rule])
        case .recovered(let rule): emit(.notice, "a job has succeeded; the other jobs continue", fields: ["rule": rule])
        case .watching(let watching): self.watching(watching)
        case .writersUnreported(let error): reportMissingWriters(error)
        case .notice(.stillWritten(let path, let duration)):
            let minutes = duration.components.seconds / 60
            emit(.warning, "'\(Display.path(path))' has been open for writing for \(minutes) minutes; still waiting")
        case .notice(.unreadable(let path, let errno)):
            emit(.error, "cannot stat '\(Display.path(path))': \(SystemError(errno: errno))")
        case .incomplete(let rule, let path, let missing, let duration):
            let kinds = Display.list(missing)
            emit(
                .warning,
                "'\(Display.path(path))' has waited \(duration.components.seconds / 60) minutes for \(kinds) of its group",
                help: "add the missing files, or remove them from 'require:'", fields: ["rule": rule])
        case .longWait(let wait):
            emit(
                wait.waiting.cause == .unreadable ? .warning : .notice,
                "the action for '\(Display.path(wait.path))' waits: \(Display.text(wait.waiting.message))",
                fields: ["rule": wait.rule])
        case .closed(let rule, let opens):
            emit(.notice, "jobs wait for the rule's window, which opens at \(opens)", fields: ["rule": rule])
        case .newPath(let rule, let others):
            emit(
                .notice,
                "a new rule: a rule without a name is identified by its path, and no rule has the path "
                    + "\(Display.list(others)) any more",
                help: "to continue an earlier rule, add its path as 'formerly: \"PATH\"', and a 'name'",
                fields: ["rule": rule])
        case .waiting(let rule, let jobs):
            emit(
                .warning, "the rule is not loaded; keeping \(Self.count(jobs, "job")) until it is loaded again",
                help: "if the rule has a new name or path, add 'formerly: \"\(Display.text(rule))\"' to it",
                fields: ["rule": rule])
        case .ignored(let rule, let files):
            emit(
                .notice, "the rule ignores \(Self.count(files, "existing file"))",
                help: "'alight apply' runs it for them; 'existing: process' does so at a rule's first start",
                fields: ["rule": rule])
        case .journal(let error?): emit(error)
        case .journal(nil): emit(.notice, "the journal can be written again")
        case .draining(let jobs):
            emit(
                .notice,
                jobs == 0
                    ? "stopping" : "stopping: finishing \(Self.count(jobs, "job")); repeat the signal to stop at once")
        case .alive: break
        }
    }

    /// Reports an event of the watcher.
    func watching(_ report: WatchReport) {
        switch report {
        case .ready, .rescanned, .listing, .listed, .changed, .overflowAgain, .companions: break
        case .progress(let directories):
            if Output.error.hasColor { emit(.notice, "listing: \(directories) directories so far") }
        case .overflow:
            emit(.warning, "the kernel queue overflowed; rescanning all files (events may be late, none are lost)")
        case .rootMissing(let root, let directory):
            emit(.notice, "'\(Display.path(root))' does not exist; waiting for it in '\(Display.path(directory))'")
        case .rootAppeared(let root): emit(.notice, "'\(Display.path(root))' exists now")
        case .unmounted(let directory, _):
            emit(
                .warning,
                "the file system at '\(Display.path(directory))' was unmounted; its files are not reported as deleted")
        case .mounted(let directory): emit(.notice, "a file system was mounted at '\(Display.path(directory))'")
        case .polling(let directory, let reason, let interval): reportPolling(directory, every: interval, reason.text)
        case .limited(let limit, let needed, let polled):
            emit(
                .warning,
                "\(limit.name) is \(limit.value), and \(needed) \(needed == 1 ? "is" : "are") needed; "
                    + "\(Self.count(polled, "directory")) will be polled instead",
                help: "raise it: sysctl \(limit.name)=\(needed)")
        case .writersUnreported(let directory, let errno):
            emit(
                .warning,
                "the file system of '\(Display.path(directory))' does not report who writes "
                    + "(\(SystemError(errno: errno))); 'by' is omitted, and 'where: { by: … }' does not match there",
                help: "move the directory to a local file system, or remove 'by'")
        case .failure(let error): emit(.error, Display.text(error.description), help: error.help)
        }
    }

    func reportPolling(_ directory: PathBytes, every interval: Duration, _ reason: String) {
        emit(.notice, "polling '\(Display.path(directory))' every \(Self.seconds(interval)): \(reason)")
    }

    // MARK: Messages

    /// Returns whether messages of this level are printed.
    func logs(_ level: LogLevel) -> Bool { level.priority <= minimum.priority }

    /// Writes a message to standard error, if its level is high enough.
    func emit(_ level: LogLevel, _ message: String, help: String? = nil, fields: [String: String] = [:]) {
        if logs(level) { log(level, message, help: help, fields: fields) }
    }

    /// Writes a message to standard error, regardless of the minimum level.
    func log(_ level: LogLevel, _ message: String, help: String? = nil, fields: [String: String] = [:]) {
        let about = fields["rule"].map { "\(Display.text($0)): " } ?? ""
        switch format {
        case .journal:
            let line = fields["line"].map { "\($0):\(fields["column"] ?? "1"):" } ?? ""
            let location = fields["file"].map { "\(Display.text($0)):\(line) " } ?? about
            Output.error.write("<\(level.priority)>\(location)\(message)" + (help.map { "; help: \($0)" } ?? ""))
        case .text:
            let prefix = level == .notice ? "" : "\(level.rawValue): "
            Output.error.write("\(prefix)\(about)\(message)" + (help.map { "\n    help: \($0)" } ?? ""))
        case .json:
            var object = [String: JSONValue](["level": level.rawValue, "message": message, "help": help])
            for (name, value) in fields where object[name] == nil { object[name] = .string(value) }
            Output.error.write(object.line)
        }
    }

    /// Prints a diagnostic about the rules.
    func emit(_ diagnostic: Diagnostic) {
        guard format != .text else {
            diagnostic.log(as: .text)
            return
        }
        let location = diagnostic.location
        var fields = ["file": location.file]
        if location.line > 0 { (fields["line"], fields["column"]) = ("\(location.line)", "\(location.column)") }
        emit(
            diagnostic.severity == .error ? .error : .warning, diagnostic.message, help: diagnostic.help, fields: fields
        )
    }

    /// Reports what was not finished.
    ///
    /// - Parameters:
    ///   - summary: The summary of the run.
    ///   - isRetained: Whether the next start continues with the unfinished jobs.
    func end(_ summary: EngineSummary, isRetained: Bool) {
        let level = isRetained ? LogLevel.notice : .warning
        if !summary.unsettled.isEmpty {
            let paths = Display.list(summary.unsettled.prefix(5))
            let more = summary.unsettled.count > 5 ? ", …" : ""
            let noun = summary.unsettled.count == 1 ? "path was" : "paths were"
            let then = isRetained ? "left for the next start" : "not handled"
            emit(level, "\(summary.unsettled.count) \(noun) still settling, and \(then): \(paths)\(more)")
        }
        reportIdle(summary)
        guard summary.unfinished > 0 else { return }
        let jobs = Self.count(summary.unfinished, "job")
        emit(level, isRetained ? "left for the next start: \(jobs)" : "not finished: \(jobs)")
    }

    /// Reports why a run with `--once` had nothing to do.
    func reportIdle(_ summary: EngineSummary) {
        guard summary.isIdle, summary.error == nil else { return }
        guard summary.known > 0 else { return emit(.notice, "nothing to do: no file matches a rule") }
        emit(
            .notice, "nothing to do: \(Self.count(summary.known, "known file"))",
            help: "'alight apply RULE PATH' runs a rule for files that it knows")
    }

    static func count(_ number: some BinaryInteger, _ noun: String) -> String {
        if number == 1 { return "1 \(noun)" }
        return "\(number) " + (noun.hasSuffix("y") ? "\(noun.dropLast())ies" : "\(noun)s")
    }

    static func watching(_ directories: Int, _ rules: Int) -> String {
        "watching \(count(directories, "directory")) for \(count(rules, "rule"))"
    }

    private static func words(_ pauses: Pauses) -> String {
        if pauses.all { return "all rules are paused: jobs wait until 'alight resume'" }
        if pauses.isEmpty { return "no rules are paused" }
        let names = Display.list(pauses.rules.sorted())
        return "paused: \(names); jobs wait until 'alight resume'"
    }

    // MARK: Actions

    /// Prints the attempts of a report: one line as text, or one JSON object per event.
    private func write(_ report: EngineReport) {
        let attempts = report.attempts.filter { logs($0.level) && (format == .json || !$0.isExcluded) }
        guard let first = attempts.first else { return }
        let hasColor = Output.standard.hasColor
        switch (format, report) {
        case (.journal, _):
            for attempt in attempts {
                Output.standard.write("<\(attempt.level.priority)>\(AttemptLine(attempt).story(hasColor: false))")
            }
        case (.text, .batch): Output.standard.write(Self.line(attempts, hasColor: hasColor))
        case (.text, _): Output.standard.write(AttemptLine(first).text(hasColor: hasColor))
        case (.json, _):
            for attempt in attempts {
                var object = Self.object(attempt)
                if case .batch = report { object["batch"] = attempts.count.member }
                Output.standard.write(object.line)
            }
        }
    }

    /// Formats a batch: `10:24:03 index: 12 files: succeeded in 0.41 s`.
    ///
    /// With several outcomes: `… 12 files: 11 succeeded, 1 failed in …: b.txt: no room`. Messages that are not common to
    /// all files are printed with the file's path, failures first.
    static func line(_ reports: [AttemptReport], hasColor: Bool) -> String {
        let reports = reports.map { AttemptLine($0) }
        guard let first = reports.first, let time = first.time else { return "" }
        var line = "\(TimeText.clock(time)) \(Display.text(first.rule)): \(count(reports.count, "file")): "
        var words: [String] = []
        for report in reports where !words.contains(report.word) { words.append(report.word) }
        line += words.map { shown in
            let alike = reports.filter { $0.word == shown }
            let text = words.count == 1 ? shown : "\(alike.count) \(shown)"
            return colored(text, alike.first?.state ?? first.state, hasColor)
        }.joined(separator: ", ")
        line += " in \(seconds(first.duration))"
        // Of several outcomes, the worst is the most important.
        let ranked = reports.sorted { $0.rank < $1.rank }
        let worst = ranked[0]
        let isCommon = reports.allSatisfy { $0.word == first.word && $0.summary == first.summary }
        guard !isCommon else { return line + (first.summary.isEmpty ? "" : ": \(first.summary)") + worst.ending }
        let reporting = ranked.filter { !$0.summary.isEmpty }
        let shown = reporting.prefix(mostShown).map { "\(Display.path($0.path)): \($0.summary)" }
        let more = reporting.count > mostShown ? ["\(reporting.count - mostShown) more"] : []
        if !shown.isEmpty { line += ": " + (shown + more).joined(separator: "; ") }
        return line + worst.ending
    }

    /// The maximum number of files of a batch whose messages are printed individually.
    private static let mostShown = 3

    /// Returns a word in the color of a state.
    static func colored(_ word: String, _ state: JobState, _ hasColor: Bool) -> String {
        let color =
            switch state {
            case .succeeded: "32"
            case .skipped: "36"
            case .failed: "31"
            case .pending, .running: "33"
            }
        return Display.painted(word, hasColor ? color : nil)
    }

    /// Returns the JSON object of an attempt; ``AttemptLine`` parses it.
    static func object(_ report: AttemptReport) -> [String: JSONValue] {
        let outcome = report.outcome
        return .init([
            "time": report.time.description, "rule": report.rule, "event": report.event.rawValue,
            "job": report.job.description, "attempt": report.attempt, "max_attempts": report.maximumAttempts,
            "action": report.action, "outcome": outcome.result.rawValue, "state": report.state.rawValue,
            "message": outcome.message, "duration_ms": report.duration.milliseconds, "code": outcome.code,
            "retry_ms": report.pause?.milliseconds,
            "outputs": outcome.outputs.isEmpty ? nil : outcome.outputs.json,
            "values": outcome.values.isEmpty ? nil : outcome.values, "path": report.path, "from": report.from,
        ])
    }

    static func seconds(_ duration: Duration) -> String {
        let milliseconds = duration.milliseconds
        if milliseconds < 1000 { return "\(Int(milliseconds.rounded())) ms" }
        if milliseconds < 60_000 { return "\((milliseconds / 100).rounded() / 10) s" }
        let (minutes, seconds) = (Int(milliseconds / 60_000), Int(milliseconds / 1000) % 60)
        return seconds == 0 ? "\(minutes) min" : "\(minutes) min \(seconds) s"
    }
}

extension AttemptReport {
    /// The level of the attempt as a message.
    var level: LogLevel {
        switch state {
        case .succeeded, .skipped, .running: .info
        case .pending: outcome.result == .notReady || outcome.isInterrupted ? .info : .warning
        case .failed: .error
        }
    }

    /// Whether a condition excluded the file.
    ///
    /// That is not reported, like a file that the path does not match.
    fileprivate var isExcluded: Bool { state == .skipped && outcome.code == "where" }
}

extension LogLevel {
    /// The priority of syslog(3).
    fileprivate var priority: Int {
        switch self {
        case .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        }
    }
}

extension Reporter {
    /// Reports once that the writers of files are not known.
    func reportMissingWriters(_ error: WatchError) {
        let effect = "'by' is omitted, and 'where: { by: … }' matches no files"
        switch error {
        case .refused(_, errno: EPERM):
            emit(
                .warning, "the kernel reports who writes only to processes with CAP_SYS_ADMIN; \(effect)",
                help: "run Alight as root, or remove 'by'")
        case .refused(_, let errno):
            emit(
                .warning, "cannot find out who writes (fanotify: \(SystemError(errno: errno))); \(effect)",
                help: errno == EMFILE
                    ? "raise fs.fanotify.max_user_groups" : "run Linux 5.9 or later with fanotify, or remove 'by'")
        case .notDirectory: emit(.warning, Display.text(error.description), help: error.help)
        }
    }
}

extension PollingReason {
    /// The reason why a directory is polled, as a message for users.
    var text: String {
        switch self {
        case .asked: "the rule sets 'backend: poll'"
        case .fileSystem(let name): "the kernel does not report all changes on \(name)"
        }
    }
}

/// The log of handlers and plugins: standard error, in the format of the run.
struct ActionLog: LogHandler {
    let reporter: Reporter
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let level: LogLevel =
            switch event.level {
            case .trace, .debug: .debug
            case .info, .notice: .notice
            case .warning: .warning
            case .error, .critical: .error
            }
        let fields = metadata.merging(event.metadata ?? [:]) { $1 }
        reporter.emit(level, Display.text(event.message.description), fields: fields.mapValues(\.description))
    }
}

extension Reporter {
    /// The logger of actions.
    var logger: Logger {
        let level = Logger.Level(rawValue: minimum.rawValue) ?? .info
        return Logger(label: "alight") { _ in ActionLog(reporter: self, logLevel: level) }
    }
}
