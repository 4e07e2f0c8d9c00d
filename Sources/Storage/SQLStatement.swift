import GRDB
import GRDBSQLite

/// A prepared statement that is bound and read column by column, without arrays or copies of rows.
///
/// GRDB prepares it on the journal's connection. It is used only under the lock of the journal.
final class SQLStatement {
    private let statement: Statement
    private var parameter: Int32 = 0
    /// `SQLITE_TRANSIENT`: SQLite copies the bound value immediately.
    private static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    init(_ sql: String, in database: Database) throws { statement = try database.makeStatement(sql: sql) }

    /// Prepares a statement that inserts a row, or replaces the values of the one with the same key.
    ///
    /// - Parameters:
    ///   - table: The table.
    ///   - key: The columns of the key.
    ///   - columns: The other columns.
    ///   - initial: Further columns, which keep their value in an existing row.
    ///   - cleared: Columns that become NULL in an existing row.
    ///   - database: The connection.
    /// - Throws: The error of the database.
    convenience init(
        upsertInto table: String, key: String, _ columns: String, initial: String = "", clearing cleared: String = "",
        in database: Database
    ) throws {
        let all = [key, columns, initial].flatMap { $0.split(separator: ", ") }
        var changes = columns.split(separator: ", ").map { "\($0) = excluded.\($0)" }
        changes += cleared.split(separator: ", ").map { "\($0) = NULL" }
        try self.init(
            """
            INSERT INTO \(table) (\(all.joined(separator: ", ")))
            VALUES (\(all.map { _ in "?" }.joined(separator: ", ")))
            ON CONFLICT (\(key)) DO UPDATE SET \(changes.joined(separator: ", "))
            """, in: database)
    }

    private var handle: OpaquePointer { statement.sqliteStatement }

    // MARK: Binding, one parameter after the other

    /// Binds an integer; one that needs all 64 bits is stored as if it were signed.
    @discardableResult func bind(_ number: (some FixedWidthInteger)?) -> SQLStatement {
        guard let number else { return bindNull() }
        parameter += 1
        sqlite3_bind_int64(handle, parameter, Int64(truncatingIfNeeded: number))
        return self
    }

    @discardableResult func bindNull() -> SQLStatement {
        parameter += 1
        sqlite3_bind_null(handle, parameter)
        return self
    }

    @discardableResult func bind(_ flag: Bool) -> SQLStatement { bind(flag ? 1 : 0) }

    @discardableResult func bind(_ text: String?) -> SQLStatement {
        guard var text else { return bindNull() }
        parameter += 1
        _ = text.withUTF8 { sqlite3_bind_text(handle, parameter, $0.baseAddress, Int32($0.count), Self.copied) }
        return self
    }

    /// Binds a string in UTF-8.
    @discardableResult func bind(utf8: [UInt8]?) -> SQLStatement {
        guard let utf8 else { return bindNull() }
        parameter += 1
        sqlite3_bind_text(handle, parameter, utf8, Int32(utf8.count), Self.copied)
        return self
    }

    @discardableResult func bind(blob: [UInt8]?) -> SQLStatement {
        guard let blob else { return bindNull() }
        parameter += 1
        sqlite3_bind_blob(handle, parameter, blob, Int32(blob.count), Self.copied)
        return self
    }

    // MARK: Running

