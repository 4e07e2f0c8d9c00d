import Engine
import Synchronization
import TestKit
import Testing

struct WorkerPoolTests {
    @Test func `work that was taken for quick and is not runs side by side once the rest is woken`() {
        let pool = WorkerPool(limit: 4)
        let started = Atomic(0)
        for round in 1...20 {
            let gate = Gate()
            let work = { @Sendable in
                started.add(1, ordering: .relaxed)
                gate.pass()
            }
            pool.submit([work, work, work, work], isQuick: true)
            pool.wakeRest()
            #expect(Deadline.wait { started.load(ordering: .relaxed) == 4 * round })
            gate.open()
        }
    }
}
