/// A row in a form that no version of Alight writes.
package struct UnreadableRow: Error {
    package var table: String

    package init(table: String) { self.table = table }
}

/// The first read error since the last commit.
package final class ReadErrors {
    package private(set) var first: (any Error)?

    package init() {}

    package func record(_ error: any Error) { first = first ?? error }

    package func take() -> (any Error)? {
        defer { first = nil }
        return first
    }

    /// Reads a row; returns nil if it is unreadable, so that the following rows are read.
    package func row<Row>(_ read: () throws -> Row) throws -> Row? {
        do {
            return try read()
        } catch let error as UnreadableRow {
            record(error)
            return nil
        }
    }
}
