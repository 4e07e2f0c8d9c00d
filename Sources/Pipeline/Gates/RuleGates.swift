package import Rules
package import System

/// The gates of a rule as a whole, in the order of ``Gate``.
package struct RuleGates {
    package private(set) var window: WindowGate?
    /// Slows down a rule whose action fails; nil while it works.
    package var breaker: CircuitBreaker?
    /// Collects the events of a batch.
    package var batch: BatchWindow?

    package init(_ rule: Rule) { change(to: rule) }

    /// Sets another version of the rule; unchanged gates keep their state.
    package mutating func change(to rule: Rule) {
        if rule.window != window?.window { window = rule.window.map(WindowGate.init) }
        if rule.batch != batch?.batch { batch = rule.batch.map(BatchWindow.init) }
        breaker = nil
    }

    /// The first wait that holds the jobs of the rule.
    package struct Hold: Sendable {
        package var waiting: Waiting
        /// The time at which it ends, if known.
        package var end: Timestamp?
    }

    /// Returns the first wait that holds the jobs of the rule; nil for none.
    package func hold(isPaused: Bool, at time: GateTime) -> Hold? {
        if isPaused { return Hold(waiting: .paused) }
        if let breaker, breaker.isOpen {
            let end = breaker.nextProbe.map(time.time(of:))
            return Hold(waiting: .failing(until: end, time.clock), end: end)
        }
        if let opening = window?.opening(after: time) {
            return Hold(waiting: .window(opens: opening, time.clock), end: opening)
        }
        guard let end = batch?.deadline.map(time.time(of:)) else { return nil }
        return Hold(waiting: .batch(until: end, time.clock), end: end)
    }

    /// Checks the clock for the turn.
    package mutating func checkWindow(at time: GateTime) { window?.check(at: time) }

    /// The times at which they may let jobs run.
    package var deadlines: [ContinuousClock.Instant?] { [batch?.deadline, breaker?.nextProbe, window?.nextCheck] }
}

/// `window`: the hours in which actions start.
package struct WindowGate {
    package let window: RunWindow
    /// The time at which the window opens; nil if it was open at the last check.
    package private(set) var opens: Timestamp?
    /// The time of the next check; nil while the window is open, since each turn checks it.
    package private(set) var nextCheck: ContinuousClock.Instant?

    package init(_ window: RunWindow) { self.window = window }

    /// The maximum time after which the clock is checked again, since it may be set.
    package static let period = Duration.seconds(60)

    /// Returns the time at which the window opens; nil if it is open.
    package func opening(after time: GateTime) -> Timestamp? {
        if window.isOpen(at: time.time, time.clock) { return nil }
        return opens.flatMap { $0 > time.time ? $0 : nil } ?? window.opening(after: time.time, time.clock)
    }

    package mutating func check(at time: GateTime) {
        opens = opening(after: time)
        nextCheck = opens.map { time.now + min($0.since(time.time), Self.period) }
    }
}
