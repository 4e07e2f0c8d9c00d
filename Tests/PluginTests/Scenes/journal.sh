#: before sqlite3 journal.db ".backup '/backup/journal.db'"
mkdir "$HOST/backup"
sqlite3 journal.db <"$CHECKOUT/Tests/JournalingTests/Golden/journal.sql"

#: after sqlite3 journal.db ".backup '/backup/journal.db'"
[ "$(sqlite3 "$HOST/backup/journal.db" 'SELECT count(*) FROM jobs')" = 4 ]

#: after {
[ "$(sqlite3 journal.db 'SELECT count(*) FROM jobs; PRAGMA user_version' | tr '\n' ' ')" = '4 1 ' ]
