import ActionAPI
import Configuration
import Engine
import FileEvents
import JSON
import Monitoring
import PluginProtocol
import Plugins
import Rules
import Storage
import System

/// The inputs and outputs of an engine for a dry run: actions are printed instead of run.
struct DryRun: Sendable {
    let runner: ActionRunner
    let reporter: Reporter

    /// Prints what a run would do before it watches.
    func start(_ ruleset: Ruleset) {
        reporter.emit(.notice, "dry run: nothing is run, written or sent")
        reportRoots(of: ruleset)
    }

    /// Prints the directories that a run would create.
    func reportRoots(of ruleset: Ruleset) {
        for (root, rule) in ruleset.rootsToMake(in: .kernel) {
            reporter.emit(.notice, "would create the directory '\(Display.path(root))'", fields: ["rule": rule])
        }
    }

    /// Prints what the action would do; replaces the engine's function that runs it.
    ///
    /// - Returns: Success for every action that could start, so that the following steps are printed too.
    func perform(_ action: Action, _ invocations: [Invocation]) -> [Outcome] {
        // The events of one attempt have different paths.
        var outcomes: [PathBytes: Outcome] = [:]
        for plan in runner.plan(action, invocations) {
            let paths = Set(plan.events.map(\.path))
            emit(plan, action, invocations.filter { paths.contains($0.job.event.path) })
            var outcome = Outcome(.succeeded, code: Self.code, outputs: plan.outputs)
            if case .impossible(let failure) = plan.work { outcome = failure }
            for path in paths { outcomes[path] = outcome }
        }
        return invocations.map { outcomes[$0.job.event.path] ?? Outcome(.succeeded, code: Self.code) }
    }

    /// The code of the outcome of an action that is not run.
    static let code = "would-run"

    /// Prints a line, or an object in its place.
    private func write(_ line: @autoclosure () -> String, _ object: @autoclosure () -> [String: JSONValue]) {
        Output.standard.write(
            reporter.format == .json ? object().merging(["dry_run": true]) { $1 }.line : line())
    }

    private func emit(_ plan: ActionPlan, _ action: Action, _ invocations: [Invocation]) {
        guard let first = invocations.first?.job else { return }
        let verb =
            switch plan.work {
            case .impossible: "would fail"
            case _ where action.isQuestion: "would ask"
            default: "would run"
            }
        guard reporter.format == .json else {
            let events = invocations.map { Self.story($0.job.event.kind, $0.job.event.path, from: $0.job.event.from) }
            let files = events.count == 1 ? events[0] : Reporter.count(events.count, "file")
            let lines = (events.count == 1 ? [] : events) + plan.conditionWords
            let head = "\(verb): \(Display.text(first.rule)): \(files): \(plan.text)"
            Output.standard.write(([head] + lines.map { "    \($0)" }).joined(separator: "\n"))
            return
        }
        for invocation in invocations {
            let job = invocation.job
            let members = [String: JSONValue]([
                "time": DiskProbe.now().description, "rule": first.rule, "event": job.event.kind.rawValue,
                "job": job.id.description, "attempt": job.attempt, "action": action.name, "dry_run": true,
                "step": invocation.steps.count, "outcome": verb.replacing(" ", with: "-"), "state": "pending",
                "message": plan.text, "batch": invocations.count > 1 ? invocations.count : nil,
                "path": job.event.path, "from": job.event.from,
            ])
            Output.standard.write(plan.members.merging(members) { $1 }.line)
        }
    }

    private static func story(_ kind: EventKind, _ path: PathBytes, from: PathBytes?) -> String {
        "\(kind.rawValue) \(Display.path(path))" + (from.map { " from \(Display.path($0))" } ?? "")
    }

    /// Reports what the engine reports, except for what has been printed already.
    func report(_ report: EngineReport) {
        if report.attempts.isEmpty { reporter.report(report) }
        // Failures have been printed already, and files excluded by a condition are not reported.
        for attempt in report.attempts where attempt.state == .skipped && attempt.outcome.code != "where" {
            let story = Self.story(attempt.event, attempt.path, from: attempt.from)
            write(
                "would skip: \(Display.text(attempt.rule)): \(story): \(Display.text(attempt.outcome.message))",
                Reporter.object(attempt).merging(["outcome": "would-skip"]) { $1 })
        }
    }

    /// Prints the jobs that would wait.
    func end(_ summary: EngineSummary, waiting jobs: [JobEntry]) {
        for job in jobs {
            let reason = job.message.flatMap { $0.isEmpty ? nil : $0 } ?? job.due.map { "due at \(TimeText.long($0))" }
            var object = job.object
            object["job"] = object["id"]
            object["outcome"] = "would-wait"
            object["message"] = .string(reason ?? "")
            write(
                "would wait: \(Display.text(job.rule)): \(job.event) \(Display.path(job.path))"
                    + (reason.map { ": \(Display.text($0))" } ?? ""), object)
        }
        reporter.reportIdle(summary)
        if !summary.unsettled.isEmpty {
            let paths = Reporter.count(summary.unsettled.count, "path")
            reporter.emit(.notice, "still settling at the end: \(paths)")
        }
    }
}
