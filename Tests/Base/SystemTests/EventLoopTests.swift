import CAlightLinux
import Glibc
import System
import Testing
import TestKit

struct EventLoopTests {
    @Test func `a call is made while all threads that run work are blocked`() {
        let pool = WorkerPool(limit: 3)
        let blocked = Locked(0)
        let mayEnd = Locked(false)
        let work: @Sendable () async -> Void = {
            blocked.change { $0 += 1 }
            _ = Deadline.wait { mayEnd.value }
        }
        pool.submit(Array(repeating: work, count: 3))
        #expect(Deadline.wait { blocked.value == 3 })
        let isCalled = Locked(false)
        EventLoop.shared.call { isCalled.change { $0 = true } }
        #expect(Deadline.wait { isCalled.value })
        mayEnd.change { $0 = true }
        #expect(Deadline.wait { pool.isAtRest })
    }

    @Test func `calls are made one at a time, and not before their time`() {
        let current = Locked(0)
        let most = Locked(0)
        let early = Locked(0)
        let done = Locked(0)
        for number in 0..<500 {
            let time = ContinuousClock.now + .microseconds(number % 7 * 700)
            EventLoop.shared.call(at: time) {
                if ContinuousClock.now < time { early.change { $0 += 1 } }
                current.change { $0 += 1 }
                most.change { $0 = max($0, current.value) }
                current.change { $0 -= 1 }
                done.change { $0 += 1 }
            }
        }
        #expect(Deadline.wait { done.value == 500 })
        #expect(most.value == 1)
        #expect(early.value == 0)
    }

    private final class Repeating: EventSource {
        let count = Locked(0)
        let mayEnd = Locked(false)

        func handle(_ number: Int?) {
            count.change { $0 += 1 }
            if !mayEnd.value { EventLoop.shared.report(0, to: self) }
        }
    }

    @Test func `an event that is reported again and again delays neither work nor other calls`() {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        let (reading, writing) = (OwnedDescriptor(ends[0]), OwnedDescriptor(ends[1]))
        let source = Repeating()
        defer { EventLoop.shared.forget(source) }
        EventLoop.shared.watch(reading.raw, CAL_RECEIVES, for: source, as: 0)
        #expect(write(writing.raw, "x", 1) == 1)
        #expect(Deadline.wait { source.count.value > 10 })
        let pool = WorkerPool(limit: 2)
        for round in 1...20 {
            let done = Locked(0)
            pool.submit([{ done.change { $0 += 1 } }, { done.change { $0 += 1 } }])
            EventLoop.shared.call { done.change { $0 += 1 } }
            #expect(Deadline.wait { done.value == 3 }, "round \(round)")
        }
        source.mayEnd.change { $0 = true }
    }
}
