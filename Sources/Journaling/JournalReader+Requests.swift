import FileEvents
import Foundation
import GRDB
package import Glibc
package import Rules

/// What a person asks of the Alight that has the journal.
package enum JournalRequest: Sendable, Hashable {
    /// To try a dead letter again.
    case retry(JobID)
    /// To forget a dead letter, or a job that is pending.
    case discard(JobID)
    /// To run a rule for a file.
    case apply(JobRequest)
    /// To take back what a job has done.
    case undo(JobID)
}

extension JournalReader {
    /// Puts requests into the journal, in their order and all or none, and wakes the Alight that has it, if any.
    ///
    /// They are done in the next turn of that Alight, or at the next start of one.
    ///
    /// - Returns: The number of the last of them, see ``openRequests(upTo:)``.
    @discardableResult
    package func request(_ requests: [JournalRequest]) throws(JournalFault) -> Int64 {
        let last = try write { database in
            let statement = try database.cachedStatement(
                sql: "INSERT INTO requests (verb, job, rule, path) VALUES (?, ?, ?, ?)")
            for request in requests {
                switch request {
                case .retry(let id): try statement.execute(arguments: ["retry", id.description, nil, nil])
                case .discard(let id): try statement.execute(arguments: ["discard", id.description, nil, nil])
                case .undo(let id): try statement.execute(arguments: ["undo", id.description, nil, nil])
                case .apply(let file):
                    try statement.execute(
                        arguments: ["apply", file.id.description, file.rule, Data(file.path.bytes)])
                }
            }
            return database.lastInsertedRowID
        }
        nudge()
        return last
    }

    /// How many requests up to that number nobody has taken yet.
    package func openRequests(upTo last: Int64) throws(JournalFault) -> Int {
        try read { try Int.fetchOne($0, sql: "SELECT count(*) FROM requests WHERE id <= ?", arguments: [last]) ?? 0 }
    }

    // MARK: The Alight that has the journal

    private var lock: PathBytes { CompanionFile.lock.path(of: path) }

    /// Whether an Alight has the journal now.
    package var isInUse: Bool {
        let descriptor = lock.withCString { open($0, O_RDONLY | O_CLOEXEC) }
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        // Shared, so that two who ask at once don't take each other for an Alight.
        return flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK
    }

    /// The process that has the journal; nil when none has it, or when it can't be told.
    package var holder: pid_t? {
        guard isInUse, let content = try? Data(contentsOf: URL(filePath: lock.description)) else { return nil }
        let text = String(decoding: content.prefix(32), as: UTF8.self)
        guard let pid = pid_t(text.prefix { !$0.isWhitespace }), pid > 0, hasLockOpen(pid) else { return nil }
        return pid
    }

    /// Whether the process has the lock's file open.
    ///
    /// Between taking the lock and writing its number a new Alight leaves the
    /// number of the last one, which may be anybody's by now.
    private func hasLockOpen(_ pid: pid_t) -> Bool {
        var wanted = stat()
        guard lock.withCString({ stat($0, &wanted) }) == 0 else { return false }
        let folder = "/proc/\(pid)/fd"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.contains { name in
            var status = stat()
            return stat("\(folder)/\(name)", &status) == 0 && status.st_dev == wanted.st_dev
                && status.st_ino == wanted.st_ino
        }
    }

    /// Tells the Alight that has the journal, if any, to look at the requests.
    private func nudge() {
        if let holder, holder != getpid() { kill(holder, SIGUSR2) }
    }
}
