import Glibc
import Synchronization
import System

/// The idle launchers.
///
/// Starting a launcher takes longer than starting a program; an idle launcher costs a process of some ten kilobytes. So
/// launchers stay while there is work and for a while after that, and one of them as long as Alight runs.
final class LauncherPool: Sendable {
    private struct State {
        /// The idle launchers; the one used last comes last.
        var idle: [(launcher: LauncherProcess, since: ContinuousClock.Instant)] = []
        var isTrimming = false
    }

    private let idleTime: Duration
    private let state = Mutex(State())

    /// - Parameter idleTime: How long all launchers but one may be idle.
    init(idleTime: Duration = .seconds(10)) { self.idleTime = idleTime }

    /// Removes and returns the launcher that has been idle for the shortest time; nil when none is idle.
    func take() -> LauncherProcess? { state.withLock { $0.idle.popLast()?.launcher } }

    /// Adds a launcher whose program has exited.
    func give(_ launcher: LauncherProcess) {
        launcher.whenReady { [weak self, weak launcher] in
            if let launcher, launcher.hasExited { self?.remove(launcher) }
        }
        let isNew = state.withLock { state in
            state.idle.append((launcher, .now))
            return state.idle.count > 1 && !exchange(&state.isTrimming, with: true)
        }
        if isNew { trimLater() }
    }

    private func remove(_ launcher: LauncherProcess) {
        // It is released after the lock.
        _ = state.withLock { state in
            state.idle.firstIndex { $0.launcher === launcher }.map { state.idle.remove(at: $0) }
        }
    }

    /// Stops the idle launchers.
    func close() {
        // They are released after the lock.
        _ = state.withLock { exchange(&$0.idle, with: []) }
    }

    private func trimLater() { EventLoop.shared.call(at: .now + idleTime) { [weak self] in self?.trim() } }

    /// Stops the launchers that have been idle for long, and runs again later when others may have been.
    private func trim() {
        let now = ContinuousClock.now
        let (_, isDone) = state.withLock { state in
            let isLate = state.idle.dropLast().prefix { $0.since + idleTime <= now }
            state.idle.removeFirst(isLate.count)
            state.isTrimming = state.idle.count > 1
            return (isLate, !state.isTrimming)
        }
        if !isDone { trimLater() }
    }
}
