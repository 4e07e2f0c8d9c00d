import FileEvents
import GRDB
import Glibc
import System

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

    /// Creates the file and its directory if they are missing, and takes the lock.
    ///
    /// - Returns: The name without symbolic links: whatever name a file is called by, it has one lock.
    static func acquire(
        _ path: PathBytes, isBrief: Bool
    ) throws(JournalError) -> (path: PathBytes, lock: JournalLock) {
        try makeFolder(of: path)
        let path = try check(path)
        let lock = try JournalLock(of: path, isBrief: isBrief)
        try prepare(path)
        try lock.lockFile(of: path)
        return (path, lock)
    }

    /// Checks the types and the owners of the file and of those beside it, as far as they exist.
    ///
    /// - Returns: The name without symbolic links.
    static func check(_ path: PathBytes) throws(JournalError) -> PathBytes {
        let path = resolve(path)
        try refuseOtherTypes(path)
        try CompanionFile.check(of: path)
        return path
    }

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
        let descriptor = path.withCString { Glibc.open($0, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0o600) }
        guard descriptor >= 0 else {
            if errno == EISDIR { throw .isFolder(path) }
            throw errno == ENOSPC || errno == EDQUOT ? .full(path) : .noAccess(path, errno: errno)
        }
        defer { close(descriptor) }
        _ = try judge(descriptor, path)
    }

    /// Refuses an open file that is no journal by the look of its first 100 bytes; false for one that is empty.
    private static func judge(_ descriptor: Int32, _ path: PathBytes) throws(JournalError) -> Bool {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .noAccess(path, errno: errno) }
        let size = Int(status.st_size)
        let hasLog = !hasEmptyLog(path)
        if size == 0 {
            // SQLite would take the file for new, and delete the log.
            if hasLog { throw .damaged(path, "it is empty, but its log '\(path)-wal' is not") }
            return false
        }
        let header = try FileBytes.read(descriptor, 100, at: 0, of: path)
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
        return true
    }

    /// Whether everything is in the file itself, and nothing in the one beside it that is yet to be moved there.
    private static func hasEmptyLog(_ path: PathBytes) -> Bool {
        var status = stat()
        return CompanionFile.log.path(of: path).withCString { stat($0, &status) } != 0 || status.st_size == 0
    }

    // MARK: SQLite

    /// Opens the file, and refuses it if it is not a sound journal of a known version.
    static func open(_ path: PathBytes) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.label = "alight-journal"
        configuration.busyMode = .timeout(5)
        configuration.prepareDatabase { database in
            // Deleted content need not be overwritten, which would double what is written.
            try database.execute(
                sql: """
                    PRAGMA secure_delete = OFF;
                    PRAGMA synchronous = NORMAL;
                    PRAGMA cache_size = -2048;
                    PRAGMA journal_size_limit = 16777216;
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

    /// Makes a journal in memory, of what the file holds if there is one, which is left alone.
    static func openInMemory(copying path: PathBytes?) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.label = "alight-journal-copy"
        configuration.prepareDatabase { try $0.execute(sql: "PRAGMA temp_store = MEMORY") }
        let queue = try DatabaseQueue(configuration: configuration)
        if let path {
            let descriptor = path.withCString { Glibc.open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
            defer { if descriptor >= 0 { close(descriptor) } }
            guard descriptor >= 0 || errno == ENOENT || errno == ENOTDIR else {
                throw JournalError.unreadable(path, errno: errno)
            }
            if descriptor >= 0, try judge(descriptor, path) { try copy(path, to: queue) }
            try queue.writeWithoutTransaction { try judge($0, path) }
        }
        try queue.writeWithoutTransaction { try makeTables($0) }
        return queue
    }

    /// How often a journal is copied that an instance opens meanwhile.
    private static let mostTries = 20

    /// Copies what the file and its log hold at one moment, without a trace if no instance has the journal.
    static func copy(_ path: PathBytes, to destination: DatabaseQueue) throws {
        for _ in 0..<mostTries {
            let isHeld = JournalLock.holder(of: path) != nil
            let source = try openReading(path)
            try source.backup(to: destination)
            try source.close()
            // It is read without a lock as long as nobody has it.
            if isHeld || JournalLock.holder(of: path) == nil { return }
        }
        throw JournalError.busy(path)
    }

    /// Opens the file to be read, without a trace and without a lock if no instance has the journal.
    ///
    /// Without a log it is a file that never changes. With one SQLite would make a file of memory that processes share; with
    /// exclusive locking it needs none, and the locks of the file system `unix-none` do nothing.
    static func openReading(_ path: PathBytes) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.label = "alight-journal-reader"
        configuration.readonly = true
        // A commit of the engine takes milliseconds; on a slow disk some more.
        configuration.busyMode = .timeout(5)
        guard JournalLock.holder(of: path) == nil else {
            return try DatabaseQueue(path: uri(of: path), configuration: configuration)
        }
        let isWhole = hasEmptyLog(path)
        if !isWhole {
            configuration.prepareDatabase { try $0.execute(sql: "PRAGMA locking_mode = EXCLUSIVE") }
        }
        return try DatabaseQueue(
            path: uri(of: path) + (isWhole ? "?immutable=1" : "?vfs=unix-none"), configuration: configuration)
    }

    /// The most pages in the log: fewer on a disk with little room, since the room to move a log into the file is gone
    /// once the log has filled the disk.
    ///
    /// The longer the log, the less often a page that changes often is moved.
    static func mostLogPages(of path: PathBytes) -> Int {
        let (fewest, most) = (250 as UInt64, 3_500 as UInt64)
        var status = statvfs()
        guard path.parent.withCString({ statvfs($0, &status) }) == 0 else { return Int(fewest) }
        var room = UInt64(status.f_bavail) * UInt64(status.f_frsize)
        var log = stat()
        if CompanionFile.log.path(of: path).withCString({ stat($0, &log) }) == 0 {
            room += UInt64(max(0, log.st_size))
        }
        return Int(min(most, max(fewest, room / 8 / 4_096)))
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
        for table in JournalSchema.names where !tables.contains(table) {
            throw JournalError.damaged(path, "the table '\(table)' is missing")
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
