import JSON
import System

/// A sorted list of files with a formatted line for each entry.
///
/// A change costs a binary search; the whole list is assembled from the formatted lines.
struct FileIndex {
    /// The attribute that the entries are sorted by.
    enum Key: String, CaseIterable {
        case name, mtime, size
    }

    /// The order of the entries.
    struct Order: Equatable {
        private let key: Key
        private let isDescending: Bool

        /// Creates the order of a word such as `mtime` or `-mtime`.
        init(_ word: String) {
            isDescending = word.hasPrefix("-")
            key = Key(rawValue: isDescending ? String(word.dropFirst()) : word) ?? .name
        }

        /// Whether the line is before the entry; entries with the same sort key are ordered by name.
        fileprivate func isBefore(_ line: Line, _ entry: Entry, _ path: PathBytes) -> Bool {
            let one = line.entry
            switch key {
            case .mtime where one.modified != entry.modified: return (one.modified < entry.modified) != isDescending
            case .size where one.size != entry.size: return (one.size < entry.size) != isDescending
            case .name where one.relative != entry.relative: return (one.relative < entry.relative) != isDescending
            case .mtime, .size, .name:
                return one.relative == entry.relative ? line.path < path : one.relative < entry.relative
            }
        }
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

    fileprivate struct Line {
        var path: PathBytes
        var entry: Entry
        /// The formatted line, starting with a newline.
        var text: [UInt8]

        init(_ path: PathBytes, _ entry: Entry) {
            self.path = path
            self.entry = entry
            var object: [String: JSONValue] = [
                "size": .integer(Int64(clamping: entry.size)), "mtime": .string(entry.modified.description),
                "type": .string(entry.type.rawValue),
            ]
            object.add("path", bytes: entry.relative.bytes)
            if let root = entry.root { object.add("root", bytes: root.bytes) }
            if let isCopying = entry.isCopying { object["copying"] = .bool(isCopying) }
            text = [UInt8(ascii: "\n")] + object.lineBytes
        }
    }

    let order: Order
    private var lines: [Line] = []
    private var entries: [PathBytes: Entry] = [:]
    /// The files that were open for writing when they were last checked.
    private(set) var copying: Set<PathBytes> = []

    init(order: Order) { self.order = order }

    var count: Int { lines.count }

    /// Returns the files in the directory, at any depth, or at the path itself.
    func entries(in directory: PathBytes) -> [(path: PathBytes, entry: Entry)] {
        entries.filter { $0.key.isInside(directory) }.map { ($0.key, $0.value) }
    }

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
        recordCopying(entry, at: path)
        if let entry { lines.insert(Line(path, entry), at: position(of: entry, at: path)) }
        return true
    }

    /// Adds many new paths at once.
    mutating func add(_ found: [(path: PathBytes, entry: Entry)]) {
        for (path, entry) in found where entries.updateValue(entry, forKey: path) == nil {
            lines.append(Line(path, entry))
            recordCopying(entry, at: path)
        }
        let order = order
        lines.sort { order.isBefore($0, $1.entry, $1.path) }
    }

    private mutating func recordCopying(_ entry: Entry?, at path: PathBytes) {
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

    /// Returns the first position that is not before the entry.
    private func position(of entry: Entry, at path: PathBytes) -> Int {
        lines.indices.bisected { !order.isBefore(lines[$0], entry, path) }
    }
}
