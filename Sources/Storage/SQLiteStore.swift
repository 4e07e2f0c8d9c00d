package import FileEvents
import GRDB
package import Reconciling
import Synchronization

/// The changes of one commit.
package struct StoreChanges: Sendable {
    /// Ledger rows; an empty one is deleted.
    package var rows: [RuleID: [PathBytes: LedgerRow]] = [:]
    /// Offers by number; nil deletes one.
    package var offers: [RuleID: [UInt64: Offer?]] = [:]
    /// Due paths that are stored or deleted.
    package var due: [RuleID: [PathBytes: DueChange]] = [:]

    package init() {}

    var isEmpty: Bool {
        rows.values.allSatisfy(\.isEmpty) && offers.values.allSatisfy(\.isEmpty) && due.values.allSatisfy(\.isEmpty)
    }
}

/// Stores the ledger, the offers and the due paths in SQLite.
package final class SQLiteStore: LedgerStore {
    /// Nil after another instance has taken over the connection.
    private let state: Mutex<State?>

    /// Opens a file; without a path, a store in memory.
    package convenience init(at path: PathBytes? = nil) throws {
        var configuration = Configuration()
        configuration.busyMode = .timeout(5)
        configuration.prepareDatabase { try $0.execute(sql: State.pragmas) }
        guard let path else {
            try self.init(DatabaseQueue(configuration: configuration))
            return
        }
        let digits = Array("0123456789ABCDEF")
        // A name may contain any bytes.
        let name = path.bytes.map { $0 == .slash ? "/" : "%\(digits[Int($0 >> 4)])\(digits[Int($0 & 15)])" }.joined()
        try self.init(DatabaseQueue(path: "file:\(name)", configuration: configuration))
    }

    /// Takes over what a killed run has committed.
    ///
    /// The other instance is empty afterwards.
    package convenience init(afterKillOf other: SQLiteStore) throws {
        let connection = other.state.withLock { state in
            defer { state = nil }
            state?.reading.end()
            return state?.connection
        }
        guard let connection else { throw CancellationError() }
        try self.init(connection)
    }

    private init(_ connection: DatabaseQueue) throws { state = Mutex(try State(connection)) }

    private func read<Result: Sendable>(_ body: @Sendable (State) throws -> Result) -> Result? {
        state.withLock { state in state.flatMap { state in state.reading.read { try body(state) } } }
    }

    package func row(of rule: RuleID, at path: PathBytes) -> LedgerRow? {
        read { try $0.ledger.row(of: rule, at: path) } ?? nil
    }

    package func paths(of rule: RuleID, handling identity: FileIdentity) -> [PathBytes] {
        read { try $0.ledger.paths(of: rule, handling: identity) } ?? []
    }

    package func rows(
        of rule: RuleID, below directory: PathBytes, after last: PathBytes?
    ) -> [(PathBytes, LedgerRow)] {
        read { try $0.ledger.rows(of: rule, below: directory, after: last) } ?? []
    }

    /// The offers of a rule, sorted by number, those that have failed among them.
    package func offers(of rule: RuleID, at clocks: ClockPair) -> [Offer] {
        read { try $0.offers.offers(of: rule, at: clocks) } ?? []
    }

    /// The stored due paths of a rule, sorted.
    package func duePaths(of rule: RuleID) -> [StoredDuePath] { read { try $0.due.paths(of: rule) } ?? [] }

    /// Writes the changes in one transaction.
    ///
    /// - Throws: The error of an earlier read, or of this transaction; then nothing is written.
    package func commit(_ changes: StoreChanges, at clocks: ClockPair) throws {
        try state.withLock { state in
            guard let state else { throw CancellationError() }
            try state.commit(changes, clocks)
        }
    }
}

/// The connection and its statements, which are not for several threads.
private final class State {
    static let pragmas = """
        PRAGMA secure_delete = OFF;
        PRAGMA synchronous = NORMAL;
        PRAGMA temp_store = MEMORY;
        PRAGMA cache_size = -2048;
        PRAGMA journal_size_limit = 16777216;
        PRAGMA wal_autocheckpoint = 3500;
        """

    private struct Parts {
        let ledger: LedgerTable
        let offers: OfferTable
        let due: DuePathTable
        let reading: ReadTransaction
        let transaction: WriteTransaction
    }

    let ledger: LedgerTable
    let offers: OfferTable
    let due: DuePathTable
    let reading: ReadTransaction
    private let transaction: WriteTransaction
    private let errors: ReadErrors
    /// Behind the statements, so that it outlives them.
    let connection: DatabaseQueue

    init(_ connection: DatabaseQueue) throws {
        self.connection = connection
        let errors = ReadErrors()
        self.errors = errors
        let parts = try connection.writeWithoutTransaction { database in
            try Self.prepare(database)
            return try Parts(
                ledger: LedgerTable(database, errors), offers: OfferTable(database, errors),
                due: DuePathTable(database, errors), reading: ReadTransaction(database, errors),
                transaction: WriteTransaction(database))
        }
        (ledger, offers, due) = (parts.ledger, parts.offers, parts.due)
        (reading, transaction) = (parts.reading, parts.transaction)
    }

    /// Creates the tables of an empty file.
    private static func prepare(_ database: Database) throws {
        try database.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL")
        _ = try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL")
        guard try Int.fetchOne(database, sql: "PRAGMA user_version") == 0 else { return }
        try database.inTransaction(.immediate) {
            try database.execute(
                sql: """
                    \(StorageSchema.tables)
                    PRAGMA application_id = \(StorageSchema.application);
                    PRAGMA user_version = \(StorageSchema.version);
                    """)
            return .commit
        }
    }

    func commit(_ changes: StoreChanges, _ clocks: ClockPair) throws {
        reading.end()
        if let error = errors.take() { throw error }
        guard !changes.isEmpty else { return }
        try connection.writeWithoutTransaction { _ in
            try transaction.run { try write(changes, clocks) }
        }
    }

    private func write(_ changes: StoreChanges, _ clocks: ClockPair) throws {
        for (rule, rows) in changes.rows {
            for (path, row) in rows { try ledger.write(row, of: rule, at: path) }
        }
        for (rule, changed) in changes.offers {
            for (number, offer) in changed {
                if let offer {
                    try offers.write(offer, of: rule, at: clocks)
                } else {
                    try offers.delete(number, of: rule)
                }
            }
        }
        for (rule, paths) in changes.due {
            for (path, isDue) in paths { try due.write(isDue, of: rule, at: path) }
        }
    }
}
