/* floor: the minimal program that keeps what Alight promises for each file, and nothing else.
 *
 *   floor DIR JOURNAL MOST PROGRAM ARG…  runs PROGRAM ARG… PATH for each finished file of DIR, at most MOST at once
 *
 * For each file: an inotify event, statx, a read lease as the probe for writers, the kernel's queue read again, a
 * committed row in an SQLite journal before the start, a launcher that is the subreaper of everything the program
 * starts and gets its plan over a socket, /dev/null and two pipes for the program, an empty directory of its own, all
 * that it printed, and two rows for its outcome, of which several are committed together. A second row that is still
 * there after a crash is a start without an outcome. One thread, one flat directory, no rules, no recovery.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { CONTROL = 3, TOGETHER = 64, FEW = 4, MOST_SLOTS = 4096 };
static const int64_t brief = 2000000;

struct job {
    struct job *next;
    int64_t number;
    struct statx facts;
    int size;
    char path[];
};

struct slot {
    int control, output, error, directory;
    struct job *job;
    char scratch[4096];
};

/* What a launcher gets; the arguments before the path never change. */
struct plan {
    uint32_t size;
    char path[4096];
};

struct outcome {
    struct job *job;
    int32_t status;
    int size;
    char log[1024];
};

static char **command;
static int path_index;
static sqlite3 *journal;
static sqlite3_stmt *begin, *commit, *add_start, *end_start, *add_job, *add_row;
static struct slot slots[MOST_SLOTS];
static int most, busy, loop, queue, null_file;
static struct job *first, **last = &first;
static int64_t numbers;
static struct outcome outcomes[TOGETHER];
static int ended;
static int64_t since;
static const char *watched;

static void fail(const char *what) {
    fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

/* The launcher. */

static void become(void) {
    static struct plan plan;
    union {
        char bytes[CMSG_SPACE(4 * sizeof(int))];
        struct cmsghdr alignment;
    } rights;
    struct iovec place = {&plan, sizeof plan};
    struct msghdr message = {
        .msg_iov = &place, .msg_iovlen = 1, .msg_control = rights.bytes, .msg_controllen = sizeof rights.bytes};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setsid();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (recvmsg(CONTROL, &message, MSG_CMSG_CLOEXEC) <= 0) _exit(0);
    int files[4];
    memcpy(files, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof files);
    for (int index = 0; index < 3; index++) dup2(files[index], index);
    if (fchdir(files[3])) _exit(126);
    command[path_index] = plan.path;
    execve(command[0], command, environ);
    _exit(127);
}

static void launch(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int children = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    for (;;) {
        pid_t child = vfork();
        if (child == 0) become();
        int32_t status = 0;
        for (;;) {
            int one;
            pid_t process = waitpid(-1, &one, WNOHANG | __WALL);
            if (process < 0) break;
            if (process == child) status = one;
            if (process > 0) continue;
            struct pollfd waited[2] = {{CONTROL, POLLIN, 0}, {children, POLLIN, 0}};
            poll(waited, 2, -1);
            struct signalfd_siginfo info;
            while (read(children, &info, sizeof info) > 0) continue;
            char order;
            /* An order, or the end of the program that could give one. */
            if (waited[0].revents && recv(CONTROL, &order, 1, MSG_DONTWAIT) == 0) kill(-child, SIGKILL);
        }
        if (send(CONTROL, &status, sizeof status, MSG_NOSIGNAL) < 0) _exit(0);
    }
}

static void make_launcher(struct slot *slot) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) fail("socketpair");
    pid_t process = fork();
    if (process < 0) fail("fork");
    if (process == 0) {
        dup2(ends[1], CONTROL);
        close_range(CONTROL + 1, ~0u, 0);
        launch();
    }
    close(ends[1]);
    slot->control = ends[0];
}

/* The journal. */

static sqlite3_stmt *prepare(const char *text) {
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v3(journal, text, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL)) {
        fprintf(stderr, "floor: %s\n", sqlite3_errmsg(journal));
        exit(1);
    }
    return statement;
}

static void run(sqlite3_stmt *statement) {
    if (sqlite3_step(statement) != SQLITE_DONE) {
        fprintf(stderr, "floor: %s\n", sqlite3_errmsg(journal));
        exit(1);
    }
    sqlite3_reset(statement);
}

