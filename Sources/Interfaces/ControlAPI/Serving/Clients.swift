import FileWatching
import Foundation
import Glibc
import Synchronization
import System

/// Those who are connected, for the thread that lets them in and for their own threads.
final class Clients: Sendable {
    struct Connection: Sendable {
        var way: APIRequest.Way
        /// When it is dropped, which nothing but a whole request moves; nil for the stream of events, and after the drop.
        var deadline: ContinuousClock.Instant?
        var isStream = false
        /// Whether its answer is being worked out.
        var isWaiting = false
        /// Whether it has been answered before that was done.
        var isAbandoned = false
        /// Bytes that are held for the client until it has taken them.
        var held = 0
        /// Whether it has no request.
        var isResting = true
    }

    /// How it stood last, as text, and how often that was another text.
    struct Status: Sendable {
        var number = 0
        var text = ""
        var askAgain = ContinuousClock.now
    }

    /// Most connections at once, and most of them by TCP, so that strangers leave room for the Unix socket.
    static let most = 64
    static let mostStrangers = 48
    /// Most bytes that are held for all clients together: slow ones could ask for more and more.
    static let mostHeld = 48 << 20
    /// How long a whole request may take to arrive; also how long a connection may be idle.
    static let arrival = Duration.seconds(15)
    /// How long a client may take nothing of what is there for it.
    static let patience = Duration.seconds(30)
    /// How long the answer may take, with the time that the client needs to read it.
    static let answer = Duration.seconds(60)

    let access: Access?
    let routes: Routes
    let operations: any Operations
    let feed: EventFeed
    /// Wakes the thread that lets clients in.
    let wake: Waker
    let connections = Mutex<[Int32: Connection]>([:])
    /// Those that wait for events.
    let streams = Mutex<[ObjectIdentifier: Wake]>([:])
    let status = Mutex(Status())
    /// Held by the request that is being answered, one after the other.
    let answering = NSLock()
    /// Held by the request whose file is being opened, which may take for ever.
    let opening = NSLock()
    /// How many want to hold that.
    let openers = Atomic(0)
    private let stopping = Atomic(false)

    init(access: Access?, routes: Routes, operations: any Operations, feed: EventFeed) throws(ControlProblem) {
        self.access = access
        self.routes = routes
        self.operations = operations
        self.feed = feed
        do throws(SystemError) {
            wake = try Waker()
        } catch {
            throw ControlProblem("can't open an eventfd", help: "raise the limit of open files (ulimit -n)")
        }
    }

    // MARK: - For the thread that lets them in

    var isEmpty: Bool { connections.withLock { $0.isEmpty } }
    /// Whether a thread may be in what never ends: an answer, or how it stands for one that follows.
    var areBusy: Bool { connections.withLock { $0.values.contains { $0.isWaiting || $0.isStream } } }
    var nextDeadline: ContinuousClock.Instant? { connections.withLock { $0.values.compactMap(\.deadline).min() } }

    /// Gives a connection a place; false when there is none.
    func add(_ descriptor: Int32, _ way: APIRequest.Way) -> Bool {
        connections.withLock { connections in
            let strangers = connections.values.count { $0.way == .network }
            guard connections.count < Self.most, way == .local || strangers < Self.mostStrangers else { return false }
            connections[descriptor] = Connection(way: way, deadline: .now + Self.arrival)
            return true
        }
    }

    func wakeStreams() { for wake in streams.withLock({ Array($0.values) }) { wake.signal() } }

    func dropLate(at now: ContinuousClock.Instant) {
        connections.withLock { connections in
            for (descriptor, connection) in connections where connection.deadline.map({ $0 <= now }) ?? false {
                connections[descriptor] = Self.dropped(connection, descriptor, Self.late)
            }
        }
    }

    /// Ends all that follow the events, wait for an answer, or rest.
    func abandonAll() {
        connections.withLock { connections in
            for (descriptor, connection) in connections where connection.isWaiting || connection.isResting {
                connections[descriptor] = Self.dropped(connection, descriptor, Self.ending)
            }
        }
        wakeStreams()
    }

    /// Ends a connection, which its thread notices; one that waits is answered first, and not once more.
    private static func dropped(_ connection: Connection, _ descriptor: Int32, _ error: APIError) -> Connection {
        var connection = connection
        if connection.isWaiting {
            error.send(to: descriptor)
            connection.isAbandoned = true
        }
        shutdown(descriptor, Int32(SHUT_RDWR))
        connection.deadline = nil
        return connection
    }

    // MARK: - The end

    var isStopping: Bool { stopping.load(ordering: .acquiring) }

    /// Has all come to an end; returns at once.
    func stop() {
        stopping.store(true, ordering: .releasing)
        wake.wake()
    }
}
