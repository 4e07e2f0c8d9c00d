@testable import PersistentPlugins
import Programs
import Testing

/// The conversation with a plugin, without a process or a clock.
struct ServeSessionTests {
    private let start = ContinuousClock.now
    private var limits = ServeLimits()

    private func at(_ seconds: Double) -> ContinuousClock.Instant { start + .milliseconds(Int64(seconds * 1000)) }

    /// Creates a session that became ready at 1 s.
    private func ready(_ window: Int = 2, _ limits: ServeLimits = ServeLimits()) -> ServeSession {
        var session = ServeSession(window: 1, limits: limits, at: start)
        #expect(session.takeCommands() == [.hello])
        #expect(session.receive(.ready(protocol: 1, concurrent: window), at: at(1)) == nil)
        return session
    }

    @discardableResult
    private func send(_ session: inout ServeSession, _ id: String, timeout: Double = 60, at: Double) -> ServeRequest {
        let request = ServeRequest(id, timeout: .milliseconds(Int64(timeout * 1000)))
        session.send(request, at: self.at(at))
        return request
    }

    private func result(_ id: String, _ attempt: Int? = 1) -> ServeMessage {
        .result(id: id, attempt: attempt, line: [1])
    }

    // MARK: - Start

    @Test func `the session sends hello, and accepts no request before it is ready`() {
        var session = ServeSession(window: 4, limits: limits, at: start)
        #expect(session.takeCommands() == [.hello])
        #expect(session.capacity == 0)
        #expect(session.isStarting)
        #expect(session.nextDeadline == at(10))
        _ = session.receive(.ready(protocol: 1, concurrent: nil), at: at(9.9))
        session.advance(to: at(10))
        #expect(session.failure == nil)
        #expect(session.capacity == 4)
    }

    @Test(arguments: [
        (ServeMessage.ready(protocol: 1, concurrent: 3), ServeSession.Failure?.none, 3),
        (.ready(protocol: 1, concurrent: 0), nil, 1), (.ready(protocol: 1, concurrent: -5), nil, 1),
        (.ready(protocol: 1, concurrent: 100_000), nil, 256),
        (.ready(protocol: 2, concurrent: 3), .wrongProtocol(2), 0),
        (.ready(protocol: nil, concurrent: 3), .wrongProtocol(nil), 0), (.other("x"), nil, 0), (.pong(0), nil, 0),
    ])
    func `the first line is checked`(message: ServeMessage, failure: ServeSession.Failure?, capacity: Int) {
        var session = ServeSession(window: 1, limits: limits, at: start)
        _ = session.takeCommands()
        #expect(session.receive(message, at: at(1)) == nil)
        #expect(session.failure == failure)
        #expect(session.capacity == capacity)
        #expect(session.takeCommands() == (failure == nil ? [] : [.terminate]))
    }

    @Test func `without ready the process is terminated after ten seconds`() {
        var session = ServeSession(window: 1, limits: limits, at: start)
        _ = session.takeCommands()
        session.advance(to: at(9.999))
        #expect(session.takeCommands() == [])
        session.advance(to: at(10))
        #expect(session.takeCommands() == [.terminate])
        #expect(session.failure == .neverReady)
        // This is too late.
        _ = session.receive(.ready(protocol: 1, concurrent: 1), at: at(10.1))
        #expect(session.capacity == 0)
        #expect(session.nextDeadline == nil)
    }

    @Test func `a second ready changes nothing`() {
        var session = ready(2)
        _ = session.receive(.ready(protocol: 7, concurrent: 9), at: at(2))
        #expect(session.capacity == 2)
        #expect(session.failure == nil)
    }

    // MARK: - Requests

    @Test func `a session has as many open requests as its window, answered in any order`() {
        var session = ready(2)
        let a = send(&session, "a", at: 1)
        let b = send(&session, "b", at: 1)
        #expect(session.takeCommands() == [.run(a), .run(b)])
        #expect(!session.canTake("c"))
        #expect(session.receive(result("b"), at: at(2)) == .answered(b, line: [1], after: nil))
        #expect(session.canTake("c"))
        #expect(!session.canTake("a"), "a job is not asked for twice at once")
        #expect(session.receive(result("a", nil), at: at(2)) == .answered(a, line: [1], after: nil))
    }

