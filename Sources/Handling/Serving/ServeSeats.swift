/// How many processes a plugin has in all, over the pools that differ in their surroundings.
///
/// Pure. A pool takes a seat before it starts a process, and gives it back when
/// that has ended. Where all are taken, pools without any come first, and those
/// that have some are asked to give way.
package struct ServeSeats: Sendable {
    private var most: Int
    /// How many each pool has.
    private var held: [Int: Int] = [:]
    private var queue: [Int] = []

    /// - Parameter most: Most processes at once.
    package init(most: Int) { self.most = max(most, 1) }

    /// Takes another number, as when a description has changed; those that have more keep them until they end.
    package mutating func change(most: Int) { self.most = max(most, 1) }

    /// The pools that have seats.
    package var holders: [Int] { held.keys.sorted() }

    /// The pool that may have the next free seat; nil when no seat is free, or nobody waits.
    package var next: Int? { isFree ? starving.first ?? queue.first : nil }

    /// Whether a pool without any seat waits for one.
    package var isShort: Bool { !starving.isEmpty }

    private var isFree: Bool { held.values.reduce(0, +) < most }

    private var starving: [Int] { queue.filter { held[$0] == nil } }

    /// Takes a seat for a pool, or has it wait for one.
    ///
    /// - Returns: Whether it has got one; and if not, whether it has begun to wait just now.
    package mutating func take(for pool: Int) -> (isTaken: Bool, hasBegunToWait: Bool) {
        guard isFree, starving.first.map({ $0 == pool }) ?? true else {
            guard !queue.contains(pool) else { return (false, false) }
            queue.append(pool)
            return (false, true)
        }
        queue.removeAll { $0 == pool }
        held[pool, default: 0] += 1
        return (true, false)
    }

    /// Gives a seat of a pool back.
    package mutating func release(of pool: Int) {
        guard let count = held[pool] else { return }
        held[pool] = count == 1 ? nil : count - 1
    }

    /// Notes that a pool waits no more.
    package mutating func withdraw(_ pool: Int) { queue.removeAll { $0 == pool } }
}
