import Rules
import Synchronization

/// The progress of `alight apply` on standard error: a bar on a terminal, else a line for each tenth.
final class ApplyProgress: Sendable {
    private struct State {
        var done = 0
        var failed = 0
        var shownTenths = 0
        var drawn: ContinuousClock.Instant?
        var isDrawn = false
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
    init(total: Int, width: Int?) {
        self.total = total
        self.width = width
    }

    /// The number of finished files, and how many of them have failed.
    var counts: (done: Int, failed: Int) { state.withLock { ($0.done, $0.failed) } }

    /// Records the progress.
    func note(done: Int, failed: Int) {
        state.withLock { state in
            state.done = done
            state.failed = failed
            show(&state, isLast: done == total)
        }
    }

    /// Writes a line to standard output, and redraws the bar below it.
    func say(_ line: String) {
        state.withLock { state in
            clear(&state)
            Output.standard.write(line)
            state.drawn = nil
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
            Output.error.write(facts(state, now))
            return
        }
        // Often enough to look alive, but not so often that it keeps the terminal busy.
        if let drawn = state.drawn, now - drawn < .milliseconds(100), !isLast { return }
        state.drawn = now
        state.isDrawn = true
        let facts = facts(state, now)
        let room = min(40, width - TerminalText.columns(facts) - 4)
        var line = TerminalText.beginning(facts, max(1, width - 1))
        if room >= 5 {
            let filled = total == 0 ? room : state.done * room / total
            line =
                "[" + String(repeating: "#", count: filled) + String(repeating: "-", count: room - filled)
                + "] \(facts)"
        }
        Output.error.writeRaw("\r\u{1B}[K\(line)")
    }

    private func clear(_ state: inout State) {
        guard state.isDrawn else { return }
        state.isDrawn = false
        Output.error.writeRaw("\r\u{1B}[K")
    }

    /// Formats the progress: `120 of 1000, 12.3 a second, 3 failed`.
    private func facts(_ state: State, _ now: ContinuousClock.Instant) -> String {
        let seconds = max((now - start) / .seconds(1), 0.001)
        let rate = (Double(state.done) / seconds * 10).rounded() / 10
        return "\(state.done) of \(total), \(rate) per second, \(state.failed) failed"
    }
}

/// The number of finished jobs, and how many of them have failed.
final class Counts: Sendable {
    private let counts = Mutex((done: 0, failed: 0))

    var done: Int { counts.withLock { $0.done } }
    var failed: Int { counts.withLock { $0.failed } }

    func note(_ state: JobState) {
        counts.withLock { counts in
            counts.done += 1
            if state == .failed { counts.failed += 1 }
        }
    }
}
