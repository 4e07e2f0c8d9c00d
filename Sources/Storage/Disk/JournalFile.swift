import Glibc
import GRDB
import System

/// The file of a journal before its use: found or created, checked, and opened.
enum JournalFile {
    /// The size up to which the whole file is checked at each start, which takes a few milliseconds.
    private static let smallSize = 8 << 20
    /// The size up to which the file is checked after an interrupted run, which takes about a second.
    private static let checkedSize = 256 << 20

    /// Returns the path without symbolic links, which identifies the lock; the file need not exist yet.
    static func resolve(_ path: PathBytes) -> PathBytes {
        let files = KernelFileSystem()
        return files.resolve(path) ?? files.resolve(path.parent)?.appending(path.lastComponent) ?? path
    }

    // MARK: Before SQLite opens it

    /// Creates the file and its directory if they are missing, and acquires the lock.
    ///
    /// - Returns: The path without symbolic links: a file has one lock, whichever path is used.
    static func acquire(_ path: PathBytes, isBrief: Bool) throws(JournalError) -> (path: PathBytes, lock: JournalLock) {
        try makeDirectory(of: path)
        let path = try check(path)
        let lock = try JournalLock(of: path, isBrief: isBrief)
        try prepare(path)
        try lock.lockFile(of: path)
        return (path, lock)
    }

    /// Rejects an existing path that is not a regular file, and companions of other users.
    ///
    /// - Returns: The path without symbolic links.
    static func check(_ path: PathBytes) throws(JournalError) -> PathBytes {
        let path = resolve(path)
        if let type = KernelFileSystem().stat(following: path).snapshot?.type, type != .file {
            throw type == .directory ? .isDirectory(path) : .notJournal(path)
        }
        try CompanionFile.check(of: path)
        return path
    }

    /// Creates the directory and its parents, accessible by this user only.
    static func makeDirectory(of path: PathBytes) throws(JournalError) {
        let directory = path.parent
        var status = stat()
        if directory.withCString({ stat($0, &status) }) == 0 {
            guard status.st_mode & S_IFMT == S_IFDIR else { throw .noDirectory(directory, errno: ENOTDIR) }
            return
        }
        if errno == ENOENT, directory.parent != directory { try makeDirectory(of: directory) }
        guard directory.withCString({ mkdir($0, 0o700) }) == 0 || errno == EEXIST else {
            throw .noDirectory(directory, errno: errno)
        }
    }

    /// Creates the file if there is none, and rejects a file whose first bytes are not those of a journal.
    static func prepare(_ path: PathBytes) throws(JournalError) {
        let descriptor = path.withCString { Glibc.open($0, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0o600) }
        guard descriptor >= 0 else {
            if errno == EISDIR { throw .isDirectory(path) }
            throw errno == ENOSPC || errno == EDQUOT ? .full(path) : .noAccess(path, errno: errno)
        }
        defer { close(descriptor) }
        _ = try judge(descriptor, path)
    }

