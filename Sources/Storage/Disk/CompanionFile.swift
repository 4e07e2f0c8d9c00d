import FileEvents
import Glibc
import System

/// A file that lies beside a journal's file, under its name with an ending.
enum CompanionFile: String, CaseIterable {
    /// What SQLite has committed last, and not moved into the file yet.
    case log = "-wal"
    /// A rollback journal. Alight writes none, but SQLite applies one that is there before it reads the database.
    case rollback = "-journal"
    /// Memory that those share who have the file open.
    case memory = "-shm"
    /// What an Alight holds locked that has the journal.
    case lock = "-lock"

    func path(of journal: PathBytes) -> PathBytes { PathBytes(journal.bytes + Array(rawValue.utf8)) }

    /// Refuses companions that another user could have put beside a journal: in a directory such as `/tmp` anyone may.
    ///
    /// Each that exists has to be a regular file with one name, of this user, of the journal's user or of root.
    static func check(of journal: PathBytes) throws(JournalError) {
        var status = stat()
        var owners: Set<uid_t> = [0, geteuid()]
        if journal.withCString({ lstat($0, &status) }) == 0 { owners.insert(status.st_uid) }
        for file in allCases {
            let path = file.path(of: journal)
            guard path.withCString({ lstat($0, &status) }) == 0 else { continue }
            guard status.st_mode & S_IFMT == S_IFREG, status.st_nlink <= 1, owners.contains(status.st_uid) else {
                throw .untrusted(path)
            }
        }
    }
}
