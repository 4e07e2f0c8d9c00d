import FileEvents
import Foundation
import GRDB
import System
import TestKit

/// What the journal's file says, read with SQLite alone.
struct JournalLook {
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
    /// Whether all rules know what there was when they began.
    var isComplete = false

    /// Reads the journal where it lies; meanwhile Alight may write it.
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

    /// Reads a copy: who opens the journal of a dead process puts it in order, and that is Alight's business.
    ///
    /// - Parameters:
    ///   - path: The journal.
    ///   - copy: Where the copy goes, and stays, for whoever wants to know what the program knew.
    /// - Throws: When it is no journal that can be read.
    init(copyOf path: PathBytes, to copy: PathBytes) throws {
        for suffix in ["", "-wal"] {
            let other = PathBytes(copy.bytes + Array(suffix.utf8))
            if let content = TestFile.read(PathBytes(path.bytes + Array(suffix.utf8))) {
                TestFile.write(other, content)
            }
        }
        // A log without its index can be read by those alone who may write.
        let queue = try DatabaseQueue(path: copy.description)
        _ = try queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM jobs") }
        try queue.close()
        try self.init(copy)
    }

    var open: [Job] { jobs.filter { $0.state == "pending" || $0.state == "running" } }
}
