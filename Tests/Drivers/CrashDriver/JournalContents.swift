import Foundation
import GRDB
import System
import TestKit

/// The content of a journal file, read with SQLite only.
struct JournalContents {
    struct Job {
        var id: String
        var rule: String
        var path: PathBytes
        var state: String
        var attempt: Int
        var isInterrupted: Bool
    }

    var jobs: [Job] = []
    var integrity: [String] = []
    /// Whether all rules have recorded the files that existed when they started.
    var isComplete = false

    /// Reads the journal in place; Alight may write to it at the same time.
    init(_ path: PathBytes) throws {
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(5)
        let queue = try DatabaseQueue(path: path.description, configuration: configuration)
        defer { try? queue.close() }
        try queue.read { database in
            jobs = try Row.fetchAll(
                database, sql: "SELECT id, rule, path, state, attempt, is_interrupted FROM jobs"
            ).map { row in
                Job(
                    id: row["id"], rule: row["rule"], path: PathBytes(row["path"] as Data), state: row["state"],
                    attempt: row["attempt"], isInterrupted: row["is_interrupted"])
            }
            isComplete = try Bool.fetchOne(database, sql: "SELECT min(is_complete) FROM rules") ?? false
            integrity = try String.fetchAll(database, sql: "PRAGMA integrity_check")
        }
    }

    /// Reads a copy, because opening the journal of a killed process recovers it, which is left to Alight.
    ///
    /// - Parameters:
    ///   - path: The journal.
    ///   - copy: The path of the copy, which remains for later analysis.
    /// - Throws: An error if the journal can't be read.
    init(copyOf path: PathBytes, to copy: PathBytes) throws {
        for suffix in ["", "-wal"] {
            let other = PathBytes(copy.bytes + Array(suffix.utf8))
            if let content = TestFile.read(PathBytes(path.bytes + Array(suffix.utf8))) {
                TestFile.write(other, content)
            }
        }
        // A write-ahead log without its index can be read only with write permission.
        let queue = try DatabaseQueue(path: copy.description)
        _ = try queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM jobs") }
        try queue.close()
        try self.init(copy)
    }

    var open: [Job] { jobs.filter { $0.state == "pending" || $0.state == "running" } }
}
