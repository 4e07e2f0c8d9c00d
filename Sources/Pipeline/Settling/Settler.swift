public import HeapModule
import System

/// Holds paths back until nothing has happened to them for their quiet time.
///
/// The settler holds no clock, starts no task and touches no file: every method
/// takes the current instant and returns what the caller must do. A sign of life
/// on a waiting path costs one dictionary write: its deadline in the heap is
/// extended only when it comes up.
///
/// It is inlinable, and public since the compiler copies nothing that is `package` into another module: so each of those
/// who use it has a copy for its own keys and notes. Without that the tables of the standard library are asked for their
/// types at run time, for each path.
public struct Settler<Key: Hashable & Sendable, Note: Sendable>: ~Copyable {
    public typealias Instant = ContinuousClock.Instant

    /// A path that waits.
    public struct Waiting: Sendable {
        /// What is known of it; the caller's.
        public var note: Note
        /// When it first became dirty.
        public let since: Instant
        /// How often it came due and was put back.
        public var rounds = 0
        @usableFromInline var due: Instant

        @inlinable init(note: Note, since: Instant, due: Instant) {
            self.note = note
            self.since = since
            self.due = due
        }
    }

    @usableFromInline struct Deadline: Comparable {
        @usableFromInline var due: Instant
        @usableFromInline var sequence: UInt64
        @usableFromInline var key: Key

        @inlinable init(due: Instant, sequence: UInt64, key: Key) {
            self.due = due
            self.sequence = sequence
            self.key = key
        }

        @inlinable static func < (left: Deadline, right: Deadline) -> Bool {
            (left.due, left.sequence) < (right.due, right.sequence)
        }
        @inlinable static func == (left: Deadline, right: Deadline) -> Bool {
            (left.due, left.sequence) == (right.due, right.sequence)
        }
    }

    @usableFromInline var waiting: [Key: Waiting] = [:]
    @usableFromInline var deadlines = Heap<Deadline>()
    @usableFromInline var sequence: UInt64 = 0

    @inlinable
    public init() {}

    @inlinable
    public var count: Int { waiting.count }

    @inlinable
    public func contains(_ key: Key) -> Bool { waiting[key] != nil }

    /// What is known of a key that waits; nil when it does not.
    @inlinable
    public func note(_ key: Key) -> Note? { waiting(key)?.note }

    /// The same, with the time since when it waits.
    @inlinable
    public func waiting(_ key: Key) -> Waiting? { waiting[key] }

    /// The keys that wait, in no order.
    @inlinable
    public var keys: [Key] { Array(waiting.keys) }

    /// Notes a sign of life and restarts the quiet time.
    ///
    /// - Parameters:
    ///   - key: What waits.
    ///   - note: What to keep when the key did not wait yet.
    ///   - quiet: How long it has to be quiet from now on.
    ///   - longest: After so long since it first became dirty it is due, quiet or not; nil waits for ever.
    ///   - now: The present.
    ///   - merge: Called with the note that is kept already, otherwise.
    @inlinable
    public mutating func add(
        _ key: Key, note: @autoclosure () -> Note, quiet: Duration, longest: Duration? = nil, at now: Instant,
        merge: (inout Note) -> Void
    ) {
        func due(since: Instant) -> Instant { longest.map { min(now + quiet, since + $0) } ?? now + quiet }
        if var entry = waiting[key] {
            merge(&entry.note)
            let due = due(since: entry.since)
            let isSooner = due < entry.due
            entry.due = due
            entry.rounds = 0
            waiting[key] = entry
            // The heap holds an earlier deadline for it already, unless this one is the earliest.
            if isSooner { push(key, entry.due) }
            return
        }
        let due = due(since: now)
        waiting[key] = Waiting(note: note(), since: now, due: due)
        push(key, due)
    }

    /// Takes over what waited in another settler, or under another key, and is due when it was.
    ///
    /// - Parameters:
    ///   - key: Under which it waits from now on; a key that waits already waits for the later of both.
    ///   - entry: What waited.
    ///   - due: Another time at which it is due; nil for its own.
    ///   - merge: Joins its note to that of a key that waits already.
    @inlinable
    public mutating func takeOver(
        _ key: Key, _ entry: Waiting, due: Instant? = nil, merge: (inout Note) -> Void
    ) {
        var entry = entry
        if let due { entry.due = due }
        if var waits = waiting[key] {
            merge(&waits.note)
            waits.due = max(waits.due, entry.due)
            entry = waits
        }
        waiting[key] = entry
        push(key, entry.due)
    }

    /// Puts back a key that came due but was not finished.
    @inlinable
    public mutating func putBack(_ key: Key, _ entry: Waiting, until due: Instant) {
        var entry = entry
        entry.due = due
        entry.rounds += 1
        waiting[key] = entry
        push(key, due)
    }

    /// Removes and returns everything whose quiet time is over, in the order of deadlines; no more than the limit.
    @inlinable
    public mutating func takeDue(at now: Instant, limit: Int = .max) -> [(key: Key, entry: Waiting)] {
        var due: [(key: Key, entry: Waiting)] = []
        while due.count < limit, let first = deadlines.min, first.due <= now {
            deadlines.removeMin()
            guard let entry = waiting[first.key] else { continue }
            if entry.due > now {
                // Extended since; a second deadline for it may be in the heap, and is then found stale.
                if entry.due > first.due { push(first.key, entry.due) }
                continue
            }
            waiting[first.key] = nil
            due.append((first.key, entry))
        }
        if !due.isEmpty { shrink() }
        return due
    }

    /// Room for so many is kept.
    @inlinable static var spare: Int { 1_024 }

    /// Gives memory back when few of very many are left: they are jobs by now, which need memory of their own.
    @inlinable mutating func shrink() {
        guard waiting.capacity > Self.spare, waiting.count < waiting.capacity / 4 else { return }
        var kept: [Key: Waiting] = [:]
        kept.reserveCapacity(waiting.count)
        kept.merge(waiting) { first, _ in first }
        waiting = kept
        deadlines = Heap(deadlines.unordered.filter { kept[$0.key] != nil })
    }

    /// When `takeDue` has to be called next, at the latest; nil when nothing waits.
    @inlinable
    public var nextDeadline: Instant? { waiting.isEmpty ? nil : deadlines.min?.due }

    @inlinable mutating func push(_ key: Key, _ due: Instant) {
        sequence += 1
        deadlines.insert(Deadline(due: due, sequence: sequence, key: key))
    }
}
