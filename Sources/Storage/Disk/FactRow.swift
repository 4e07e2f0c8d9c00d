/// A number that the journal knows by name.
struct FactRow {
    static let upsert = "INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)"

    var name: String
    var value: Int64

    /// Binds the parameters of ``upsert``.
    func bind(to row: SQLStatement) {
        row.bind(name)
        row.bind(value)
    }
}
