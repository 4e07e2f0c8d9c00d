package import FileEvents
package import GRDB
import Glibc

/// What the journal tells of the last moments, ahead of its database: appended in one system call for each turn of the
/// engine, so that an action can begin without a transaction.
///
/// The database follows within ``delay``, with one transaction for many turns, and the log begins anew at its start.
/// Then it has a new number, which the database keeps with the same transaction: so a log goes on where the database with
/// its number ends, and any other one, of an older moment or of another file, says nothing. What a kill cuts off is
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

    private let path: PathBytes
    private var descriptor: Int32
    /// The log's number.
    private(set) var number: UInt64
    private var end = 0

    /// Opens the file, or makes it; nil where that can't be done.
    init?(of journal: PathBytes) {
        path = CompanionFile.ahead.path(of: journal)
        descriptor = Self.open(path)
        number = Self.newNumber()
        if descriptor < 0 { return nil }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    private static func open(_ path: PathBytes) -> Int32 {
        path.withCString { Glibc.open($0, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600) }
    }

    static func newNumber() -> UInt64 { UInt64.random(in: 1...UInt64(Int64.max)) }

    /// Whether the database has everything.
    var isEmpty: Bool { end == 0 }
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
            let sum = Self.checksum(UnsafeRawBufferPointer(bytes))
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
        close(descriptor)
        descriptor = Self.open(path)
    }

    /// Begins anew: the database has everything, and this number.
    func begin(_ number: UInt64) {
        self.number = number
        end = 0
    }

    /// Removes the file, which the database no longer needs.
    func remove() { _ = path.withCString { unlink($0) } }

    private static func checksum(_ record: UnsafeRawBufferPointer) -> (UInt32, UInt32) {
        let head = UnsafeRawBufferPointer(rebasing: record[..<24])
        let rows = UnsafeRawBufferPointer(rebasing: record[headerSize...])
        return WriteAheadLog.checksum(
            rows, isBigEndian: false, after: WriteAheadLog.checksum(head, isBigEndian: false, after: (0, 0)))
    }

    // MARK: Reading

    /// The rows that a log tells of beyond what a database has that keeps this number; empty if there are none.
    private static func contents(of journal: PathBytes, number: UInt64) -> [[UInt8]] {
        guard let bytes = read(CompanionFile.ahead.path(of: journal)) else { return [] }
        var contents: [[UInt8]] = []
        bytes.withUnsafeBytes { bytes in
            var place = 0
            while let length = self.length(UnsafeRawBufferPointer(rebasing: bytes[place...]), number) {
                let record = UnsafeRawBufferPointer(rebasing: bytes[place..<(place + headerSize + length)])
                let sum = checksum(record)
                guard sum.0 == UInt32(littleEndian: record.loadUnaligned(fromByteOffset: 24, as: UInt32.self)),
                    sum.1 == UInt32(littleEndian: record.loadUnaligned(fromByteOffset: 28, as: UInt32.self))
                else { return }
                contents.append(Array(record[headerSize...]))
                place += record.count
            }
        }
        return contents
    }

    /// How long the rows of the record are with which the bytes begin; nil if they don't, or it has another number.
    private static func length(_ bytes: UnsafeRawBufferPointer, _ number: UInt64) -> Int? {
        guard bytes.count >= headerSize else { return nil }
        func word(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        guard word(0) == magic, word(8) == number, word(16) & 7 == 0, word(16) <= UInt64(bytes.count - headerSize)
        else { return nil }
        return Int(word(16))
    }

    private static func read(_ path: PathBytes, atMost most: Int = .max) -> [UInt8]? {
        let descriptor = path.withCString { Glibc.open($0, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        let size = min(Int(status.st_size), most)
        return [UInt8](unsafeUninitializedCapacity: size) { buffer, filled in
            while filled < size {
                let count = pread(descriptor, buffer.baseAddress.map { $0 + filled }, size - filled, off_t(filled))
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return }
                filled += count
            }
        }
    }

    /// Whether a database lags behind the log.
    static func isAhead(of database: Database, at journal: PathBytes) throws -> Bool {
        guard let header = read(CompanionFile.ahead.path(of: journal), atMost: headerSize), header.count == headerSize,
            let number = try number(in: database)
        else { return false }
        let magic = header.withUnsafeBytes { UInt64(littleEndian: $0.loadUnaligned(as: UInt64.self)) }
        return magic == Self.magic
            && header.withUnsafeBytes {
                UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self)) == number
            }
    }

    /// Lets the database catch up, in one transaction.
    ///
    /// - Throws: What SQLite throws; nothing is changed then.
    package static func apply(to database: Database, of journal: PathBytes) throws {
        guard let number = try number(in: database) else { return }
        let contents = contents(of: journal, number: number)
        guard !contents.isEmpty else { return }
        var statements: [UInt8: SQLStatement] = [:]
        for statement in JournalStatement.allCases {
            statements[statement.rawValue] = try statement.prepare(in: database)
        }
        try WriteTransaction(database).run {
            for content in contents { try content.withUnsafeBytes { try AheadRecord.replay($0, statements) } }
            try note(newNumber(), statements[JournalStatement.fact.rawValue])
        }
    }

    /// Has the database keep the number of the log that goes on where it ends.
    static func note(_ number: UInt64, _ fact: SQLStatement?) throws {
        try fact?.run {
            $0.bind("ahead")
            $0.bind(Int64(bitPattern: number))
        }
    }

    private static func number(in database: Database) throws -> UInt64? {
        guard try database.tableExists("facts") else { return nil }
        return try Int64.fetchOne(database, sql: "SELECT value FROM facts WHERE name = 'ahead'").map(
            UInt64.init(bitPattern:))
    }
}
