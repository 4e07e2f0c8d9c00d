/* runner: the minimal program that runs another one for each finished file of a tree.
 *
 *   runner DIR 0                  only writes a line on standard output for each
 *   runner DIR MOST PROGRAM ARG…  runs PROGRAM ARG… PATH for each, at most MOST at once
 *
 * A file is finished when it was closed after writing, or moved in. Plain inotify, vfork(2) and execve(2), one thread.
 * It has no rules, does not check for other writers and stores nothing: it is a lower bound, not an alternative. New
 * directories are watched, then listed; a file of such a listing is not run again for the event of the same write.
 * After an overflow of the queue everything is listed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct folder {
    char *path;
    int appeared; /* whether its files may have been found by a listing */
};

struct job {
    struct job *next;
    char path[];
};

static int queue;
static struct folder *folders;
static int capacity;
static struct job *first, **last = &first;
static int running, most;
static char **command;
static int path_index;
/* The files of listings: hashes of path, inode, size and time. A collision loses a run, which is acceptable here. */
static uint64_t found[1 << 18];

static void fail(const char *what) {
    fprintf(stderr, "runner: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void add_job(const char *folder, const char *name) {
    size_t size = strlen(folder) + strlen(name) + 2;
    struct job *job = malloc(sizeof *job + size);
    if (!job) fail("malloc");
    job->next = NULL;
    snprintf(job->path, size, "%s/%s", folder, name);
    *last = job;
    last = &job->next;
}

/* Whether this state of the file is new. */
static int is_new(const char *folder, const char *name) {
    char path[8192];
    struct stat facts;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (lstat(path, &facts) || !S_ISREG(facts.st_mode)) return 0;
    uint64_t hash = 5381;
    for (const char *at = path; *at; at++) hash = hash * 33 ^ (unsigned char)*at;
    uint64_t parts[] = {facts.st_ino, facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec};
    for (int index = 0; index < 4; index++) hash = (hash ^ parts[index]) * 0x9E3779B97F4A7C15u;
    uint64_t *slot = &found[hash >> 46];
    if (*slot == hash) return 0;
    *slot = hash;
    return 1;
}

/* Watches the directory and everything below; with `appeared`, its files are finished. */
static void watch(const char *path, int appeared) {
    int descriptor = inotify_add_watch(
        queue, path, IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ONLYDIR | IN_DONT_FOLLOW);
    if (descriptor < 0) {
        if (errno == ENOSPC) fail(path);
        return;
    }
    if (descriptor >= capacity) {
        int before = capacity;
        capacity = descriptor * 2 + 1024;
        folders = realloc(folders, capacity * sizeof *folders);
        if (!folders) fail("realloc");
        memset(folders + before, 0, (capacity - before) * sizeof *folders);
    }
    free(folders[descriptor].path);
    folders[descriptor] = (struct folder){strdup(path), appeared};
    DIR *folder = opendir(path);
    if (!folder) return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        if (entry->d_type == DT_DIR) {
            char below[8192];
            snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
            watch(below, appeared);
        } else if (appeared && is_new(path, entry->d_name)) {
            add_job(path, entry->d_name);
        }
    }
    closedir(folder);
}

static void start_jobs(void) {
    while (first && (most == 0 || running < most)) {
        struct job *job = first;
        first = job->next;
        if (!first) last = &first;
        if (most == 0) {
            size_t length = strlen(job->path);
            job->path[length] = '\n';
            if (write(1, job->path, length + 1) < 0) fail("standard output");
        } else {
            command[path_index] = job->path;
            pid_t child = vfork();
            if (child == 0) {
                execve(command[0], command, environ);
                _exit(127);
            }
            if (child < 0) fail("vfork");
            running++;
        }
        free(job);
    }
}

static void take(const struct inotify_event *event, const char *root) {
    if (event->mask & IN_Q_OVERFLOW) {
        fprintf(stderr, "overflow\n");
        watch(root, 1);
        return;
    }
    if (event->mask & IN_IGNORED || !event->len) return;
    struct folder *folder = &folders[event->wd];
    if (event->mask & IN_ISDIR) {
        if (!(event->mask & (IN_CREATE | IN_MOVED_TO))) return;
        char path[8192];
        snprintf(path, sizeof path, "%s/%s", folder->path, event->name);
        watch(path, 1);
    } else if (event->mask & (IN_CLOSE_WRITE | IN_MOVED_TO)) {
        if (!folder->appeared || is_new(folder->path, event->name)) add_job(folder->path, event->name);
    }
}

int main(int arguments, char **argument) {
    if (arguments < 3 || (atoi(argument[2]) > 0 && arguments < 4)) {
        fprintf(stderr, "usage: runner DIR 0\n       runner DIR MOST PROGRAM ARG…\n");
        return 64;
    }
    most = atoi(argument[2]);
    path_index = arguments - 3;
    command = calloc(arguments, sizeof *command);
    memcpy(command, argument + 3, path_index * sizeof *command);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    int children = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    queue = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (queue < 0 || children < 0) fail("inotify_init1");
    watch(argument[1], 0);
    dprintf(2, "ready: watching\n");

    struct pollfd waited[2] = {{queue, POLLIN, 0}, {children, POLLIN, 0}};
    static char events[1 << 16] __attribute__((aligned(8)));
    for (;;) {
        poll(waited, 2, -1);
        struct signalfd_siginfo ended;
        while (read(children, &ended, sizeof ended) > 0) continue;
        while (running > 0 && waitpid(-1, NULL, WNOHANG) > 0) running--;
        for (ssize_t size; (size = read(queue, events, sizeof events)) > 0;) {
            for (char *at = events; at < events + size;) {
                const struct inotify_event *event = (void *)at;
                at += sizeof *event + event->len;
                take(event, argument[1]);
            }
        }
        start_jobs();
    }
}
