import Handling
import Testing

/// What becomes of requests and processes, without any process.
struct ServePoolTests {
    private let start = ContinuousClock.now
    private func at(_ seconds: Double) -> ContinuousClock.Instant { start + .milliseconds(Int64(seconds * 1000)) }

    private func pool(parallel: Int = 1, concurrent: Int = 1) -> ServePool {
        ServePool(parallel: parallel, concurrent: concurrent, limits: ServeLimits())
    }

    private func submit(_ pool: inout ServePool, _ numbers: Int..., isAgain: Bool = false, at: Double) {
        for number in numbers {
            pool.submit(
                number, id: "job\(number)", attempt: 1, timeout: .seconds(60), isAgain: isAgain, at: self.at(at))
        }
    }

    private func answer(_ pool: inout ServePool, _ number: Int, from process: Int, at: Double) {
        pool.receive(.result(id: "job\(number)", attempt: 1, line: [0]), from: process, at: self.at(at))
    }

    private func ready(_ pool: inout ServePool, _ process: Int, _ window: Int = 1, at: Double) {
        pool.receive(.ready(protocol: 1, concurrent: window), from: process, at: self.at(at))
    }

    @Test func `the first request starts a process, and is sent when that is ready`() {
        var pool = pool()
        submit(&pool, 1, at: 0)
        #expect(pool.takeDecisions() == [.start(1)])
        #expect(pool.commands(of: 1, at: at(0)) == [.hello])
        ready(&pool, 1, at: 1)
        #expect(pool.commands(of: 1, at: at(1)) == [.run(1)])
        answer(&pool, 1, from: 1, at: 2)
        #expect(pool.takeDecisions() == [.reply(1, .answered([0], after: nil))])
    }

    @Test func `what finds no window waits for it, in order`() {
        var pool = pool()
        submit(&pool, 1, 2, 3, 4, at: 0)
        #expect(pool.takeDecisions() == [.start(1)])
        ready(&pool, 1, 2, at: 1)
        #expect(pool.commands(of: 1, at: at(1)) == [.hello, .run(1), .run(2)])
        answer(&pool, 2, from: 1, at: 2)
        #expect(pool.commands(of: 1, at: at(2)) == [.run(3)])
        // What a process has died with comes first.
        submit(&pool, 5, isAgain: true, at: 2)
        answer(&pool, 1, from: 1, at: 3)
        #expect(pool.commands(of: 1, at: at(3)) == [.run(5)])
    }

    @Test func `another process is started when all windows are full, up to the limit`() {
        var pool = pool(parallel: 3, concurrent: 2)
        submit(&pool, 1, 2, at: 0)
        #expect(pool.takeDecisions() == [.start(1)])
        submit(&pool, 3, at: 0)
        #expect(pool.takeDecisions() == [.start(2)])
        submit(&pool, 4, 5, 6, 7, 8, at: 0)
        #expect(pool.takeDecisions() == [.start(3)])
        ready(&pool, 2, 2, at: 1)
        ready(&pool, 3, 2, at: 1)
        #expect(pool.commands(of: 2, at: at(1)) == [.hello, .run(1), .run(2)])
        #expect(pool.commands(of: 3, at: at(1)) == [.hello, .run(3), .run(4)])
    }

