/// The tables of the store.
package enum StorageSchema {
    /// `Algt`, which file(1) and SQLite show as `application_id`.
    static let application: Int32 = 0x416C_6774
    /// The `user_version` of the file.
    static let version = 1

    /// The statements that create the ledger and the due paths, with a constraint for the rule's id.
    package static func ledger(_ reference: String = "") -> String {
        let rule = "rule INTEGER NOT NULL" + (reference.isEmpty ? "" : " " + reference)
        return """
            CREATE TABLE ledger (
                \(rule),
                path BLOB NOT NULL,
                type TEXT,
                size INTEGER,
                mtime INTEGER,
                mtime_ns INTEGER,
                ctime INTEGER,
                ctime_ns INTEGER,
                btime INTEGER,
                btime_ns INTEGER,
                device INTEGER,
                inode INTEGER,
                mode INTEGER,
                uid INTEGER,
                gid INTEGER,
                nlink INTEGER,
                mount INTEGER,
                run INTEGER,
                digest BLOB,
                delivered INTEGER,
                xattrs TEXT,
                trust INTEGER NOT NULL,
                withheld INTEGER NOT NULL,
                PRIMARY KEY (rule, path)
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX ledger_by_identity ON ledger (inode, rule) WHERE inode IS NOT NULL;

            CREATE TABLE due (
                \(rule),
                path BLOB NOT NULL,
                writer TEXT,
                PRIMARY KEY (rule, path)
            ) STRICT, WITHOUT ROWID;
            """
    }

    static let tables = """
        \(ledger())

        CREATE TABLE offers (
            rule INTEGER NOT NULL,
            number INTEGER NOT NULL,
            state TEXT NOT NULL,
            attempt INTEGER NOT NULL,
            due INTEGER,
            event TEXT NOT NULL,
            progress TEXT NOT NULL,
            PRIMARY KEY (rule, number)
        ) STRICT, WITHOUT ROWID;
        """
}
