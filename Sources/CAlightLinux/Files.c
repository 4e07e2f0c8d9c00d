#define _GNU_SOURCE
#include "CAlightLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static int flags_of(enum cal_opening what) {
    switch (what) {
    case CAL_OPEN_FOLDER: return O_PATH | O_DIRECTORY | O_CLOEXEC;
    case CAL_OPEN_ENTRY: return O_PATH | O_NOFOLLOW | O_CLOEXEC;
    default: return O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    }
}

int cal_open_beneath_by_names(int folder, const char *path, enum cal_opening what) {
    int at = openat(folder, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0) return -errno;
    char name[NAME_MAX + 1];
    while (*path == '/') path++;
    if (*path == 0 && what == CAL_OPEN_FOLDER) return at;
    while (1) {
        size_t length = strcspn(path, "/");
        int error = 0;
        if (length > NAME_MAX) error = ENAMETOOLONG;
        memcpy(name, path, error ? 0 : length);
        name[error ? 0 : length] = 0;
        if (strcmp(name, "..") == 0) error = EXDEV;
        const char *rest = path + length;
        while (*rest == '/') rest++;
        int flags = *rest ? flags_of(CAL_OPEN_FOLDER) : flags_of(what);
        int next = error ? -1 : openat(at, name, flags | O_NOFOLLOW);
        if (next < 0 && !error) error = errno;
        // With O_DIRECTORY a link is told as no folder.
        struct stat status;
        if (error == ENOTDIR && fstatat(at, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode))
            error = ELOOP;
        close(at);
        if (next < 0) return -error;
        if (!*rest) return next;
        at = next;
        path = rest;
    }
}

int cal_open_beneath(int folder, const char *path, enum cal_opening what, int follows) {
    struct open_how how = {
        .flags = (unsigned)flags_of(what),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | (follows ? 0 : RESOLVE_NO_SYMLINKS),
    };
    // The kernel asks for another try when a folder on the way is renamed meanwhile.
    for (int round = 0; round < 64; round++) {
        int fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
        if (fd >= 0) return fd;
        if (errno != EAGAIN && errno != EINTR) break;
    }
    // Kernels before 5.6 lack the call, and old container filters refuse it.
    if (errno == ENOSYS || errno == EPERM) return cal_open_beneath_by_names(folder, path, what);
    return -errno;
}

int cal_open_root(const char *path) {
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : -errno;
}

int cal_open_entry(int folder, const char *name, enum cal_opening what) {
    int fd = openat(folder, name, flags_of(what) | O_NOFOLLOW);
    return fd >= 0 ? fd : -errno;
}

// The id of the mount that an open file is on; -1 when /proc doesn't tell.
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

int cal_open_unmounted_by_ids(int folder, const char *name) {
    int fd = openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return -errno;
    int mount = mount_of(fd);
    if (mount >= 0 && mount == mount_of(folder)) return fd;
    close(fd);
    return -EXDEV;
}

int cal_open_unmounted(int folder, const char *name) {
    struct open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
    };
    int fd = (int)syscall(SYS_openat2, folder, name, &how, sizeof how);
    if (fd >= 0) return fd;
    if (errno == ENOSYS || errno == EPERM) return cal_open_unmounted_by_ids(folder, name);
    return -errno;
}

int cal_rename(int from_folder, const char *from, int to_folder, const char *to, enum cal_renaming how) {
    unsigned int flags = how == CAL_RENAME_NEW ? RENAME_NOREPLACE : how == CAL_RENAME_EXCHANGING ? RENAME_EXCHANGE : 0;
    return renameat2(from_folder, from, to_folder, to, flags) == 0 ? 0 : errno;
}

// By /proc, because AT_EMPTY_PATH would need CAP_DAC_READ_SEARCH.
static const char *descriptor_name(int descriptor, char buffer[static 64]) {
    snprintf(buffer, 64, "/proc/self/fd/%d", descriptor);
    return buffer;
}

int cal_open_unnamed_in(int folder, unsigned int mode) {
    int descriptor = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    if (descriptor < 0) return -errno;
    char name[64];
    if (access(descriptor_name(descriptor, name), F_OK) == 0) return descriptor;
    close(descriptor);
    return -EOPNOTSUPP;
}

int cal_link_descriptor_in(int descriptor, int folder, const char *name) {
    char buffer[64];
    int result = linkat(AT_FDCWD, descriptor_name(descriptor, buffer), folder, name, AT_SYMLINK_FOLLOW);
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

int64_t cal_list_open_attributes(int descriptor, char *names, size_t capacity) {
    ssize_t length = flistxattr(descriptor, names, capacity);
    return length >= 0 ? length : -errno;
}

int64_t cal_read_open_attribute(int descriptor, const char *name, void *value, size_t capacity) {
    ssize_t length = fgetxattr(descriptor, name, value, capacity);
    return length >= 0 ? length : -errno;
}

int cal_set_open_attribute(int descriptor, const char *name, const void *value, size_t size) {
    return fsetxattr(descriptor, name, value, size, 0) == 0 ? 0 : errno;
}

void cal_begin_writing(int descriptor, int64_t offset, int64_t count) {
    sync_file_range(descriptor, offset, count, SYNC_FILE_RANGE_WRITE);
}

int cal_sync_file_system(int descriptor) { return syncfs(descriptor) == 0 ? 0 : errno; }
