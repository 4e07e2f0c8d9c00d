package import FileEvents
package import GRDB
import Glibc
import Storage

/// What the journal tells of the last moments, ahead of its database: appended in one system call for each turn of the
/// engine, so that an action can begin without a transaction.
///
/// The database follows within ``delay``, with one transaction for many turns, and the log begins anew at its start.
/// Each transaction has a new number, which the database keeps and the log has from then on: so a log goes on where the
/// database with its number ends, and any other one, of an older moment or of another file, says nothing. What a kill cuts off is
/// known by its checksum. As with the database's own log, a write is in the file system when it is done, and is not
/// forced to the disk.
///
/// A record is a header of 32 bytes, and the rows of ``AheadRecord``, filled up with zeros to whole words: a magic number of 8
/// bytes, the log's number of 8, the length of the rows in 8, and the two sums of the log that SQLite keeps, over all
/// of the record but these. Numbers are little-endian.
///
/// Whoever holds the journal's lock may use it.
package final class AheadLog {
    /// How long the database may lag behind.
    static let delay = Duration.milliseconds(20)
    /// How many bytes it may have before the database has to catch up.
    private static let most = 4 << 20
    static let headerSize = 32
    /// `AlgtLog1`.
    private static let magic: UInt64 = 0x3167_6F4C_7467_6C41

    private let journal: PathBytes
    private let path: PathBytes
    private var descriptor: Int32
    /// The log's number.
    private var number: UInt64
    private var end = 0

    /// Opens the file, or makes it, with the mode of the journal's file and as root with its owner, as SQLite does with its log.
    ///
    /// - Throws: When that can't be done; then each turn of the engine has to be committed.
    init(of journal: PathBytes) throws(JournalError) {
        self.journal = journal
        path = CompanionFile.ahead.path(of: journal)
        descriptor = Self.open(path, of: journal)
        number = Self.newNumber()
        if descriptor < 0 { throw .noAccess(path, errno: errno) }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Opens a regular file; -1, with errno, if there is something else or it can't be had.
    private static func open(_ path: PathBytes, of journal: PathBytes) -> Int32 {
        let descriptor = path.withCString {
            Glibc.open($0, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        }
        guard descriptor >= 0 else { return -1 }
        var (own, model) = (stat(), stat())
        guard fstat(descriptor, &own) == 0, own.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            errno = EINVAL
            return -1
        }
        guard journal.withCString({ stat($0, &model) }) == 0 else { return descriptor }
        if own.st_mode & 0o777 != model.st_mode & 0o777 { _ = fchmod(descriptor, model.st_mode & 0o777) }
        if geteuid() == 0, own.st_uid != model.st_uid || own.st_gid != model.st_gid {
            _ = fchown(descriptor, model.st_uid, model.st_gid)
        }
        return descriptor
    }

    static func newNumber() -> UInt64 { UInt64.random(in: 1...UInt64(Int64.max)) }

    /// Whether it is long enough for the database to catch up.
    var isLong: Bool { end > Self.most }

    /// Appends a record.
    ///
    /// - Returns: Whether it will be found; if not the log is as it was before.
    func append(_ record: AheadRecord) -> Bool {
        var status = stat()
        // Nobody would find it in a file that was removed.
        guard fstat(descriptor, &status) == 0, status.st_nlink > 0, status.st_size >= end else {
            reopen()
            return false
        }
        record.pad()
        record.withHeader { bytes in
            let length = UInt64(bytes.count - Self.headerSize)
            bytes.storeBytes(of: Self.magic.littleEndian, toByteOffset: 0, as: UInt64.self)
            bytes.storeBytes(of: number.littleEndian, toByteOffset: 8, as: UInt64.self)
            bytes.storeBytes(of: length.littleEndian, toByteOffset: 16, as: UInt64.self)
            let record = UnsafeRawBufferPointer(bytes)
            let sum = Self.checksum(record, UnsafeRawBufferPointer(rebasing: record[Self.headerSize...]))
            bytes.storeBytes(of: sum.0.littleEndian, toByteOffset: 24, as: UInt32.self)
            bytes.storeBytes(of: sum.1.littleEndian, toByteOffset: 28, as: UInt32.self)
        }
        guard pwrite(descriptor, record.bytes, record.bytes.count, off_t(end)) == record.bytes.count else {
            return false
        }
        end += record.bytes.count
        return true
    }

    private func reopen() {
        if descriptor >= 0 { close(descriptor) }
        descriptor = Self.open(path, of: journal)
    }

    /// Begins anew: the database has everything, and this number.
    func begin(_ number: UInt64) {
        self.number = number
        end = 0
    }

    /// Removes the file, which the database no longer needs.
    func remove() { _ = path.withCString { unlink($0) } }

    /// The sums of a header, but for where it has them, and of the rows behind it.
    private static func checksum(_ head: UnsafeRawBufferPointer, _ rows: UnsafeRawBufferPointer) -> (UInt32, UInt32) {
        checksum(rows, after: checksum(UnsafeRawBufferPointer(rebasing: head[..<24]), after: (0, 0)))
    }

    /// The sums of pairs of words, each of which goes on with the one before; the bytes are a multiple of 8.
    private static func checksum(_ bytes: UnsafeRawBufferPointer, after sum: (UInt32, UInt32)) -> (UInt32, UInt32) {
        var (first, second) = sum
        for index in stride(from: 0, to: bytes.count, by: 8) {
            let one = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt32.self))
            let other = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: index + 4, as: UInt32.self))
            first &+= one &+ second
            second &+= other &+ first
        }
        return (first, second)
    }

    // MARK: Reading

    /// The numbers that a record begins with; nil if it is none.
    private struct Header {
        var number: UInt64
        var length: Int
        var sum: (UInt32, UInt32)

        init?(_ bytes: UnsafeRawBufferPointer) {
            func word(_ offset: Int) -> UInt64 {
                UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            }
            guard bytes.count >= AheadLog.headerSize, word(0) == magic, word(16) & 7 == 0, word(16) < 1 << 32 else {
                return nil
            }
            number = word(8)
            length = Int(word(16))
            sum = (UInt32(truncatingIfNeeded: word(24)), UInt32(truncatingIfNeeded: word(24) >> 32))
        }
    }

    /// A log that is read, and not written.
    private final class Reader {
        private let path: PathBytes
        private let descriptor: Int32
        private var size = 0

        /// Opens it; nil if there is none, or something that is no file.
        init?(of journal: PathBytes) throws(JournalError) {
            path = CompanionFile.ahead.path(of: journal)
            descriptor = path.withCString { Glibc.open($0, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
            guard descriptor >= 0 else {
                // ENXIO is what a socket says.
                if [ENOENT, ENOTDIR, ELOOP, ENXIO].contains(errno) { return nil }
                throw .unreadable(path, errno: errno)
            }
            var status = stat()
            guard fstat(descriptor, &status) == 0 else { throw .unreadable(path, errno: errno) }
            guard status.st_mode & S_IFMT == S_IFREG else { return nil }
            size = Int(status.st_size)
        }

        deinit { if descriptor >= 0 { close(descriptor) } }

        /// So many bytes from a place; nil if the file ends before.
        func read(_ count: Int, at place: Int) throws(JournalError) -> [UInt8]? {
            guard count <= size - place else { return nil }
            let bytes = try FileBytes.read(descriptor, count, at: place, of: path)
            return bytes.count == count ? bytes : nil
        }
    }

    /// The number of the log that is there; nil if there is none.
    static func number(at journal: PathBytes) throws(JournalError) -> UInt64? {
        guard let bytes = try Reader(of: journal)?.read(headerSize, at: 0) else { return nil }
        return bytes.withUnsafeBytes { Header($0)?.number }
    }

    /// The rows that a log tells of beyond what a database has that keeps this number; empty if there are none.
    private static func contents(of journal: PathBytes, number: UInt64) throws(JournalError) -> [[UInt8]] {
        guard let reader = try Reader(of: journal) else { return [] }
        var contents: [[UInt8]] = []
        var place = 0
        while let head = try reader.read(headerSize, at: place), let header = head.withUnsafeBytes({ Header($0) }),
            header.number == number, let rows = try reader.read(header.length, at: place + headerSize)
        {
            let sum = head.withUnsafeBytes { head in rows.withUnsafeBytes { checksum(head, $0) } }
            guard sum == header.sum else { break }
            contents.append(rows)
            place += headerSize + header.length
        }
        return contents
    }

    /// Whether a database lags behind the log, by its number; nil if it does not.
    static func numberAhead(of database: Database, at journal: PathBytes) throws -> UInt64? {
        guard let number = try number(in: database), try number == self.number(at: journal) else { return nil }
        return number
    }

    /// Lets the database catch up, in one transaction.
    ///
    /// - Returns: Whether it could: rows that don't fit are left alone, and what they told is found again by comparing.
    /// - Throws: ``JournalError`` when the log can't be read, and what SQLite throws; nothing is changed then.
    @discardableResult
    package static func apply(to database: Database, of journal: PathBytes) throws -> Bool {
        guard let number = try number(in: database) else { return true }
        let contents = try contents(of: journal, number: number)
        guard !contents.isEmpty else { return true }
        var statements: [UInt8: SQLStatement] = [:]
        for statement in JournalStatement.allCases {
            statements[statement.rawValue] = try statement.prepare(in: database)
        }
        let transaction = try WriteTransaction(database)
        let fact = try JournalStatement.fact.prepare(in: database)
        let row = FactRow.ahead(newNumber())
        do {
            try transaction.run {
                for content in contents { try content.withUnsafeBytes { try AheadRecord.replay($0, statements) } }
                try fact.run(row.bind)
            }
            return true
        } catch  where isUnfit(error) {
            try transaction.run { try fact.run(row.bind) }
            return false
        }
    }

    /// Whether the rows are to blame, and not the disk or who has the file locked.
    private static func isUnfit(_ error: any Error) -> Bool {
        if error is UnreadableRow { return true }
        guard let code = (error as? DatabaseError)?.resultCode.primaryResultCode else { return false }
        return [.SQLITE_CONSTRAINT, .SQLITE_MISMATCH, .SQLITE_RANGE, .SQLITE_TOOBIG].contains(code)
    }

    private static func number(in database: Database) throws -> UInt64? {
        guard try database.tableExists("facts") else { return nil }
        return try Int64.fetchOne(database, sql: "SELECT value FROM facts WHERE name = 'ahead'").map(
            UInt64.init(bitPattern:))
    }
}
