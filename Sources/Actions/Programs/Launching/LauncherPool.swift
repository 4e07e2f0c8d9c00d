import FileEvents
import Synchronization
import System

/// The launchers that wait for their next program.
///
/// Starting one takes longer than starting a program; one that waits costs a
/// process of some hundred kilobytes. So they are kept while there is work and for
/// a while beyond it, and one of them as long as Alight runs.
final class LauncherPool: Sendable {
    private struct State {
        /// The one used last comes last.
        var idle: [(launcher: LauncherProcess, since: ContinuousClock.Instant)] = []
        var isTrimming = false
    }

    private let keeps: Bool
    private let idleTime: Duration
    private let state = Mutex(State())

    /// - Parameters:
    ///   - keeps: Whether launchers wait at all; else each program gets one of its own.
    ///   - idleTime: For how long all but one wait.
    init(keeps: Bool, idleTime: Duration = .seconds(10)) {
        self.keeps = keeps
        self.idleTime = idleTime
    }

    /// The launcher that has waited for the shortest time; nil when none waits.
    func take() -> LauncherProcess? { state.withLock { $0.idle.popLast()?.launcher } }

    /// Takes a launcher whose program has ended.
    func give(_ launcher: LauncherProcess) {
        let isNew = state.withLock { state in
            guard keeps else { return false }
            state.idle.append((launcher, .now))
            guard state.idle.count > 1, !state.isTrimming else { return false }
            state.isTrimming = true
            return true
        }
        if isNew { trimLater() }
    }

    /// Ends those that wait.
    func close() {
        let ended = state.withLock { state in
            defer { state.idle = [] }
            return state.idle
        }
        withExtendedLifetime(ended) {}
    }

    private func trimLater() {
        StarterThread.call(at: .now + idleTime) { [weak self] in self?.trim() }
    }

    /// Ends those that have waited for long, and comes back when others may have.
    private func trim() {
        let now = ContinuousClock.now
        let (ended, isDone) = state.withLock { state in
            let isLate = state.idle.dropLast().prefix { $0.since + idleTime <= now }
            state.idle.removeFirst(isLate.count)
            state.isTrimming = state.idle.count > 1
            return (isLate, !state.isTrimming)
        }
        withExtendedLifetime(ended) {}
        if !isDone { trimLater() }
    }
}
