import FileEvents
import Journaling
import Rules
import Settling

// Rules that run at certain hours.
extension Dispatcher {
    /// How often the clock is looked at while something waits for it: it may be set.
    private static var period: Duration { .seconds(60) }

    /// Makes the jobs of rules due whose hours have begun, be it because the clock was set.
    mutating func openWindows(at now: ContinuousClock.Instant) {
        guard let look = clockLook, look <= now else { return }
        let time = host.clock.time()
        for name in openings.keys where ruleset.rule(named: name)?.window?.isOpen(at: time, clock) ?? true {
            openings[name] = nil
            journal.wake(rule: name, path: nil, now: now)
        }
        clockLook = openings.isEmpty ? nil : now + Self.period
    }

    /// Whether the rule waits for its hours.
    mutating func isClosed(_ rule: Rule, at now: ContinuousClock.Instant) -> Bool {
        guard let window = rule.window, !window.isOpen(at: host.clock.time(), clock) else {
            openings[rule.name] = nil
            return false
        }
        return true
    }

    /// Lets all due jobs of a rule rest until its hours begin, and tells of it once.
    ///
    /// - Returns: One that a person has asked for, who need not wait.
    mutating func putBackClosed(_ rule: Rule, at now: ContinuousClock.Instant) -> [Job] {
        guard let window = rule.window else { return [] }
        let jobs = journal.lease(rule: rule.name, limit: .max, busy: lanes.busy, now: now)
        guard !jobs.isEmpty else { return [] }
        let time = host.clock.time()
        let opening = window.opening(after: time, clock)
        let due = now + opening.since(time)
        let waiting = Waiting(.window, "its window opens at \(opening.local(clock))")
        let asked = jobs.first { $0.event.origin == .manual }
        for job in jobs where job.id != asked?.id {
            if job.event.origin == .manual {
                _ = journal.record(job, nil, .early(due: now), [])
            } else {
                _ = journal.record(job, nil, .early(due: due, waiting), [])
            }
        }
        if jobs.contains(where: { $0.event.origin != .manual }) {
            if openings[rule.name] != opening { report(.closed(rule: rule.name, opens: opening.local(clock))) }
            openings[rule.name] = opening
            clockLook = clockLook ?? now + Self.period
        }
        return asked.map { [$0] } ?? []
    }
}

extension Timestamp {
    /// `2026-11-21 22:00`, as the clock shows it.
    fileprivate func local(_ clock: LocalClock) -> String {
        let wall = Timestamp(seconds: seconds + clock.offset(seconds), nanoseconds: 0).description
        return String(wall.prefix(16)).replacing("T", with: " ")
    }
}
