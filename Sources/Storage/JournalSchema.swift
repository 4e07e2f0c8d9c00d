/// The tables of the journal's file, documented in `docs/journal.md`.
package enum JournalSchema {
    /// `Algt`, which file(1) and SQLite show as `application_id`.
    package static let application: Int32 = 0x416C_6774

    /// The value of `user_version`.
    package static let version = 1

    /// The number of a job is its `position`; `progress` is NULL for a frozen job.
    package static let tables = """
        CREATE TABLE rules (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            path TEXT UNIQUE,
            selection TEXT NOT NULL,
            started INTEGER NOT NULL,
            is_complete INTEGER NOT NULL,
            reselected INTEGER
        ) STRICT;

        CREATE TABLE ledger (
            rule INTEGER NOT NULL REFERENCES rules (id) ON DELETE CASCADE,
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
            suppressed INTEGER NOT NULL,
            PRIMARY KEY (rule, path)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX ledger_by_identity ON ledger (inode, rule) WHERE inode IS NOT NULL;

        CREATE TABLE positions (
            rule INTEGER NOT NULL REFERENCES rules (id) ON DELETE CASCADE,
            inode INTEGER NOT NULL,
            device INTEGER NOT NULL,
            btime INTEGER NOT NULL,
            ctime INTEGER NOT NULL,
            ctime_ns INTEGER NOT NULL,
            delivered INTEGER NOT NULL,
            PRIMARY KEY (rule, inode, device, btime)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE due (
            rule INTEGER NOT NULL REFERENCES rules (id) ON DELETE CASCADE,
            path BLOB NOT NULL,
            writer TEXT,
            PRIMARY KEY (rule, path)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE makers (
            output BLOB PRIMARY KEY,
            rule INTEGER NOT NULL REFERENCES rules (id) ON DELETE CASCADE,
            source BLOB NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE jobs (
            id TEXT PRIMARY KEY,
            rule TEXT NOT NULL,
            path BLOB NOT NULL,
            event TEXT NOT NULL,
            event_json TEXT NOT NULL,
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
            undone TEXT,
            failed_with TEXT,
            superseded_by TEXT
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX jobs_open ON jobs (rule, position) WHERE state IN ('pending', 'running');
        CREATE INDEX jobs_ended ON jobs (ended) WHERE state IN ('succeeded', 'skipped');
        CREATE INDEX jobs_failed ON jobs (rule, ended) WHERE state = 'failed';
        CREATE INDEX jobs_failed_path ON jobs (rule, path) WHERE state = 'failed' AND failed_with IS NOT NULL;
        CREATE INDEX jobs_failed_with ON jobs (failed_with) WHERE state = 'failed' AND failed_with IS NOT NULL;
        CREATE INDEX jobs_refused ON jobs (rule, path) WHERE code = 'ready';

        CREATE TABLE attempts (
            job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
            started INTEGER NOT NULL,
            number INTEGER NOT NULL,
            duration INTEGER NOT NULL,
            outcome TEXT NOT NULL,
            message TEXT NOT NULL,
            code TEXT,
            status INTEGER,
            signal INTEGER,
            request TEXT,
            changes TEXT,
            undone TEXT,
            log_of TEXT,
            PRIMARY KEY (job, started, number)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX attempts_changes ON attempts (started) WHERE changes IS NOT NULL;
        CREATE INDEX attempts_log_of ON attempts (log_of, started) WHERE log_of IS NOT NULL;

        CREATE TABLE logs (
            job TEXT NOT NULL,
            started INTEGER NOT NULL,
            text TEXT NOT NULL,
            PRIMARY KEY (job, started)
        ) STRICT, WITHOUT ROWID;
        CREATE TRIGGER logs_unused AFTER DELETE ON attempts WHEN old.log_of IS NOT NULL BEGIN
            DELETE FROM logs WHERE job = old.log_of AND started = old.started
                AND NOT EXISTS (SELECT 1 FROM attempts WHERE log_of = old.log_of AND started = old.started);
        END;

        CREATE TABLE mounts (
            point BLOB PRIMARY KEY,
            device INTEGER NOT NULL,
            inode INTEGER NOT NULL,
            btime INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE state (
            name TEXT PRIMARY KEY,
            value INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    /// The names of the tables that a file must have.
    static let names = ["attempts", "due", "jobs", "ledger", "makers", "mounts", "positions", "rules", "state"]
}
