/* load: changes files, and measures the time until a watching program reports it.
 *
 *   load tree DIR DIRECTORIES FILES  creates DIRECTORIES directories, in groups of a hundred, with FILES in each
 *   load latency DIR COUNT GAP_US    one file after the other; prints median, 99th percentile and maximum in ns
 *   load storm DIR FILES WRITES      WRITES short writes to FILES files; prints ns of writing, ns until reported
 *   load backlog DIR FILES WRITES PID  the same while PID is stopped; prints ns from SIGCONT until all were reported
 *   load drop DIR COUNT PAUSE        COUNT files at once; prints ns until all were reported, their number, and duplicates
 *   load pending DIR COUNT BATCH     COUNT files, BATCH at a time, each batch reported before the next; prints ns
 *
 * Standard input is the output of the watching program: a line for each file, which
 * contains the file's name. The line of a last file, sentinel…, shows that all have
 * been reported, because it follows all earlier events of the kernel. Times are CLOCK_MONOTONIC.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The time in ms without a line after which the run has failed. */
static const int timeout = 120000;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + time.tv_nsec;
}

static void fail(const char *what) {
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* Creates the file, or appends to it, and closes it; returns the time before the close. */
static uint64_t put(int folder, const char *name, int flags) {
    int file = openat(folder, name, O_WRONLY | O_CLOEXEC | flags, 0644);
    if (file < 0 || write(file, "x\n", 2) != 2) fail(name);
    uint64_t time = now();
    close(file);
    return time;
}

/* Returns the next line of standard input, without its newline; NULL if none arrives for `limit` ms. */
static char *next_line(int limit) {
    static char buffer[1 << 16];
    static size_t start, end;
    for (;;) {
        char *stop = memchr(buffer + start, '\n', end - start);
        if (stop) {
            char *line = buffer + start;
            *stop = 0;
            start = stop + 1 - buffer;
            return line;
        }
        memmove(buffer, buffer + start, end - start);
        end -= start;
        start = 0;
        if (end == sizeof buffer) end = 0;
        struct pollfd input = {0, POLLIN, 0};
        if (poll(&input, 1, limit) <= 0) return NULL;
        ssize_t size = read(0, buffer + end, sizeof buffer - end);
        if (size <= 0) return NULL;
        end += size;
    }
}

/* Waits for a line that names the file, and returns the time. */
static uint64_t await(const char *name) {
    for (char *line; (line = next_line(timeout));)
        if (strstr(line, name)) return now();
    errno = ETIMEDOUT;
    fail(name);
    return 0;
}

static int compare(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static void tree(int root, long folders, long files) {
    char name[64];
    int group = -1;
    for (long index = 0; index < folders; index++) {
        if (index % 100 == 0) {
            /* The group is one of the directories. */
            snprintf(name, sizeof name, "g%06ld", index / 100);
            if (mkdirat(root, name, 0755)) fail(name);
            if (group >= 0) close(group);
            group = openat(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            snprintf(name, sizeof name, ".");
        } else {
            snprintf(name, sizeof name, "d%02ld", index % 100);
            if (mkdirat(group, name, 0755)) fail(name);
        }
        int folder = openat(group, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (long file = 0; file < files; file++) {
            snprintf(name, sizeof name, "f%06ld.dat", file);
            int made = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
            if (made < 0) fail(name);
            close(made);
        }
        close(folder);
    }
}

static void latency(int folder, int count, int gap) {
    uint64_t *times = calloc(count, sizeof *times);
    char name[64];
    for (int index = 0; index < count; index++) {
        usleep(gap);
        snprintf(name, sizeof name, "one%06d.dat", index);
        uint64_t start = put(folder, name, O_CREAT);
        times[index] = await(name) - start;
    }
    qsort(times, count, sizeof *times, compare);
    printf("%lu %lu %lu\n", times[count / 2], times[count * 99 / 100], times[count - 1]);
}

static void write_all(int folder, int files, int writes) {
    char name[64];
    for (int index = 0; index < writes; index++) {
        snprintf(name, sizeof name, "storm%06d.dat", index % files);
        put(folder, name, O_APPEND);
    }
}

static void make_all(int folder, int files) {
    char name[64];
    for (int index = 0; index < files; index++) {
        snprintf(name, sizeof name, "storm%06d.dat", index);
        put(folder, name, O_CREAT);
    }
    put(folder, "sentinel-made", O_CREAT);
    await("sentinel-made");
}

static void storm(int folder, int files, int writes) {
    make_all(folder, files);
    uint64_t start = now();
    write_all(folder, files, writes);
    uint64_t written = now();
    put(folder, "sentinel-seen", O_CREAT);
    uint64_t seen = await("sentinel-seen");
    printf("%lu %lu\n", written - start, seen - start);
}

/* Whether all threads of the process are stopped. */
static int is_stopped(int process) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (size <= 0) fail(path);
    close(file);
    text[size] = 0;
    char *end = strrchr(text, ')');
    return end && end[2] == 'T';
}

static void backlog(int folder, int files, int writes, int process) {
    make_all(folder, files);
    kill(process, SIGSTOP);
    while (!is_stopped(process)) usleep(1000);
    usleep(20000);
    write_all(folder, files, writes);
    put(folder, "sentinel-seen", O_CREAT);
    uint64_t start = now();
    kill(process, SIGCONT);
    printf("%lu\n", await("sentinel-seen") - start);
}

static int expected;
static int pause_limit;
static long seen, twice;
static uint64_t last;

/* Counts the lines while the files are being created, since a full pipe would block the program. */
static void *count_lines(void *unused) {
    char *known = calloc(expected, 1);
    for (char *line; (line = next_line(seen < expected ? timeout / 8 : pause_limit));) {
        char *name = strstr(line, "drop");
        int index = name ? atoi(name + 4) : -1;
        if (index < 0 || index >= expected) continue;
        if (known[index]++) twice++;
        else {
            seen++;
            last = now();
        }
    }
    return unused;
}

static void drop(int folder, int count, int pause) {
    char name[64];
    expected = count;
    pause_limit = pause;
    pthread_t reader;
    if (pthread_create(&reader, NULL, count_lines, NULL)) fail("pthread_create");
    uint64_t start = now();
    for (int index = 0; index < count; index++) {
        snprintf(name, sizeof name, "drop%06d.dat", index);
        put(folder, name, O_CREAT);
    }
    pthread_join(reader, NULL);
    printf("%lu %ld %ld\n", last - start, seen, twice);
}

static void pending(int folder, int count, int batch) {
    char name[64];
    uint64_t start = now();
    for (int index = 0; index < count; index++) {
        snprintf(name, sizeof name, "pending%06d.dat", index);
        put(folder, name, O_CREAT);
        if ((index + 1) % batch && index + 1 < count) continue;
        snprintf(name, sizeof name, "sentinel-%06d", index);
        put(folder, name, O_CREAT);
        await(name);
    }
    printf("%lu\n", now() - start);
}

int main(int arguments, char **argument) {
    if (arguments < 4) {
        fprintf(stderr, "usage: load tree|latency|storm|backlog|drop|pending DIR NUMBER…\n");
        return 64;
    }
    const char *task = argument[1];
    int folder = open(argument[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) fail(argument[2]);
    int first = atoi(argument[3]), second = arguments > 4 ? atoi(argument[4]) : 0;
    int third = arguments > 5 ? atoi(argument[5]) : 0;
    if (!strcmp(task, "tree")) tree(folder, first, second);
    else if (!strcmp(task, "latency")) latency(folder, first, second);
    else if (!strcmp(task, "storm")) storm(folder, first, second);
    else if (!strcmp(task, "backlog")) backlog(folder, first, second, third);
    else if (!strcmp(task, "drop")) drop(folder, first, second);
    else if (!strcmp(task, "pending")) pending(folder, first, second);
    else return 64;
    return 0;
}
