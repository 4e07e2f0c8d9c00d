import CAlightLinux
import CLibMicroHTTPD
import Glibc
import PluginProtocol

/// The state of the server's thread, and its loop.
///
/// It sleeps in poll(2), without a time limit while nobody is connected. Whatever takes long is done by the workers, and
/// its answer comes back by the inbox. A connection has one deadline, which nothing but a whole request moves, so that a
/// client that sends byte after byte is dropped like one that sends none.
final class ServerLoop {
    struct Parts {
        var access: Access?
        var routes: Routes
        var operations: any Operations
        var feed: EventFeed
        var worker: Worker
        /// For what opens a user's file, which may take for ever.
        var files: Worker
        var inbox: ControlServer.Inbox
        var complain: @Sendable (String) -> Void
    }

    struct Connection {
        var way: APIRequest.Way
        /// When it is closed, unless something moves that.
        var deadline: ContinuousClock.Instant
        var isStream = false
    }

    /// A request that is being answered.
    struct Exchange {
        var number: UInt64
        var request: APIRequest
        var begun: ContinuousClock.Instant
        var isAnswered = false
        var stream: EventStream?
        /// Bytes that are held for the client until it has taken them.
        var held = 0

        /// Whether the client waits for what a worker does.
        var isWaiting: Bool { !isAnswered && stream == nil }
    }

    let parts: Parts
    let local: Int32?
    let network: [Int32]
    /// The library's server, once somebody has connected.
    var server: OpaquePointer?
    var hasFailed = false
    var connections: [Int32: Connection] = [:]
    /// Connections that were refused, and when they are closed: at once they would take the answer along.
    var refused: [(descriptor: Int32, until: ContinuousClock.Instant)] = []
    var exchanges: [OpaquePointer: Exchange] = [:]
    var lastNumber: UInt64 = 0
    /// How it stood last, as text, and how often that was another text.
    var status = (number: 0, text: "")
    var nextStatus: ContinuousClock.Instant?
    var isAskingStatus = false
    /// Until when nobody is let in, since there was nothing left for one more.
    var acceptFrom: ContinuousClock.Instant?
    var stopBy: ContinuousClock.Instant?
    var now = ContinuousClock.now

    /// How long a whole request may take to arrive; also how long a connection may be idle.
    static let arrival = Duration.seconds(15)
    /// How long the answer may take, with the time that the client needs to read it.
    static let answer = Duration.seconds(60)
    /// How long a client may wait that sends no more, before it is taken for one that has gone.
    private static let grace = Duration.seconds(1)
    /// Linux's `POLLRDHUP`.
    private static let sendsNoMore: Int16 = 0x2000

    init(_ parts: Parts, _ local: Int32?, network: [Int32]) {
        self.parts = parts
        self.local = local
        self.network = network
    }

    func run() {
        parts.feed.setWake { [inbox = parts.inbox] in inbox.wake() }
        while true {
            wait()
            for message in parts.inbox.take() { take(message) }
            if stopBy == nil { acceptAll() }
            refreshStatus()
            wakeStreams()
            serve()
            expire()
            guard let stopBy else { continue }
            if connections.isEmpty || stopBy <= now { break }
        }
        for (descriptor, _) in refused { close(descriptor) }
        parts.feed.setWake(nil)
        parts.worker.stop()
        parts.files.stop()
        // The library ends the program when it is ended with somebody still waiting.
        if let server, exchanges.isEmpty { chm_stop(server) }
    }

    // MARK: Sleeping

