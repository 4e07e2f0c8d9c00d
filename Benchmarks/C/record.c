/* record: the action of every system. It records its start time, the file, and the size of the file.
 *
 *   record each LOG PATH…         one record for each path
 *   record request LOG            one for each event of the request on standard input
 *   record request LOG run|serve  the same as a plugin, with responses
 *   record lines LOG              one for each line of standard input, at the time when it can be read
 *
 * LOG is opened for appending and written by one write(2), so that the records of concurrent processes do not mix.
 * Linked statically, so that it starts as fast as possible. A line names its file after its last slash.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* As measuring/records.py reads it. */
struct record {
    uint64_t time; /* CLOCK_MONOTONIC, in ns */
    int64_t size;  /* -1: the file does not exist */
    uint32_t process;
    uint32_t length;
    char name[72];
};

static struct record records[4096];
static int count;
static int log_file;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + time.tv_nsec;
}

static void flush_records(void) {
    ssize_t size = count * sizeof *records;
    if (count > 0 && write(log_file, records, size) != size) exit(74);
    count = 0;
}

static void add(uint64_t time, const char *path, int looks) {
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    struct record *record = &records[count++];
    struct stat facts;
    memset(record, 0, sizeof *record);
    record->time = time;
    record->size = looks && lstat(path, &facts) == 0 ? facts.st_size : -1;
    record->process = getpid();
    record->length = strnlen(name, sizeof record->name);
    memcpy(record->name, name, record->length);
    if (count == sizeof records / sizeof *records) flush_records();
}

/* The paths of a request; those of a benchmark have no character that JSON escapes except the slash. */
static void add_events(uint64_t time, char *text) {
    static const char key[] = "\"path\":\"";
    for (char *at = text; (at = strstr(at, key));) {
        char path[4096], *end = path;
        for (at += sizeof key - 1; *at && *at != '"' && end < path + sizeof path - 1; at++) {
            if (*at != '\\') *end++ = *at;
        }
        *end = 0;
        add(time, path, 1);
    }
    flush_records();
}

static void lines(void) {
    static char buffer[1 << 16];
    size_t end = 0;
    for (ssize_t size; (size = read(0, buffer + end, sizeof buffer - 1 - end)) > 0;) {
        uint64_t time = now();
        end += size;
        char *start = buffer;
        for (char *stop; (stop = memchr(start, '\n', buffer + end - start)); start = stop + 1) {
            *stop = 0;
            add(time, start, 0);
        }
        flush_records();
        end -= start - buffer;
        memmove(buffer, start, end);
        if (end == sizeof buffer - 1) end = 0;
    }
}

static void serve(void) {
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, stdin) > 0) {
        uint64_t time = now();
        if (strstr(line, "\"type\":\"hello\"")) {
            puts("{\"type\":\"ready\",\"protocol\":1,\"concurrent\":8}");
        } else if (strstr(line, "\"type\":\"ping\"")) {
            char *number = strstr(line, "\"n\":");
            printf("{\"type\":\"pong\",\"n\":%d}\n", number ? atoi(number + 4) : 0);
        } else if (strstr(line, "\"type\":\"run\"")) {
            /* The members of a request are in alphabetical order: this id is not that of an event. */
            char *id = strstr(line, "],\"id\":\""), *attempt = strstr(line, "\"attempt\":");
            if (!id || !attempt) exit(65);
            add_events(time, line);
            id += 8;
            printf("{\"type\":\"result\",\"id\":\"%.*s\",\"attempt\":%d,\"outcome\":\"succeeded\"}\n",
                (int)strcspn(id, "\""), id, atoi(attempt + 10));
        }
        fflush(stdout);
    }
}

int main(int arguments, char **argument) {
    uint64_t time = now();
    if (arguments < 3) {
        fprintf(stderr, "usage: record each|request|lines LOG …\n");
        return 64;
    }
    const char *task = argument[1], *verb = arguments > 3 ? argument[3] : "";
    log_file = open(argument[2], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (log_file < 0) {
        perror(argument[2]);
        return 74;
    }
    if (!strcmp(task, "each")) {
        for (int index = 3; index < arguments; index++) add(time, argument[index], 1);
        flush_records();
    } else if (!strcmp(task, "lines")) {
        lines();
    } else if (!strcmp(task, "request") && !strcmp(verb, "serve")) {
        serve();
    } else if (!strcmp(task, "request")) {
        char *line = NULL;
        size_t size = 0;
        if (getline(&line, &size, stdin) < 0) return 65;
        add_events(time, line);
        if (!strcmp(verb, "run")) puts("{\"outcome\":\"succeeded\"}");
    } else {
        return 64;
    }
    return 0;
}
