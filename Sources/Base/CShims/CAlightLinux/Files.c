#define _GNU_SOURCE
#include "CAlightLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static int flags_of(enum cal_opening what) {
    switch (what) {
    case CAL_OPEN_DIRECTORY: return O_PATH | O_DIRECTORY | O_CLOEXEC;
    case CAL_OPEN_ENTRY: return O_PATH | O_NOFOLLOW | O_CLOEXEC;
    case CAL_OPEN_LISTING: return O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    case CAL_OPEN_LISTING_QUIETLY: return flags_of(CAL_OPEN_LISTING) | O_NOATIME;
    case CAL_OPEN_TARGET: return O_PATH | O_CLOEXEC;
    default: return O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    }
}

int cal_is_distrustful(void) {
    static _Atomic int cached = -1;
    if (cached >= 0) return cached;
    if (geteuid() != 0) return cached = 0;
    struct stat top;
    unsigned long inside, outside, count = 0;
    FILE *map = NULL;
    // In a user namespace without privileges, all system files seem to belong to another user.
    if (stat("/", &top) == 0 && top.st_uid != 0) map = fopen("/proc/self/uid_map", "re");
    int is_partial = map && fscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3 && count != UINT32_MAX;
    if (map) fclose(map);
    return cached = !is_partial;
}

// Uses /proc, because AT_EMPTY_PATH would need CAP_DAC_READ_SEARCH.
static const char *descriptor_name(int descriptor, char buffer[static 64]) {
    snprintf(buffer, 64, "/proc/self/fd/%d", descriptor);
    return buffer;
}

// Whether only root can have created the link: the link and its directory belong to root, and no other user can replace
// names in the directory.
static int is_link_of_root(int directory, int link) {
    struct stat here, there;
    if (fstat(directory, &here) != 0 || fstat(link, &there) != 0 || here.st_uid != 0 || there.st_uid != 0) return 0;
    if (here.st_mode & S_ISVTX) return 1;
    if (here.st_mode & S_IWOTH) return 0;
    char buffer[64];
    return !(here.st_mode & S_IWGRP)
        || (here.st_gid == 0 && getxattr(descriptor_name(directory, buffer), "system.posix_acl_access", NULL, 0) <= 0);
}

// Reads the target of the link if it may be followed. Returns 0 or the errno.
static int target_of(int directory, int link, int follows, char target[static PATH_MAX]) {
    if (!follows || (cal_is_distrustful() && !is_link_of_root(directory, link))) return ELOOP;
    ssize_t length = readlinkat(link, "", target, PATH_MAX - 1);
    if (length < 0) return errno;
    target[length] = 0;
    return 0;
}

