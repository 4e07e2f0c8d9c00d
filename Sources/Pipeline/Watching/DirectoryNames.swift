import Glibc
import System

/// The names of the directories in a ``DirectoryTree``, with an index by parent and name.
///
/// Each call gets the records of the tree, which contain the parents and the positions of the names.
struct DirectoryNames {
    private var names: [UInt8] = []
    private var forgottenNames = 0
    /// The directories by parent and name, without the roots.
    private var index = NumberTable()

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
        if !records[Int(index)].isRoot {
            self.index.remove(index, hash(index, records)) { [names] in Self.hash($0, records, names) }
        }
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

    private static func hash(_ parent: Int32, _ name: UnsafeRawBufferPointer) -> Int {
        // Seeded, so that colliding names can't be chosen deliberately.
        var hasher = Hasher()
        hasher.combine(parent)
        hasher.combine(bytes: name)
        return hasher.finalize()
    }

    private static func hash(_ index: Int32, _ records: [DirectoryTree.Record], _ names: [UInt8]) -> Int {
        let record = records[Int(index)]
        let start = Int(record.nameStart)
        return names.withUnsafeBytes {
            hash(record.parent, UnsafeRawBufferPointer(rebasing: $0[start..<(start + Int(record.nameLength))]))
        }
    }

    private func hash(_ index: Int32, _ records: [DirectoryTree.Record]) -> Int { Self.hash(index, records, names) }

    /// Returns the subdirectory of that name.
    func child(of parent: Int32, named name: UnsafeRawBufferPointer, _ records: [DirectoryTree.Record]) -> Int32? {
        index.first(Self.hash(parent, name)) { isChild(records[Int($0)], of: parent, named: name) }
    }

    /// Adds a subdirectory, whose record has its parent and its name, to the index.
    mutating func insert(_ child: Int32, _ records: [DirectoryTree.Record]) {
        index.insert(child, hash(child, records)) { [names] in Self.hash($0, records, names) }
    }

    private func isChild(_ record: DirectoryTree.Record, of parent: Int32, named name: UnsafeRawBufferPointer) -> Bool {
        guard record.parent == parent, Int(record.nameLength) == name.count, let bytes = name.baseAddress else {
            return false
        }
        return names.withUnsafeBytes {
            $0.baseAddress.map { memcmp($0 + Int(record.nameStart), bytes, name.count) == 0 } ?? false
        }
    }
}
