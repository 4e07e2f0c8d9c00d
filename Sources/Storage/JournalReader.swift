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
        let path = try Self.convertingErrors(path) { try Self.check(path) }
        self.path = path
        let isUnused = isTraceless && !isOwn && JournalLock.holder(of: path) == nil
        database = try Self.convertingErrors(path) {
            if isUnused { return try JournalFile.openReading(path) }
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
        try read { database in
            // A directory that isn't writable may contain tables that were not finished.
            guard try JournalFile.version(of: path, in: database) ?? 0 > 0 else {
                throw StorageError("'\(path)' is a file in which no journal has been created yet", help: Self.naming)
            }
        }
    }

    /// Runs queries that all see the same state.
    func read<Answer>(_ body: (Database) throws -> Answer) throws(StorageError) -> Answer {
        try Self.convertingErrors(path) { try database.read(body) }
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

    /// Checks the file itself, about which SQLite's messages say little; returns its path without symbolic links.
    private static func check(_ path: PathBytes) throws -> PathBytes {
        let path = try JournalFile.check(path)
        guard path.withCString({ access($0, R_OK) }) == 0 else {
            guard errno == ENOENT || errno == ENOTDIR else { throw JournalError.unreadable(path, errno: errno) }
            throw StorageError("there is no journal at '\(path)'", help: "run `alight run`, or name it with --journal")
        }
        if JournalFile.isEmpty(path) { throw JournalError.notJournal(path) }
        return path
    }

    /// The remedy for a wrong file.
    private static let naming = "name the journal's file with --journal"
    /// The remedy for missing permissions.
    private static let asOwner = "run it as the user that Alight runs as, or as root"

    private static func storageError(_ error: any Error, _ path: PathBytes) -> StorageError {
        if let error = error as? StorageError { return error }
        let reason = JournalError(error, at: path)
        return switch reason {
        case .notJournal, .foreign, .isDirectory: StorageError(reason, help: naming)
        case .noAccess: StorageError("the journal '\(path)' can't be written", help: asOwner)
        case .busy: StorageError(reason, help: "stop that program, or try again")
        case .full: StorageError(reason, help: "free space on the disk")
        case .failed:
            StorageError(
                "the journal '\(path)' can't be read: \((error as? DatabaseError)?.message ?? "\(error)")",
                help: asOwner)
        default: StorageError(reason)
        }
    }
}