static void open_journal(const char *path) {
    static const char set_up[] =
        "PRAGMA secure_delete = OFF; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -2048;"
        "PRAGMA journal_size_limit = 16777216; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;"
        "CREATE TABLE starts (number INTEGER PRIMARY KEY, path BLOB NOT NULL) STRICT;"
        "CREATE TABLE jobs (number INTEGER PRIMARY KEY, path BLOB, started INTEGER, status INTEGER, log TEXT) STRICT;"
        "CREATE TABLE ledger (path BLOB PRIMARY KEY, size INTEGER, mtime INTEGER, ctime INTEGER, inode INTEGER,"
        "  number INTEGER) STRICT, WITHOUT ROWID;";
    if (sqlite3_open(path, &journal) || sqlite3_exec(journal, set_up, NULL, NULL, NULL)) {
        fprintf(stderr, "floor: %s\n", sqlite3_errmsg(journal));
        exit(1);
    }
    sqlite3_wal_autocheckpoint(journal, 3500);
    begin = prepare("BEGIN IMMEDIATE");
    commit = prepare("COMMIT");
    add_start = prepare("INSERT INTO starts VALUES (?, ?)");
    end_start = prepare("DELETE FROM starts WHERE number = ?");
    add_job = prepare("INSERT INTO jobs VALUES (?, ?, ?, ?, ?)");
    add_row = prepare("INSERT OR REPLACE INTO ledger VALUES (?, ?, ?, ?, ?, ?)");
}

static void record_outcomes(void) {
    char lines[TOGETHER * 512];
    size_t size = 0;
    run(begin);
    for (int index = 0; index < ended; index++) {
        struct outcome *outcome = &outcomes[index];
        struct job *job = outcome->job;
        sqlite3_bind_int64(end_start, 1, job->number);
        run(end_start);
        sqlite3_bind_int64(add_job, 1, job->number);
        sqlite3_bind_blob(add_job, 2, job->path, job->size, SQLITE_STATIC);
        sqlite3_bind_int64(add_job, 3, now());
        sqlite3_bind_int(add_job, 4, outcome->status);
        sqlite3_bind_text(add_job, 5, outcome->log, outcome->size, SQLITE_STATIC);
        run(add_job);
        sqlite3_bind_blob(add_row, 1, job->path, job->size, SQLITE_STATIC);
        sqlite3_bind_int64(add_row, 2, job->facts.stx_size);
        sqlite3_bind_int64(add_row, 3, job->facts.stx_mtime.tv_sec * 1000000000 + job->facts.stx_mtime.tv_nsec);
        sqlite3_bind_int64(add_row, 4, job->facts.stx_ctime.tv_sec * 1000000000 + job->facts.stx_ctime.tv_nsec);
        sqlite3_bind_int64(add_row, 5, job->facts.stx_ino);
        sqlite3_bind_int64(add_row, 6, job->number);
        run(add_row);
        size += snprintf(
            lines + size, 512, "%lld %s %.400s\n", (long long)job->number, outcome->status ? "failed" : "succeeded",
            job->path);
        free(job);
    }
    run(commit);
    if (write(1, lines, size) < 0) exit(1);
    ended = 0;
}

/* The files. */

static void read_queue(void) {
    static char events[1 << 16] __attribute__((aligned(8)));
    for (ssize_t size; (size = read(queue, events, sizeof events)) > 0;) {
        for (char *at = events; at < events + size;) {
            const struct inotify_event *event = (void *)at;
            at += sizeof *event + event->len;
            if (event->mask & IN_Q_OVERFLOW) fail("overflow");
            if (event->mask & IN_ISDIR || !event->len) continue;
            struct job *job = malloc(sizeof *job + strlen(watched) + event->len + 2);
            if (!job) fail("malloc");
            job->next = NULL;
            job->number = ++numbers;
            job->size = sprintf(job->path, "%s/%s", watched, event->name);
            *last = job;
            last = &job->next;
        }
        if (size < (ssize_t)sizeof events / 2) break;
    }
}

