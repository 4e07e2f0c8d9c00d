import Synchronization
import System

/// The clock that determines when paths settle.
public struct ObservationClock: Sendable {
    /// The monotonic clock of the system.
    public static let continuous = ObservationClock(manual: nil)

    /// Returns a clock that only a test advances.
    public static func manual(_ clock: ManualClock) -> ObservationClock { ObservationClock(manual: clock) }

    let manual: ManualClock?

    var now: ContinuousClock.Instant { manual?.now ?? ContinuousClock.now }

    /// Returns the time at which a sleeper has to wake up by itself; nil when the clock wakes it.
    func deadline(_ instant: ContinuousClock.Instant?) -> ContinuousClock.Instant? { manual == nil ? instant : nil }
}

/// A clock for tests, which only moves when it is advanced.
///
/// One clock may serve several observers. The times in events still come from the
/// system's clock, because they are compared with those of files.
public final class ManualClock: Sendable {
    private struct State {
        var now = ContinuousClock.now
        var sleepers: [ObjectIdentifier: Wake] = [:]
    }

    private let state = Mutex(State())

    /// Creates a clock that is set to the current time.
    public init() {}

    /// The time of this clock.
    public var now: ContinuousClock.Instant { state.withLock { $0.now } }

    /// Advances the clock, and wakes the observers to process what is due by then.
    ///
    /// They do so on their own threads; see ``FileObserver/catchUp()``.
    public func advance(by duration: Duration) {
        let sleepers = state.withLock { state in
            state.now += duration
            return Array(state.sleepers.values)
        }
        for sleeper in sleepers { sleeper.signal() }
    }

    func add(_ wake: Wake) { state.withLock { $0.sleepers[ObjectIdentifier(wake)] = wake } }
    func remove(_ wake: Wake) { state.withLock { $0.sleepers[ObjectIdentifier(wake)] = nil } }
}
