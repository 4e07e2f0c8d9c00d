import System

/// One client that follows the events, as server-sent events.
///
/// It belongs to the thread of its connection.
final class EventStream {
    /// The kinds that are wanted.
    let kinds: Set<EventFeed.Kind>
    private let feed: EventFeed
    private var next: UInt64
    private var pending: [UInt8]
    /// How many of the pending bytes have been taken.
    private var taken = 0
    /// The number of the last status that was sent.
    private var sentStatus = 0
    /// Wakes the thread when there may be something for it.
    let wake: Wake
    /// When the client is told something though nothing happens.
    private(set) var nextBeat: ContinuousClock.Instant

    /// How often a client is told that it is still served, so that one that has gone is noticed.
    static let beat = Duration.seconds(15)
    init(_ feed: EventFeed, _ wake: Wake, kinds: Set<EventFeed.Kind>, after last: UInt64?, recent: Int) {
        self.feed = feed
        self.wake = wake
        self.kinds = kinds
        let (next, mayLack) = feed.join(after: last, recent: recent, kinds: kinds)
        self.next = next
        nextBeat = .now + Self.beat
        // A browser waits no longer than that until it comes again.
        let gap = mayLack ? "id: \(next &- 1)\nevent: gap\ndata: {\"missed\":null}\n\n" : ""
        pending = Array("retry: 2000\n\n\(gap)".utf8)
    }

    /// Must be called once, when the client has gone.
    func end() { feed.leave() }

    /// Fills the buffer with what comes next; 0 when there is nothing.
    func fill(
        _ buffer: UnsafeMutableRawBufferPointer, _ status: Clients.Status,
        at now: ContinuousClock.Instant
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
        if text.isEmpty, nextBeat <= now { text = ": beat\n\n" }
        if !text.isEmpty { nextBeat = now + Self.beat }
        pending = Array(text.utf8)
        taken = 0
    }
}
