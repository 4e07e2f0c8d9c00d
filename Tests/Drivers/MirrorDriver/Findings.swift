import FileEvents
import System
import TestKit

/// The operations of all workers, ordered by time.
struct OperationLog {
    private struct Entry {
        var time: UInt64
        var line: String
        var paths: [String]
    }

    private let entries: [Entry]

    /// Reads the logs in a directory.
    init(_ folder: PathBytes) {
        var entries: [Entry] = []
        for name in TestFile.names(in: folder) where name.suffix(4).elementsEqual(".out".utf8) {
            let round = String(decoding: name.prefix { $0 != UInt8(ascii: "-") }, as: UTF8.self)
            let text = String(decoding: TestFile.read(folder.appending(name)) ?? [], as: UTF8.self)
            for line in text.split(separator: "\n") {
                let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
                guard fields.count >= 5, let time = UInt64(fields[0]) else { continue }
                let head = "\(time / 1000 % 10_000_000) ms, round \(round) \(fields[1]) \(fields[2]): "
                let paths = Array(fields[5...])
                let what = "\(fields[4]) \(paths.joined(separator: " -> ")): \(fields[3])"
                entries.append(Entry(time: time, line: head + what, paths: paths))
            }
        }
        self.entries = entries.sorted { $0.time < $1.time }
    }

    /// The last operations on the path, on a directory above it and on paths below it.
    func last(_ count: Int, on path: PathBytes) -> [String] {
        let path = path.shown
        let related = entries.filter { entry in
            entry.paths.contains { $0 == path || path.hasPrefix($0 + "/") || $0.hasPrefix(path + "/") }
        }
        return related.suffix(count).map(\.line)
    }
}

/// A report of differences and contradictions, with the events and operations that led to them.
struct Findings {
    let tree: PathBytes
    let mirror: Mirror
    let differences: [Mirror.Difference]
    let log: OperationLog

    private static let shownPaths = 8

    var text: String {
        var text = "\(differences.count) paths differ, \(mirror.contradictions.count) events contradict those before\n"
        for difference in differences.prefix(Self.shownPaths) {
            text += "\n\(relative(difference.path).shown): \(difference.names.joined(separator: ", "))\n"
            text += "    disk    \(difference.disk?.description ?? "nothing")\n"
            text += "    mirror  \(difference.told?.description ?? "nothing")\n"
            text += trail(difference.path)
        }
        for (event, reason) in mirror.contradictions.prefix(Self.shownPaths) {
            text += "\n\(relative(event.path).shown): line \(event.number), '\(event.kind.rawValue)': \(reason)\n"
            text += trail(event.path)
        }
        return text
    }

    private func relative(_ path: PathBytes) -> PathBytes { PathBytes(path.relative(to: tree) ?? path.bytes[...]) }

    private func trail(_ path: PathBytes) -> String {
        var text = "    events\n"
        for event in (mirror.history[path] ?? []).suffix(8) {
            text += "        line \(event.number): \(event.kind.rawValue) \(relative(event.path).shown)"
            if let from = event.from { text += " from \(relative(from).shown)" }
            let missing = event.isRepeated ? "to be told once more" : event.isLeftOut ? "left out" : "no facts"
            text += ": \(event.facts?.description ?? missing)\n"
        }
        text += "    operations\n"
        for line in log.last(15, on: relative(path)) { text += "        \(line)\n" }
        return text
    }
}
