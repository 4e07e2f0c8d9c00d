import GRDB
import GRDBSQLite
import System

/// Moves the write-ahead log into the file in the background, a few pages at a time.
///
/// A checkpoint flushes both files to the disk, and the next commit may have to wait until the log is flushed. While
/// commits follow each other without a pause, a checkpoint cannot restart the log, since a later commit is in it. So
/// when the log is too long, the caller waits until the remaining pages, which are few, are moved.
///
/// Used under the lock of the store. See https://sqlite.org/wal.html#ckpt.
final class LogCheckpoint {
    private let path: PathBytes
    /// The number of pages at which the first checkpoint of a log starts; each further one starts at twice the
    /// length.
    private let first: Int
    /// The number of pages at which the caller waits for the rest.
    private let most: Int
    /// The length at which the next checkpoint starts.
    private var next: Int
    /// The number of pages in the log, which SQLite sets at each commit.
    private let pages: UnsafeMutablePointer<Int32>
    /// A second connection, opened on first use; its queue has a thread.
    private var connection: DatabaseQueue?

    /// - Parameters:
    ///   - database: The connection that writes; it must not commit once this object is gone.
    ///   - path: The path of the file.
    init(_ database: Database, of path: PathBytes) {
        self.path = path
        most = JournalFile.mostLogPages(of: path)
        first = min(500, most / 2)
        next = first
        pages = .allocate(capacity: 1)
        pages.initialize(to: 0)
        // Replaces wal_autocheckpoint.
        sqlite3_wal_hook(
            database.sqliteConnection,
            { pages, _, _, count in
                pages?.assumingMemoryBound(to: Int32.self).pointee = count
                return SQLITE_OK
            }, pages)
    }

    deinit { pages.deallocate() }

    /// Starts a checkpoint if the log is long enough; called after each commit.
    ///
    /// An error does not affect the commit, whose pages stay in the log: a later call tries again.
    func start(_ database: Database) {
        let count = Int(pages.pointee)
        if count < next / 2 { next = first }
        guard count >= min(next, most) else { return }
        if connection == nil { connection = try? DatabaseQueue(path: JournalFile.name(of: path)) }
        guard let connection else { return _ = try? database.checkpoint(.passive) }
        if count >= most {
            // Waits for one that runs in the background, so that the log stays short on a slow disk, too.
            _ = try? connection.writeWithoutTransaction { try $0.checkpoint(.passive) }
        } else {
            next = 2 * count
            connection.asyncWriteWithoutTransaction { _ = try? $0.checkpoint(.passive) }
        }
    }

    /// Waits for a running checkpoint, and closes the second connection.
    func close() { try? connection?.close() }
}
