import System

/// The kernel's queue of events, and the time of the world.
struct KernelQueue {
    /// The time since the world was created.
    var elapsed = Duration.zero
    /// Watches and their masks by inode.
    var watches: [Int: (watch: Int32, kinds: KernelEvent.Kinds)] = [:]
    private var nextWatch: Int32 = 1
    /// The queued events, in the order in which they become readable.
    var events: [KernelEvent] = []
    var isOverflowed = false
    /// Whether new events are dropped from the queue.
    var isLosing = false
    /// By inode of a directory, the time until which changes of its names wait for the second half of a rename.
    var notBefore: [Int: Duration] = [:]

    /// Watches a directory; masks are combined.
    mutating func watch(_ node: Int, _ kinds: KernelEvent.Kinds) -> Int32 {
        if let known = watches[node] {
            watches[node] = (known.watch, known.kinds.union(kinds))
            return known.watch
        }
        watches[node] = (nextWatch, kinds)
        nextWatch += 1
        return nextWatch - 1
    }

    mutating func endWatch(_ node: Int, at time: Duration? = nil) {
        guard let known = watches.removeValue(forKey: node) else { return }
        queue(KernelEvent(watch: known.watch, kinds: .ignored, name: nil, isDirectory: true, readable: time ?? elapsed))
    }

    mutating func removeWatch(_ watch: Int32) {
        guard let node = watches.first(where: { $0.value.watch == watch })?.key else { return }
        endWatch(node)
    }

    /// Queues an event for a watched directory itself.
    mutating func report(_ kinds: KernelEvent.Kinds, _ node: Int, at time: Duration? = nil) {
        guard let known = watches[node], !known.kinds.union(.always).isDisjoint(with: kinds) else { return }
        queue(KernelEvent(watch: known.watch, kinds: kinds, name: nil, isDirectory: true, readable: time ?? elapsed))
    }

    /// Queues an event for a name in a directory.
    mutating func report(
        _ kinds: KernelEvent.Kinds, _ name: PathBytes, in directory: Int, isDirectory: Bool, at time: Duration? = nil
    ) {
        guard let known = watches[directory], !known.kinds.isDisjoint(with: kinds) else { return }
        var readable = max(time ?? elapsed, elapsed)
        if !kinds.isDisjoint(with: .nameChanges), let earliest = notBefore[directory] {
            readable = max(readable, earliest)
        }
        queue(
            KernelEvent(
                watch: known.watch, kinds: kinds.intersection(known.kinds), name: name, isDirectory: isDirectory,
                readable: readable))
    }

    private mutating func queue(_ event: KernelEvent) {
        if isLosing { isOverflowed = true }
        guard !isOverflowed else { return }
        var index = events.count
        while index > 0, events[index - 1].readable > event.readable { index -= 1 }
        events.insert(event, at: index)
    }

    /// Removes and returns the readable events.
    mutating func takeEvents(all: Bool) -> [KernelEvent] {
        let count = all ? events.count : events.firstIndex { $0.readable > elapsed } ?? events.count
        var taken = Array(events[..<count])
        events.removeFirst(count)
        if isOverflowed {
            isOverflowed = false
            taken.append(KernelEvent(watch: -1, kinds: .overflow, name: nil, isDirectory: false, readable: elapsed))
        }
        return taken
    }
}
