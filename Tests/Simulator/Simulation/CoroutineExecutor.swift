import Pipeline

/// An executor that runs attempts as coroutines.
final class CoroutineExecutor: AttemptExecutor, @unchecked Sendable {
    // The simulation outlives its engine.
    unowned let simulation: SimulatedRun

    init(_ simulation: SimulatedRun) { self.simulation = simulation }

    func submit(_ work: [@Sendable () -> Void], isQuick: Bool) {
        for attempt in work { simulation.activities.append(SimulatedRun.Activity(Coroutine { _ in attempt() })) }
    }

    func wakeRest() {}
}
