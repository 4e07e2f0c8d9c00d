import FileEvents
import JSON
import Plugins
import Rules
import Storage
import System
import Watching

// The explanation as text.
extension PathExplanation {
    var text: String {
        let head = "\(Display.path(path)): \(what)"
        return ([head] + coverage.lines(of: path) + rules.flatMap(lines)).joined(separator: "\n")
    }

    private var what: String {
        switch inspected {
        case .absent: "does not exist"
        case .unreadable(let errno): "cannot be accessed: \(SystemError(errno: errno))"
        case .present(let snapshot):
            snapshot.type == .file ? "a file of \(Reporter.count(snapshot.size, "byte"))" : Self.noun(snapshot.type)
        }
    }

    private func lines(_ entry: OfRule) -> [String] {
        let explanation = entry.explanation
        let rule = explanation.rule
        let name = "  rule '\(Display.text(rule.name))' (\(Display.text(rule.location.description)))"
        var details = entry.alias.map { ["by the name \(Display.path($0))"] } ?? []
        var verdict = "match"
        switch explanation.verdict {
        case .unmatched(let reason):
            let (_, message, help) = explanation.words(for: reason)
            verdict = "no match: \(message)"
            if let help { details.append("help: \(help)") }
        case .matched(let location): details += whole(entry, location)
        }
        return ["\(name): \(verdict)"] + (details + entry.record.lines(now: now)).map { "    \($0)" }
    }

    /// Returns all lines for a match.
    private func whole(_ entry: OfRule, _ location: Explanation.Location) -> [String] {
        let explanation = entry.explanation
        let rule = explanation.rule
        var details = ["root: \(Display.path(location.root)), relative path: \(Display.path(location.relative))"]
        if let unit = location.unit {
            details.append("part of \(Display.path(unit)), which the rule receives as one item")
        }
        let shared = coverage.polling(of: location.root, unlike: explanation)
        details.append("watched: \(shared ?? explanation.watching)")
        details.append("events: \(EventSpelling.words(of: rule.events).joined(separator: ", "))")
        details.append("settled: \(explanation.settling)")
        details += explanation.findings.map { "where: \(Display.text($0))" }
        if let reason = explanation.unknownCondition {
            details.append("'where' cannot be evaluated: \(Display.text(reason))")
        }
        if rule.existing != .process { details.append("ignores existing files at the start ('existing: ignore')") }
        details += rule.runningWords
        if entry.isUnchanged { details.append("now: unchanged since it was recorded; nothing runs until it changes") }
        details += explanation.holds.map { "now: \($0.words(of: explanation.path))" }
        details += entry.waitReasons.map { "would wait: \(Display.text($0.message))" }
        if let next = entry.next { details.append("event: \(next.words)") }
        if let question = entry.question { details += question.lines(verb: "would ask first") }
        let count = entry.steps.count
        return details
            + entry.steps.enumerated().flatMap { number, step in
                let verb = count == 1 ? "would run" : "would run, \(number + 1) of \(count)"
                return step.plans.flatMap { $0.lines(verb: verb) }
            }
    }

    static func noun(_ type: FileType) -> String {
        switch type {
        case .file: "a file"
        case .directory: "a directory"
        case .symlink: "a symbolic link"
        case .other: "a pipe, socket or device"
        }
    }
}

extension Coverage {
    /// Returns how a root is polled because another rule sets that; nil if it is not.
    fileprivate func polling(of path: PathBytes, unlike explanation: Explanation) -> String? {
        guard let root = roots.first(where: { $0.path == path }), root.polling == .asked,
            explanation.rule.backend != .poll
        else { return nil }
        return "by polling every \(Explanation.shown(root.interval)) (another rule sets 'backend: poll')"
    }

    fileprivate func lines(of path: PathBytes) -> [String] {
        if roots.isEmpty {
            guard !others.contains(path) else { return ["  a root, in which matching paths are watched"] }
            guard !others.isEmpty else { return ["  not watched: no rule is in effect"] }
            let list = Display.list(others.prefix(5))
            return ["  not watched: it is outside of all roots: \(list)\(others.count > 5 ? ", …" : "")"]
        }
        return roots.map { root in
            let name = "the root '\(Display.path(root.path))'"
            if let obstacle = root.obstacle { return "  not watched: \(Display.text(obstacle.description))" }
            guard root.isThere else { return "  not watched yet: \(name) does not exist" }
            if let directory = root.unreached {
                return "  not watched below \(name): no rule matches anything below '\(Display.path(directory))'"
            }
            guard let reason = root.polling else { return "  watched below \(name), by inotify" }
            let cause = reason == .asked ? "a rule sets 'backend: poll'" : reason.text
            return "  watched below \(name), by polling every \(Explanation.shown(root.interval)) (\(cause))"
        }
    }
}

extension NextEvent {
    fileprivate var words: String {
        let word = ([event.kind.rawValue] + event.changed).joined(separator: ", ")
        return switch ground {
        case .asked: word
        case .unknown: "\(word), since the path is not in the journal"
        case .known: "\(word), since the path is in the journal"
        case .only: "\(word), which the rule receives"
        }
    }
}

