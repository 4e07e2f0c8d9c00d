import Configuration
import Engine
import Glibc
import Monitoring
import Plugins
import Records
import Rules
import Running
import Storage
import Synchronization
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
        program.reportSkippedDirectory()
        try program.requireScratch(for: [rule])
        let wanted = Set(paths)
        let progress = ApplyProgress(total: wanted.count, width: TerminalText.width(STDERR_FILENO))
        let reporter = Reporter(format: .text)
        let run = ApplyRun(
            rule, limit: jobs, store: journal, perform: { [runner = program.runner] in await runner.run($0, $1) },
            log: reporter.logger,
            report: { report in
                let ended = report.attempts.filter { wanted.contains($0.path) && $0.state != .pending }
                let failed = ended.filter { $0.state == .failed }
                for attempt in failed { progress.emit(AttemptLine(attempt).text(hasColor: false)) }
                if !report.attempts.isEmpty {
                    progress.add(done: ended.count, failed: failed.count)
                } else {
                    progress.end()
                    reporter.report(report)
                }
            })
        let stops = StopCount()
        try Signals.forEach { number in
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
        let requests = paths.map { JobRequest(id: JobID(now: DiskProbe.now()), rule: rule.name, path: $0) }
        let summary = run.run(requests)
        program.host.close(isAtOnce: stops.count > 1)
        progress.end()
        let failure = journal.close(at: DiskProbe.now()) ?? summary.error
        // The error that stopped the run has already been reported.
        if let failure, failure.mayPass || failure != summary.error { reporter.emit(failure) }
        let (done, failed) = progress.counts
        let files = Reporter.count(wanted.count, "file")
        if !summary.open.isEmpty {
            let rest = Reporter.count(summary.open.count, "file")
            Output.error.write("\(done) of \(files) are done; \(rest) left to the next 'alight run'")
        } else {
            Output.error.write("\(files): \(done - failed) done, \(failed) failed")
        }
        if failure != nil || !summary.open.isEmpty { return .runtimeError }
        return failed > 0 ? .someFailed : .done
    }
}

/// The progress of `alight apply` on standard error: a bar on a terminal, else a line for each tenth.
final class ApplyProgress: Sendable {
    private struct State {
        var done = 0
        var failed = 0
        var shownTenths = 0
        /// The time at which the bar was drawn; nil if it is not there.
        var drawn: ContinuousClock.Instant?
    }

    private let total: Int
    private let width: Int?
    private let start = ContinuousClock.now
    private let state = Mutex(State())

    /// Creates a progress display.
    ///
    /// - Parameters:
    ///   - total: The number of files.
    ///   - width: The width of the terminal of standard error; nil if it is not a terminal.
    init(total: Int, width: Int?) { (self.total, self.width) = (total, width) }

    /// The number of finished files, and how many of them have failed.
    var counts: (done: Int, failed: Int) { state.withLock { ($0.done, $0.failed) } }

    /// Records that more files have finished.
    func add(done: Int, failed: Int) {
        state.withLock { state in
            state.done += done
            state.failed += failed
            show(&state, isLast: state.done == total)
        }
    }

    /// Writes a line to standard output, and redraws the bar below it.
    func emit(_ line: String) {
        state.withLock { state in
            clear(&state)
            Output.standard.write(line)
            if width != nil, state.done < total { show(&state, isLast: false) }
        }
    }

    /// Removes the bar.
    func end() { state.withLock { clear(&$0) } }

    private func show(_ state: inout State, isLast: Bool) {
        let now = ContinuousClock.now
        guard let width else {
            let tenths = total == 0 ? 10 : state.done * 10 / total
            guard tenths > state.shownTenths else { return }
            state.shownTenths = tenths
            Output.error.write(fields(state, now))
            return
        }
        // Often enough to look alive, but not so often that it keeps the terminal busy.
        if let drawn = state.drawn, now - drawn < .milliseconds(100), !isLast { return }
        state.drawn = now
        let fields = fields(state, now)
        let available = min(40, width - TerminalText.columns(fields) - 4)
        var line = TerminalText.beginning(fields, max(1, width - 1))
        if available >= 5 {
            let filled = total == 0 ? available : state.done * available / total
            line =
                "[" + String(repeating: "#", count: filled) + String(repeating: "-", count: available - filled)
                + "] \(fields)"
        }
        Output.error.writeRaw("\r\u{1B}[K\(line)")
    }

    private func clear(_ state: inout State) {
        guard state.drawn != nil else { return }
        state.drawn = nil
        Output.error.writeRaw("\r\u{1B}[K")
    }

    /// Formats the progress: `120 of 1000, 12.3 a second, 3 failed`.
    private func fields(_ state: State, _ now: ContinuousClock.Instant) -> String {
        let seconds = max((now - start) / .seconds(1), 0.001)
        let rate = (Double(state.done) / seconds * 10).rounded() / 10
        return "\(state.done) of \(total), \(rate) per second, \(state.failed) failed"
    }
}
