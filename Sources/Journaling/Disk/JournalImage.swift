import FileEvents
import GRDB
import GRDBSQLite
import Glibc
import Settling

/// What a journal's file holds at one moment, read without a trace.
///
/// SQLite itself would take locks, and make files beside the journal. So the file
/// is read as bytes, and what its log has committed since is put in the places of
/// the pages. A program that writes meanwhile moves pages from the log into the
/// file. The log is read after the file, and so has each page that was moved
/// meanwhile; if it was begun anew before all of it was read, all is read again.
struct JournalImage {
    private(set) var bytes: [UInt8]

    /// How often a journal is read that changes meanwhile.
    private static let mostTries = 50

    /// Reads the file; nil if there is none, or an empty one.
    ///
    /// - Throws: When it can't be read, or is no journal by the look of it.
    init?(of path: PathBytes) throws(JournalError) {
        let log = CompanionFile.log.path(of: path)
        for attempt in 0..<Self.mostTries {
            if attempt > 0 { usleep(10_000) }
            let logBefore = try Self.read(log, at: path, atMost: WriteAheadLog.headerSize) ?? []
            let sight = DiskProbe.look(at: path)
            guard let file = try Self.read(path, at: path) else { return nil }
            let logAfter = try Self.read(log, at: path) ?? []
            // It is begun anew with its header, so that none of what was read before that has been written over.
            let header = try Self.read(log, at: path, atMost: WriteAheadLog.headerSize) ?? []
            guard logBefore == header, header.elementsEqual(logAfter.prefix(WriteAheadLog.headerSize)) else { continue }
            // Without a log nobody moves pages, unless one came and went in between.
            if logAfter.isEmpty, sight != DiskProbe.look(at: path) { continue }
            if file.isEmpty, logAfter.isEmpty { return nil }
            try JournalFile.judge(header: file.prefix(100), file.count, hasLog: !logAfter.isEmpty, path)
            bytes = file
            WriteAheadLog(logAfter)?.apply(to: &bytes)
            // It is not continued as a journal with a log, which memory has not.
            bytes[18] = 1
            bytes[19] = 1
            return
        }
        throw .busy(path)
    }

    /// Makes it the content of a database in memory, which nothing has been done with yet.
    func load(into database: Database) throws {
        let buffer = sqlite3_malloc64(UInt64(bytes.count))
        guard let buffer else { throw DatabaseError(resultCode: .SQLITE_NOMEM) }
        buffer.copyMemory(from: bytes, byteCount: bytes.count)
        let connection = database.sqliteConnection
        let flags = UInt32(SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE)
        let size = Int64(bytes.count)
        let code = sqlite3_deserialize(
            connection, "main", buffer.assumingMemoryBound(to: UInt8.self), size, size, flags)
        guard code == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
        // SQLite bounds it at a gigabyte.
        var limit = size + (1 << 34)
        sqlite3_file_control(connection, "main", SQLITE_FCNTL_SIZE_LIMIT, &limit)
        database.clearSchemaCache()
    }

    // MARK: Reading

    /// The beginning of a file; nil when there is none.
    private static func read(
        _ path: PathBytes, at journal: PathBytes, atMost limit: Int = .max
    ) throws(JournalError) -> [UInt8]? {
        let descriptor = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
        guard descriptor >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw .unreadable(journal, errno: errno)
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .unreadable(journal, errno: errno) }
        return try FileBytes.read(descriptor, min(Int(status.st_size), limit), at: 0, of: journal)
    }
}
