import Storage

/// A number that the journal knows by name.
struct FactRow {
    static let upsert = "INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)"

    var name: String
    var value: Int64

    /// The number of the log that goes on where the database ends.
    static func ahead(_ number: UInt64) -> FactRow { FactRow(name: "ahead", value: Int64(bitPattern: number)) }

    /// Binds the parameters of ``upsert``.
    func bind(to row: some RowSink) {
        row.bind(name)
        row.bind(value)
    }
}
