/* arrive: creates files, and prints for each the time just before its close.
 *
 *   arrive files DIR COUNT GAP_US SIZE PREFIX  COUNT files in DIR, one per GAP_US, or as fast as possible for 0
 *   arrive deep DIR COUNT PREFIX               COUNT directories with three nested ones, a file in the innermost
 *
 * Prints a line for each file, its name and the time in ns of CLOCK_MONOTONIC, after all have been created.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static uint64_t *times;

static void fail(const char *what) {
    fprintf(stderr, "arrive: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t nanoseconds(struct timespec time) {
    return (uint64_t)time.tv_sec * 1000000000u + time.tv_nsec;
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return nanoseconds(time);
}

static void put(int folder, const char *name, const char *content, int size, uint64_t *time) {
    int file = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0 || write(file, content, size) != size) fail(name);
    *time = now();
    close(file);
}

static void files(int folder, int count, uint64_t gap, int size, const char *prefix) {
    char name[64], *content = malloc(size + 1);
    memset(content, 'x', size + 1);
    uint64_t next = now();
    for (int index = 0; index < count; index++) {
        snprintf(name, sizeof name, "%s%06d", prefix, index);
        put(folder, name, content, size, &times[index]);
        if (!gap) continue;
        next += gap;
        struct timespec until = {next / 1000000000u, next % 1000000000u};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
}

static void deep(int folder, int count, const char *prefix) {
    char path[256];
    for (int index = 0; index < count; index++) {
        int length = snprintf(path, sizeof path, "%sfolder%06d", prefix, index);
        if (mkdirat(folder, path, 0755)) fail(path);
        for (int level = 0; level < 3; level++) {
            length += snprintf(path + length, sizeof path - length, "/%d", level);
            if (mkdirat(folder, path, 0755)) fail(path);
        }
        snprintf(path + length, sizeof path - length, "/%s%06d", prefix, index);
        put(folder, path, "x\n", 2, &times[index]);
    }
}

int main(int arguments, char **argument) {
    int is_deep = arguments == 5 && !strcmp(argument[1], "deep");
    if (!is_deep && (arguments != 7 || strcmp(argument[1], "files"))) {
        fprintf(stderr, "usage: arrive files DIR COUNT GAP_US SIZE PREFIX\n       arrive deep DIR COUNT PREFIX\n");
        return 64;
    }
    int folder = open(argument[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC), count = atoi(argument[3]);
    const char *prefix = argument[arguments - 1];
    if (folder < 0) fail(argument[2]);
    times = calloc(count + 1, sizeof *times);
    if (is_deep) deep(folder, count, prefix);
    else files(folder, count, atol(argument[4]) * 1000, atoi(argument[5]), prefix);
    for (int index = 0; index < count; index++) printf("%s%06d %lu\n", prefix, index, times[index]);
    return 0;
}
