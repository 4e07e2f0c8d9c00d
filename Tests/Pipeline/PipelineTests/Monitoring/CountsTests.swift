import ControlAPI
import Engine
import FileEvents
import Monitoring
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// The numbers of the status, the history and the metrics, which have one definition each.
struct CountsTests {
    /// A clock that tests set.
    private static func host(_ seconds: Locked<Int>, from start: ContinuousClock.Instant) -> Host {
        let time: @Sendable () -> Timestamp = { Timestamp(seconds: Int64(seconds.value), nanoseconds: 0) }
        var clock = Clock()
        clock.now = { start + .seconds(seconds.value) }
        (clock.time, clock.fileTime) = (time, time)
        return Host(clock: clock)
    }

    private static func report(
        _ job: Job, _ rule: Rule, _ result: Outcome.Result, _ state: JobState, hasStarted: Bool = true
    ) -> EngineReport {
        .attempt(
            AttemptReport(
                job, rule, attempt: job.attempt, Outcome(result), duration: .milliseconds(3), state, pause: nil,
                hasStarted: hasStarted, at: job.event.time))
    }

    @Test func `after an hour with 10,000 files the status, the history and the metrics agree`() {
        let (seconds, start) = (Locked(0), ContinuousClock.now)
        let host = Self.host(seconds, from: start)
        let registry = PrometheusRegistry()
        let monitor = Monitor(EngineMetrics(registry), on: host)
        let rule = Rule.sample("r", ["/in/*"])
        for number in 0..<10_000 {
            seconds.change { $0 = number * 3600 / 10_000 }
            let event = FileEvent(
                kind: .created, path: PathBytes("/in/\(number)"), root: "/in", snapshot: .unseen, origin: .live,
                time: host.clock.time())
            // Each file is written twice, and every fifth one while the rule is paused: the earlier event is replaced.
            monitor.recordSettled(number % 5 == 0 ? [event, event] : [event], at: host.clock.now())
            var job = Job(id: JobID(now: event.time), rule: "r", event: event)
            job.attempt = 1
            switch number % 10 {
            case 0: monitor.record(Self.report(job, rule, .skipped, .skipped, hasStarted: false))
            case 1, 2:
                monitor.record(Self.report(job, rule, .retry, .pending))
                (job.attempt, job.isReported) = (2, true)
                let (result, state) =
                    number % 10 == 1 ? (Outcome.Result.retry, JobState.failed) : (.succeeded, .succeeded)
                monitor.record(Self.report(job, rule, result, state))
            case 3: monitor.record(Self.report(job, rule, .failed, .failed))
            default: monitor.record(Self.report(job, rule, .succeeded, .succeeded))
            }
        }
        let counts = monitor.status(at: host.clock.now()).counts
        #expect(counts.events == 10_000)
        #expect(counts.succeeded == 7_000 && counts.skipped == 1_000 && counts.failed == 2_000)
        #expect(counts.attempts == 11_000 && counts.failedAttempts == 4_000)
        let metrics = Set(registry.text().split(separator: "\n").map(String.init))
        for line in [
            #"alight_events_total{rule="r",kind="created"} 10000"#,
            #"alight_jobs_total{rule="r",state="succeeded"} 7000"#,
            #"alight_jobs_total{rule="r",state="skipped"} 1000"#, #"alight_jobs_total{rule="r",state="failed"} 2000"#,
            #"alight_attempts_total{rule="r",outcome="succeeded"} 7000"#,
            #"alight_attempts_total{rule="r",outcome="retry"} 2000"#,
            #"alight_attempts_total{rule="r",outcome="failed"} 2000"#, #"alight_run_seconds_count{rule="r"} 11000"#,
        ] {
            #expect(metrics.contains(line), "\(line)")
        }
        // The last half hour, from the file of that time on.
        seconds.change { $0 = 3600 }
        let points = monitor.history(at: host.clock.now(), wall: host.clock.time())
        #expect(points.reduce(0) { $0 + $1.events } == 5_000)
        #expect(points.reduce(0) { $0 + $1.succeeded + $1.skipped + $1.failed } == 5_000)
        let last = monitor.status(at: host.clock.now()).lastMinute
        #expect(last.events == points.suffix(11).reduce(0) { $0 + $1.events } && last.jobs == last.events)
    }
}
