import FileEvents
import System
import TestKit

/// A report of differences and contradictions, with the events and operations that led to them.
struct Findings {
    let tree: PathBytes
    let mirror: Mirror
    let differences: [Mirror.Difference]
    let log: OperationLog

    private static let shownPaths = 8

    var text: String {
        var text = "\(differences.count) paths differ, \(mirror.contradictions.count) events contradict earlier ones\n"
        for difference in differences.prefix(Self.shownPaths) {
            text += "\n\(relative(difference.path).shown): \(difference.names.joined(separator: ", "))\n"
            text += "    disk    \(difference.disk?.description ?? "nothing")\n"
            text += "    mirror  \(difference.reported?.description ?? "nothing")\n"
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
            let missing = event.isRepeated ? "to be reported again" : event.isSkipped ? "skipped" : "no metadata"
            text += ": \(event.metadata?.description ?? missing)\n"
        }
        text += "    operations\n"
        for line in log.last(15, on: relative(path).shown, includingBelow: true) { text += "        \(line)\n" }
        return text
    }
}
