import Storage

/// The tables of the file of a ``DiskStore``; those that ``JournalReader`` reads are as in ``JournalSchema``.
package enum StoreSchema {
    /// The number of a job is its `position`; `progress` is NULL for a frozen job.
    private static let jobs = """
        CREATE TABLE jobs (
            id TEXT PRIMARY KEY,
            rule TEXT NOT NULL,
            path BLOB NOT NULL,
            event TEXT NOT NULL,
            facts TEXT NOT NULL,
            state TEXT NOT NULL,
            attempt INTEGER NOT NULL,
            is_interrupted INTEGER NOT NULL,
            position INTEGER NOT NULL,
            created INTEGER NOT NULL,
            due INTEGER,
            ended INTEGER,
            previous TEXT,
            steps TEXT,
            progress TEXT,
            message TEXT,
            code TEXT,
            outputs TEXT,
            undone TEXT
        ) STRICT, WITHOUT ROWID;
        """

    package static let tables = """
        \(JournalSchema.rules)

        \(StorageSchema.ledger("REFERENCES rules (id) ON DELETE CASCADE"))

        \(jobs)
        \(JournalSchema.jobIndexes)

        \(JournalSchema.history)
        """
}
