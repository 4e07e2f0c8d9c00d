/// The tables that a file is created with, and has to have.
enum JournalLayout {
    /// Those of ``DiskJournal``.
    case journal
    /// Those of ``DiskStore``.
    case store

    var tables: String {
        switch self {
        case .journal: JournalSchema.tables
        case .store: StoreSchema.tables
        }
    }

    /// The names of the tables.
    var names: [String] {
        let names = ["attempts", "facts", "jobs", "ledger", "mounts", "rules"]
        return self == .store ? names + ["due"] : names
    }
}
