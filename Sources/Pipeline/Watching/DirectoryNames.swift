import Glibc

/// The names of the directories in a ``DirectoryTree``, with an index by parent and name.
///
/// Each call gets the records of the tree, which contain the parents and the positions of the names.
struct DirectoryNames {
    private var names: [UInt8] = []
    private var forgottenNames = 0
    /// A hash table of parent and name with open addressing; -1 is empty.
    ///
    /// It does not contain the roots.
    private(set) var slots: [Int32] = Array(repeating: -1, count: 64)

    // MARK: Names

    subscript(offset: Int) -> UInt8 { names[offset] }

    /// Stores a name and returns its start.
    mutating func append(_ name: UnsafeRawBufferPointer) -> UInt32 {
        let start = UInt32(names.count)
        names.append(contentsOf: name)
        return start
    }

    /// Removes a directory from the index, before its record is cleared.
    mutating func forget(_ index: Int32, _ records: [DirectoryTree.Record]) {
        if !records[Int(index)].isRoot { removeSlot(index, records) }
        forgottenNames += Int(records[Int(index)].nameLength)
    }

    /// Removes the names of forgotten directories if they take up more than half of the memory.
    mutating func packIfWorthwhile(_ records: inout [DirectoryTree.Record]) {
        if forgottenNames > 4096, forgottenNames > names.count / 2 { packNames(&records) }
    }

    private mutating func packNames(_ records: inout [DirectoryTree.Record]) {
        var packed: [UInt8] = []
        packed.reserveCapacity(names.count - forgottenNames)
        for index in records.indices where records[index].nameLength > 0 {
            let start = Int(records[index].nameStart)
            let name = names[start..<(start + Int(records[index].nameLength))]
            records[index].nameStart = UInt32(packed.count)
            packed.append(contentsOf: name)
        }
        names = packed
        forgottenNames = 0
    }

    // MARK: Name index

    private func hash(_ parent: Int32, _ name: UnsafeRawBufferPointer) -> Int {
        // Seeded, so that colliding names can't be chosen deliberately.
        var hasher = Hasher()
        hasher.combine(parent)
        hasher.combine(bytes: name)
        return hasher.finalize()
    }

    private func hash(_ index: Int32, _ records: [DirectoryTree.Record]) -> Int {
        let record = records[Int(index)]
        let start = Int(record.nameStart)
        return names.withUnsafeBytes {
            hash(record.parent, UnsafeRawBufferPointer(rebasing: $0[start..<(start + Int(record.nameLength))]))
        }
    }

    /// Returns the slot of the subdirectory, or the empty slot for it.
    func slot(of name: UnsafeRawBufferPointer, in parent: Int32, _ records: [DirectoryTree.Record]) -> Int {
        var slot = hash(parent, name) & (slots.count - 1)
        while slots[slot] >= 0, !isChild(records[Int(slots[slot])], of: parent, named: name) {
            slot = (slot + 1) & (slots.count - 1)
        }
        return slot
    }

    private func isChild(_ record: DirectoryTree.Record, of parent: Int32, named name: UnsafeRawBufferPointer) -> Bool {
        guard record.parent == parent, Int(record.nameLength) == name.count, let bytes = name.baseAddress else {
            return false
        }
        return names.withUnsafeBytes {
            $0.baseAddress.map { memcmp($0 + Int(record.nameStart), bytes, name.count) == 0 } ?? false
        }
    }

    mutating func fillSlot(_ slot: Int, with index: Int32) { slots[slot] = index }

    private mutating func insertSlot(_ index: Int32, _ records: [DirectoryTree.Record]) {
        var slot = hash(index, records) & (slots.count - 1)
        while slots[slot] >= 0 { slot = (slot + 1) & (slots.count - 1) }
        slots[slot] = index
    }

    mutating func growSlots(_ records: [DirectoryTree.Record]) {
        let old = slots
        slots = Array(repeating: -1, count: old.count * 2)
        for index in old where index >= 0 { insertSlot(index, records) }
    }

    /// Empties a slot and moves back the entries after it that were displaced by it.
    private mutating func removeSlot(_ index: Int32, _ records: [DirectoryTree.Record]) {
        let mask = slots.count - 1
        var hole = hash(index, records) & mask
        while slots[hole] != index { hole = (hole + 1) & mask }
        var slot = hole
        while true {
            slot = (slot + 1) & mask
            guard slots[slot] >= 0 else { break }
            let home = hash(slots[slot], records) & mask
            if (slot - home) & mask >= (slot - hole) & mask {
                slots[hole] = slots[slot]
                hole = slot
            }
        }
        slots[hole] = -1
    }
}