    /// Advances to the next row; returns false if there is none.
    private func step() throws -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code:
            let message = String(cString: sqlite3_errmsg(sqlite3_db_handle(handle)))
            throw DatabaseError(resultCode: ResultCode(rawValue: code), message: message)
        }
    }

    /// Resets the statement for new parameters, and releases its locks.
    private func reset() {
        sqlite3_reset(handle)
        parameter = 0
    }

    /// Binds the parameters with the closure, runs the statement to completion, and resets it.
    func run(_ bind: (SQLStatement) -> Void = { _ in }) throws {
        defer { reset() }
        bind(self)
        while try step() {}
    }

    /// Binds the parameters with one closure, and reads the first row with another; returns nil if there is none.
    func first<Row>(_ bind: (SQLStatement) -> Void, _ read: (SQLStatement) throws -> Row) throws -> Row? {
        defer { reset() }
        bind(self)
        return try step() ? read(self) : nil
    }

    /// Binds the parameters with one closure, and reads at most `limit` rows with another, which returns nil to skip a
    /// row.
    func rows<Row>(
        _ bind: (SQLStatement) -> Void = { _ in }, limit: Int = .max, _ read: (SQLStatement) throws -> Row?
    ) throws -> [Row] {
        defer { reset() }
        bind(self)
        var rows: [Row] = []
        while rows.count < limit, try step() { if let row = try read(self) { rows.append(row) } }
        return rows
    }

    // MARK: Reading

    /// Returns an integer as it was bound; 0 for NULL.
    func integer<Number: FixedWidthInteger>(_ column: Int32) -> Number {
        Number(truncatingIfNeeded: sqlite3_column_int64(handle, column))
    }

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    func optionalInteger<Number: FixedWidthInteger>(_ column: Int32) -> Number? {
        isNull(column) ? nil : integer(column)
    }

    /// Returns a blob, or a string in UTF-8; empty for NULL.
    func blob(_ column: Int32) -> [UInt8] {
        guard let start = sqlite3_column_blob(handle, column) else { return [] }
        return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column))))
    }

    /// Returns a blob, or a string in UTF-8; nil for NULL.
    func optionalBlob(_ column: Int32) -> [UInt8]? { isNull(column) ? nil : blob(column) }

    func flag(_ column: Int32) -> Bool { integer(column) != 0 as Int64 }

    func text(_ column: Int32) -> String { String(decoding: blob(column), as: UTF8.self) }

    func optionalText(_ column: Int32) -> String? { isNull(column) ? nil : text(column) }
}

/// The transactions of the store: reads share one until the next write, so that further reads take no file locks, and
/// the write continues it.
///
/// A write starts and ends within one access of GRDB, which observes it through its hooks.
final class StoreTransaction {
    private let begin: SQLStatement
    private let beginWriting: SQLStatement
    private let commit: SQLStatement
    private let rollback: SQLStatement
    private var isReading = false
    private let errors: ReadErrors

    init(_ database: Database, _ errors: ReadErrors) throws {
        begin = try SQLStatement("BEGIN DEFERRED", in: database)
        beginWriting = try SQLStatement("BEGIN IMMEDIATE", in: database)
        commit = try SQLStatement("COMMIT", in: database)
        rollback = try SQLStatement("ROLLBACK", in: database)
        self.errors = errors
    }

    /// Returns the result of the closure; nil after an error, which is recorded.
    func read<Result>(_ body: () throws -> Result) -> Result? {
        do {
            if !isReading { try begin.run() }
            isReading = true
            return try body()
        } catch {
            errors.record(error)
            return nil
        }
    }

    /// Ends the reads; required before the log can be moved into the file.
    func endReading() {
        guard isReading else { return }
        isReading = false
        // After an error, SQLite may have ended the transaction itself.
        try? commit.run()
    }

    /// Runs the closure and commits what it writes, which is rolled back after an error.
    func write(_ body: () throws -> Void) throws {
        if !isReading { try beginWriting.run() }
        isReading = false
        do {
            try body()
            try commit.run()
        } catch {
            // After some errors SQLite has already rolled back the transaction.
            try? rollback.run()
            throw error
        }
    }
}

/// A row in a form that no version of Alight writes.
struct UnreadableRow: Error {
    var table: String
}

/// The first read error since the last commit.
final class ReadErrors {
    private var first: (any Error)?

    func record(_ error: any Error) { first = first ?? error }

    func take() -> (any Error)? {
        defer { first = nil }
        return first
    }

    /// Reads a row; returns nil if it is unreadable, so that the following rows are read.
    func row<Row>(_ read: () throws -> Row) throws -> Row? {
        do {
            return try read()
        } catch let error as UnreadableRow {
            record(error)
            return nil
        }
    }
}
