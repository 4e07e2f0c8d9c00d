import Logging
@testable import PersistentPlugins
import Programs
import System
import Testing

extension ServeRequest {
    /// Creates a request for a process with no requirements.
    convenience init(
        _ id: String, attempt: Int = 1, timeout: Duration = .seconds(60), concurrent: Int = 1
    ) {
        let program = ServedProgram(
            title: "plugin 'x'", command: Command(executable: "/x", timeout: .zero), concurrent: concurrent)
        self.init(
            to: program, id: id, attempt: attempt, timeout: timeout, input: Array("{}\n".utf8), deadline: "",
            logger: Logger(label: "test"), progress: { _, _ in })
    }
}

extension ServeSlots {
    /// Handles a line of a process.
    fileprivate mutating func receive(
        _ message: ServeMessage, from number: Int, at now: ContinuousClock.Instant
    ) -> ServeSession.News? {
        sessions[number]?.receive(message, at: now) ?? nil
    }
}

/// Scheduling of requests to processes, without a real process.
struct ServeSlotsTests {
    private let start = ContinuousClock.now
    private func at(_ seconds: Double) -> ContinuousClock.Instant { start + .milliseconds(Int64(seconds * 1000)) }

    private func slots(_ parallel: Int = 1) -> ServeSlots { ServeSlots(parallel: parallel, limits: ServeLimits()) }

    /// Submits one request for each ID.
    @discardableResult
    private func submit(
        _ slots: inout ServeSlots, _ ids: String..., concurrent: Int = 1, isRetry: Bool = false, at: Double
    ) -> [ServeRequest] {
        ids.map { id in
            let request = ServeRequest(id, concurrent: concurrent)
            slots.submit(request, isRetry: isRetry, at: self.at(at))
            return request
        }
    }

    private func started(_ slots: inout ServeSlots) -> [Int] { slots.takeStarts().map(\.process) }

    @discardableResult
    private func answer(_ slots: inout ServeSlots, _ id: String, from process: Int, at: Double) -> ServeSession.News? {
        defer { turn(&slots, process, at: at) }
        return slots.receive(.result(id: id, attempt: 1, line: [0]), from: process, at: self.at(at))
    }

    private func ready(_ slots: inout ServeSlots, _ process: Int, _ window: Int = 1, at: Double) {
        _ = slots.receive(.ready(protocol: 1, concurrent: window), from: process, at: self.at(at))
        slots.assign(at: self.at(at))
    }

    /// Returns the commands for a process: the IDs of its requests, or the names of other commands.
    @discardableResult
    private func turn(_ slots: inout ServeSlots, _ process: Int, at: Double) -> [String] {
        slots.turn(of: process, at: self.at(at)).commands.map { command in
            switch command {
            case .run(let request): request.id
            case .cancel(let request, _): "cancel \(request.id)"
            default: "\(command)"
            }
        }
    }

    @Test func `the first request starts a process, and is sent once that is ready`() {
        var slots = slots()
        let request = submit(&slots, "a", at: 0)[0]
        #expect(started(&slots) == [1])
        #expect(turn(&slots, 1, at: 0) == ["hello"])
        ready(&slots, 1, at: 1)
        #expect(turn(&slots, 1, at: 1) == ["a"])
        #expect(answer(&slots, "a", from: 1, at: 2) == .answered(request, line: [0], after: nil))
    }

    @Test func `a request without a free window waits, in order`() {
        var slots = slots()
        submit(&slots, "a", "b", "c", "d", at: 0)
        #expect(started(&slots) == [1])
        ready(&slots, 1, 2, at: 1)
        #expect(turn(&slots, 1, at: 1) == ["hello", "a", "b"])
        // A request that is sent again after a crash comes first.
        submit(&slots, "e", isRetry: true, at: 2)
        _ = slots.receive(.result(id: "b", attempt: 1, line: [0]), from: 1, at: at(3))
        #expect(turn(&slots, 1, at: 3) == ["e"])
        _ = slots.receive(.result(id: "a", attempt: 1, line: [0]), from: 1, at: at(3))
        #expect(turn(&slots, 1, at: 3) == ["c"])
    }

