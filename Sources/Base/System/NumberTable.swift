/// A hash table of numbers whose keys are stored by the owner, for very many small records.
///
/// It uses open addressing and takes 4 bytes for each place. The owner passes the hash of a key, and a closure that
/// returns the hash for a number in the table. Several numbers may have the same key.
package struct NumberTable: Sendable {
    package typealias Number = Int32

    private static let least = 16
    private var slots: [Number] = Array(repeating: -1, count: least)
    package private(set) var count = 0

    package init() {}

    /// Returns the first number with the hash that satisfies a condition; the condition compares the keys.
    package func first(_ hash: Int, where isMatch: (Number) -> Bool) -> Number? {
        slots.withUnsafeBufferPointer { slots in
            var slot = hash & (slots.count - 1)
            while slots[slot] >= 0 {
                if isMatch(slots[slot]) { return slots[slot] }
                slot = (slot + 1) & (slots.count - 1)
            }
            return nil
        }
    }

    /// Inserts a number that is not in the table.
    package mutating func insert(_ number: Number, _ hash: Int, hashOf: (Number) -> Int) {
        count += 1
        if count * 4 > slots.count * 3 { resize(to: slots.count * 2, hashOf) }
        fill(number, hash)
    }

    private mutating func resize(to size: Int, _ hashOf: (Number) -> Int) {
        let old = slots
        slots = Array(repeating: -1, count: size)
        for number in old where number >= 0 { fill(number, hashOf(number)) }
    }

    private mutating func fill(_ number: Number, _ hash: Int) {
        var slot = hash & (slots.count - 1)
        while slots[slot] >= 0 { slot = (slot + 1) & (slots.count - 1) }
        slots[slot] = number
    }

    /// Removes a number that is in the table, and moves back those after it that it has displaced.
    package mutating func remove(_ number: Number, _ hash: Int, hashOf: (Number) -> Int) {
        let mask = slots.count - 1
        var hole = hash & mask
        while slots[hole] != number { hole = (hole + 1) & mask }
        var slot = hole
        while true {
            slot = (slot + 1) & mask
            guard slots[slot] >= 0 else { break }
            let home = hashOf(slots[slot]) & mask
            if (slot - home) & mask >= (slot - hole) & mask {
                slots[hole] = slots[slot]
                hole = slot
            }
        }
        slots[hole] = -1
        count -= 1
        if slots.count > 4_096, count < slots.count / 8 { resize(to: slots.count / 2, hashOf) }
    }
}
