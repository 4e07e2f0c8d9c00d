import FileEvents
import GRDB
import Glibc
import Settling

/// The file of a journal before it is used: found or made, judged, and opened.
enum JournalFile {
    /// Up to this size the whole file is checked at each start: it takes some milliseconds.
    private static let smallSize = 8 << 20
    /// Up to this size it is checked when the last run was cut off: it takes about a second.
    private static let checkedSize = 256 << 20

    /// The file's name without symbolic links, by which its lock is found; it need not exist yet.
    static func resolve(_ path: PathBytes) -> PathBytes {
        DiskProbe.resolve(path) ?? DiskProbe.resolve(path.parent)?.appending(path.lastComponent) ?? path
    }

    // MARK: Before SQLite sees it

    /// Makes the folder, and those above it, for this user alone.
    static func makeFolder(of path: PathBytes) throws(JournalError) {
        let folder = path.parent
        var status = stat()
        if folder.withCString({ stat($0, &status) }) == 0 {
            guard status.st_mode & S_IFMT == S_IFDIR else { throw .noFolder(folder, errno: ENOTDIR) }
            return
        }
        if errno == ENOENT, folder.parent != folder { try makeFolder(of: folder) }
        guard folder.withCString({ mkdir($0, 0o700) }) == 0 || errno == EEXIST else {
            throw .noFolder(folder, errno: errno)
        }
    }

    /// Refuses what is there and no file.
    static func refuseOtherTypes(_ path: PathBytes) throws(JournalError) {
        var status = stat()
        if path.withCString({ stat($0, &status) }) == 0, status.st_mode & S_IFMT != S_IFREG {
            throw status.st_mode & S_IFMT == S_IFDIR ? .isFolder(path) : .notJournal(path)
        }
    }

    /// Makes the file if there is none, and refuses what is no journal by the look of its first bytes.
    static func prepare(_ path: PathBytes) throws(JournalError) {
        var status = stat()
        let descriptor = path.withCString { Glibc.open($0, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0o600) }
        guard descriptor >= 0 else {
            if errno == EISDIR { throw .isFolder(path) }
            throw errno == ENOSPC || errno == EDQUOT ? .full(path) : .noAccess(path, errno: errno)
        }
        defer { close(descriptor) }
        guard fstat(descriptor, &status) == 0 else { throw .noAccess(path, errno: errno) }
        var log = stat()
        let hasLog = CompanionFile.log.path(of: path).withCString { stat($0, &log) } == 0 && log.st_size > 0
        if status.st_size == 0 {
            // SQLite would take the file for new, and delete the log.
            if hasLog { throw .damaged(path, "it is empty, but its log '\(path)-wal' is not") }
            return
        }
        try judge(descriptor, Int(status.st_size), hasLog: hasLog, path)
    }

    private static func judge(
        _ descriptor: Int32, _ size: Int, hasLog: Bool, _ path: PathBytes
    ) throws(JournalError) {
        var header = [UInt8](repeating: 0, count: 100)
        let count = pread(descriptor, &header, header.count, 0)
        guard count >= 0 else { throw .noAccess(path, errno: errno) }
        try judge(header: header.prefix(count), size, hasLog: hasLog, path)
    }

    /// Refuses what is no journal by the look of its first 100 bytes.
    static func judge(
        header: ArraySlice<UInt8>, _ size: Int, hasLog: Bool, _ path: PathBytes
    ) throws(JournalError) {
        if size == 0, hasLog { throw .damaged(path, "it is empty, but its log '\(path)-wal' is not") }
        guard header.count == 100, header.starts(with: Array("SQLite format 3\0".utf8)) else {
            throw .notJournal(path)
        }
        func number(_ offset: Int, _ length: Int) -> Int {
            header[offset..<(offset + length)].reduce(0) { $0 << 8 | Int($1) }
        }
        let application = number(68, 4)
        guard application == Int(JournalSchema.application) || application == 0 else { throw .foreign(path) }
        let version = number(60, 4)
        if application != 0, version > JournalSchema.version {
            throw .newer(path, version: version, known: JournalSchema.version)
        }
        // The log may hold the pages that are missing, and an older header may not count them.
        let pageSize = number(16, 2) == 1 ? 65_536 : number(16, 2)
        if !hasLog, number(24, 4) == number(92, 4), number(28, 4) * pageSize > size {
            throw .damaged(path, "it has \(size) bytes of \(number(28, 4) * pageSize)")
        }
    }

    // MARK: SQLite

