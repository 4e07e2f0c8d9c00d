import Pipeline
import TestKit
import Testing

struct WorkerPoolTests {
    @Test func `work that was taken for quick and is not runs side by side once the rest is woken`() {
        let pool = WorkerPool(limit: 2)
        // The first rounds may find threads awake that nobody has woken for them; the later ones find them at rest.
        for round in 1...10 {
            #expect(Deadline.wait { pool.isAtRest })
            let hasCome = Shared(false)
            let hasMet = Shared(Bool?.none)
            pool.submit(
                [
                    { hasMet.change { met in met = Deadline.wait(within: .seconds(20)) { hasCome.value } } },
                    { hasCome.change { $0 = true } },
                ], isQuick: true)
            pool.wakeRest()
            #expect(Deadline.wait { hasMet.value != nil })
            guard hasMet.value == true else {
                Issue.record("round \(round): the second work waited for the first to end")
                return
            }
        }
    }

    @Test func `half of the threads do for work that is quick`() {
        let pool = WorkerPool(limit: 2)
        let done = Shared(0)
        for round in 1...100 {
            pool.submit([{ done.change { $0 += 1 } }, { done.change { $0 += 1 } }], isQuick: true)
            #expect(Deadline.wait { done.value == 2 * round })
        }
    }
}
