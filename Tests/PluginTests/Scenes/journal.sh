#: before sqlite3 journal.db ".backup '/backup/journal.db'"
mkdir "$HOST/backup"
cat "$CHECKOUT"/Tests/StorageTests/Golden/{schema,rows}.sql | sqlite3 journal.db

#: after sqlite3 journal.db ".backup '/backup/journal.db'"
[ "$(sqlite3 "$HOST/backup/journal.db" 'SELECT count(*) FROM jobs')" = 4 ]

#: after {
[ "$(sqlite3 journal.db 'SELECT count(*) FROM jobs; PRAGMA user_version' | tr '\n' ' ')" = '4 1 ' ]
