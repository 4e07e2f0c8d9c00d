import Glibc
import GRDB
package import Records
package import System

/// Reads a journal's file, whether Alight is running or not.
///
/// It takes no lock that blocks an instance, and changes nothing. The result of one call is a consistent state.
package final class JournalReader: Sendable {
    package let path: PathBytes
    private let database: DatabaseQueue

    /// Opens the file.
    ///
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - isTraceless: Whether a journal that no instance uses is read without a lock and without creating a file
    ///     next to it; later writes may then not be visible.
    ///   - isOwn: Whether this process uses the journal. It then sees committed changes, and only SQLite opens the
    ///     file: closing it otherwise would release the locks of SQLite, see its "How To Corrupt".
    /// - Throws: An error if the file is missing, is not a journal, belongs to a newer version, is damaged or can't
    ///   be read.
    package init(_ path: PathBytes, isTraceless: Bool = false, isOwn: Bool = false) throws(StorageError) {
        let path = JournalFile.resolve(path)
        self.path = path
        try Self.check(path)
        let isUnused = isTraceless && !isOwn && JournalLock.holder(of: path) == nil
        database = try Self.convertingErrors(path) {
            try isUnused ? JournalFile.openReading(path) : Self.open(path, isOwn: isOwn)
        }
        try read { database in
            // A directory that isn't writable may contain tables that were not finished.
            let application = try Int32.fetchOne(database, sql: "PRAGMA application_id")
            let version = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
            guard application == JournalSchema.application || version == 0 else {
                throw StorageError(.foreign(path), help: Self.naming)
            }
            guard version > 0 else {
                throw StorageError("'\(path)' is a file in which no journal has been created yet", help: Self.naming)
            }
            let known = JournalSchema.version
            guard version <= known else { throw StorageError(.newer(path, version: version, known: known)) }
        }
    }

    /// Runs queries that all see the same state.
    func read<Answer>(_ body: (Database) throws -> Answer) throws(StorageError) -> Answer {
        try Self.convertingErrors(path) { try database.read(body) }
    }

    /// Opens a read-only connection.
    private static func open(_ path: PathBytes, isOwn: Bool) throws -> DatabaseQueue {
        do {
            let name = JournalFile.name(of: path)
            let database = try DatabaseQueue(path: name, configuration: JournalFile.readerConfiguration)
            _ = try database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM sqlite_schema") }
            return database
        } catch let error as DatabaseError
            where !isOwn && [.SQLITE_CANTOPEN, .SQLITE_READONLY].contains(error.resultCode)
        {
            // SQLite creates its -shm file next to a journal, which fails in a directory that isn't writable.
            return try JournalFile.openReading(path)
        }
    }

    // MARK: Errors

    private static func convertingErrors<Result>(
        _ path: PathBytes, _ body: () throws -> Result
    ) throws(StorageError) -> Result {
        do {
            return try body()
        } catch {
            throw storageError(error, path)
        }
    }

    /// Checks the file itself, about which SQLite's messages say little.
    private static func check(_ path: PathBytes) throws(StorageError) {
        var status = stat()
        guard path.withCString({ stat($0, &status) }) == 0 else {
            guard errno == ENOENT || errno == ENOTDIR else { throw StorageError(.unreadable(path, errno: errno)) }
            throw StorageError("there is no journal at '\(path)'", help: "run `alight run`, or name it with --journal")
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            let isDirectory = status.st_mode & S_IFMT == S_IFDIR
            throw StorageError(isDirectory ? .isDirectory(path) : .notJournal(path), help: naming)
        }
        guard path.withCString({ access($0, R_OK) }) == 0 else { throw StorageError(.unreadable(path, errno: errno)) }
        if status.st_size == 0 { throw StorageError(.notJournal(path), help: naming) }
        do throws(JournalError) {
            try CompanionFile.check(of: path)
        } catch {
            throw StorageError(error)
        }
    }

    /// The remedy for a wrong file.
    private static let naming = "name the journal's file with --journal"
    /// The remedy for missing permissions.
    private static let asOwner = "run it as the user that Alight runs as, or as root"

    private static func unreadable(_ path: PathBytes, _ reason: String) -> StorageError {
        StorageError("the journal '\(path)' can't be read: \(reason)", help: asOwner)
    }

    /// Converts an error of SQLite.
    private static func storageError(_ error: any Error, _ path: PathBytes) -> StorageError {
        if let error = error as? StorageError { return error }
        if let error = error as? JournalError {
            return switch error {
            case .notJournal, .foreign: StorageError(error, help: naming)
            default: StorageError(error)
            }
        }
        guard let error = error as? DatabaseError else { return unreadable(path, "\(error)") }
        return switch error.resultCode {
        case .SQLITE_NOTADB: StorageError(.notJournal(path), help: naming)
        case .SQLITE_CORRUPT: StorageError(JournalError(error, at: path))
        case .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM, .SQLITE_AUTH:
            StorageError("the journal '\(path)' can't be written", help: asOwner)
        case .SQLITE_BUSY, .SQLITE_LOCKED: StorageError(.busy(path), help: "stop that program, or try again")
        case .SQLITE_FULL: StorageError(.full(path), help: "free space on the disk")
        default: unreadable(path, error.message ?? "\(error)")
        }
    }
}
