/* reference: the minimal program that watches a tree.
 *
 *   reference lines DIR   a line on standard output for each file that was closed after writing, or moved in
 *   reference count DIR   only reads; a line only for files whose names start with "sentinel"
 *   reference stat DIR    as lines, and calls stat for each file of the first listing
 *
 * It prints "ready: watching N folders" on standard error when every directory has a
 * watch. It has no rules, no settle time and no record of files, and does not repeat
 * lines: it is a lower bound, not an alternative. New directories are not watched.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct record {
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

/* The mask of the measured program, so that both receive the same events. */
static const uint32_t mask = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO
    | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

static int queue;
static int looks;
static char **folders;
static int capacity;
static long count;

static void fail(const char *what) {
    fprintf(stderr, "reference: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void watch(const char *path) {
    int descriptor = inotify_add_watch(queue, path, mask);
    if (descriptor < 0) fail(path);
    if (descriptor >= capacity) {
        capacity = descriptor * 2 + 1024;
        folders = realloc(folders, capacity * sizeof *folders);
        if (!folders) fail("realloc");
    }
    folders[descriptor] = strdup(path);
    count++;
}

/* Watches the directory at `path`, which is `name` in `parent`, then lists it; the buffer of `path` has spare capacity. */
static void list(int parent, const char *name, char *path, size_t length) {
    watch(path);
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) fail(path);
    char records[32768] __attribute__((aligned(8)));
    for (long size; (size = syscall(SYS_getdents64, folder, records, sizeof records)) > 0;) {
        for (char *at = records; at < records + size; at += ((struct record *)at)->length) {
            struct record *entry = (void *)at;
            if (entry->name[0] == '.' && (!entry->name[1] || (entry->name[1] == '.' && !entry->name[2]))) continue;
            if (entry->type == 4 /* a directory */) {
                size_t more = strlen(entry->name);
                path[length] = '/';
                memcpy(path + length + 1, entry->name, more + 1);
                list(folder, entry->name, path, length + 1 + more);
                path[length] = 0;
            } else if (looks) {
                struct statx facts;
                statx(folder, entry->name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &facts);
            }
        }
    }
    close(folder);
}

int main(int arguments, char **argument) {
    if (arguments != 3) {
        fprintf(stderr, "usage: reference lines|count|stat DIR\n");
        return 64;
    }
    int counts = !strcmp(argument[1], "count");
    looks = !strcmp(argument[1], "stat");
    queue = inotify_init1(IN_CLOEXEC);
    if (queue < 0) fail("inotify_init1");
    static char path[65536];
    strcpy(path, argument[2]);
    list(AT_FDCWD, path, path, strlen(path));
    dprintf(2, "ready: watching %ld folders\n", count);

    static char events[65536] __attribute__((aligned(8)));
    static char line[8192];
    for (ssize_t size; (size = read(queue, events, sizeof events)) > 0;) {
        for (char *at = events; at < events + size;) {
            struct inotify_event *event = (void *)at;
            at += sizeof *event + event->len;
            if (event->mask & IN_Q_OVERFLOW) dprintf(2, "overflow\n");
            if (!(event->mask & (IN_CLOSE_WRITE | IN_MOVED_TO)) || !event->len) continue;
            if (counts && strncmp(event->name, "sentinel", 8)) continue;
            int length = snprintf(line, sizeof line, "%s/%s\n", folders[event->wd], event->name);
            if (write(1, line, length) < 0) return 1;
        }
    }
    return 0;
}