    @Test func `a second answer, an unknown id and another attempt are logged`() {
        var session = ready(2)
        send(&session, "a", at: 1)
        #expect(
            session.receive(result("a", 7), at: at(2))
                == .notice("answered attempt 7 of 'a', which isn't open; the answer is ignored"))
        #expect(session.receive(result("a"), at: at(2)) != nil)
        #expect(
            session.receive(result("a", nil), at: at(2))
                == .notice("answered 'a', which isn't open; the answer is ignored"))
        #expect(
            session.receive(result("zzz"), at: at(2))
                == .notice("answered attempt 1 of 'zzz', which isn't open; the answer is ignored"))
        #expect(session.failure == nil)
    }

    @Test func `progress belongs to the open request`() {
        var session = ready(2)
        let request = send(&session, "a", at: 1)
        #expect(
            session.receive(.progress(id: "a", fraction: 0.5, message: "half"), at: at(2))
                == .progress(request, 0.5, "half"))
        #expect(session.receive(.progress(id: "b", fraction: 0.5, message: nil), at: at(2)) == nil)
    }

    @Test func `a request that times out is cancelled, and its process is killed after the grace period`() {
        var session = ready(2)
        let a = send(&session, "a", timeout: 5, at: 1)
        let b = send(&session, "b", timeout: 60, at: 1)
        _ = session.takeCommands()
        #expect(session.nextDeadline == at(6))
        session.advance(to: at(6))
        #expect(session.takeCommands() == [.cancel(a, .timedOut)])
        session.advance(to: at(15.9))
        #expect(session.takeCommands() == [])
        #expect(session.canTake("c") == false)
        session.advance(to: at(16))
        #expect(session.takeCommands() == [.kill])
        #expect(session.failure == .ignoredCancel)
        // An answer that was sent before the process died is not lost.
        #expect(session.receive(result("b"), at: at(16)) == .answered(b, line: [1], after: nil))
    }

    @Test func `an answer within the grace period reports the reason of the cancel`() {
        var session = ready(2)
        let a = send(&session, "a", timeout: 5, at: 1)
        let b = send(&session, "b", timeout: 5, at: 1)
        session.cancel("b", .stopped, at: at(2))
        session.cancel("b", .timedOut, at: at(3))
        session.advance(to: at(6))
        #expect(session.takeCommands() == [.run(a), .run(b), .cancel(b, .stopped), .cancel(a, .timedOut)])
        #expect(session.receive(result("a"), at: at(7)) == .answered(a, line: [1], after: .timedOut))
        #expect(session.receive(result("b"), at: at(7)) == .answered(b, line: [1], after: .stopped))
        session.advance(to: at(30))
        #expect(session.failure == nil)
    }

    // MARK: - Garbage

    @Test func `a flood of unknown lines terminates the process, unless answers arrive in between`() {
        var session = ready()
        for _ in 1...3 {
            send(&session, "a", at: 1)
            for _ in 1...1_000 { #expect(session.receive(.other("noise"), at: at(2)) == nil) }
            #expect(session.failure == nil)
            _ = session.receive(.result(id: "a", attempt: 1, line: []), at: at(2))
        }
        for _ in 1...1_000 { _ = session.receive(.progress(id: "none", fraction: 0, message: nil), at: at(3)) }
        #expect(session.failure == nil)
        _ = session.receive(.other("noise"), at: at(3))
        #expect(session.failure == .unknownFlood("the type \"noise\""))
    }

    @Test func `ten lines that are not JSON terminate the process`() {
        var session = ready(2)
        for _ in 1...9 {
            guard case .notice = session.receive(.unreadable("Traceback"), at: at(2)) else {
                Issue.record("no notice")
                return
            }
            _ = session.receive(.other("x"), at: at(2))
        }
        #expect(session.failure == nil)
        #expect(session.receive(.unreadable("Traceback"), at: at(2)) == nil)
        #expect(session.failure == .notJSON("Traceback"))
        #expect(session.takeCommands() == [.terminate])
    }

    @Test func `a line that is too long is assigned to the only request, or to the one that it names`() {
        for (open, start, culprits) in [
            (["a"], "{}", ["a"]), (["a", "b"], #"{"type":"result","id":"b""#, ["b"]), (["a", "b"], "xxxx", []),
        ] {
            var session = ready(4)
            for id in open { send(&session, id, at: 1) }
            session.receiveTooLong(Array(start.utf8))
            #expect(session.failure == .lineTooLong)
            #expect(session.open.filter(\.value.isTooLarge).map(\.key) == culprits)
        }
    }

    @Test(arguments: [ServeSession.Failure.closedOutput, .closedInput])
    func `a process that closes a stream gets nothing more, and a second to exit`(failure: ServeSession.Failure) {
        var session = ready(2)
        send(&session, "a", at: 1)
        _ = session.takeCommands()
        session.lose(failure, at: at(2))
        #expect(session.capacity == 0)
        #expect(!session.isLive)
        session.advance(to: at(2.9))
        #expect(session.takeCommands() == [])
        session.advance(to: at(3))
        #expect(session.takeCommands() == [.terminate])
        #expect(session.failure == failure)
    }

    // MARK: - Idle processes

    @Test func `an idle process is pinged, and terminated if it does not answer`() {
        var session = ready(2)
        #expect(session.nextDeadline == at(31))
        session.advance(to: at(31))
        #expect(session.takeCommands() == [.ping(1)])
        #expect(session.nextDeadline == at(41))
        _ = session.receive(.pong(1), at: at(40))
        session.advance(to: at(60.9))
        #expect(session.takeCommands() == [])
        session.advance(to: at(61))
        #expect(session.takeCommands() == [.ping(2)])
        _ = session.receive(.pong(1), at: at(62))
        session.advance(to: at(71))
        #expect(session.takeCommands() == [.terminate])
        #expect(session.failure == .noPong)
    }

    @Test func `a busy process is not pinged`() {
        var session = ready(2)
        send(&session, "a", timeout: 1000, at: 30)
        _ = session.takeCommands()
        session.advance(to: at(500))
        #expect(session.takeCommands() == [])
        _ = session.receive(result("a"), at: at(500))
        #expect(session.nextDeadline == at(530))
    }

    @Test func `a process without a request for five minutes gets the end of its input`() {
        var session = ready(2)
        for ping in 1...9 {
            session.advance(to: at(1 + Double(ping) * 30))
            _ = session.receive(.pong(ping), at: at(1 + Double(ping) * 30))
        }
        _ = session.takeCommands()
        session.advance(to: at(301))
        #expect(session.takeCommands() == [.endOfFile])
        #expect(session.mayEnd)
        #expect(session.capacity == 0)
        // The process may close its streams in any order.
        session.lose(.closedOutput, at: at(302))
        #expect(session.mayEnd)
        session.advance(to: at(310.9))
        #expect(session.takeCommands() == [])
        session.advance(to: at(311))
        #expect(session.takeCommands() == [.terminate])
        #expect(session.mayEnd)
    }

    @Test func `after the maximum number of requests, a process is recycled once it has answered all`() {
        var limits = ServeLimits()
        limits.requests = 3
        var session = ready(2, limits)
        for id in ["a", "b"] { send(&session, id, at: 1) }
        _ = session.receive(result("a"), at: at(2))
        send(&session, "c", at: 2)
        #expect(session.capacity == 0)
        _ = session.receive(result("c"), at: at(3))
        #expect(!session.canTake("d"))
        #expect(!session.mayEnd)
        _ = session.receive(result("b"), at: at(3))
        #expect(session.takeCommands().last == .endOfFile)
        #expect(session.mayEnd)
    }

    @Test func `a process is recycled after a day`() {
        var session = ready(2)
        send(&session, "a", timeout: 1_000_000, at: 86_000)
        _ = session.takeCommands()
        #expect(session.nextDeadline == at(86_400))
        session.advance(to: at(86_400))
        #expect(session.capacity == 0)
        #expect(session.takeCommands() == [])
        _ = session.receive(result("a"), at: at(86_500))
        #expect(session.takeCommands() == [.endOfFile])
    }

    @Test func `a timeout of a million years never expires`() {
        var session = ready(2)
        let request = ServeRequest("a", timeout: .seconds(1 << 50))
        session.send(request, at: at(1))
        session.advance(to: at(80_000))
        #expect(session.takeCommands() == [.run(request)])
    }

    @Test func `a process that is retired before it is ready gets the end of its input`() {
        var session = ServeSession(window: 1, limits: limits, at: start)
        session.retire(at: at(1))
        #expect(session.takeCommands() == [.hello, .endOfFile])
        _ = session.receive(.ready(protocol: 1, concurrent: 1), at: at(2))
        #expect(session.capacity == 0)
        #expect(session.mayEnd)
    }
}
