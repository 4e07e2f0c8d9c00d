package import CoreMetrics
import FileEvents
import PluginProtocol
import Rules
import Synchronization

/// Counts the work of the engine, for a metrics system.
///
/// Called on the engine's thread. Values that can be read at any time, such as the number of waiting jobs, are not
/// counted here.
package final class EngineMetrics: Sendable {
    private let factory: any MetricsFactory
    private let hints: Counter
    package let settle: Timer
    package let wait: Timer
    /// The counters of rules, by name, rule, and kind or state; a lookup by labels costs more than counting.
    private let counters = Mutex<[[String]: Counter]>([:])
    private let timers = Mutex<[String: Timer]>([:])

    /// - Parameter factory: Creates the metrics.
    package init(_ factory: any MetricsFactory) {
        self.factory = factory
        hints = Counter(label: "alight_hints_total", factory: factory)
        settle = Timer(label: "alight_settle_seconds", factory: factory)
        wait = Timer(label: "alight_wait_seconds", factory: factory)
    }

    /// The names of all metrics that are counted, each with a description.
    package static let help = [
        "alight_hints_total": "Paths to check that the kernel or a scan reported.",
        "alight_events_total": "Events whose jobs have finished or have finished an attempt, by rule and kind.",
        "alight_attempts_total": "Finished attempts whose actions have started, by rule and outcome.",
        "alight_jobs_total": "Finished jobs, by rule and state.",
        "alight_settle_seconds": "Time from the last change of a file by another program to its event.",
        "alight_wait_seconds": "Time from an event, or a manual retry, to the start of the first attempt at its job.",
        "alight_run_seconds": "Duration of attempts, by rule.",
        "alight_overflows_total": "Overflows of the kernel's event queue.",
        "alight_rescan_found_total": "Changed paths that a comparison with the disk found and no event had reported.",
    ]

    package func recordHints(_ count: Int) { if count > 0 { hints.increment(by: count) } }

    package func record(_ report: AttemptReport) {
        if report.isFirst { count("alight_events_total", rule: report.rule, "kind", report.event.rawValue) }
        if report.hasStarted { recordAttempt(report) }
        guard report.state != .pending, report.state != .running else { return }
        count("alight_jobs_total", rule: report.rule, "state", report.state.rawValue)
    }

    private func recordAttempt(_ attempt: AttemptReport) {
        count("alight_attempts_total", rule: attempt.rule, "outcome", attempt.result.rawValue)
        timers.withLock { timers in
            let timer =
                timers[attempt.rule]
                ?? Timer(label: "alight_run_seconds", dimensions: [("rule", attempt.rule)], factory: factory)
            timers[attempt.rule] = timer
            timer.record(attempt.duration)
        }
    }

    package func recordOverflow() { Counter(label: "alight_overflows_total", factory: factory).increment() }

    package func recordFound() { Counter(label: "alight_rescan_found_total", factory: factory).increment() }

    private func count(_ label: String, rule: String, _ name: String, _ value: String) {
        counters.withLock { counters in
            let key = [label, rule, value]
            let counter =
                counters[key]
                ?? Counter(label: label, dimensions: [("rule", rule), (name, value)], factory: factory)
            counters[key] = counter
            counter.increment()
        }
    }
}

extension Timer {
    package func record(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        recordNanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }
}
