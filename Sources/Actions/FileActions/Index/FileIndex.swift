import JSON
import System

/// A sorted list of files with a formatted line for each entry.
///
/// A change costs a binary search; the whole list is assembled from the formatted lines.
struct FileIndex {
    /// The attribute that the entries are sorted by.
    enum Order: String, CaseIterable {
        case name, mtime, size
    }

    /// A file as it appears in the list.
    struct Entry: Equatable {
        /// The path relative to the root.
        var relative: PathBytes
        /// The root, if the rule has several.
        var root: PathBytes?
        var size: UInt64
        var modified: Timestamp
        var type: FileType
        /// Whether a process has the file open for writing; nil if unknown.
        var isCopying: Bool?
    }

    private struct Line {
        var path: PathBytes
        var entry: Entry
        /// The formatted line, starting with a newline.
        var text: [UInt8]
    }

    let order: Order
    let isDescending: Bool
    private var lines: [Line] = []
    private var entries: [PathBytes: Entry] = [:]

    init(order: Order, isDescending: Bool) {
        self.order = order
        self.isDescending = isDescending
    }

    var count: Int { lines.count }

    /// The files that were open for writing when they were last checked.
    private(set) var copying: Set<PathBytes> = []

    /// Returns the paths of the files in the directory, at any depth, and the path itself.
    func paths(in folder: PathBytes) -> [PathBytes] { entries.keys.filter { $0.isInside(folder) } }

    subscript(path: PathBytes) -> Entry? { entries[path] }

    /// Replaces the entry of a path, or removes it.
    ///
    /// - Parameters:
    ///   - entry: The new entry; nil if there is no file.
    ///   - path: The absolute path.
    /// - Returns: Whether the list has changed.
    mutating func set(_ entry: Entry?, at path: PathBytes) -> Bool {
        let old = entries[path]
        guard old != entry else { return false }
        if let old { lines.remove(at: position(of: old, at: path)) }
        entries[path] = entry
        note(entry, at: path)
        if let entry {
            let line = Line(path: path, entry: entry, text: text(of: entry))
            lines.insert(line, at: position(of: entry, at: path))
        }
        return true
    }

    /// Adds many new paths at once.
    mutating func add(_ found: [(path: PathBytes, entry: Entry)]) {
        for (path, entry) in found where entries.updateValue(entry, forKey: path) == nil {
            lines.append(Line(path: path, entry: entry, text: text(of: entry)))
            note(entry, at: path)
        }
        let (order, isDescending) = (order, isDescending)
        lines.sort { Self.isBefore($0, $1.entry, $1.path, order, isDescending) }
    }

    private mutating func note(_ entry: Entry?, at path: PathBytes) {
        if entry?.isCopying == true { copying.insert(path) } else { copying.remove(path) }
    }

    /// The list as JSON, one entry per line.
    var json: [UInt8] {
        var json: [UInt8] = []
        json.reserveCapacity(lines.reduce(4) { $0 + $1.text.count + 1 })
        json.append(UInt8(ascii: "["))
        for (number, line) in lines.enumerated() {
            if number > 0 { json.append(UInt8(ascii: ",")) }
            json.append(contentsOf: line.text)
        }
        json.append(contentsOf: lines.isEmpty ? "]\n".utf8 : "\n]\n".utf8)
        return json
    }

    // MARK: Order

    /// Returns the first position that is not before the entry.
    private func position(of entry: Entry, at path: PathBytes) -> Int {
        var low = 0
        var high = lines.count
        while low < high {
            let middle = (low + high) / 2
            if isBefore(lines[middle], entry, path) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Entries with the same sort key are ordered by name.
    private func isBefore(_ line: Line, _ entry: Entry, _ path: PathBytes) -> Bool {
        Self.isBefore(line, entry, path, order, isDescending)
    }

    private static func isBefore(
        _ line: Line, _ entry: Entry, _ path: PathBytes, _ order: Order, _ isDescending: Bool
    ) -> Bool {
        let (one, other) = (line.entry, entry)
        switch order {
        case .mtime where one.modified != other.modified: return (one.modified < other.modified) != isDescending
        case .size where one.size != other.size: return (one.size < other.size) != isDescending
        case .name where one.relative != other.relative: return (one.relative < other.relative) != isDescending
        case .mtime, .size, .name:
            return one.relative == other.relative ? line.path < path : one.relative < other.relative
        }
    }

    // MARK: Formatting

    private func text(of entry: Entry) -> [UInt8] {
        var object: [String: JSONValue] = [
            "size": .integer(Int64(clamping: entry.size)), "mtime": .string(entry.modified.description),
            "type": .string(entry.type.rawValue),
        ]
        object.add("path", bytes: entry.relative.bytes)
        if let root = entry.root { object.add("root", bytes: root.bytes) }
        if let isCopying = entry.isCopying { object["copying"] = .bool(isCopying) }
        return [UInt8(ascii: "\n")] + object.lineBytes
    }
}
