import System

/// One client that follows the events, as server-sent events.
///
/// It is confined to the thread of its connection.
final class EventStream {
    /// The kinds of events to send.
    let kinds: Set<EventFeed.Kind>
    private let feed: EventFeed
    private var next: UInt64
    private var pending: [UInt8]
    /// The number of pending bytes that have been sent.
    private var taken = 0
    /// The number of the last status that was sent.
    private var sentStatus = 0
    /// Wakes the thread when there may be data to send.
    let wake: Wake
    /// The time at which a comment is sent if there are no events.
    private(set) var nextHeartbeat: ContinuousClock.Instant

    /// The interval of these comments, which detect clients that are gone.
    static let heartbeat = Duration.seconds(15)

    init(_ feed: EventFeed, _ wake: Wake, kinds: Set<EventFeed.Kind>, after last: UInt64?, recent: Int) {
        (self.feed, self.wake, self.kinds) = (feed, wake, kinds)
        let (next, hasGap) = feed.join(after: last, recent: recent, kinds: kinds)
        self.next = next
        nextHeartbeat = .now + Self.heartbeat
        // The reconnection time of browsers, in milliseconds.
        let gap = hasGap ? "id: \(next &- 1)\nevent: gap\ndata: {\"missed\":null}\n\n" : ""
        pending = Array("retry: 2000\n\n\(gap)".utf8)
    }

    /// Removes the client from the feed.
    ///
    /// Must be called exactly once, when the client is gone.
    func end() { feed.leave() }

    /// Fills the buffer with the next data; returns 0 if there is none.
    func fill(
        _ buffer: UnsafeMutableRawBufferPointer, _ status: Clients.Status, at now: ContinuousClock.Instant
    ) -> Int {
        if taken == pending.count { gather(status, at: now) }
        let count = min(buffer.count, pending.count - taken)
        guard count > 0 else { return 0 }
        pending.withUnsafeBytes { bytes in
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[taken..<(taken + count)]))
        }
        taken += count
        return count
    }

    private func gather(_ status: Clients.Status, at now: ContinuousClock.Instant) {
        var text = ""
        if kinds.contains(.status), sentStatus < status.number {
            text += "event: status\ndata: \(status.text)\n\n"
            sentStatus = status.number
        }
        while text.utf8.count < 16_384 {
            let (events, missed) = feed.events(from: next, limit: 32)
            if missed > 0 { text += "event: gap\ndata: {\"missed\":\(missed)}\n\n" }
            guard let last = events.last else { break }
            next = last.id + 1
            for event in events where kinds.contains(event.kind) {
                text += "id: \(event.id)\nevent: \(event.kind.rawValue)\ndata: \(event.text())\n\n"
            }
        }
        if text.isEmpty, nextHeartbeat <= now { text = ": beat\n\n" }
        if !text.isEmpty { nextHeartbeat = now + Self.heartbeat }
        pending = Array(text.utf8)
        taken = 0
    }
}