    @Test func `the requests of one that died are lost, and the next start has to wait`() {
        var pool = pool()
        submit(&pool, 1, at: 0)
        ready(&pool, 1, 4, at: 1)
        submit(&pool, 2, 3, at: 1)
        _ = pool.takeDecisions()
        answer(&pool, 2, from: 1, at: 2)
        _ = pool.takeDecisions()
        pool.end(1, .signalled(9), lastLine: "oops", at: at(3))
        let reason = "was killed by signal 9: oops"
        #expect(
            pool.takeDecisions() == [
                .reply(1, .lost(reason, .signalled(9))), .reply(3, .lost(reason, .signalled(9))), .warn(reason),
            ])
        submit(&pool, 4, isAgain: true, at: 3)
        #expect(pool.takeDecisions() == [])
        #expect(pool.nextStart == at(4))
        pool.dispatch(at: at(3.9))
        #expect(pool.takeDecisions() == [])
        pool.dispatch(at: at(4))
        #expect(pool.takeDecisions() == [.start(2)])
    }

    @Test func `pauses double up to a minute, and an answer ends that`() {
        #expect((1...9).map { ServePool.pause(after: $0) / .seconds(1) } == [1, 2, 4, 8, 16, 32, 60, 60, 60])
        var pool = pool()
        var now = 0.0
        for process in 1...3 {
            submit(&pool, process, at: now)
            ready(&pool, process, at: now)
            pool.end(process, .exited(status: 1), lastLine: nil, at: at(now))
            now += ServePool.pause(after: process) / .seconds(1)
        }
        submit(&pool, 4, at: now)
        ready(&pool, 4, at: now)
        answer(&pool, 4, from: 4, at: now)
        pool.end(4, .exited(status: 1), lastLine: nil, at: at(now))
        submit(&pool, 5, at: now)
        #expect(pool.nextStart == at(now + 1))
    }

    @Test func `after five deaths in a minute requests are refused until the next start`() {
        var pool = pool()
        var now = 0.0
        for process in 1...5 {
            submit(&pool, process, at: now)
            #expect(pool.takeDecisions() == [.start(process)])
            ready(&pool, process, at: now)
            pool.end(process, .signalled(11), lastLine: nil, at: at(now))
            #expect(pool.takeDecisions().first == .reply(process, .lost("was killed by signal 11", .signalled(11))))
            now += ServePool.pause(after: process) / .seconds(1)
        }
        let reason = "has died 5 times in a minute; the last time it was killed by signal 11"
        submit(&pool, 6, at: now - 1)
        #expect(pool.takeDecisions() == [.reply(6, .refused(.failing(reason)))])
        submit(&pool, 7, at: now)
        #expect(pool.takeDecisions() == [.start(6)])
        ready(&pool, 6, at: now)
        answer(&pool, 7, from: 6, at: now)
        #expect(pool.takeDecisions() == [.reply(7, .answered([0], after: nil))])
    }

    @Test(arguments: [
        (
            Ended.Way.couldNotStart("cannot start '/x'"), ServeMessage?.none,
            ServePool.Refusal.couldNotStart("cannot start '/x'")
        ),
        (.notLaunched("no pipe"), nil, .notLaunched("no pipe")),
        (.exited(status: 1), nil, .failing("ended with status 1 before it was ready: import error")),
        (
            .exited(status: 0), .ready(protocol: 2, concurrent: 1),
            .unusable("speaks version 2 of the protocol, and this Alight speaks 1")
        ),
        (
            .signalled(15), .ready(protocol: nil, concurrent: 1), .unusable("said 'ready' without 'protocol'")
        ),
    ])
    func `one that never is ready refuses all that wait`(
        way: Ended.Way, message: ServeMessage?, refusal: ServePool.Refusal
    ) {
        var pool = pool()
        submit(&pool, 1, 2, at: 0)
        _ = pool.takeDecisions()
        if let message { pool.receive(message, from: 1, at: at(1)) }
        pool.end(1, way, lastLine: "import error", at: at(2))
        let decisions = pool.takeDecisions()
        #expect(decisions.suffix(2) == [.reply(1, .refused(refusal)), .reply(2, .refused(refusal))])
    }

    @Test func `one that fails at its start is followed by no other before its end and the pause`() {
        var pool = pool(parallel: 2)
        submit(&pool, 1, at: 0)
        #expect(pool.takeDecisions() == [.start(1)])
        pool.lose(.closedOutput, of: 1, at: at(1))
        submit(&pool, 2, at: 1)
        #expect(pool.takeDecisions() == [])
        #expect(!pool.wantsSeat(at: at(1)))
        pool.end(1, .exited(status: 1), lastLine: nil, at: at(1.5))
        let reason = "ended with status 1 before it was ready"
        #expect(
            pool.takeDecisions() == [
                .warn(reason), .reply(1, .refused(.failing(reason))), .reply(2, .refused(.failing(reason))),
            ])
    }

    @Test func `after a death one starts alone, and when it is ready the others`() {
        var pool = pool(parallel: 3)
        submit(&pool, 1, at: 0)
        ready(&pool, 1, at: 0)
        pool.end(1, .exited(status: 1), lastLine: nil, at: at(0))
        _ = pool.takeDecisions()
        submit(&pool, 2, 3, 4, at: 0.5)
        #expect(pool.takeDecisions() == [])
        pool.dispatch(at: at(1))
        #expect(pool.takeDecisions() == [.start(2)])
        pool.dispatch(at: at(2))
        #expect(pool.takeDecisions() == [])
        ready(&pool, 2, at: 3)
        #expect(pool.takeDecisions() == [.start(3), .start(4)])
    }

    @Test func `a pool can be forgotten when it has nothing, and nothing has died lately`() {
        var pool = pool()
        #expect(pool.isForgettable(at: at(0)))
        submit(&pool, 1, at: 0)
        #expect(!pool.isForgettable(at: at(0)))
        ready(&pool, 1, at: 0)
        answer(&pool, 1, from: 1, at: 0)
        #expect(!pool.isForgettable(at: at(0)))
        pool.end(1, .exited(status: 1), lastLine: nil, at: at(0))
        #expect(!pool.isForgettable(at: at(59)))
        #expect(pool.isForgettable(at: at(61)))
    }

    @Test func `while another one serves, nobody is refused`() {
        var pool = pool(parallel: 2)
        submit(&pool, 1, 2, 3, at: 0)
        ready(&pool, 1, at: 1)
        _ = pool.takeDecisions()
        pool.end(2, .exited(status: 1), lastLine: nil, at: at(1))
        #expect(pool.takeDecisions() == [.warn("ended with status 1 before it was ready")])
        answer(&pool, 1, from: 1, at: 1)
        #expect(pool.commands(of: 1, at: at(1)) == [.hello, .run(1), .run(2)])
    }

    @Test func `a process that was killed for one request is no death, and the others are lost`() {
        var pool = pool()
        submit(&pool, 1, at: 0)
        ready(&pool, 1, 2, at: 0)
        submit(&pool, 2, at: 50)
        _ = pool.takeDecisions()
        #expect(pool.commands(of: 1, at: at(60)) == [.hello, .run(1), .run(2), .cancel(id: "job1")])
        #expect(pool.commands(of: 1, at: at(70)) == [.kill])
        pool.end(1, .signalled(9), lastLine: nil, at: at(70))
        #expect(
            pool.takeDecisions() == [
                .overdue(1), .reply(1, .ended(.timeOut)),
                .reply(2, .lost("was killed, since it ignored a 'cancel'", .signalled(9))),
            ])
        submit(&pool, 3, isAgain: true, at: 70)
        #expect(pool.takeDecisions() == [.start(2)])
    }

    @Test func `an answer that is too long belongs to its request alone`() {
        var pool = pool()
        submit(&pool, 1, at: 0)
        ready(&pool, 1, 2, at: 0)
        submit(&pool, 2, at: 0)
        pool.receiveTooLong(Array(#"{"id":"job2""#.utf8), from: 1)
        _ = pool.takeDecisions()
        pool.end(1, .signalled(13), lastLine: nil, at: at(1))
        let reason = "printed a line of more than 1 MiB and was ended"
        #expect(
            pool.takeDecisions().prefix(2) == [.reply(1, .lost(reason, .signalled(13))), .reply(2, .tooLarge)])
    }

    @Test func `after a replacement new requests go to a new process`() {
        var pool = pool()
        submit(&pool, 1, at: 0)
        ready(&pool, 1, at: 0)
        pool.replace(at: at(1))
        submit(&pool, 2, at: 1)
        #expect(pool.takeDecisions() == [.start(1), .start(2)])
        #expect(pool.commands(of: 1, at: at(1)) == [.hello, .run(1)])
        answer(&pool, 1, from: 1, at: 2)
        #expect(pool.commands(of: 1, at: at(2)) == [.endOfFile])
        pool.end(1, .exited(status: 0), lastLine: nil, at: at(2))
        #expect(pool.takeDecisions() == [.reply(1, .answered([0], after: nil))])
    }

    @Test func `a replacement that is no use any more ends the pause`() {
        var pool = pool()
        submit(&pool, 1, at: 0)
        pool.end(1, .exited(status: 1), lastLine: nil, at: at(0))
        submit(&pool, 2, at: 0)
        _ = pool.takeDecisions()
        pool.replace(at: at(0.1))
        #expect(pool.takeDecisions() == [.start(2)])
    }

    @Test func `what waits can be stopped, and what is open is cancelled`() {
        var pool = pool()
        submit(&pool, 1, 2, at: 0)
        ready(&pool, 1, at: 0)
        pool.cancel(2, at: at(1))
        pool.cancel(1, at: at(1))
        pool.cancel(99, at: at(1))
        #expect(pool.takeDecisions() == [.start(1), .reply(2, .ended(.stop))])
        #expect(pool.commands(of: 1, at: at(1)) == [.hello, .run(1), .cancel(id: "job1")])
    }

    @Test func `closing ends the idle, cancels the open and refuses the rest`() {
        var pool = pool(parallel: 2)
        submit(&pool, 1, 2, 3, at: 0)
        ready(&pool, 1, at: 0)
        ready(&pool, 2, at: 0)
        answer(&pool, 2, from: 2, at: 0)
        answer(&pool, 3, from: 2, at: 0)
        _ = (pool.takeDecisions(), pool.commands(of: 1, at: at(1)), pool.commands(of: 2, at: at(1)))
        pool.close(isAtOnce: false, at: at(1))
        #expect(pool.commands(of: 1, at: at(1)) == [.cancel(id: "job1")])
        #expect(pool.commands(of: 2, at: at(1)) == [.endOfFile])
        submit(&pool, 4, at: 1)
        #expect(pool.takeDecisions() == [.reply(4, .ended(.stop))])
        pool.close(isAtOnce: true, at: at(2))
        #expect(pool.commands(of: 1, at: at(2)) == [.terminate])
        pool.end(1, .signalled(15), lastLine: nil, at: at(2))
        pool.end(2, .exited(status: 0), lastLine: nil, at: at(2))
        #expect(pool.takeDecisions() == [.reply(1, .ended(.stop))])
        #expect(pool.isEmpty)
    }
}