    private func wait() {
        var descriptors = [pollfd(fd: parts.inbox.descriptor, events: Int16(POLLIN), revents: 0)]
        if stopBy == nil, acceptFrom == nil {
            descriptors += ([local].compactMap(\.self) + network).map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
        }
        if let server { descriptors.append(pollfd(fd: chm_descriptor(server), events: Int16(POLLIN), revents: 0)) }
        // The library doesn't look at those that wait for an answer.
        let waiting = exchanges.filter { $0.value.isWaiting }
        let first = descriptors.count
        for (request, exchange) in waiting {
            let events = exchange.begun + Self.grace <= now ? Self.sendsNoMore : 0
            descriptors.append(pollfd(fd: chm_connection(request), events: events, revents: 0))
        }
        _ = cal_poll(&descriptors, UInt(descriptors.count), patience)
        now = .now
        for (request, polled) in zip(waiting.keys, descriptors[first...]) where polled.revents != 0 {
            abandon(request, Self.gone)
        }
    }

    /// How many nanoseconds to sleep at most; negative for as long as nothing happens.
    private var patience: Int64 {
        if let server, chm_is_due(server) != 0 { return 0 }
        let streams = exchanges.values.compactMap { $0.stream?.deadline }
        let deadlines = connections.values.filter { !$0.isStream }.map(\.deadline)
        let graces = exchanges.values.filter(\.isWaiting).map { $0.begun + Self.grace }.filter { $0 > now }
        let others = [nextStatus, stopBy, acceptFrom].compactMap(\.self)
        guard let first = (streams + deadlines + graces + refused.map(\.until) + others).min() else { return -1 }
        let (seconds, attoseconds) = max(.zero, first - .now).components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000 + 1
    }

    private func serve() {
        guard let server else { return }
        // Each turn does what is there; a bound, so that one busy client can't keep others from being accepted.
        for _ in 0..<64 {
            chm_run(server)
            if chm_is_due(server) == 0 { break }
        }
    }

    private func expire() {
        for (request, exchange) in exchanges where exchange.isWaiting {
            let descriptor = chm_connection(request)
            guard let connection = connections[descriptor], connection.deadline <= now else { continue }
            abandon(request, Self.late)
            connections[descriptor]?.deadline = now + Self.answer
        }
        for (descriptor, connection) in connections where !connection.isStream && connection.deadline <= now {
            drop(descriptor)
        }
        for (descriptor, until) in refused where until <= now { close(descriptor) }
        refused.removeAll { $0.until <= now }
        for (request, exchange) in exchanges {
            if let stream = exchange.stream, stream.isStuck(at: now) { drop(chm_connection(request)) }
        }
    }

    /// Ends a connection; the library finds that out by itself, and tells.
    func drop(_ descriptor: Int32) {
        guard connections[descriptor] != nil else { return }
        shutdown(descriptor, Int32(SHUT_RDWR))
        connections[descriptor]?.deadline = now + Self.answer
    }

    /// Answers one that needn't or can't be served; what was not begun for it is not done.
    private func abandon(_ request: OpaquePointer, _ error: APIError) {
        guard let exchange = exchanges[request], exchange.isWaiting else { return }
        parts.worker.forget(exchange.number)
        parts.files.forget(exchange.number)
        send(error.response, to: request)
    }

    // MARK: Messages

    private func take(_ message: ControlServer.Message) {
        switch message {
        case .answer(let number, let response):
            guard let (request, _) = exchanges.first(where: { $0.value.number == number }) else { return }
            send(response, to: request)
        case .status(let text):
            isAskingStatus = false
            if text != status.text, !text.isEmpty { status = (status.number + 1, text) }
        case .stop:
            stopBy = now + .milliseconds(500)
            acceptFrom = nil
            for (request, exchange) in exchanges {
                if exchange.stream != nil {
                    chm_wake(request)
                } else {
                    abandon(request, Self.ending)
                }
            }
            let answering = Set(exchanges.keys.map { chm_connection($0) })
            for descriptor in connections.keys where !answering.contains(descriptor) { drop(descriptor) }
        }
    }

    private static let gone = APIError(
        503, "the client had gone before it was served", help: "keep the connection open until the answer is there")
    private static let late = APIError(
        503, "it takes too long", help: "a file system may hang; ask again when it answers")
    static let ending = APIError(503, "Alight is ending", help: "try again when it has been started again")
}
