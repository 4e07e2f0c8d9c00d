import Foundation
import GRDB
package import Rules
import Storage
package import System

/// A journal file whose rows are inserted by a test.
package final class JournalFile {
    package let path: PathBytes
    private let database: DatabaseQueue

    /// Creates the file and its tables.
    ///
    /// - Parameters:
    ///   - path: The path of the file, which must not exist.
    ///   - version: The schema version that the file states.
    /// - Throws: Errors from SQLite or from creating the directory.
    package init(_ path: PathBytes, version: Int = JournalSchema.version) throws {
        self.path = path
        try FileManager.default.createDirectory(atPath: path.parent.description, withIntermediateDirectories: true)
        var configuration = Configuration()
        configuration.journalMode = .wal
        // Another connection may be committing.
        configuration.busyMode = .timeout(5)
        // Tests keep a transaction open, as a busy engine might.
        configuration.allowsUnsafeTransactions = true
        database = try DatabaseQueue(path: path.description, configuration: configuration)
        try database.write { database in
            try database.execute(sql: JournalSchema.tables)
            try database.execute(sql: "PRAGMA application_id = \(JournalSchema.application)")
            try database.execute(sql: "PRAGMA user_version = \(version)")
        }
    }

    /// Closes the file.
    ///
    /// Its rows persist; the WAL and index files are removed.
    package func close() throws { try database.close() }

    package func add(_ jobs: [SampleJob]) throws {
        try database.write { database in
            let job = try database.makeStatement(
                sql: """
                    INSERT INTO jobs (id, rule, path, event, event_json, state, attempt, is_interrupted, position,
                        created, due, ended, previous, steps, message, code)
                    VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, NULL, NULL, ?, ?)
                    """)
            let attempt = try database.makeStatement(
                sql: """
                    INSERT INTO attempts (job, started, number, duration, outcome, message, code, status, signal, log_of,
                        request) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                    """)
            for (position, sample) in jobs.enumerated() {
                try job.execute(arguments: [
                    sample.id, sample.rule, Data(sample.path.bytes), sample.event, sample.eventJSON,
                    sample.state.rawValue,
                    sample.attempts.count, position, Self.time(sample.created), sample.due.map(Self.time),
                    sample.ended.map(Self.time), sample.message, sample.code,
                ])
                for (index, one) in sample.attempts.enumerated() {
                    if let log = one.log {
                        try database.execute(
                            sql: "INSERT INTO logs VALUES (?, ?, ?)",
                            arguments: [sample.id, Self.time(sample.created + 2 + 10 * index), log])
                    }
                    try attempt.execute(arguments: [
                        sample.id, Self.time(sample.created + 2 + 10 * index), index + 1, one.nanoseconds, one.outcome,
                        one.message, one.code, one.status, one.signal, one.log == nil ? nil : sample.id, one.request,
                    ])
                }
            }
        }
    }

    /// Executes statements as the engine might, for example ones that lock the file.
    package func execute(_ sql: String) throws { try database.writeWithoutTransaction { try $0.execute(sql: sql) } }

    private static func time(_ seconds: Int) -> Int64 { Int64(seconds) * 1_000_000_000 }
}

/// A row of a job, with defaults for the columns that a test does not need.
package struct SampleJob {
    package var id: String
    package var rule = "scans"
    package var path: PathBytes
    package var event = "created"
    package var eventJSON: String
    package var state: JobState
    /// Seconds since 1970.
    package var created: Int
    package var due: Int?
    package var ended: Int?
    package var message: String?
    package var code: String?
    package var attempts: [SampleAttempt] = []

    /// 2026-11-20 10:24:00 UTC.
    package static let start = 1_795_170_240

    /// Creates a job at `second` seconds after ``start``; the id contains the same time.
    package init(_ second: Int, _ state: JobState, _ path: PathBytes, rule: String = "scans") {
        created = Self.start + second
        id = JobID(now: Timestamp(seconds: Int64(created), nanoseconds: 0), random: (UInt64(second), 0)).description
        self.state = state
        self.path = path
        self.rule = rule
        // Base64 represents any name without JSON escapes.
        let shown = "{\"base64\":\"\(Data(path.bytes).base64EncodedString())\"}"
        eventJSON = """
            {"event":"created","path":\(shown),"root":"/in","snapshot":{"type":"file","size":120,\
            "mtime":[\(created),0],"ctime":[\(created),0],"device":1,"inode":\(second + 1),"birth":0,"mode":420,\
            "uid":0,"gid":0,"nlink":1},"origin":"live","time":[\(created),500000000]}
            """
        switch state {
        case .pending: due = created + 60
        case .running: break
        case .succeeded, .skipped, .failed: ended = created + 30
        }
    }
}

/// A row of an attempt.
package struct SampleAttempt {
    package var nanoseconds: Int64 = 1_250_000_000
    package var outcome: String
    package var message: String
    package var code: String?
    package var status: Int32?
    package var signal: Int32?
    package var log: String?
    package var request: String?

    package init(
        _ outcome: String, _ message: String = "", code: String? = nil, status: Int32? = nil, signal: Int32? = nil,
        log: String? = nil, request: String? = nil
    ) {
        self.outcome = outcome
        self.message = message
        self.code = code
        self.status = status
        self.signal = signal
        self.log = log
        self.request = request
    }
}
