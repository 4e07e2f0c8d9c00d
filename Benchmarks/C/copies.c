/* copies: the time that copying small files takes with the promises of `copy`.
 *
 *   copies SOURCE TARGET THREADS GROUP [loose]
 *
 * Copies the files of SOURCE into TARGET, on THREADS threads that take GROUP files each in turn. No file is
 * visible under its name before it is complete; no file is replaced; a file that changes meanwhile is not copied;
 * mode, times and attributes are preserved; directories are opened once. The files of a group are flushed together
 * before they get their names, and then their names are; with `loose`, neither is. Files of more than 64 KiB are
 * refused. Prints the nanoseconds that it took.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { LARGEST = 1 << 16, LARGEST_GROUP = 1024 };

static int source, target, is_durable = 1;
static long group, count;
static char **names;
static atomic_long next;

static long check(long result, const char *name) {
    if (result >= 0) return result;
    fprintf(stderr, "copies: %s: %m\n", name);
    exit(1);
}

static int is_unchanged(const struct stat *then, const struct stat *now) {
    return then->st_ino == now->st_ino && then->st_size == now->st_size
        && memcmp(&then->st_mtim, &now->st_mtim, sizeof now->st_mtim) == 0
        && memcmp(&then->st_ctim, &now->st_ctim, sizeof now->st_ctim) == 0;
}

/* Returns a copy without a name. */
static int copy(const char *name, char *buffer) {
    int from = check(openat(source, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), name);
    struct stat then, now, made;
    check(fstat(from, &then), name);
    mode_t mode = then.st_mode & 0777;
    int to = check(openat(target, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode), name);
    check(flock(to, LOCK_SH | LOCK_NB), name);
    ssize_t size = check(pread(from, buffer, LARGEST, 0), name);
    if (size != then.st_size || pwrite(to, buffer, size, 0) != size) check(-1, name);
    if (flistxattr(from, NULL, 0) > 0) check(-1, name);
    check(fstat(to, &made), name);
    if ((made.st_mode & 07777) != mode) check(fchmod(to, mode), name);
    struct timespec times[2] = {then.st_atim, then.st_mtim};
    check(futimens(to, times), name);
    check(fstat(from, &now), name);
    if (!is_unchanged(&then, &now)) check(-1, name);
    close(from);
    return to;
}

/* Names a copy by a rename, which watchers of the directory receive as a complete file. */
static void publish(int copy, const char *name, long number) {
    char hidden[300], path[64];
    snprintf(hidden, sizeof hidden, ".%s.%013ld.alight-tmp", name, number);
    snprintf(path, sizeof path, "/proc/self/fd/%d", copy);
    check(linkat(AT_FDCWD, path, target, hidden, AT_SYMLINK_FOLLOW), name);
    close(copy);
    check(renameat2(target, hidden, target, name, RENAME_NOREPLACE), name);
}

static void *work(void *unused) {
    (void)unused;
    char *buffer = malloc(LARGEST);
    int copies[LARGEST_GROUP];
    for (long first; (first = atomic_fetch_add(&next, group)) < count;) {
        long last = first + group < count ? first + group : count;
        for (long number = first; number < last; number++) copies[number - first] = copy(names[number], buffer);
        if (is_durable) check(syncfs(copies[0]), "syncfs");
        for (long number = first; number < last; number++) publish(copies[number - first], names[number], number);
        if (!is_durable) continue;
        int directory = check(openat(target, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "target");
        check(fsync(directory), "target");
        close(directory);
    }
    free(buffer);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: copies SOURCE TARGET THREADS GROUP [loose]\n");
        return 2;
    }
    int threads = atoi(argv[3]);
    group = atol(argv[4]);
    if (threads < 1 || threads > 64 || group < 1 || group > LARGEST_GROUP) return 2;
    is_durable = argc < 6 || strcmp(argv[5], "loose") != 0;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    source = check(open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC), argv[1]);
    target = check(open(argv[2], O_PATH | O_DIRECTORY | O_CLOEXEC), argv[2]);
    DIR *directory = fdopendir(source);
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_type != DT_REG) continue;
        if (count % 1024 == 0) names = realloc(names, (count + 1024) * sizeof *names);
        names[count++] = strdup(entry->d_name);
    }
    pthread_t running[64];
    for (int number = 0; number < threads; number++) pthread_create(&running[number], NULL, work, NULL);
    for (int number = 0; number < threads; number++) pthread_join(running[number], NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%lld\n", (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec);
    return 0;
}
