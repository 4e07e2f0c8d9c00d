import FileEvents

/// A file that lies beside a journal's file, under its name with an ending.
enum CompanionFile: String {
    /// What SQLite has committed last, and not moved into the file yet.
    case log = "-wal"
    /// Memory that those share who have the file open.
    case memory = "-shm"
    /// What the database is yet to be told of the last moments.
    case ahead = "-ahead"
    /// What an Alight holds locked that has the journal.
    case lock = "-lock"

    func path(of journal: PathBytes) -> PathBytes { PathBytes(journal.bytes + Array(rawValue.utf8)) }
}
