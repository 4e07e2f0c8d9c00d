BEGIN;
CREATE TABLE rules (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    selection TEXT NOT NULL,
    began INTEGER NOT NULL,
    is_complete INTEGER NOT NULL
) STRICT;

CREATE TABLE ledger (
    rule INTEGER NOT NULL REFERENCES rules (id) ON DELETE CASCADE,
    path BLOB NOT NULL,
    type TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    btime INTEGER,
    btime_ns INTEGER,
    device INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    mode INTEGER NOT NULL,
    uid INTEGER NOT NULL,
    gid INTEGER NOT NULL,
    nlink INTEGER NOT NULL,
    mount INTEGER NOT NULL,
    run INTEGER NOT NULL,
    digest BLOB,
    delivered INTEGER,
    xattrs TEXT,
    standing INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (rule, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_by_identity ON ledger (inode, rule);

CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    rule TEXT NOT NULL,
    path BLOB NOT NULL,
    event TEXT NOT NULL,
    facts TEXT NOT NULL,
    mask INTEGER NOT NULL,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    is_interrupted INTEGER NOT NULL,
    is_alone INTEGER NOT NULL DEFAULT 0,
    position INTEGER NOT NULL,
    created INTEGER NOT NULL,
    due INTEGER,
    ended INTEGER,
    previous TEXT,
    steps TEXT,
    message TEXT,
    code TEXT,
    is_heir INTEGER NOT NULL DEFAULT 0,
    outputs TEXT,
    undone TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_open ON jobs (rule, position) WHERE state IN ('pending', 'running');
CREATE INDEX jobs_ended ON jobs (ended) WHERE state IN ('succeeded', 'skipped');
CREATE INDEX jobs_dead ON jobs (rule, ended) WHERE state = 'dead';
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

CREATE TABLE facts (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO facts (name, value) VALUES ('youngest', 0);
INSERT INTO rules (id, name, selection, began, is_complete) VALUES
    (1, 'thumbs', 'in/**', 1700000000000000000, 1),
    (2, 'sort', 'in/*', 1700000000000000000, 1);
INSERT INTO ledger (rule, path, type, size, mtime, mtime_ns, ctime, ctime_ns, btime, btime_ns, device, inode, mode, uid, gid, nlink, mount, run, digest, delivered, xattrs, standing) VALUES
    (1, CAST('/in/a' AS BLOB), 'file', 5, 1700000000, 0, 1700000000, 0, 1700000000, 0, 34359738369, 7, 420, 0, 0, 1,
        28, 3, NULL, NULL, NULL, 0),
    (1, CAST('/in/b' AS BLOB), 'file', 9, 1700000000, 0, 1700000000, 0, NULL, NULL, 34359738369, -8, 420, 0, 0, 1,
        28, 3, X'AB', 4, '[{"name":"user.x","value":"AQI="}]', 0);
INSERT INTO jobs (id, rule, path, event, facts, mask, state, attempt, is_interrupted, is_alone, position, created, due, ended, previous, steps, message, code, is_heir, outputs, undone) VALUES
    ('01HF7YAT00AAAAAAAAAAAAAAAA', 'thumbs', CAST('/in/a' AS BLOB), 'created',
        '{"event":"created","path":"/in/a","root":"/in","snapshot":{"type":"file","size":5,"mtime":[1700000000,0],"ctime":[1700000000,0],"btime":[1700000000,0],"device":34359738369,"inode":7,"birth":1700000000000000000,"mode":420,"uid":0,"gid":0,"nlink":1},"origin":"live","time":[1700000000,0]}',
        31, 'running', 2, 0, 0, 4, 1700000000000000000, 1700000000000000000, NULL, NULL, NULL, NULL, NULL, 0, NULL,
        NULL),
    ('01HF7YAT00BBBBBBBBBBBBBBBB', 'thumbs', CAST('/in/b' AS BLOB), 'created',
        '{"event":"created","path":"/in/b","root":"/in","snapshot":{"type":"file","size":5,"mtime":[1700000000,0],"ctime":[1700000000,0],"btime":[1700000000,0],"device":34359738369,"inode":7,"birth":1700000000000000000,"mode":420,"uid":0,"gid":0,"nlink":1},"origin":"live","time":[1700000000,0]}',
        31, 'pending', 1, 0, 0, 5, 1700000000000000000, 1, NULL, '{"attempt":1,"outcome":"retry","message":"busy"}',
        '[{"outcome":"succeeded","message":"ok"}]', NULL, NULL, 0, NULL, NULL),
    ('01HF7YAT00CCCCCCCCCCCCCCCC', 'thumbs', CAST('/in/c' AS BLOB), 'created',
        '{"event":"created","path":"/in/c","root":"/in","snapshot":{"type":"file","size":5,"mtime":[1700000000,0],"ctime":[1700000000,0],"btime":[1700000000,0],"device":34359738369,"inode":7,"birth":1700000000000000000,"mode":420,"uid":0,"gid":0,"nlink":1},"origin":"live","time":[1700000000,0]}',
        31, 'dead', 5, 0, 0, 1, 1700000000000000000, NULL, 1700000000000000000, NULL, NULL, 'no', NULL, 0, NULL, NULL),
    ('01HF7YAT00DDDDDDDDDDDDDDDD', 'sort', CAST('/in/a' AS BLOB), 'created',
        '{"event":"created","path":"/in/a","root":"/in","snapshot":{"type":"file","size":5,"mtime":[1700000000,0],"ctime":[1700000000,0],"btime":[1700000000,0],"device":34359738369,"inode":7,"birth":1700000000000000000,"mode":420,"uid":0,"gid":0,"nlink":1},"origin":"live","time":[1700000000,0]}',
        31, 'succeeded', 1, 0, 0, 2, 1700000000000000000, NULL, 1700000000000000000, NULL, NULL, '', NULL, 0, NULL,
        NULL);
INSERT INTO attempts (job, started, number, duration, outcome, message, code, status, signal, request, changes, undone, log_of) VALUES
    ('01HF7YAT00BBBBBBBBBBBBBBBB', 1700000000000000000, 1, 1000000, 'retry', 'busy', NULL, 75, NULL, '{}', NULL,
        NULL, '01HF7YAT00BBBBBBBBBBBBBBBB'),
    ('01HF7YAT00DDDDDDDDDDDDDDDD', 1700000000000000000, 1, 1000000, 'succeeded', 'moved', NULL, NULL, NULL, NULL,
        '[{"did":"moved","from":"/in/a","to":"/out/a","left":{"type":"file","size":5,"mtime":[1700000000,0],"device":34359738369,"inode":7,"birth":1700000000000000000}}]',
        '{"time":[1700000100,0],"left":["there is something at ''/in/a'' again"]}', NULL);
INSERT INTO logs (job, started, text) VALUES
    ('01HF7YAT00BBBBBBBBBBBBBBBB', 1700000000000000000, 'log');
INSERT INTO mounts (point, device, inode, btime) VALUES
    (CAST('/in' AS BLOB), 34359738369, 2, 0);
UPDATE facts SET value = 1700000000000000000 WHERE name = 'youngest';
INSERT INTO facts (name, value) VALUES
    ('ahead', 4711),
    ('is_clean', 0),
    ('kept', 1700000100000000005),
    ('run', 3);
COMMIT;
PRAGMA application_id = 1097623412;
PRAGMA user_version = 1;
