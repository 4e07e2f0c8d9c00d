/* rows: the time that SQLite alone takes for the rows of a journal.
 *
 *   rows FILE COUNT BATCH
 *
 * Opens a journal of Alight that no process uses, and writes for COUNT jobs the rows
 * that Alight writes for them, BATCH jobs per transaction: the job and the ledger row
 * of its file; the job as running; the job as done, and the attempt. Prints the
 * nanoseconds that it took.
 */
#define _GNU_SOURCE
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static sqlite3 *journal;

static void check(int result, int wanted) {
    if (result == wanted) return;
    fprintf(stderr, "rows: %s\n", sqlite3_errmsg(journal));
    exit(1);
}

static void run(const char *text) { check(sqlite3_exec(journal, text, NULL, NULL, NULL), SQLITE_OK); }

static sqlite3_stmt *prepare(const char *text) {
    sqlite3_stmt *statement;
    check(sqlite3_prepare_v3(journal, text, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL), SQLITE_OK);
    return statement;
}

static void step(sqlite3_stmt *statement) {
    check(sqlite3_step(statement), SQLITE_DONE);
    sqlite3_reset(statement);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: rows FILE COUNT BATCH\n");
        return 2;
    }
    long count = atol(argv[2]), batch = atol(argv[3]);
    check(sqlite3_open(argv[1], &journal), SQLITE_OK);
    run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON");
    run("INSERT OR IGNORE INTO rules (name, selection, started, is_complete) VALUES ('rows', '', 0, 1)");
    sqlite3_stmt *known = prepare(
        "INSERT INTO ledger (rule, path, type, size, mtime, mtime_ns, ctime, ctime_ns, btime, btime_ns, device, inode,"
        " mode, uid, gid, nlink, mount, run, trust, suppressed) VALUES ((SELECT id FROM rules WHERE name = 'rows'), ?1, 'file', 1024,"
        " 1763708663, 118204511, 1763708663, 118204511, 1763708663, 118204511, 34359738369, ?2, 420, 0, 0, 1, 40, 1, 0, 0)");
    sqlite3_stmt *accept = prepare(
        "INSERT INTO jobs (id, rule, path, event, event_json, state, attempt, is_interrupted, position, created, due)"
        " VALUES (?1, 'rows', ?2, 'created', ?3, 'pending', 0, 0, ?4, ?4, ?4)");
    sqlite3_stmt *lease = prepare("UPDATE jobs SET state = 'running', attempt = 1 WHERE id = ?1");
    sqlite3_stmt *end = prepare("UPDATE jobs SET state = 'succeeded', due = NULL, ended = ?2, message = '' WHERE id = ?1");
    sqlite3_stmt *attempt = prepare(
        "INSERT INTO attempts (job, started, number, duration, outcome, message) VALUES (?1, ?2, 1, 1000, 'succeeded', '')");
    char event_json[512];
    memset(event_json, 'x', sizeof event_json);

    struct timespec begin, finish;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (long first = 0; first < count; first += batch) {
        long last = first + batch < count ? first + batch : count;
        for (int part = 0; part < 3; part++) {
            run("BEGIN IMMEDIATE");
            for (long number = first; number < last; number++) {
                char id[32], path[64];
                int length = snprintf(path, sizeof path, "/srv/drop/folder/file-%08ld.dat", number);
                snprintf(id, sizeof id, "01M7ZJ0S1N%016ld", number);
                if (part == 0) {
                    sqlite3_bind_blob(known, 1, path, length, SQLITE_TRANSIENT);
                    sqlite3_bind_int64(known, 2, number + 1);
                    step(known);
                    sqlite3_bind_text(accept, 1, id, -1, SQLITE_TRANSIENT);
                    sqlite3_bind_blob(accept, 2, path, length, SQLITE_TRANSIENT);
                    sqlite3_bind_text(accept, 3, event_json, sizeof event_json, SQLITE_STATIC);
                    sqlite3_bind_int64(accept, 4, number + 1);
                    step(accept);
                } else if (part == 1) {
                    sqlite3_bind_text(lease, 1, id, -1, SQLITE_TRANSIENT);
                    step(lease);
                } else {
                    sqlite3_bind_text(end, 1, id, -1, SQLITE_TRANSIENT);
                    sqlite3_bind_int64(end, 2, number + 1);
                    step(end);
                    sqlite3_bind_text(attempt, 1, id, -1, SQLITE_TRANSIENT);
                    sqlite3_bind_int64(attempt, 2, number + 1);
                    step(attempt);
                }
            }
            run("COMMIT");
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &finish);
    printf("%lld\n", (finish.tv_sec - begin.tv_sec) * 1000000000LL + finish.tv_nsec - begin.tv_nsec);
    return 0;
}
