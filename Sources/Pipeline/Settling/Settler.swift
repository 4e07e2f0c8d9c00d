public import HeapModule

/// Holds paths back until nothing has happened to them for their quiet time.
///
/// The settler has no clock, starts no task and accesses no file: every method takes
/// the current instant and returns what the caller must do. A sign of activity on a
/// waiting path costs one dictionary write: its deadline in the heap is extended only
/// when it comes up.
///
/// It is inlinable, and public because the compiler does not specialize `package` declarations in other modules: each
/// user gets a copy that is specialized for its own keys and notes. Otherwise the dictionaries of the standard library
/// would look up their type metadata at run time, for each path.
public struct Settler<Key: Hashable & Sendable, Note: Sendable>: ~Copyable {
    public typealias Instant = ContinuousClock.Instant

    /// A waiting path.
    public struct Waiting: Sendable {
        /// The caller's data about it.
        public var note: Note
        /// The time at which it first became dirty.
        public let since: Instant
        /// The number of times it came due and was put back.
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

    /// Returns a waiting key's entry, with the time since when it has waited; nil when it does not wait.
    @inlinable
    public func waiting(_ key: Key) -> Waiting? { waiting[key] }

    /// The waiting keys, in no particular order.
    @inlinable
    public var keys: [Key] { Array(waiting.keys) }

    /// Records a sign of activity and restarts the quiet time.
    ///
    /// - Parameters:
    ///   - key: The path.
    ///   - note: The note to store if the key is not waiting yet.
    ///   - quiet: The quiet time, from now on.
    ///   - longest: The time since it first became dirty after which it is due in any case; nil waits indefinitely.
    ///   - now: The current time.
    ///   - merge: Called with the stored note if the key is already waiting.
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
            // The heap already contains an earlier deadline for it, unless this one is the earliest.
            if isSooner { push(key, entry.due) }
            return
        }
        let due = due(since: now)
        waiting[key] = Waiting(note: note(), since: now, due: due)
        push(key, due)
    }

    /// Adds an entry from another settler, or of another key, with its deadline.
    ///
    /// - Parameters:
    ///   - key: The new key; if it is already waiting, the later of both deadlines applies.
    ///   - entry: The entry.
    ///   - due: Another deadline; nil for the entry's own.
    ///   - merge: Merges the entry's note into that of a key that is already waiting.
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

    /// Removes and returns everything whose quiet time is over, in the order of deadlines; at most `limit` entries.
    @inlinable
    public mutating func takeDue(at now: Instant, limit: Int = .max) -> [(key: Key, entry: Waiting)] {
        var due: [(key: Key, entry: Waiting)] = []
        while due.count < limit, let first = deadlines.min, first.due <= now {
            deadlines.removeMin()
            guard let entry = waiting[first.key] else { continue }
            if entry.due > now {
                // Extended since; a second deadline for it may be in the heap, and is skipped when it comes up.
                if entry.due > first.due { push(first.key, entry.due) }
                continue
            }
            waiting[first.key] = nil
            due.append((first.key, entry))
        }
        if !due.isEmpty { shrink() }
        return due
    }

    /// The capacity that is never released.
    @inlinable static var spare: Int { 1_024 }

    /// Releases memory when few of very many keys are left: the others have become jobs, which need memory themselves.
    @inlinable mutating func shrink() {
        guard waiting.capacity > Self.spare, waiting.count < waiting.capacity / 4 else { return }
        var retained: [Key: Waiting] = [:]
        retained.reserveCapacity(waiting.count)
        retained.merge(waiting) { first, _ in first }
        waiting = retained
        deadlines = Heap(deadlines.unordered.filter { retained[$0.key] != nil })
    }

    /// The latest time for the next call of `takeDue`; nil when nothing waits.
    @inlinable
    public var nextDeadline: Instant? { waiting.isEmpty ? nil : deadlines.min?.due }

    @inlinable mutating func push(_ key: Key, _ due: Instant) {
        sequence += 1
        deadlines.insert(Deadline(due: due, sequence: sequence, key: key))
    }
}
