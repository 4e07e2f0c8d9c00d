package import FileEvents
import GRDB
import Glibc

/// Looks at a journal's file, whether Alight is running or not.
///
/// It takes no lock that an Alight would wait for, and changes nothing. What one
/// call returns was all there at one moment.
package final class JournalReader: Sendable {
    package let path: PathBytes
    private let database: DatabaseQueue
    /// How long an Alight is waited for that has yet to write what it knows; it does so many times in that time.
    private static let patience = Duration.milliseconds(300)

    /// Opens the file.
    ///
    /// - Parameters:
    ///   - path: Where it lies.
    ///   - isTraceless: Whether a journal that no Alight has is read without a lock, and without a file made beside it;
    ///     then what is written to it later need not be seen.
    ///   - isFollowing: Whether it is asked again and again, and what an Alight writes to it has to be seen then.
    ///   - isOwn: Whether this process has the journal. Then it sees what is committed, and the file is opened by SQLite
    ///     alone: to close it otherwise would end the locks that SQLite has, as its "How To Corrupt" says.
    /// - Throws: When there is none, when it is no journal or one of a newer
    ///   Alight, when it is damaged or can't be read.
    package init(
        _ path: PathBytes, isTraceless: Bool = false, isFollowing: Bool = false, isOwn: Bool = false
    ) throws(JournalFault) {
        let path = JournalFile.resolve(path)
        self.path = path
        try Self.check(path)
        if isOwn {
            database = try Self.open(path, isOwn: true)
        } else {
            let isResting = isTraceless && JournalLock.holder(of: path) == nil
            let database = try isResting ? Self.openResting(path) : Self.open(path)
            let isBehind = try Self.isBehind(database, path, isFollowing: isFollowing)
            self.database = try isBehind ? Self.openResting(path) : database
        }
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

    private static func configuration() -> Configuration {
        var configuration = Configuration()
        configuration.label = "alight-journal-reader"
        // A commit of the engine takes milliseconds; on a slow disk some more.
        configuration.busyMode = .timeout(5)
        return configuration
    }

    /// Whether the file lacks what an Alight has secured, and is not about to get it.
    ///
    /// Whoever works all the time is always ahead: one commit is enough.
    private static func isBehind(
        _ database: DatabaseQueue, _ path: PathBytes, isFollowing: Bool
    ) throws(JournalFault) -> Bool {
        do {
            let start = ContinuousClock.now
            var first: UInt64?
            while let number = try database.read({ try AheadLog.numberAhead(of: $0, at: path) }) {
                guard number == first ?? number else { return false }
                first = number
                // Who was killed will not write it; who is stopped may.
                guard JournalLock.holder(of: path) != nil else { return true }
                guard ContinuousClock.now < start + patience else { return !isFollowing }
                usleep(5_000)
            }
            return false
        } catch {
            throw fault(error, path)
        }
    }

    /// Opens a connection that can only read.
    private static func open(_ path: PathBytes, isOwn: Bool = false) throws(JournalFault) -> DatabaseQueue {
        var configuration = configuration()
        configuration.readonly = true
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

    /// Opens what the files hold now, with what the log ahead of them has more.
    ///
    /// As little as possible is read: into memory only where that log has more.
    private static func openResting(_ path: PathBytes) throws(JournalFault) -> DatabaseQueue {
        do {
            let database = try JournalFile.openReading(path)
            if try database.read({ try AheadLog.numberAhead(of: $0, at: path) }) == nil { return database }
            try database.close()
            return try openCopy(of: path)
        } catch {
            throw fault(error, path)
        }
    }

    /// How often a journal is read of which the log begins anew meanwhile.
    private static let mostTries = 20

    /// Reads what the files hold into memory, of one moment.
    private static func openCopy(of path: PathBytes) throws -> DatabaseQueue {
        for attempt in 1... {
            let before = try AheadLog.number(at: path)
            let database = try DatabaseQueue(configuration: configuration())
            try JournalFile.copy(path, to: database)
            let isOfOneMoment = try database.writeWithoutTransaction { database in
                guard try Int.fetchOne(database, sql: "PRAGMA user_version") == JournalSchema.version else {
                    return true
                }
                try AheadLog.apply(to: database, of: path)
                return try before == AheadLog.number(at: path)
            }
            // A log that an Alight goes on writing is that of the copy, or the next one tells of the same.
            if isOfOneMoment || attempt == mostTries { return database }
            usleep(5_000)
        }
        throw JournalError.busy(path)
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
