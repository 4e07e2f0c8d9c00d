import Glibc
import System

/// A file next to the journal, named after it with a suffix.
enum CompanionFile: String, CaseIterable {
    /// The last commits of SQLite that are not yet in the file.
    case log = "-wal"
    /// A rollback journal.
    ///
    /// Alight writes none, but SQLite applies an existing one before it reads the database.
    case rollback = "-journal"
    /// The memory shared by the processes that have the file open.
    case memory = "-shm"
    /// The lock file of the instance that uses the journal.
    case lock = "-lock"

    func path(of journal: PathBytes) -> PathBytes { PathBytes(journal.bytes + Array(rawValue.utf8)) }

    /// Rejects companions that another user could have placed next to the journal, as is possible in a directory such
    /// as `/tmp`.
    ///
    /// Each existing companion has to be a regular file with one link, owned by this user, the journal's user or
    /// root.
    static func check(of journal: PathBytes) throws(JournalError) {
        var owners: Set<uid_t> = [0, geteuid()]
        if let snapshot = KernelFileSystem().stat(journal).snapshot { owners.insert(snapshot.uid) }
        for file in allCases {
            let path = file.path(of: journal)
            guard let snapshot = KernelFileSystem().stat(path).snapshot else { continue }
            guard snapshot.type == .file, snapshot.links <= 1, owners.contains(snapshot.uid) else {
                throw .untrusted(path)
            }
        }
    }
}
