import System
import TestKit

/// The operations of all workers with their times and paths.
struct OperationTimes {
    private struct Entry {
        var start: Int64
        var end: Int64
        var line: String
        var paths: [PathBytes]
    }

    private var entries: [Entry] = []

    /// Reads the logs of all workers in a directory.
    init(_ folder: PathBytes) {
        for name in TestFile.names(in: folder)
        where name.starts(with: "worker".utf8) && name.suffix(4) == Array(".out".utf8)[...] {
            let text = String(decoding: TestFile.read(folder.appending(name)) ?? [], as: UTF8.self)
            for line in text.split(separator: "\n") {
                let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
                guard fields.count >= 5, let start = Int64(fields[0]), let end = Int64(fields[1]) else { continue }
                let paths = fields[5...].map { PathBytes($0) }
                let what = "\(fields[4]) \(fields[5...].joined(separator: " -> ")): \(fields[3])"
                entries.append(
                    Entry(
                        start: start, end: end, line: "\(end / 1000 % 10_000_000) ms, \(fields[2]): \(what)",
                        paths: paths))
            }
        }
        entries.sort { $0.end < $1.end }
    }

    var count: Int { entries.count }

    private func related(_ path: PathBytes) -> [Entry] {
        entries.filter { entry in entry.paths.contains { path.isInside($0) } }
    }

    /// Whether any operation affected the path, or a directory above it, in the given period.
    func touched(_ path: PathBytes, from start: Int64, to end: Int64) -> Bool {
        related(path).contains { $0.end >= start && $0.start <= end }
    }

    /// The last operations on the path or on a directory above it.
    func last(_ count: Int, on path: PathBytes) -> [String] { related(path).suffix(count).map(\.line) }
}
