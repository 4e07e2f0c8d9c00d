import System
import TestKit

/// A report of findings, with the runs and operations that led to them.
struct Report {
    let findings: [Finding]
    let log: RunLog
    let operations: OperationLog
    let history: [String]

    private static let shown = 8

    var text: String {
        var text = "\(findings.count) findings\n"
        for finding in findings.prefix(Self.shown) {
            text += "\n\(finding.text)\n"
            let runs = log.runs.filter { run in
                if let job = finding.job { return run.job == job }
                return run.path == finding.path || (run.from != nil && run.from == finding.path)
            }
            if !runs.isEmpty { text += "    runs\n" }
            for run in runs.suffix(12) { text += "        \(run.line)\n" }
            guard let path = finding.path else { continue }
            text += "    operations\n"
            for line in operations.last(12, on: path.description) { text += "        \(line)\n" }
        }
        text += "\n"
        for line in history { text += "    \(line)\n" }
        for (life, time) in log.starts.sorted(by: { $0.key < $1.key }) {
            let end = log.kills[life].map { "killed at \(OperationLog.shown($0))" } ?? "exited by itself"
            text += "    life \(life) started at \(OperationLog.shown(time)), \(end)\n"
        }
        return text
    }
}