// Opens the path name by name, so that each link is checked before it is followed. With `is_beneath`, the path must not
// leave the start directory; otherwise the start is "/".
static int open_by_names(int start, const char *given, enum cal_opening what, int follows, int is_beneath) {
    char path[PATH_MAX], target[PATH_MAX], text[2 * PATH_MAX];
    if (strlen(given) >= sizeof path) return -ENAMETOOLONG;
    strcpy(path, given);
    // Each link restarts the loop at the start directory, with the path that it leads to. The kernel follows the same
    // number of links.
    for (int links = 0; links <= 40; links++) {
        int at = openat(start, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (at < 0) return -errno;
        char *name = path;
        while (1) {
            name += strspn(name, "/");
            size_t length = strcspn(name, "/");
            if (length == 0) return at;
            char *rest = name + length;
            rest += strspn(rest, "/");
            char entry[NAME_MAX + 1];
            int error = length <= NAME_MAX ? 0 : ENAMETOOLONG;
            if (!error) memcpy(entry, name, length);
            entry[error ? 0 : length] = 0;
            if (strcmp(entry, "..") == 0) {
                close(at);
                while (name > path && name[-1] == '/') name--;
                if (!follows || (name == path && is_beneath)) return -EXDEV;
                // The names before ".." are directories, not links, so removing the last of them yields the parent.
                while (name > path && name[-1] != '/') name--;
                memmove(name, rest, strlen(rest) + 1);
                break;
            }
            int is_end = *rest == 0 && what != CAL_OPEN_DIRECTORY && what != CAL_OPEN_TARGET;
            int next = error ? -1 : openat(at, entry, is_end ? flags_of(what) : O_PATH | O_NOFOLLOW | O_CLOEXEC);
            struct stat status;
            if (!error && (next < 0 || (!is_end && fstat(next, &status) != 0))) error = errno;
            int is_link = !error && !is_end && S_ISLNK(status.st_mode);
            if (is_link) error = target_of(at, next, follows, target);
            else if (!error && !is_end && !S_ISDIR(status.st_mode) && !(what == CAL_OPEN_TARGET && *rest == 0)) {
                error = ENOTDIR;
            }
            close(at);
            if (error || is_link) {
                if (next >= 0) close(next);
                if (error) return -error;
                if (*target == '/' && is_beneath) return -EXDEV;
                *name = 0;
                int size = snprintf(text, sizeof text, "%s%s/%s", *target == '/' ? "" : path, target, rest);
                if (size >= PATH_MAX) return -ENAMETOOLONG;
                strcpy(path, text);
                break;
            }
            if (is_end) return next;
            at = next;
            name = rest;
        }
    }
    return -ELOOP;
}

int cal_open_beneath_by_names(int directory, const char *path, enum cal_opening what, int follows) {
    return open_by_names(directory, path, what, follows, 1);
}

// Kernels before 5.6 lack openat2(2), and old container filters refuse it.
static int is_missing(int result) { return result == -ENOSYS || result == -EPERM; }

static int open_resolving(int directory, const char *path, enum cal_opening what, uint64_t resolve) {
    struct open_how how = {.flags = (unsigned)flags_of(what), .resolve = resolve | RESOLVE_NO_MAGICLINKS};
    // The kernel asks for a retry when a directory of the path is renamed during the call.
    for (int round = 0; round < 64; round++) {
        int fd = (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
        if (fd >= 0) return fd;
        if (errno != EAGAIN && errno != EINTR) break;
    }
    return -errno;
}

int cal_open_beneath(int directory, const char *path, enum cal_opening what, int follows) {
    int is_checked = follows && cal_is_distrustful();
    uint64_t links = follows && !is_checked ? 0 : RESOLVE_NO_SYMLINKS;
    int fd = open_resolving(directory, path, what, RESOLVE_BENEATH | links);
    if (!is_missing(fd) && !(is_checked && fd == -ELOOP)) return fd;
    return open_by_names(directory, path, what, follows, 1);
}

static int open_trusting(const char *path, enum cal_opening what) {
    if (!cal_is_distrustful()) {
        int fd = open(path, flags_of(what));
        return fd >= 0 ? fd : -errno;
    }
    int fd = open_resolving(AT_FDCWD, path, what, RESOLVE_NO_SYMLINKS);
    if (!is_missing(fd) && fd != -ELOOP) return fd;
    int top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (top < 0) return -errno;
    fd = open_by_names(top, path, what, 1, 0);
    close(top);
    return fd;
}

static int open_listing(int root, const char *path) {
    int fd = open_resolving(root, path, CAL_OPEN_LISTING_QUIETLY, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    // The directory belongs to another user.
    if (fd == -EPERM) fd = open_resolving(root, path, CAL_OPEN_LISTING, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    if (!is_missing(fd)) return fd;
    int directory = open_by_names(root, path, CAL_OPEN_DIRECTORY, 0, 1);
    if (directory < 0) return directory;
    fd = cal_open_entry(directory, ".", CAL_OPEN_LISTING_QUIETLY);
    if (fd == -EPERM) fd = cal_open_entry(directory, ".", CAL_OPEN_LISTING);
    close(directory);
    return fd;
}

int cal_open_listing(int root, const char *path, uint64_t *device) {
    int fd = open_listing(root, *path ? path : ".");
    struct stat status;
    if (fd < 0) return fd;
    if (fstat(fd, &status) != 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    *device = status.st_dev;
    return fd;
}

static _Thread_local int has_own_directory, is_in_directory;

void cal_own_working_directory(void) { has_own_directory = unshare(CLONE_FS) == 0; }

void cal_leave_working_directory(void) {
    if (is_in_directory) is_in_directory = chdir("/") != 0;
}

int cal_watch_open(int inotify, int directory, uint32_t mask) {
    char name[64];
    // The name in /proc costs the kernel several times as much as the directory itself.
    int is_here = has_own_directory && fchdir(directory) == 0;
    if (is_here) is_in_directory = 1;
    int watch = inotify_add_watch(inotify, is_here ? "." : descriptor_name(directory, name), mask);
    return watch >= 0 ? watch : -errno;
}

int cal_open_root(const char *path) { return open_trusting(path, CAL_OPEN_DIRECTORY); }

int cal_open_target(const char *path) { return open_trusting(path, CAL_OPEN_TARGET); }

int cal_open_entry(int directory, const char *name, enum cal_opening what) {
    int fd = openat(directory, name, flags_of(what) | O_NOFOLLOW);
    return fd >= 0 ? fd : -errno;
}

// Returns the id of the mount of an open file, or -1 if /proc does not contain it.
static int mount_of(int descriptor) {
    char name[64], text[512];
    snprintf(name, sizeof name, "/proc/self/fdinfo/%d", descriptor);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = 0;
    int mount;
    const char *line = strstr(text, "mnt_id:");
    return line && sscanf(line, "mnt_id: %d", &mount) == 1 ? mount : -1;
}

int cal_open_unmounted_by_ids(int directory, const char *name) {
    int fd = openat(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return -errno;
    int mount = mount_of(fd);
    if (mount >= 0 && mount == mount_of(directory)) return fd;
    close(fd);
    return -EXDEV;
}

int cal_open_unmounted(int directory, const char *name) {
    struct open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
    };
    int fd = (int)syscall(SYS_openat2, directory, name, &how, sizeof how);
    if (fd >= 0) return fd;
    if (errno == ENOSYS || errno == EPERM) return cal_open_unmounted_by_ids(directory, name);
    return -errno;
}

int cal_rename(int from_directory, const char *from, int to_directory, const char *to, enum cal_renaming how) {
    unsigned int flags = how == CAL_RENAME_NEW ? RENAME_NOREPLACE : how == CAL_RENAME_EXCHANGING ? RENAME_EXCHANGE : 0;
    return renameat2(from_directory, from, to_directory, to, flags) == 0 ? 0 : errno;
}

int cal_open_unnamed_in(int directory, unsigned int mode) {
    int descriptor = openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    if (descriptor < 0) return -errno;
    static _Atomic int has_names;
    char name[64];
    if (has_names || access(descriptor_name(descriptor, name), F_OK) == 0) {
        has_names = 1;
        return descriptor;
    }
    close(descriptor);
    return -EOPNOTSUPP;
}

int cal_link_descriptor_in(int descriptor, int directory, const char *name) {
    // Older kernels return ENOENT without CAP_DAC_READ_SEARCH.
    if (linkat(descriptor, "", directory, name, AT_EMPTY_PATH) == 0) return 0;
    if (errno != ENOENT) return errno;
    char buffer[64];
    int result = linkat(AT_FDCWD, descriptor_name(descriptor, buffer), directory, name, AT_SYMLINK_FOLLOW);
    return result == 0 ? 0 : errno;
}

int64_t cal_descriptor_path(int descriptor, char *path, size_t capacity) {
    char buffer[64];
    ssize_t length = readlink(descriptor_name(descriptor, buffer), path, capacity);
    if (length < 0) return -errno;
    return (size_t)length < capacity ? length : -ENAMETOOLONG;
}

int cal_change_mode(int descriptor, unsigned int mode) {
    char buffer[64];
    return chmod(descriptor_name(descriptor, buffer), mode) == 0 ? 0 : errno;
}

int cal_change_owner(int descriptor, unsigned int user, unsigned int group) {
    return fchownat(descriptor, "", user, group, AT_EMPTY_PATH) == 0 ? 0 : errno;
}

int cal_change_times(int descriptor, struct cal_time accessed, struct cal_time modified) {
    struct timespec times[2] = {
        {.tv_sec = accessed.seconds, .tv_nsec = accessed.is_left ? UTIME_OMIT : (long)accessed.nanoseconds},
        {.tv_sec = modified.seconds, .tv_nsec = modified.is_left ? UTIME_OMIT : (long)modified.nanoseconds},
    };
    char buffer[64];
    return utimensat(AT_FDCWD, descriptor_name(descriptor, buffer), times, 0) == 0 ? 0 : errno;
}

int64_t cal_copy_range_at(int source, int destination, int64_t offset, size_t count) {
    off_t from = offset, to = offset;
    ssize_t copied = copy_file_range(source, &from, destination, &to, count, 0);
    return copied >= 0 ? copied : -errno;
}

int64_t cal_seek_data(int descriptor, int64_t offset) {
    off_t found = lseek(descriptor, offset, SEEK_DATA);
    return found >= 0 ? found : -errno;
}

int64_t cal_seek_hole(int descriptor, int64_t offset) {
    off_t found = lseek(descriptor, offset, SEEK_HOLE);
    return found >= 0 ? found : -errno;
}

int cal_has_no_attributes(int directory, const char *name) {
    if (directory == AT_FDCWD) return llistxattr(name, NULL, 0) == 0;
    char path[64 + NAME_MAX];
    int length = snprintf(path, sizeof path, "/proc/self/fd/%d/%s", directory, name);
    return length < (int)sizeof path && llistxattr(path, NULL, 0) == 0;
}

int64_t cal_list_open_attributes(int descriptor, char *names, size_t capacity) {
    ssize_t length = flistxattr(descriptor, names, capacity);
    char buffer[64];
    // An O_PATH descriptor.
    if (length < 0 && errno == EBADF) length = listxattr(descriptor_name(descriptor, buffer), names, capacity);
    return length >= 0 ? length : -errno;
}

int64_t cal_read_open_attribute(int descriptor, const char *name, void *value, size_t capacity) {
    ssize_t length = fgetxattr(descriptor, name, value, capacity);
    char buffer[64];
    if (length < 0 && errno == EBADF) length = getxattr(descriptor_name(descriptor, buffer), name, value, capacity);
    return length >= 0 ? length : -errno;
}

int cal_set_open_attribute(int descriptor, const char *name, const void *value, size_t size) {
    return fsetxattr(descriptor, name, value, size, 0) == 0 ? 0 : errno;
}

void cal_start_writeback(int descriptor, int64_t offset, int64_t count) {
    sync_file_range(descriptor, offset, count, SYNC_FILE_RANGE_WRITE);
}

int cal_sync_file_system(int descriptor) { return syncfs(descriptor) == 0 ? 0 : errno; }
