import Configuration
import FileObserving
import Glibc
import Logging
import Pipeline
import Plugins
import Rules
import Storage
import System

/// Applies a rule to files in this process, which owns the journal, while no instance is running.
struct Applying {
    let rule: Rule
    let paths: [PathBytes]
    let jobs: Int

    /// Runs the actions, and reports their outcomes.
    ///
    /// - Returns: The exit status.
    /// - Throws: An `ObservationError` when no thread can be started.
    func run(_ journal: DiskStore, _ program: CommandContext) throws -> ExitStatus {
        let wanted = Set(paths)
        let progress = ApplyProgress(total: wanted.count, width: TerminalText.errorWidth)
        let reporter = Reporter(format: .text)
        let counts = Counts()
        let run = ApplyRun(
            rule, limit: jobs, store: journal, perform: { [runner = program.runner] in runner.run($0, $1) },
            log: Logger(label: "alight") { _ in ActionLog(reporter: reporter) },
            report: { report in
                for attempt in report.attempts where wanted.contains(attempt.path) && attempt.state != .pending {
                    counts.note(attempt.state)
                    if attempt.state == .failed { progress.say(AttemptLine(attempt).text(hasColor: false)) }
                }
                if !report.attempts.isEmpty {
                    progress.note(done: counts.done, failed: counts.failed)
                } else {
                    progress.end()
                    reporter.report(report)
                }
            })
        let stops = StopCount()
        let isSteerable = Signals.forEach { number in
            guard number != SIGUSR1 else { return }
            if stops.next() == 1 {
                progress.end()
                Output.error.write("stopping when the running actions finish; repeat the signal to stop at once")
                run.stop()
            } else {
                Output.hurry()
                run.stopAtOnce()
            }
        }
        guard isSteerable else { throw ObservationError.noThread }
        let requests = paths.map { JobRequest(id: JobID(now: DiskProbe.now()), rule: rule.name, path: $0) }
        let summary = run.run(requests)
        program.host.close(isAtOnce: stops.count > 1)
        progress.end()
        let fault = journal.close(at: DiskProbe.now()) ?? summary.fault
        // The error that stopped the run has already been reported.
        if let fault, fault.mayPass || fault != summary.fault {
            reporter.say(fault)
        }
        let files = Reporter.count(wanted.count, "file")
        if !summary.open.isEmpty {
            let rest = Reporter.count(summary.open.count, "file")
            Output.error.write("\(counts.done) of \(files) are done; \(rest) left to the next 'alight run'")
        } else {
            Output.error.write("\(files): \(counts.done - counts.failed) done, \(counts.failed) failed")
        }
        if fault != nil || !summary.open.isEmpty { return .runtimeError }
        return counts.failed > 0 ? .someFailed : .done
    }
}