    @Test func `another process is started when all windows are full, up to the limit`() {
        var slots = slots(3)
        submit(&slots, "a", "b", concurrent: 2, at: 0)
        #expect(started(&slots) == [1])
        submit(&slots, "c", concurrent: 2, at: 0)
        #expect(started(&slots) == [2])
        submit(&slots, "d", "e", "f", "g", "h", concurrent: 2, at: 0)
        #expect(started(&slots) == [3])
        ready(&slots, 2, 2, at: 1)
        ready(&slots, 3, 2, at: 1)
        #expect(turn(&slots, 2, at: 1) == ["hello", "a", "b"])
        #expect(turn(&slots, 3, at: 1) == ["hello", "c", "d"])
    }

    // MARK: - Crashes

    @Test func `the requests of a crashed process are lost, and the next request starts another one`() {
        var slots = slots()
        let requests = submit(&slots, "a", at: 0) + submit(&slots, "b", at: 0)
        ready(&slots, 1, 4, at: 1)
        answer(&slots, "b", from: 1, at: 2)
        _ = started(&slots)
        let reason = "was killed by signal 9: oops"
        #expect(slots.end(1, .signalled(9), lastLine: "oops", at: at(3)) == reason)
        #expect(requests.map(\.reply) == [.lost(reason, .signalled(9)), nil])
        #expect(started(&slots) == [])
        submit(&slots, "c", isRetry: true, at: 3)
        #expect(started(&slots) == [2])
    }

    @Test(arguments: [
        (
            ProgramResult.Termination.couldNotStart("cannot start '/x'"), ServeMessage?.none,
            ServeRequest.Reply.ended(.couldNotStart("cannot start '/x'"))
        ),
        (.notLaunched("no pipe"), nil, .ended(.notLaunched("no pipe"))),
        (.exited(status: 1), nil, .refused("exited with status 1 before it was ready: import error", mayPass: true)),
        (
            .exited(status: 0), .ready(protocol: 2, concurrent: 1),
            .refused("uses version 2 of the protocol, and this release supports 1", mayPass: false)
        ),
        (
            .signalled(15), .ready(protocol: nil, concurrent: 1),
            .refused("sent 'ready' without 'protocol'", mayPass: false)
        ),
    ])
    func `a process that never becomes ready refuses all waiting requests`(
        termination: ProgramResult.Termination, message: ServeMessage?, refusal: ServeRequest.Reply
    ) {
        var slots = slots()
        let requests = submit(&slots, "a", "b", at: 0)
        if let message { _ = slots.receive(message, from: 1, at: at(1)) }
        #expect(slots.end(1, termination, lastLine: "import error", at: at(2)) != nil)
        #expect(requests.map(\.reply) == [refusal, refusal])
    }

    @Test func `after a failed start the next one waits for its exit`() {
        var slots = slots(2)
        var requests = submit(&slots, "a", at: 0)
        #expect(started(&slots) == [1])
        slots.sessions[1]?.lose(.closedOutput, at: at(1))
        requests += submit(&slots, "b", at: 1)
        #expect(started(&slots) == [])
        let reason = "exited with status 1 before it was ready"
        #expect(slots.end(1, .exited(status: 1), lastLine: nil, at: at(1.5)) == reason)
        #expect(requests.allSatisfy { $0.reply == .refused(reason, mayPass: true) })
        #expect(started(&slots) == [])
        submit(&slots, "c", at: 2)
        #expect(started(&slots) == [2])
    }

    @Test func `while another process serves, no request is refused`() {
        var slots = slots(2)
        let requests = submit(&slots, "a", "b", "c", at: 0)
        ready(&slots, 1, at: 1)
        let reason = slots.end(2, .exited(status: 1), lastLine: nil, at: at(1))
        #expect(reason == "exited with status 1 before it was ready")
        #expect(requests.allSatisfy { $0.reply == nil })
        _ = slots.receive(.result(id: "a", attempt: 1, line: [0]), from: 1, at: at(1))
        #expect(turn(&slots, 1, at: 1) == ["hello", "a", "b"])
    }

