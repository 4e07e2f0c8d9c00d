import CLibMicroHTTPD
import Foundation
import JSON
import Synchronization
import System

// Clients that follow the events, on the threads of their connections.
extension Clients {
    /// The maximum number of streams, in total and by TCP: half of the connections, so that other requests are still
    /// served.
    private static let maximumStreams = maximumConnections / 2
    private static let maximumNetworkStreams = maximumNetworkConnections / 2
    private static let statusPause = Duration.seconds(1)

    /// Prepares a stream as the response; returns the status.
    func follow(_ pointer: OpaquePointer, _ request: APIRequest, _ descriptor: Int32) throws(APIError) -> UInt32 {
        var kinds = Set(EventFeed.Kind.allCases)
        if let only = request.text("only") {
            kinds = []
            for word in only.split(separator: ",") {
                guard let kind = EventFeed.Kind(rawValue: String(word)) else {
                    throw APIError(400, "invalid kind of event '\(word)'", help: "write attempt, file or status")
                }
                kinds.insert(kind)
            }
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
        guard hasCapacity, let wake = try? Wake() else {
            throw APIError(
                503, "too many clients follow the events", help: "try again when one of them has disconnected")
        }
        // A browser cannot set the header on its first request.
        let last = (request.lastEventID ?? request.text("last_event_id")).flatMap { UInt64($0) }
        let stream = EventStream(feed, wake, kinds: kinds, after: last, recent: recent)
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
}