    /// Opens the file, and refuses it if it is not a sound journal of a known version.
    static func open(_ path: PathBytes) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.label = "alight-journal"
        configuration.busyMode = .timeout(5)
        let logPages = logPages(of: path)
        configuration.prepareDatabase { database in
            // Deleted content need not be overwritten, which would double what is written. A page that changes often
            // goes from the log into the file the less often the longer the log is.
            try database.execute(
                sql: """
                    PRAGMA secure_delete = OFF;
                    PRAGMA synchronous = NORMAL;
                    PRAGMA cache_size = -2048;
                    PRAGMA journal_size_limit = 16777216;
                    PRAGMA wal_autocheckpoint = \(logPages);
                    """)
        }
        let queue = try DatabaseQueue(path: name(of: path), configuration: configuration)
        try queue.writeWithoutTransaction { database in
            try judge(database, path)
            try database.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL")
            let mode = try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL")
            guard mode == "wal" else {
                throw JournalError.failed(
                    path, "the file system has no memory that processes share (mode '\(mode ?? "")')")
            }
            try makeTables(database)
        }
        return queue
    }

    /// Makes a database in memory of what the file holds, and leaves the file alone; an empty one if there is none.
    static func openCopy(of path: PathBytes) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.label = "alight-journal-copy"
        configuration.prepareDatabase { try $0.execute(sql: "PRAGMA temp_store = MEMORY") }
        let image = try JournalImage(of: path)
        let queue = try DatabaseQueue(configuration: configuration)
        try queue.writeWithoutTransaction { database in
            try image?.load(into: database)
            try judge(database, path)
            try makeTables(database)
        }
        return queue
    }

    /// How many pages the log may have before they go into the file: fewer on a disk with little room.
    ///
    /// A disk that the log has filled has no room left to empty it into the file.
    private static func logPages(of path: PathBytes) -> UInt64 {
        let (fewest, most) = (250 as UInt64, 3_500 as UInt64)
        var status = statvfs()
        guard path.parent.withCString({ statvfs($0, &status) }) == 0 else { return fewest }
        var room = UInt64(status.f_bavail) * UInt64(status.f_frsize)
        var log = stat()
        if CompanionFile.log.path(of: path).withCString({ stat($0, &log) }) == 0 {
            room += UInt64(max(0, log.st_size))
        }
        return min(most, max(fewest, room / 8 / 4_096))
    }

    /// The name by which SQLite finds the file, whatever bytes it has.
    static func name(of path: PathBytes) -> String {
        if let text = path.text, !text.hasPrefix("file:"), text != ":memory:" { return text }
        return uri(of: path)
    }

    /// The name as a URI, to which parameters can be added.
    static func uri(of path: PathBytes) -> String {
        let plain = Set("/-._~".utf8)
        let digits = Array("0123456789ABCDEF".utf8)
        var name = Array("file:".utf8)
        for byte in path.bytes {
            let isLetter = (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
            name += isLetter || plain.contains(byte) ? [byte] : [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
        return String(decoding: name, as: UTF8.self)
    }

    private static func judge(_ database: Database, _ path: PathBytes) throws {
        let application = try Int32.fetchOne(database, sql: "PRAGMA application_id") ?? 0
        let version = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
        let tables = try Set(String.fetchAll(database, sql: "SELECT name FROM sqlite_master WHERE type = 'table'"))
        if application == 0, version == 0, tables.isEmpty { return }
        guard application == JournalSchema.application else { throw JournalError.foreign(path) }
        guard version <= JournalSchema.version else {
            throw JournalError.newer(path, version: version, known: JournalSchema.version)
        }
        for table in ["attempts", "facts", "jobs", "ledger", "mounts", "rules"] {
            guard tables.contains(table) else { throw JournalError.damaged(path, "the table '\(table)' is missing") }
        }
        let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
        let size = try pages * (Int.fetchOne(database, sql: "PRAGMA page_size") ?? 0)
        let wasClean = try Bool.fetchOne(database, sql: "SELECT value FROM facts WHERE name = 'is_clean'") ?? false
        guard size <= (wasClean ? smallSize : checkedSize) else { return }
        let found = try String.fetchOne(database, sql: "PRAGMA quick_check(1)") ?? ""
        guard found == "ok" else {
            let lines = found.split(separator: "\n").filter { !$0.hasPrefix("***") }
            throw JournalError.damaged(path, lines.first.map(String.init) ?? found)
        }
    }

    /// Makes the tables of a file that has none.
    private static func makeTables(_ database: Database) throws {
        guard try Int.fetchOne(database, sql: "PRAGMA user_version") == 0 else { return }
        try database.inTransaction(.immediate) {
            try database.execute(
                sql: """
                    \(JournalSchema.tables)
                    PRAGMA application_id = \(JournalSchema.application);
                    PRAGMA user_version = \(JournalSchema.version);
                    """)
            return .commit
        }
    }
}
