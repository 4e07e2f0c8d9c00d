import FileEvents
import GRDB
import Glibc
package import System

/// Looks at a journal's file, whether Alight is running or not.
///
/// It takes no lock that an Alight would wait for, and changes nothing. What one
/// call returns was all there at one moment.
package final class JournalReader: Sendable {
    package let path: PathBytes
    private let database: DatabaseQueue

    /// Opens the file.
    ///
    /// - Parameters:
    ///   - path: Where it lies.
    ///   - isTraceless: Whether a journal that no Alight has is read without a lock, and without a file made beside it;
    ///     then what is written to it later need not be seen.
    ///   - isOwn: Whether this process has the journal. Then it sees what is committed, and the file is opened by SQLite
    ///     alone: to close it otherwise would end the locks that SQLite has, as its "How To Corrupt" says.
    /// - Throws: When there is none, when it is no journal or one of a newer
    ///   Alight, when it is damaged or can't be read.
    package init(
        _ path: PathBytes, isTraceless: Bool = false, isOwn: Bool = false
    ) throws(JournalFault) {
        let path = JournalFile.resolve(path)
        self.path = path
        try Self.check(path)
        let isResting = isTraceless && !isOwn && JournalLock.holder(of: path) == nil
        database = try isResting ? Self.openResting(path) : Self.open(path, isOwn: isOwn)
        try read { database in
            // A folder that can't be written to may hold tables that were not finished.
            let application = try Int32.fetchOne(database, sql: "PRAGMA application_id")
            let version = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
            guard application == JournalSchema.application || version == 0 else {
                throw JournalFault(.foreign(path), help: Self.naming)
            }
            guard version > 0 else { throw Self.unfinished(path) }
            let known = JournalSchema.version
            guard version <= known else { throw JournalFault(.newer(path, version: version, known: known)) }
        }
    }

    /// Runs queries that all see the same moment.
    func read<Answer>(_ body: (Database) throws -> Answer) throws(JournalFault) -> Answer {
        do {
            return try database.read(body)
        } catch {
            throw Self.fault(error, path)
        }
    }

    /// Opens a connection that can only read.
    private static func open(_ path: PathBytes, isOwn: Bool) throws(JournalFault) -> DatabaseQueue {
        var configuration = Configuration()
        configuration.label = "alight-journal-reader"
        configuration.readonly = true
        // A commit of the engine takes milliseconds; on a slow disk some more.
        configuration.busyMode = .timeout(5)
        do {
            let database = try DatabaseQueue(path: JournalFile.name(of: path), configuration: configuration)
            _ = try database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM sqlite_schema") }
            return database
        } catch let error as DatabaseError
            where !isOwn && [.SQLITE_CANTOPEN, .SQLITE_READONLY].contains(error.resultCode)
        {
            // SQLite wants to put its -shm file beside a journal, and can't where nobody may write.
            return try openResting(path)
        } catch {
            throw fault(error, path)
        }
    }

    /// Opens what the files hold now.
    private static func openResting(_ path: PathBytes) throws(JournalFault) -> DatabaseQueue {
        do {
            return try JournalFile.openReading(path)
        } catch {
            throw fault(error, path)
        }
    }
}

// MARK: - What can be wrong

extension JournalReader {
    /// Looks at the file itself, about which SQLite's messages say little.
    private static func check(_ path: PathBytes) throws(JournalFault) {
        var status = stat()
        guard path.withCString({ stat($0, &status) }) == 0 else {
            let number = errno
            if number == ENOENT || number == ENOTDIR { throw missing(path) }
            throw unreadable(path, String(cString: strerror(number)))
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            let isFolder = status.st_mode & S_IFMT == S_IFDIR
            throw JournalFault(isFolder ? .isFolder(path) : .notJournal(path), help: naming)
        }
        guard path.withCString({ access($0, R_OK) }) == 0 else {
            throw unreadable(path, String(cString: strerror(errno)))
        }
        if status.st_size == 0 { throw JournalFault(.notJournal(path), help: naming) }
        do throws(JournalError) {
            try CompanionFile.check(of: path)
        } catch {
            throw JournalFault(error)
        }
    }

    private static func missing(_ path: PathBytes) -> JournalFault {
        JournalFault(
            mayPass: false, description: "there is no journal at '\(path)'",
            help: "run `alight run`, or name it with --journal")
    }

    private static func unreadable(_ path: PathBytes, _ reason: String) -> JournalFault {
        JournalFault(
            mayPass: false, description: "the journal '\(path)' can't be read: \(reason)",
            help: "run it as the user that Alight runs as, or as root")
    }

    /// The way out where it is the wrong file.
    private static let naming = "name the journal's file with --journal"

    private static func unfinished(_ path: PathBytes) -> JournalFault {
        JournalFault(
            mayPass: false, description: "'\(path)' is a file of which no journal has been made yet", help: naming)
    }

    /// What an error of SQLite means.
    private static func fault(_ error: any Error, _ path: PathBytes) -> JournalFault {
        if let fault = error as? JournalFault { return fault }
        if let error = error as? JournalError {
            switch error {
            case .notJournal, .foreign: return JournalFault(error, help: naming)
            default: return JournalFault(error)
            }
        }
        guard let error = error as? DatabaseError else { return unreadable(path, "\(error)") }
        switch error.resultCode {
        case .SQLITE_NOTADB: return JournalFault(.notJournal(path), help: naming)
        case .SQLITE_CORRUPT: return JournalFault(JournalError(error, at: path))
        case .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM, .SQLITE_AUTH:
            return JournalFault(
                mayPass: false, description: "the journal '\(path)' can't be written",
                help: "run it as the user that Alight runs as, or as root")
        case .SQLITE_BUSY, .SQLITE_LOCKED: return JournalFault(.busy(path), help: "end that program, or try again")
        case .SQLITE_FULL: return JournalFault(.full(path), help: "make room on the disk")
        default: return unreadable(path, error.message ?? "\(error)")
        }
    }
}
