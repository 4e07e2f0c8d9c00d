import CLibMicroHTTPD
import PluginProtocol

// Those who follow the events.
extension ServerLoop {
    /// Most who follow at once, and most of them by TCP: half of the places, so that others can still ask.
    private static let mostStreams = mostConnections / 2
    private static let mostStrangeStreams = mostStrangers / 2
    private static let statusPause = Duration.seconds(1)

    func begin(_ pointer: OpaquePointer, _ request: APIRequest, _ descriptor: Int32) throws(APIError) {
        var kinds = Set(EventFeed.Kind.allCases)
        if let only = request.text("only") {
            kinds = []
            for word in only.split(separator: ",") {
                guard let kind = EventFeed.Kind(rawValue: String(word)) else {
                    throw APIError(400, "'\(word)' is no kind of event", help: "write attempt, file or status")
                }
                kinds.insert(kind)
            }
        }
        let recent = try Self.number(request, "recent", upTo: EventFeed.length)
        let followers = connections.values.filter(\.isStream)
        let strangers = followers.count { $0.way == .network }
        guard followers.count < Self.mostStreams, request.way == .local || strangers < Self.mostStrangeStreams else {
            throw APIError(503, "too many follow the events", help: "try again when one of them has ended")
        }
        // A browser can't set the header when it comes for the first time.
        let last = (request.lastEventID ?? request.text("last_event_id")).flatMap { UInt64($0) }
        exchanges[pointer]?.stream = EventStream(
            parts.feed, kinds: kinds, after: last, recent: recent, at: now)
        connections[descriptor]?.isStream = true
        chm_add_header(pointer, "Content-Type", "text/event-stream")
        Self.addSecurity(pointer)
        chm_stream(pointer, 200)
    }

    private static func number(_ request: APIRequest, _ name: String, upTo most: Int) throws(APIError) -> Int {
        guard let text = request.text(name) else { return 0 }
        guard let number = Int(text), (0...most).contains(number) else {
            throw APIError(400, "'\(name)=\(text)' is no number from 0 to \(most)", help: "leave it out for none")
        }
        return number
    }

    func more(_ pointer: OpaquePointer?, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard stopBy == nil, let pointer, let stream = exchanges[pointer]?.stream else { return -1 }
        return stream.fill(buffer, status, at: .now)
    }

    /// Has the status made anew for those who follow it, once a second at most.
    func refreshStatus() {
        let isWanted = exchanges.values.contains { $0.stream?.kinds.contains(.status) ?? false }
        guard isWanted, stopBy == nil else {
            nextStatus = nil
            return
        }
        guard nextStatus.map({ $0 <= now }) ?? true else { return }
        nextStatus = now + Self.statusPause
        guard !isAskingStatus else { return }
        let submission = parts.worker.submit { [operations = parts.operations, inbox = parts.inbox] in
            // What passes by itself is no change.
            var members = (try? operations.status().object) ?? [:]
            members["uptime"] = nil
            inbox.post(.status(members.isEmpty ? "" : JSONText.of(.object(members))))
        }
        isAskingStatus = submission == .taken
    }

    func wakeStreams() {
        for (request, exchange) in exchanges {
            guard let stream = exchange.stream, stream.isResting, stream.hasNews(status, at: now) else { continue }
            stream.isResting = false
            chm_wake(request)
        }
    }
}
