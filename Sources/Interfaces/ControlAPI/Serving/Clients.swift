import CLibMicroHTTPD
import Foundation
import Glibc
import JSON
import Synchronization
import System

/// The connected clients, shared by the accepting thread and the threads of their connections.
final class Clients: Sendable {
    struct Connection: Sendable {
        var transport: APIRequest.Transport
        /// The time at which the connection is dropped; only a whole request moves it.
        ///
        /// Nil for an event stream, and after the drop.
        var deadline: ContinuousClock.Instant?
        var phase = Phase.idle
        /// The number of bytes buffered for the client.
        var buffered = 0
    }

    /// The state of the request of a connection.
    enum Phase {
        case idle
        /// Its response is being computed.
        case waiting
        /// It was answered with an error before that was done.
        case abandoned
        case sending
        case streaming
    }

    /// The last status as JSON text, and the number of times that it has changed.
    struct Status: Sendable {
        var number = 0
        var text = ""
        var askAgain = ContinuousClock.now
    }

    /// The maximum number of connections in total and by TCP, which reserves some for the Unix socket.
    static let maximumConnections = 64
    static let maximumNetworkConnections = 48
    /// The maximum number of bytes buffered for all clients together; slow clients could request ever more.
    static let maximumBuffered = 48 << 20
    /// The time in which a whole request must arrive; also the limit for an idle connection.
    static let arrival = Duration.seconds(15)
    /// The time for which a client may accept none of the data sent to it.
    static let sendTimeout = Duration.seconds(30)
    /// The time limit for a response, including the time that the client needs to read it.
    static let answer = Duration.seconds(60)

    let access: Access?
    let routes: Routes
    let operations: any Operations
    let feed: EventFeed
    /// Wakes the accepting thread.
    let wake: Waker
    let connections = Mutex<[Int32: Connection]>([:])
    /// The streams that wait for events.
    let streams = Mutex<[ObjectIdentifier: Wake]>([:])
    let status = Mutex(Status())
    /// Held by the request that is being answered; requests are answered one at a time.
    let answering = NSLock()
    /// Held by the request whose file is being opened, which may block indefinitely.
    let opening = NSLock()
    /// The number of requests that hold or wait for ``opening``.
    let openers = Atomic(0)
    private let stopping = Atomic(false)

    init(access: Access?, routes: Routes, operations: any Operations, feed: EventFeed) throws(ControlProblem) {
        (self.access, self.routes, self.operations, self.feed) = (access, routes, operations, feed)
        do throws(SystemError) {
            wake = try Waker()
        } catch {
            throw ControlProblem("cannot open an eventfd", help: "raise the limit of open files (ulimit -n)")
        }
    }

    // MARK: - For the accepting thread

    var isEmpty: Bool { connections.withLock { $0.isEmpty } }
    /// Whether a thread may be in a call that never returns: for a response, or for the status of a stream.
    var areBusy: Bool {
        connections.withLock { $0.values.contains { [.waiting, .abandoned, .streaming].contains($0.phase) } }
    }
    var nextDeadline: ContinuousClock.Instant? { connections.withLock { $0.values.compactMap(\.deadline).min() } }

    /// Adds a connection; returns false if the limit is reached.
    func add(_ descriptor: Int32, _ transport: APIRequest.Transport) -> Bool {
        connections.withLock { connections in
            let limits = (all: Self.maximumConnections, network: Self.maximumNetworkConnections)
            guard Self.hasCapacity(for: transport, excluding: connections.values, limits) else { return false }
            connections[descriptor] = Connection(transport: transport, deadline: .now + Self.arrival)
            return true
        }
    }

    /// Returns whether the limits of connections, in total and by TCP, permit another one.
    static func hasCapacity(
        for transport: APIRequest.Transport, excluding others: some Collection<Connection>,
        _ limits: (all: Int, network: Int)
    ) -> Bool {
        let isFull = transport == .network && others.count { $0.transport == .network } >= limits.network
        return !isFull && others.count < limits.all
    }

    func wakeStreams() { for wake in streams.withLock({ Array($0.values) }) { wake.signal() } }

    func dropLate(at now: ContinuousClock.Instant) { drop(Self.late) { $0.deadline.map { $0 <= now } ?? false } }

    /// Disconnects all event streams, clients that wait for a response, and idle connections.
    func abandonAll() {
        drop(Self.ending) { [.waiting, .idle].contains($0.phase) }
        wakeStreams()
    }

