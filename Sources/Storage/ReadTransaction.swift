package import GRDB

/// A read transaction that lasts until the next commit, so that further reads take no file locks.
package final class ReadTransaction {
    private let begin: SQLStatement
    private let commit: SQLStatement
    private var isOpen = false
    private let errors: ReadErrors

    package init(_ database: Database, _ errors: ReadErrors) throws {
        begin = try SQLStatement("BEGIN DEFERRED", in: database)
        commit = try SQLStatement("COMMIT", in: database)
        self.errors = errors
    }

    /// Returns the result of the closure; nil after an error, which is recorded.
    package func read<Result>(_ body: () throws -> Result) -> Result? {
        do {
            if !isOpen { try begin.run() }
            isOpen = true
            return try body()
        } catch {
            errors.record(error)
            return nil
        }
    }

    /// Ends the transaction; required before a write, and before the log can be moved into the file.
    package func end() {
        guard isOpen else { return }
        isOpen = false
        // After an error, SQLite may have ended the transaction itself.
        try? commit.run()
    }
}
