import Synchronization
import System

/// The clock by which an observer lets paths settle.
public struct ObservationClock: Sendable {
    /// The monotonic clock of the system.
    public static let continuous = ObservationClock(manual: nil)

    /// A clock that moves only when a test moves it.
    public static func manual(_ clock: ManualClock) -> ObservationClock { ObservationClock(manual: clock) }

    private let manual: ManualClock?

    var now: ContinuousClock.Instant { manual?.now ?? ContinuousClock.now }

    /// When a sleeper has to wake by itself; nil when the clock wakes it.
    func deadline(_ instant: ContinuousClock.Instant?) -> ContinuousClock.Instant? { manual == nil ? instant : nil }

    func add(_ wake: Wake) { manual?.add(wake) }
    func remove(_ wake: Wake) { manual?.remove(wake) }
}

/// A clock for tests: it stands still until it is advanced.
///
/// One clock may serve several observers. The times in events are the system's
/// all the same, for they are compared with those of files.
public final class ManualClock: Sendable {
    private struct State {
        var now = ContinuousClock.now
        var sleepers: [ObjectIdentifier: Wake] = [:]
    }

    private let state = Mutex(State())

    /// Makes a clock that stands at the present.
    public init() {}

    /// Where it stands.
    public var now: ContinuousClock.Instant { state.withLock { $0.now } }

    /// Moves it on, and lets observers look at what is due by then.
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