    /// Shuts down connections, which their threads detect.
    ///
    /// A waiting client is answered first, and not again later.
    private func drop(_ error: APIError, where isDropped: (Connection) -> Bool) {
        connections.withLock { connections in
            for (descriptor, connection) in connections where isDropped(connection) {
                if connection.phase == .waiting {
                    error.send(to: descriptor)
                    connections[descriptor]?.phase = .abandoned
                }
                shutdown(descriptor, Int32(SHUT_RDWR))
                connections[descriptor]?.deadline = nil
            }
        }
    }

    // MARK: - Stopping

    var isStopping: Bool { stopping.load(ordering: .acquiring) }

    /// Starts to stop all connections; returns at once.
    func stop() {
        stopping.store(true, ordering: .releasing)
        wake.wake()
    }

    // MARK: - Clients that follow the events, on the threads of their connections

    /// The maximum number of streams, in total and by TCP: half of the connections, so that other requests are still
    /// served.
    private static let maximumStreams = maximumConnections / 2
    private static let maximumNetworkStreams = maximumNetworkConnections / 2
    private static let statusPause = Duration.seconds(1)

    /// Prepares a stream as the response; returns the status.
    func follow(_ pointer: OpaquePointer, _ request: APIRequest, _ descriptor: Int32) throws(APIError) -> UInt32 {
        let kinds = try request.text("only")?.split(separator: ",").map { word throws(APIError) -> EventFeed.Kind in
            if let kind = EventFeed.Kind(rawValue: String(word)) { return kind }
            throw APIError(400, "invalid kind of event '\(word)'", help: "write attempt, file or status")
        }
        let recent = try request.number("recent", in: 0...EventFeed.length, otherwise: 0)
        let hasCapacity = connections.withLock { connections in
            let followers = connections.values.filter { $0.phase == .streaming }
            let limits = (all: Self.maximumStreams, network: Self.maximumNetworkStreams)
            guard Self.hasCapacity(for: request.transport, excluding: followers, limits) else { return false }
            connections[descriptor]?.phase = .streaming
            connections[descriptor]?.deadline = nil
            return true
        }
        guard hasCapacity else {
            throw APIError(
                503, "too many clients follow the events", help: "try again when one of them has disconnected")
        }
        // A browser cannot set the header on its first request.
        let last = (request.lastEventID ?? request.text("last_event_id")).flatMap { UInt64($0) }
        let wake = Wake()
        let stream = EventStream(
            feed, wake, kinds: Set(kinds ?? EventFeed.Kind.allCases), after: last, recent: recent)
        streams.withLock { $0[ObjectIdentifier(stream)] = wake }
        chm_set_own(pointer, Unmanaged.passRetained(stream).toOpaque())
        guard chm_stream(pointer) == 0 else { return 0 }
        for (name, value) in [("Content-Type", "text/event-stream")] + APIResponse.securityHeaders {
            chm_add_header(pointer, name, value)
        }
        return 200
    }

    /// Fills the buffer with the next data, waiting for it if necessary; returns 0 at the end.
    func more(_ stream: EventStream, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
        while !isStopping {
            let status = stream.kinds.contains(.status) ? currentStatus() : nil
            let count = stream.fill(buffer, status ?? Status(), at: .now)
            if count > 0 { return count }
            stream.wake.wait(until: min(stream.nextHeartbeat, status?.askAgain ?? stream.nextHeartbeat))
        }
        return 0
    }

    /// Returns the current status, which is requested at most once a second, by one of the streams.
    private func currentStatus() -> Status {
        let (known, isDue) = status.withLock { status in
            defer { if status.askAgain <= .now { status.askAgain = .now + Self.statusPause } }
            return (status, status.askAgain <= .now)
        }
        // Requests that are being answered take precedence.
        guard isDue, answering.try() else { return status.withLock { $0 } }
        defer { answering.unlock() }
        // A member that changes all the time is not a change.
        var members = (try? operations.status().object) ?? [:]
        members["uptime"] = nil
        let text = members.isEmpty ? known.text : members.line
        return status.withLock { status in
            if text != status.text {
                (status.number, status.text) = (status.number + 1, text)
                wakeStreams()
            }
            return status
        }
    }

    /// Returns the clients that a callback of libmicrohttpd received as its context.
    static func of(_ context: UnsafeMutableRawPointer?) -> Clients {
        guard let context else { preconditionFailure("a callback without its context") }
        return Unmanaged<Clients>.fromOpaque(context).takeUnretainedValue()
    }
}