extension ActionPlan {
    /// Returns lines for the action, with its placeholders expanded.
    fileprivate func lines(verb: String) -> [String] {
        var lines: [String]
        switch work {
        case .builtIn: lines = ["\(verb): \(text)"]
        case .impossible(let outcome): lines = ["\(verb), but it would fail: \(Display.text(outcome.message))"]
        case .program(let program):
            lines = ["\(verb), \(program.isShell ? "with" : "without") a shell: \(text)"]
            if program.isShell, let event = events.first { lines += Self.variables(of: event) }
            lines += program.environment.map { "  env: \($0.name)=\(ShellWord.quoted($0.value))" }
            if program.isServed { lines.append("  by a process that serves further requests") }
            if let directory = program.directory { lines.append("  in the directory \(Display.path(directory))") }
            lines += conditionWords.map { "  \($0)" }
        }
        lines += values.map { placeholder, value in
            if case .stepOutput(let step, _) = placeholder, value == Array("${\(placeholder.word)}".utf8) {
                return "  ${\(placeholder.word)} is known after step \(step + 1) has run"
            }
            return "  ${\(Display.text(placeholder.word))} is \(ShellWord.quoted(value))"
        }
        if events.count > 1 {
            lines.append("  together for \(events.map { Display.path($0.path) }.joined(separator: ", "))")
        }
        if case .program(let program) = work, program.plugin != nil {
            lines.append("  request: \(Display.text(program.request.line))")
        }
        return lines
    }

    /// Returns the environment variables that a shell command receives.
    private static func variables(of event: FileEvent) -> [String] {
        let relative = event.path.relative(to: event.root).map(Array.init) ?? Array(event.path.lastComponent)
        let values = [
            ("EVENT", Array(event.kind.rawValue.utf8)), ("PATH", event.path.bytes), ("RELATIVE", relative),
            ("ROOT", event.root.bytes),
        ]
        return values.map { "  ALIGHT_\($0)=\(ShellWord.quoted($1))" }
    }
}

extension PathRecord {
    /// Returns lines for the pending and the finished jobs.
    fileprivate func lines(now: Timestamp) -> [String] {
        let lines = open.map { job in
            var line = "\(job.state.rawValue): \(job.hasJob ? "\(job.id) " : "")\(Display.text(job.event))"
            if job.attempt > 0 { line += ", attempt \(job.attempt)" }
            // The reason of a due path has its date.
            if job.state == .pending, let due = job.due, job.hasJob || job.message == nil {
                line += ", due \(TimeText.short(due, now: now))"
            }
            return line
        }
        let ran = ended.map { job in
            "ran: \(job.id) \(Display.text(job.event)), \(TimeText.short(job.time, now: now)): \(job.state.rawValue)"
        }
        return zip(lines + ran, open + ended).map { line, job in
            job.message.map { $0.isEmpty ? line : "\(line): \(Display.text($0))" } ?? line
        }
    }
}

extension Explanation.WaitReason {
    fileprivate func words(of path: PathBytes) -> String {
        switch self {
        case .writer:
            if let writer = WriterSearch.writers(of: [path])[path]?.first {
                "\(Display.text(writer.name)) (process \(writer.process)) has it open for writing, so it would wait"
            } else {
                "a process has it open for writing, so it would wait"
            }
        case .lock: "a process holds a write lock on it, so it would wait"
        case .partial: "a file next to it shows that it is still being transferred ('ignore_partial'), so it would wait"
        case .unknown:
            "whether a process has it open for writing is unknown, so two checks, 1 s apart, would have to agree"
        }
    }
}

extension Explanation {
    fileprivate var watching: String {
        polling.map { "by polling every \(Self.shown(rule.pollInterval)) (\($0.text))" } ?? "by inotify"
    }

    fileprivate var settling: String {
        let settle = rule.settle
        let quiet = settle.quiet(isPolled: polling != nil)
        var parts = [quiet == .zero ? "at once" : "after \(Self.shown(quiet)) without a change"]
        if let stable = settle.stable(isPolled: polling != nil) {
            let times = stable.rounds == 1 ? "1 more check" : "\(stable.rounds) more checks"
            parts.append("size and time unchanged in \(times), \(Self.shown(stable.every)) apart")
        }
        if settle.writers == .wait, rule.types.contains(.file) || settle.isTree {
            parts.append("no process has it open for writing")
        }
        if settle.locks == .wait { parts.append("no process holds a write lock on it") }
        if let held = settle.whenHeld, settle.writers == .wait || settle.locks == .wait {
            parts.append("or, while one does, after \(Self.shown(held)) without a change ('when_held')")
        }
        if settle.partial == .ignore { parts.append("also while it is being transferred ('ignore_partial: false')") }
        if let longest = settle.maximumWait { parts.append("at the latest after \(Self.shown(longest))") }
        return parts.joined(separator: "; ")
    }

    /// Formats a duration: `500 ms`, `2 s`, `1.5 s`.
    static func shown(_ duration: Duration) -> String {
        if duration < .seconds(1) { return "\(Int((duration / .milliseconds(1)).rounded())) ms" }
        let seconds = ((duration / .seconds(1)) * 1_000).rounded() / 1_000
        return seconds == seconds.rounded() ? "\(Int(seconds)) s" : "\(seconds) s"
    }
}