    @Test func `a process killed for one request has not crashed, and its other requests are lost`() {
        var slots = slots()
        var requests = submit(&slots, "a", at: 0)
        ready(&slots, 1, 2, at: 0)
        requests += submit(&slots, "b", at: 50)
        _ = slots.takeStarts()
        #expect(turn(&slots, 1, at: 60) == ["hello", "a", "b", "cancel a"])
        #expect(turn(&slots, 1, at: 70) == ["kill"])
        #expect(slots.end(1, .signalled(9), lastLine: nil, at: at(70)) == nil)
        let lost = ServeRequest.Reply.lost("was killed because it ignored a 'cancel'", .signalled(9))
        #expect(requests.map(\.reply) == [.ended(.timedOut), lost])
        submit(&slots, "c", isRetry: true, at: 70)
        #expect(started(&slots) == [2])
    }

    @Test func `an answer that is too long fails only its own request`() {
        var slots = slots()
        var requests = submit(&slots, "job1", at: 0)
        ready(&slots, 1, 2, at: 0)
        requests += submit(&slots, "job2", at: 0)
        slots.sessions[1]?.receiveTooLong(Array(#"{"id":"job2""#.utf8))
        let reason = "printed a line of more than 1 MiB and was stopped"
        #expect(slots.end(1, .signalled(13), lastLine: nil, at: at(1)) == reason)
        #expect(requests.map(\.reply) == [.lost(reason, .signalled(13)), .tooLarge])
    }

    // MARK: - Replacement, stop, end

    @Test func `after a replacement new requests go to a new process`() {
        var slots = slots()
        submit(&slots, "a", at: 0)
        ready(&slots, 1, at: 0)
        slots.replace(at: at(1))
        submit(&slots, "b", at: 1)
        #expect(started(&slots) == [1, 2])
        #expect(turn(&slots, 1, at: 1) == ["hello", "a"])
        _ = slots.receive(.result(id: "a", attempt: 1, line: [0]), from: 1, at: at(2))
        #expect(turn(&slots, 1, at: 2) == ["endOfFile"])
        #expect(slots.end(1, .exited(status: 0), lastLine: nil, at: at(2)) == nil)
    }

    @Test func `a waiting request can be stopped, and an open one is cancelled`() {
        var slots = slots()
        let requests = submit(&slots, "a", "b", at: 0)
        ready(&slots, 1, at: 0)
        for request in requests { slots.cancel(request, at: at(1)) }
        slots.cancel(ServeRequest("a"), at: at(1))
        #expect(requests.map(\.reply) == [nil, .ended(.stopped)])
        #expect(turn(&slots, 1, at: 1) == ["hello", "a", "cancel a"])
    }

    @Test func `closing terminates idle processes, cancels open requests and refuses all others`() {
        var slots = slots(2)
        let requests = submit(&slots, "a", "b", "c", at: 0)
        ready(&slots, 1, at: 0)
        ready(&slots, 2, at: 0)
        answer(&slots, "b", from: 2, at: 0)
        answer(&slots, "c", from: 2, at: 0)
        turn(&slots, 1, at: 1)
        slots.close(isAtOnce: false, at: at(1))
        #expect(turn(&slots, 1, at: 1) == ["cancel a"])
        #expect(turn(&slots, 2, at: 1) == ["endOfFile"])
        #expect(submit(&slots, "d", at: 1)[0].reply == .ended(.stopped))
        slots.close(isAtOnce: true, at: at(2))
        #expect(turn(&slots, 1, at: 2) == ["terminate"])
        _ = slots.end(1, .signalled(15), lastLine: nil, at: at(2))
        _ = slots.end(2, .exited(status: 0), lastLine: nil, at: at(2))
        #expect(requests[0].reply == .ended(.stopped))
        #expect(slots.sessions.isEmpty)
    }

    @Test func `a lower limit terminates no process`() {
        var slots = slots(3)
        submit(&slots, "a", "b", "c", at: 0)
        #expect(started(&slots) == [1, 2, 3])
        slots.parallel = 1
        for process in 1...3 { ready(&slots, process, at: 0) }
        #expect((1...3).map { turn(&slots, $0, at: 0) } == [["hello", "a"], ["hello", "b"], ["hello", "c"]])
        submit(&slots, "d", at: 1)
        _ = slots.end(1, .exited(status: 1), lastLine: nil, at: at(1))
        slots.assign(at: at(3))
        #expect(started(&slots) == [])
    }
}
