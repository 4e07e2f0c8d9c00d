package import ActionAPI
import FileEvents
import Glibc
import Jobs
import Monitoring
package import Records
package import Rules
import System

/// The attempts whose leases are not committed yet: they prepare their actions, which start after the commit.
package struct PreparedAttempts {
    private let engine: EngineContext
    private let executor: any AttemptExecutor
    private var attempts: [Attempt] = []
    /// The permission of the attempts.
    private var permission = StartPermission()
    private var isSubmitted = false
    private let outputClaims: DestinationClaims

    package init(_ engine: EngineContext, limit: Int) {
        self.engine = engine
        outputClaims = DestinationClaims(engine.store, engine.host)
        executor = engine.options.executor ?? WorkerPool(limit: engine.options.isDry ? 1 : limit)
    }

    package var count: Int { attempts.count }

    package mutating func add(_ inputs: [OpenJob], _ rule: Rule, _ stop: StopSignal) {
        attempts.append(
            Attempt(inputs, rule, engine, stop: stop, permission: permission, outputClaims: outputClaims))
    }

    /// Starts the attempts on threads of the pool; their actions wait for ``launch(running:)``.
    package mutating func submit(running: Int) {
        guard !attempts.isEmpty, !isSubmitted else { return }
        isSubmitted = true
        let isQuick = engine.mailbox.gather(started: attempts.count, running: running)
        executor.submit(
            attempts.map { attempt in { await attempt.run() } }, isQuick: isQuick)
    }

    /// Lets the actions of the submitted attempts start.
    package mutating func launch(running: Int) {
        guard !attempts.isEmpty else { return }
        permission.grant()
        let time = engine.host.clock.time()
        engine.monitor.recordStarted(
            attempts.map { attempt in
                let job = attempt.inputs[0].job
                return EngineStatus.RunningAttempt(
                    job: job.id, jobs: attempt.inputs.count, rule: attempt.rule.name,
                    action: attempt.rule.actions(of: job).names, path: job.event.path, since: time,
                    takesSlot: attempt.rule.takesSlot)
            })
        let accepted = attempts.flatMap(\.inputs).map(\.job).filter { $0.attempt == 1 && $0.previous == nil }
        if !accepted.isEmpty { engine.report(.accepted(accepted)) }
        let isFirst = running == attempts.count
        clear()
        // The kernel prefers to wake threads on the waking processor; the rest of this turn can wait.
        if isFirst { sched_yield() }
    }

    /// Prevents the actions of the submitted attempts from starting, because the run is over.
    package mutating func refuse() {
        permission.refuse()
        clear()
    }

    private mutating func clear() {
        attempts = []
        permission = StartPermission()
        isSubmitted = false
    }

    /// Starts the work that waits for a thread of the pool.
    package func wakeRest() { executor.wakeRest() }
}