    /// Rejects an open file whose first 100 bytes are not those of a journal; returns false if it is empty.
    private static func judge(_ descriptor: Int32, _ path: PathBytes) throws(JournalError) -> Bool {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .noAccess(path, errno: errno) }
        let size = Int(status.st_size)
        let hasLog = !isEmpty(CompanionFile.log.path(of: path))
        if size == 0 {
            // SQLite would treat the file as new, and delete the log.
            if hasLog { throw .damaged(path, "it is empty, but its log '\(path)-wal' is not") }
            return false
        }
        var header = [UInt8](repeating: 0, count: 100)
        var count = -1
        repeat { count = pread(descriptor, &header, header.count, 0) } while count < 0 && errno == EINTR
        guard count >= 0 else { throw .unreadable(path, errno: errno) }
        guard count == header.count, header.starts(with: Array("SQLite format 3\0".utf8)) else {
            throw .notJournal(path)
        }
        func number(_ offset: Int, _ length: Int) -> Int {
            header[offset..<(offset + length)].reduce(0) { $0 << 8 | Int($1) }
        }
        let application = number(68, 4)
        if application != 0 { try check(application: application, version: number(60, 4), of: path) }
        // The log may contain the missing pages, and an older header may not count them.
        let pageSize = number(16, 2) == 1 ? 65_536 : number(16, 2)
        if !hasLog, number(24, 4) == number(92, 4), number(28, 4) * pageSize > size {
            throw .damaged(path, "it has \(size) bytes of \(number(28, 4) * pageSize)")
        }
        return true
    }

    private static func check(application: Int, version: Int, of path: PathBytes) throws(JournalError) {
        guard application == Int(JournalSchema.application) else { throw .foreign(path) }
        let known = JournalSchema.version
        guard version <= known else { throw .newer(path, version: version, known: known) }
    }

    /// Whether there is no file, or an empty one; then a log contains nothing that is still to be moved into the journal.
    static func isEmpty(_ path: PathBytes) -> Bool {
        KernelFileSystem().stat(following: path).snapshot?.size ?? 0 == 0
    }

    // MARK: SQLite

    /// Opens the file, and rejects it if it is not an intact journal of a known version.
    static func open(_ path: PathBytes) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.label = "alight-journal"
        configuration.busyMode = .timeout(5)
        configuration.prepareDatabase { database in
            // Deleted content need not be overwritten, which would double the number of bytes written.
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
                throw JournalError.failed(path, "the file system does not support shared memory (mode '\(mode ?? "")')")
            }
            try makeTables(database)
        }
        return queue
    }

    /// Creates a journal in memory with the content of the file, if it exists; the file is not changed.
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

    /// The maximum number of copies of a journal that an instance opens during the copy.
    private static let mostTries = 20

    /// Copies a consistent state of the file and its log; no files are created if no instance uses the journal.
    static func copy(_ path: PathBytes, to destination: DatabaseQueue) throws {
        for _ in 0..<mostTries {
            let isHeld = JournalLock.holder(of: path) != nil
            let source = try openReading(path)
            try source.backup(to: destination)
            try source.close()
            // It is read without a lock while no instance uses it.
            if isHeld || JournalLock.holder(of: path) == nil { return }
        }
        throw JournalError.busy(path)
    }

    /// The configuration of connections that only read.
    static var readerConfiguration: Configuration {
        var configuration = Configuration()
        configuration.label = "alight-journal-reader"
        configuration.readonly = true
        // A commit of the engine takes milliseconds, and longer on a slow disk.
        configuration.busyMode = .timeout(5)
        return configuration
    }

    /// Opens the file for reading; creates no files and takes no lock if no instance uses the journal.
    ///
    /// Without a log, the file never changes. With a log, SQLite would create a shared memory file. With exclusive
    /// locking it needs none, and the locks of the VFS `unix-none` do nothing.
    static func openReading(_ path: PathBytes) throws -> DatabaseQueue {
        var configuration = readerConfiguration
        var uri = uri(of: path)
        if JournalLock.holder(of: path) == nil {
            let isWhole = isEmpty(CompanionFile.log.path(of: path))
            if !isWhole { configuration.prepareDatabase { try $0.execute(sql: "PRAGMA locking_mode = EXCLUSIVE") } }
            uri += isWhole ? "?immutable=1" : "?vfs=unix-none"
        }
        return try DatabaseQueue(path: uri, configuration: configuration)
    }

    /// The maximum number of pages in the log, which is smaller on a disk with little free space.
    ///
    /// If the log fills the disk, no space is left to move it into the file. The longer the log, the less often a
    /// page that changes often is moved.
    static func mostLogPages(of path: PathBytes) -> Int {
        let (fewest, most) = (250 as UInt64, 3_500 as UInt64)
        var status = statvfs()
        guard path.parent.withCString({ statvfs($0, &status) }) == 0 else { return Int(fewest) }
        var available = UInt64(status.f_bavail) * UInt64(status.f_frsize)
        available += KernelFileSystem().stat(following: CompanionFile.log.path(of: path)).snapshot?.size ?? 0
        return Int(min(most, max(fewest, available / 8 / 4_096)))
    }

    /// Returns the name by which SQLite opens the file, whatever bytes the path contains.
    static func name(of path: PathBytes) -> String {
        if let text = path.text, !text.hasPrefix("file:"), text != ":memory:" { return text }
        return uri(of: path)
    }

    /// Returns the name as a URI, to which parameters can be added.
    static func uri(of path: PathBytes) -> String { "file:" + String(percentEncoding: path.bytes) }

    /// Returns the version of the tables, and rejects tables of another program or of a newer version; nil if there are
    /// none.
    static func version(of path: PathBytes, in database: Database) throws -> Int? {
        let application = try Int.fetchOne(database, sql: "PRAGMA application_id") ?? 0
        let version = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
        let tables = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_schema WHERE type = 'table'")
        if application == 0, version == 0, tables == 0 { return nil }
        try check(application: application, version: version, of: path)
        return version
    }

    private static func judge(_ database: Database, _ path: PathBytes) throws {
        guard try version(of: path, in: database) != nil else { return }
        for table in JournalSchema.names where try !database.tableExists(table) {
            throw JournalError.damaged(path, "the table '\(table)' is missing")
        }
        let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
        let size = try pages * (Int.fetchOne(database, sql: "PRAGMA page_size") ?? 0)
        let wasClean = try Bool.fetchOne(database, sql: "SELECT value FROM state WHERE name = 'is_clean'") ?? false
        guard size <= (wasClean ? smallSize : checkedSize) else { return }
        let found = try String.fetchOne(database, sql: "PRAGMA quick_check(1)") ?? ""
        guard found == "ok" else {
            let lines = found.split(separator: "\n").filter { !$0.hasPrefix("***") }
            throw JournalError.damaged(path, lines.first.map(String.init) ?? found)
        }
    }

    /// Creates the tables of an empty file.
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
