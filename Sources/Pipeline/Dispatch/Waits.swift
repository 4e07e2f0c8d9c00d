import Monitoring
import FileEvents
import Gates
import Rules
import System

extension Engine {
    /// Records and reports a wait if it is long; one without a known end is checked again when it becomes long.
    func record(_ wait: inout GateWait, of event: FileEvent, _ state: RuleState) {
        let waiting = wait.waiting
        guard waiting.cause != .busy, waiting.cause != .loop else { return }
        let now = host.clock.time()
        let left = LongWaits.threshold - now.since(event.time)
        if wait.end == nil, left > .zero, let until = wait.until {
            wait.until = min(until, host.clock.now() + left)
        }
        let long = LongWait(
            rule: state.rule.name, path: event.path, waiting: waiting, since: event.time, until: wait.end)
        // An incomplete set is reported with all of its files.
        let isReported = waiting.cause == .group && wait.until == nil
        if state.waits.record(long, at: now), !isReported { report(.longWait(long)) }
    }
}