/* Whether it is a regular file that no process writes to. */
static int is_finished(struct job *job) {
    if (statx(AT_FDCWD, job->path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &job->facts)) return 0;
    int file = S_ISREG(job->facts.stx_mode) ? open(job->path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (file < 0) return 0;
    int error = EAGAIN;
    fcntl(file, F_SETSIG, SIGURG);
    for (int tries = 0; error == EAGAIN && tries < 16; tries++) error = fcntl(file, F_SETLEASE, F_RDLCK) ? errno : 0;
    close(file);
    return error == 0;
}

static void send_plan(struct slot *slot) {
    struct plan plan = {.size = slot->job->size};
    memcpy(plan.path, slot->job->path, slot->job->size + 1);
    int output[2], error[2];
    if (pipe2(output, O_CLOEXEC) || pipe2(error, O_CLOEXEC)) fail("pipe2");
    fcntl(output[0], F_SETFL, O_NONBLOCK);
    fcntl(error[0], F_SETFL, O_NONBLOCK);
    int files[4] = {null_file, output[1], error[1], slot->directory};
    union {
        char bytes[CMSG_SPACE(sizeof files)];
        struct cmsghdr alignment;
    } rights = {{0}};
    struct iovec place = {&plan, offsetof(struct plan, path) + plan.size + 1};
    struct msghdr message = {
        .msg_iov = &place, .msg_iovlen = 1, .msg_control = rights.bytes, .msg_controllen = sizeof rights.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof files);
    memcpy(CMSG_DATA(header), files, sizeof files);
    if (sendmsg(slot->control, &message, MSG_NOSIGNAL) < 0) fail("sendmsg");
    close(output[1]);
    close(error[1]);
    slot->output = output[0];
    slot->error = error[0];
}

/* Starts as many as may run: one commit for all of them, and then their plans. */
static void start_jobs(void) {
    struct slot *starting[MOST_SLOTS];
    int count = 0;
    for (int index = 0; index < most && first; index++) {
        struct slot *slot = &slots[index];
        while (first && !slot->job) {
            struct job *job = first;
            first = job->next;
            if (!first) last = &first;
            if (is_finished(job)) slot->job = job; else free(job);
        }
        if (slot->job && slot->output < 0) starting[count++] = slot;
    }
    if (!count) return;
    read_queue();
    run(begin);
    for (int index = 0; index < count; index++) {
        struct job *job = starting[index]->job;
        sqlite3_bind_int64(add_start, 1, job->number);
        sqlite3_bind_blob(add_start, 2, job->path, job->size, SQLITE_STATIC);
        run(add_start);
    }
    run(commit);
    for (int index = 0; index < count; index++) send_plan(starting[index]);
    busy += count;
}

static void read_all(int file, struct outcome *outcome) {
    for (ssize_t size; (size = read(file, outcome->log + outcome->size, sizeof outcome->log - outcome->size)) > 0;) {
        outcome->size += size;
        if (outcome->size == sizeof outcome->log) break;
    }
    close(file);
}

static void end_job(struct slot *slot) {
    struct outcome *outcome = &outcomes[ended];
    outcome->size = 0;
    outcome->job = slot->job;
    if (recv(slot->control, &outcome->status, sizeof outcome->status, 0) != sizeof outcome->status) fail("launcher");
    read_all(slot->output, outcome);
    read_all(slot->error, outcome);
    /* The directory is used again if it is still empty. */
    char entries[1024];
    lseek(slot->directory, 0, SEEK_SET);
    if (getdents64(slot->directory, entries, sizeof entries) > 64) fail("the directory is not empty");
    slot->output = slot->error = -1;
    slot->job = NULL;
    busy--;
    if (ended++ == 0) since = now();
    if (ended == TOGETHER) record_outcomes();
}

int main(int arguments, char **argument) {
    if (arguments < 5) {
        fprintf(stderr, "usage: floor DIR JOURNAL MOST PROGRAM ARG…\n");
        return 64;
    }
    watched = argument[1];
    most = atoi(argument[3]);
    if (most < 1 || most > MOST_SLOTS) return 64;
    path_index = arguments - 4;
    command = calloc(path_index + 2, sizeof *command);
    memcpy(command, argument + 4, path_index * sizeof *command);
    for (int index = 0; index < most; index++) {
        struct slot *slot = &slots[index];
        slot->output = slot->error = -1;
        snprintf(slot->scratch, sizeof slot->scratch, "%s-%d", argument[2], index);
        make_launcher(slot);
        if (mkdir(slot->scratch, 0700) && errno != EEXIST) fail(slot->scratch);
        slot->directory = open(slot->scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (slot->directory < 0) fail(slot->scratch);
    }
    open_journal(argument[2]);
    null_file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    loop = epoll_create1(EPOLL_CLOEXEC);
    queue = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (queue < 0 || inotify_add_watch(queue, watched, IN_CLOSE_WRITE | IN_MOVED_TO) < 0) fail(watched);
    struct epoll_event entry = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(loop, EPOLL_CTL_ADD, queue, &entry);
    for (int index = 0; index < most; index++) {
        entry.data.ptr = &slots[index];
        epoll_ctl(loop, EPOLL_CTL_ADD, slots[index].control, &entry);
    }
    dprintf(2, "ready: watching\n");
    for (;;) {
        struct epoll_event ready[64];
        int count = epoll_wait(loop, ready, 64, ended ? 2 : -1);
        for (int index = 0; index < count; index++) {
            if (ready[index].data.ptr) end_job(ready[index].data.ptr); else read_queue();
        }
        start_jobs();
        int is_rest = busy == 0 && !first;
        if (ended && (is_rest || (ended >= FEW && now() - since >= brief))) record_outcomes();
    }
}
