import FileEvents
import Glibc
import System

/// The files that have a hint in the current turn, so that a further event about one of them needs no path.
///
/// A file that is written in pieces causes an event per write, and most of the cost
/// of a hint is its path. A file whose entry was overwritten by another one gets a
/// second hint, which the queue merges.
struct RecentFiles {
    private struct Entry {
        var directory: DirectoryTree.ID?
        var hint: Int32 = 0
        var turn: UInt32 = 0
    }

    /// The position of a file in the table, whether it is present or not.
    struct Slot {
        fileprivate var index: Int
        fileprivate var directory: DirectoryTree.ID
    }

    private var entries = [Entry](repeating: Entry(), count: 4096)
    private var turn: UInt32 = 1

    func slot(of name: UnsafeRawBufferPointer, in directory: DirectoryTree.ID) -> Slot {
        // If names are chosen to collide, each event costs a hint, as it would without this table.
        var hash = UInt64(directory.number)
        var offset = 0
        while offset < name.count {
            var word: UInt64 = 0
            withUnsafeMutableBytes(of: &word) { word in
                word.copyMemory(from: UnsafeRawBufferPointer(rebasing: name[offset..<min(offset + 8, name.count)]))
            }
            hash = (hash ^ word) &* 0x9E37_79B9_7F4A_7C15
            hash ^= hash >> 29
            offset += 8
        }
        return Slot(index: Int(truncatingIfNeeded: hash) & (entries.count - 1), directory: directory)
    }

    /// Returns the index of the hint for the file of that name; nil when there is none, or its entry was overwritten.
    func hint(at slot: Slot, named name: UnsafeRawBufferPointer, among hints: [Hint]) -> Int? {
        let entry = entries[slot.index]
        guard entry.turn == turn, entry.directory == slot.directory else { return nil }
        // The directory is the same, so the name alone decides.
        let isSame = hints[Int(entry.hint)].path.bytes.withUnsafeBytes { bytes in
            let start = bytes.count - name.count
            guard start > 0, bytes[start - 1] == .slash else { return false }
            guard let path = bytes.baseAddress, let name = name.baseAddress else { return false }
            return memcmp(path + start, name, bytes.count - start) == 0
        }
        return isSame ? Int(entry.hint) : nil
    }

    mutating func set(_ hint: Int, at slot: Slot) {
        entries[slot.index] = Entry(directory: slot.directory, hint: Int32(hint), turn: turn)
    }

    /// Removes all entries, after the hints were handed over.
    mutating func removeAll() {
        turn &+= 1
        if turn == 0 { self = RecentFiles() }
    }
}
