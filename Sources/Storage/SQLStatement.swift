package import GRDB
import GRDBSQLite

/// A prepared statement that is bound and read column by column, without arrays or copies of rows.
///
/// GRDB prepares it on the journal's connection. It is used only under the lock of the journal.
package final class SQLStatement {
    private let statement: Statement
    private var parameter: Int32 = 0
    /// `SQLITE_TRANSIENT`: SQLite copies the bound value immediately.
    private static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    package init(_ sql: String, in database: Database) throws { statement = try database.makeStatement(sql: sql) }

    private var handle: OpaquePointer { statement.sqliteStatement }

    // MARK: Binding, one parameter after the other

    package func bind(_ number: Int64) {
        parameter += 1
        sqlite3_bind_int64(handle, parameter, number)
    }

    package func bindNull() {
        parameter += 1
        sqlite3_bind_null(handle, parameter)
    }

    private func bind(text: UnsafeBufferPointer<UInt8>) {
        parameter += 1
        text.withMemoryRebound(to: CChar.self) { characters in
            // A null pointer stands for NULL, not for the empty string.
            _ = sqlite3_bind_text(
                handle, parameter, characters.baseAddress ?? Self.nothing, Int32(characters.count), Self.copied)
        }
    }

    private func bind(blob: UnsafeRawBufferPointer) {
        parameter += 1
        if blob.isEmpty {
            sqlite3_bind_zeroblob(handle, parameter, 0)
        } else {
            _ = sqlite3_bind_blob(handle, parameter, blob.baseAddress, Int32(blob.count), Self.copied)
        }
    }

    package func bind(_ number: Int64?) {
        if let number { bind(number) } else { bindNull() }
    }

    package func bind(_ flag: Bool) { bind(flag ? 1 : 0) }

    package func bind(_ text: String) {
        var text = text
        text.withUTF8 { bind(text: $0) }
    }

    package func bind(_ text: String?) {
        if let text { bind(text) } else { bindNull() }
    }

    /// Binds a string in UTF-8.
    package func bind(utf8: [UInt8]?) {
        if let utf8 { utf8.withUnsafeBufferPointer { bind(text: $0) } } else { bindNull() }
    }

    package func bind(blob: [UInt8]?) {
        if let blob { blob.withUnsafeBytes { bind(blob: $0) } } else { bindNull() }
    }

    private nonisolated(unsafe) static let nothing: UnsafePointer<CChar> = {
        // It is never freed, and never written to again.
        let empty = UnsafeMutablePointer<CChar>.allocate(capacity: 1)
        empty.initialize(to: 0)
        return UnsafePointer(empty)
    }()

    // MARK: Running

    /// Advances to the next row; returns false if there is none.
    package func step() throws -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code:
            let message = String(cString: sqlite3_errmsg(sqlite3_db_handle(handle)))
            throw DatabaseError(resultCode: ResultCode(rawValue: code), message: message)
        }
    }

    /// Resets the statement for new parameters, and releases its locks.
    package func reset() {
        sqlite3_reset(handle)
        parameter = 0
    }

    /// Binds the parameters with the closure, runs the statement to completion, and resets it.
    package func run(_ bind: (SQLStatement) -> Void = { _ in }) throws {
        defer { reset() }
        bind(self)
        while try step() {}
    }

    /// Binds the parameters with one closure, and reads the first row with another; returns nil if there is none.
    package func first<Result>(_ bind: (SQLStatement) -> Void, _ read: (SQLStatement) throws -> Result) throws
        -> Result?
    {
        defer { reset() }
        bind(self)
        return try step() ? read(self) : nil
    }

    /// Binds the parameters with one closure, and calls another for each row.
    package func each(_ bind: (SQLStatement) -> Void, _ read: (SQLStatement) throws -> Void) throws {
        defer { reset() }
        bind(self)
        while try step() { try read(self) }
    }

    /// Calls the closure for each row.
    package func each(_ read: (SQLStatement) throws -> Void) throws { try each({ _ in }, read) }

    // MARK: Reading

    package func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    package func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    package func optionalInteger(_ column: Int32) -> Int64? { isNull(column) ? nil : integer(column) }

    package func blob(_ column: Int32) -> [UInt8] {
        guard let start = sqlite3_column_blob(handle, column) else { return [] }
        return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column))))
    }

    package func optionalBlob(_ column: Int32) -> [UInt8]? { isNull(column) ? nil : blob(column) }

    /// Returns a string in UTF-8; nil for NULL.
    package func utf8(_ column: Int32) -> [UInt8]? { optionalBlob(column) }

    package func text(_ column: Int32) -> String { String(decoding: blob(column), as: UTF8.self) }

    package func optionalText(_ column: Int32) -> String? { isNull(column) ? nil : text(column) }
}

/// The prepared statements of a write transaction.
///
/// It starts and ends within one access of GRDB, which observes it through its hooks.
package final class WriteTransaction {
    private let begin: SQLStatement
    private let commit: SQLStatement
    private let rollback: SQLStatement

    package init(_ database: Database) throws {
        begin = try SQLStatement("BEGIN IMMEDIATE", in: database)
        commit = try SQLStatement("COMMIT", in: database)
        rollback = try SQLStatement("ROLLBACK", in: database)
    }

    /// Runs the closure in a transaction, which is rolled back after an error.
    package func run(_ body: () throws -> Void) throws {
        try begin.run()
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
