import System
import Testing
import TestKit

struct WorkerPoolTests {
    @Test func `work that turns out to be slow runs in parallel after the other threads are woken`() {
        let pool = WorkerPool(limit: 2)
        // In the first rounds, threads may be awake without having been woken; in later rounds they are idle.
        for round in 1...10 {
            #expect(Deadline.wait { pool.isAtRest })
            let hasCome = Locked(false)
            let hasMet = Locked(Bool?.none)
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

    @Test func `half of the threads suffice for quick work`() {
        let pool = WorkerPool(limit: 2)
        let done = Locked(0)
        for round in 1...100 {
            pool.submit([{ done.change { $0 += 1 } }, { done.change { $0 += 1 } }], isQuick: true)
            #expect(Deadline.wait { done.value == 2 * round })
        }
    }

    @Test func `threads that are blocked are replaced by others, up to the limit`() {
        let pool = WorkerPool(limit: 20)
        let waiting = Locked(0)
        let mayEnd = Locked(false)
        for _ in 0..<25 {
            pool.submit([
                {
                    waiting.change { $0 += 1 }
                    _ = Deadline.wait { mayEnd.value }
                }
            ])
        }
        #expect(Deadline.wait { waiting.value == 20 })
        mayEnd.change { $0 = true }
        #expect(Deadline.wait { waiting.value == 25 && pool.isAtRest })
    }

    @Test func `a task that is suspended holds no thread`() {
        let pool = WorkerPool(limit: 1)
        let suspended = Locked<[CheckedContinuation<Void, Never>]>([])
        let ended = Locked(0)
        for _ in 0..<100 {
            pool.submit([
                {
                    await withCheckedContinuation { task in suspended.change { $0.append(task) } }
                    ended.change { $0 += 1 }
                }
            ])
        }
        #expect(Deadline.wait { suspended.value.count == 100 })
        for task in suspended.value { task.resume() }
        #expect(Deadline.wait { ended.value == 100 })
    }
}
