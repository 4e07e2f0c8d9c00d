import Glibc
package import System

/// The operations of all workers of a driver, ordered by time.
package struct OperationLog {
    private struct Entry {
        var start: Int64
        var end: Int64
        var line: String
        var paths: [String]
    }

    private let entries: [Entry]

    /// Microseconds of the monotonic clock, which all processes share.
    package static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    /// Returns a time as it appears in reports.
    package static func shown(_ time: Int64) -> String { "\(time / 1000 % 10_000_000) ms" }

    /// Writes a line to standard output: start, end, worker, result, operation and paths, separated by tabs.
    package static func write(start: Int64, worker: String, error: Int32, _ summary: String, paths: [String]) {
        let result = error == 0 ? "done" : SystemError(errno: error).description
        let fields = ["\(start)", "\(now())", worker, result, summary] + paths
        TestFile.put(STDOUT_FILENO, Array((fields.joined(separator: "\t") + "\n").utf8))
    }

    /// Reads the logs of all workers in a directory.
    package init(_ directory: PathBytes) {
        var entries: [Entry] = []
        for name in TestFile.names(in: directory) where name.suffix(4).elementsEqual(".out".utf8) {
            let text = TestFile.text(directory.appending(name)) ?? ""
            for line in text.split(separator: "\n") {
                let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
                guard fields.count >= 5, let start = Int64(fields[0]), let end = Int64(fields[1]) else { continue }
                let paths = Array(fields[5...])
                let operation = "\(fields[4]) \(paths.joined(separator: " -> ")): \(fields[3])"
                let line = "\(Self.shown(end)), \(fields[2]): \(operation)"
                entries.append(Entry(start: start, end: end, line: line, paths: paths))
            }
        }
        self.entries = entries.sorted { $0.end < $1.end }
    }

    package var count: Int { entries.count }

    private func related(_ path: String, includingBelow: Bool = false) -> [Entry] {
        entries.filter { entry in
            entry.paths.contains {
                $0 == path || path.hasPrefix($0 + "/") || includingBelow && $0.hasPrefix(path + "/")
            }
        }
    }

    /// Whether any operation affected the path, or a directory above it, in the given period.
    package func touched(_ path: String, from start: Int64, to end: Int64) -> Bool {
        related(path).contains { $0.end >= start && $0.start <= end }
    }

    /// Returns the last operations on the path, on a directory above it, and possibly on paths below it.
    package func last(_ count: Int, on path: String, includingBelow: Bool = false) -> [String] {
        related(path, includingBelow: includingBelow).suffix(count).map(\.line)
    }
}
